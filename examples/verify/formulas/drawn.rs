//! What draws are made of, and parameters from data.

use ndarray::{Array1, Array2};
use random_features::data::{PairStatistics, Statistics};
use random_features::frequency::structured::{PlaneRotation, Rotation};
use random_features::frequency::{quasi, simplex, simplex_plus};
use random_features::theory::gerf::GerfSign;
use random_features::workbench::normal_quantile;
use serde_json::Value;

use super::case::{Case, Found, parts, rows};
use crate::golden::decimal;

pub fn simplex_matrix(case: &Case) -> Found {
    match case.formula {
        "simplex.rows" => {
            let d = case.count("d")?;
            if d > 10_000 {
                return Err(format!("d is {d}, and its matrix too large"));
            }
            parts(vec![("rows", simplex::vertices(d).into_iter().collect())])
        }
        "simplex.apply" => {
            let v = case.json["params"]["v"].as_array().ok_or("v is missing")?;
            let v = v.iter().map(|v| Ok([decimal(v)?])).collect::<Result<Vec<_>, String>>()?;
            let (mut out, mut transposed) = (Array2::from(v.clone()), Array2::from(v));
            simplex::multiply(out.view_mut());
            simplex::multiply_transposed(transposed.view_mut());
            parts(vec![
                ("out", out.into_iter().collect()),
                ("out_transpose", transposed.into_iter().collect()),
            ])
        }
        "simrf_plus.directions" => {
            let norms = case.json["params"]["norms"].as_array().ok_or("norms are missing")?;
            let norms = norms.iter().map(decimal).collect::<Result<Vec<_>, _>>()?;
            let directions = simplex_plus::place(&norms, case.count("passes")?);
            let sum = Array1::from(norms).dot(&directions);
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
    let bases = case.json["params"]["bases"].as_array().ok_or("bases are missing")?;
    let index = case.count("index")? as u64;
    let inverse = |base: &Value| {
        let base = base.as_u64().ok_or(format!("{base} is not a base"))?;
        Ok::<_, String>(quasi::radical_inverse(index, base))
    };
    let u = bases.iter().map(inverse).collect::<Result<Vec<_>, _>>()?;
    parts(vec![("gaussian", u.iter().map(|u| normal_quantile(*u)).collect()), ("u", u)])
}

pub fn data(case: &Case) -> Found {
    if case.formula != "data.statistics" {
        return Ok(None);
    }
    let statistics = |name| Statistics::of(&case.matrix(name)?).map_err(|e| e.to_string());
    let (x, y) = (statistics("X")?, statistics("Y")?);
    let pairs = PairStatistics::new(&x, &y).map_err(|e| e.to_string())?;
    let best = pairs.oprf();
    let squares = pairs.root_mean_square_products().iter().map(|t| t * t).sum();
    parts(vec![
        ("mean_sq_plus", vec![pairs.mean_squared_sum(GerfSign::Plus)]),
        ("mean_sq_minus", vec![pairs.mean_squared_sum(GerfSign::Minus)]),
        ("oprf_rho", vec![best.rho]),
        ("oprf_A", vec![best.a]),
        ("pois_T", vec![squares]),
        ("pois_lambda", vec![pairs.poisson()]),
        ("geom_t", pairs.magnitude_products()),
        ("geom_p", vec![pairs.geometric()]),
        ("shift", pairs.shift(case.number("eps")?).map_err(|e| e.to_string())?),
    ])
}
