//! What draws are made of, seen through draws from a generator that gives only zeros, and parameters from data.

use ndarray::{Array1, Array2, Axis};
use random_features::data::{PairStatistics, Statistics};
use random_features::extend::{Coupling, Marginal, Radii, Rows};
use random_features::frequency::{Givens, Halton, SimplexPlus};
use random_features::theory::gerf::GerfSign;
use random_features::workbench::structured::{PlaneRotation, Rotated, Rotation, Structured};
use random_features::workbench::{Chi, RotationLaw, zeros};
use serde_json::{Value, json};

use super::case::{Case, Found, parts, rows};
use crate::golden::decimal;

/// The rows of a block that zeros give.
fn block(
    coupling: &dyn Coupling,
    (size, d): (usize, usize),
    radii: &dyn Radii,
) -> Result<Array2<f64>, String> {
    match coupling.draw_block(d, size, radii, &mut zeros()).map_err(|e| e.to_string())? {
        Rows::Dense(rows) => Ok(rows),
        _ => Err("the rows are structured".into()),
    }
}

/// A law of radii that are known.
#[derive(Debug)]
struct Known<'a>(&'a [f64]);

impl Radii for Known<'_> {
    fn draw(
        &self,
        _: usize,
        _: usize,
        _: &mut random_features::extend::Generator,
    ) -> random_features::Result<Vec<f64>> {
        Ok(self.0.to_vec())
    }
}

/// The vertices of a regular simplex in ℝᵈ.
fn simplex(d: usize) -> Result<Structured, String> {
    let rotation = Rotation::Givens(Vec::new());
    let block = Rotated { rotation, vertices: d, copies: 1, radii: vec![1.0; d] };
    Structured::new(d, d, vec![block]).map_err(|e| e.to_string())
}

pub fn simplex_matrix(case: &Case) -> Found {
    match case.formula {
        "simplex.rows" => {
            let rows = simplex(case.count("d")?)?.to_rows();
            parts(vec![("rows", rows.into_iter().collect())])
        }
        "simplex.apply" => {
            let v = case.json["params"]["v"].as_array().ok_or("v is missing")?;
            let v = v.iter().map(decimal).collect::<Result<Array1<_>, _>>()?;
            let simplex = simplex(v.len())?;
            let out = simplex.project(v.view()).map_err(|e| e.to_string())?;
            parts(vec![("out", out.to_vec()), ("out_transpose", simplex.to_rows().t().dot(&v).to_vec())])
        }
        "simrf_plus.directions" => {
            let norms = case.json["params"]["norms"].as_array().ok_or("norms are missing")?;
            let norms = norms.iter().map(decimal).collect::<Result<Vec<_>, _>>()?;
            let coupling = SimplexPlus::on(RotationLaw::Givens(Givens::default()));
            let coupling = coupling.with_passes(case.count("passes")?);
            let rows = block(&coupling, (norms.len(), norms.len()), &Known(&norms))?;
            let sum = rows.sum_axis(Axis(0));
            let directions = rows / &Array1::from(norms).insert_axis(Axis(1));
            parts(vec![
                ("resultant_norm", vec![sum.dot(&sum).sqrt()]),
                ("rows", directions.into_iter().collect()),
            ])
        }
        _ => Ok(None),
    }
}

pub fn structured(case: &Case) -> Found {
    let list = |name: &str| case.json["params"][name].as_array().ok_or(format!("{name} is missing"));
    let mut v = list("v")?.iter().map(decimal).collect::<Result<Array1<_>, _>>()?;
    let rotation = match case.formula {
        "structured.hd3" => {
            let padded = case.count("padded")?;
            if padded < v.len() {
                return Err(format!("v is longer than {padded}"));
            }
            v.append(ndarray::Axis(0), Array1::zeros(padded - v.len()).view()).map_err(|e| e.to_string())?;
            let signs = rows(&case.json["params"]["signs_first_to_last"], decimal)?;
            Rotation::Hadamard(signs.mapv(|sign| sign < 0.0))
        }
        "structured.givens" => {
            let axis = |value: &Value| value.as_u64().map(|axis| axis as usize).ok_or("an axis is missing");
            let plane = |value: &Value| {
                let axes = [axis(&value[0])?, axis(&value[1])?];
                Ok::<_, String>(PlaneRotation { axes, angle: decimal(&value[2])? })
            };
            Rotation::Givens(list("rotations_in_order")?.iter().map(plane).collect::<Result<_, _>>()?)
        }
        _ => return Ok(None),
    };
    rotation.apply(&mut v).map_err(|e| e.to_string())?;
    parts(vec![("out", v.to_vec())])
}

pub fn quasi_random(case: &Case) -> Found {
    if case.formula != "qmc.halton" {
        return Ok(None);
    }
    if case.json["params"]["bases"] != json!([2, 3, 5, 7, 11, 13, 17, 19]) {
        return Err("the bases are not the first eight primes".into());
    }
    let index = case.count("index")?;
    let last = |coupling: &dyn Coupling| {
        let rows = block(coupling, (index, 8), &Chi)?;
        rows.rows().into_iter().next_back().map(|row| row.to_vec()).ok_or("the index is 0".to_string())
    };
    let u = last(&Halton.with_marginal(Centred))?.iter().map(|u| u + 0.5).collect();
    parts(vec![("u", u), ("gaussian", last(&Halton)?)])
}

/// Uniform on (−½, ½).
#[derive(Debug)]
struct Centred;

impl Marginal for Centred {
    fn lower_quantile(&self, u: f64) -> f64 {
        u - 0.5
    }
}

pub fn data(case: &Case) -> Found {
    if case.formula != "data.statistics" {
        return Ok(None);
    }
    let statistics = |name| Statistics::of(&case.matrix(name)?).map_err(|e| e.to_string());
    let (x, y) = (statistics("X")?, statistics("Y")?);
    let pairs = PairStatistics::new(&x, &y).map_err(|e| e.to_string())?;
    let (best, _) = pairs.oprf();
    let squares = pairs.root_mean_square_products().iter().map(|t| t * t).sum();
    parts(vec![
        ("mean_sq_plus", vec![pairs.mean_squared_sum(GerfSign::Plus)]),
        ("mean_sq_minus", vec![pairs.mean_squared_sum(GerfSign::Minus)]),
        ("oprf_rho", vec![1.0 / (1.0 - 8.0 * best)]),
        ("oprf_A", vec![best]),
        ("pois_T", vec![squares]),
        ("pois_lambda", vec![pairs.poisson()]),
        ("geom_t", pairs.magnitude_products()),
        ("geom_p", vec![pairs.geometric()]),
        ("shift", pairs.shift(case.number("eps")?).map_err(|e| e.to_string())?),
    ])
}
