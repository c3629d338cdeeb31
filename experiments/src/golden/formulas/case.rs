//! A case's inputs, and the forms of what is computed from them.

use ndarray::{Array1, Array2};
use num_complex::Complex64;
use random_features::SignedLog;
use random_features::extend::Radius;
use random_features::recipe::{AnyCoupling, Draw};
use random_features::theory::gerf::GerfSign;
use random_features::theory::{Dependence, Law, Pair};
use serde_json::Value;

use crate::golden::{Computed, decimal};

/// The largest count that a case may have.
const MOST: u64 = 1_000_000;

/// A case's inputs, by the names of the table.
pub struct Case<'a> {
    pub formula: &'a str,
    pub json: &'a Value,
}

impl Case<'_> {
    pub fn count(&self, name: &str) -> Result<usize, String> {
        let value = self.json.get(name).filter(|v| !v.is_null()).unwrap_or(&self.json["params"][name]);
        match value.as_u64() {
            Some(count @ 0..=MOST) => Ok(count as usize),
            Some(count) => Err(format!("{name} is {count}, beyond {MOST}")),
            None => Err(format!("{name} is missing")),
        }
    }

    pub fn number(&self, name: &str) -> Result<f64, String> {
        decimal(&self.json["params"][name]).map_err(|e| format!("{name}: {e}"))
    }

    pub fn point(&self, name: &str) -> Result<Array1<f64>, String> {
        let values = self.json[name].as_array().ok_or(format!("{name} is missing"))?;
        values.iter().map(decimal).collect()
    }

    /// A list of numbers among the parameters.
    pub fn list(&self, name: &str) -> Result<Vec<f64>, String> {
        let values = self.json["params"][name].as_array().ok_or(format!("{name} is missing"))?;
        values.iter().map(decimal).collect()
    }

    pub fn points(&self) -> Result<(Array1<f64>, Array1<f64>), String> {
        let (x, y) = (self.point("x")?, self.point("y")?);
        let d = self.json["d"].as_u64().map_or(x.len(), |d| d as usize);
        let fits = x.len() == d && y.len() == d;
        if fits { Ok((x, y)) } else { Err("x and y do not have d coordinates each".into()) }
    }

    pub fn pair(&self) -> Result<Pair, String> {
        let (x, y) = self.points()?;
        Ok(pair_of(&x, &y))
    }

    pub fn matrix(&self, name: &str) -> Result<Array2<f64>, String> {
        rows(&self.json["params"][name], decimal)
    }

    pub fn complex(&self, name: &str) -> Result<Complex64, String> {
        complex(&self.json["params"][name])
    }

    pub fn diagonal(&self, name: &str) -> Result<Vec<Complex64>, String> {
        let values = self.json["params"][name].as_array().ok_or(format!("{name} is missing"))?;
        values.iter().map(complex).collect()
    }

    pub fn sign(&self) -> Result<GerfSign, String> {
        match self.number("s")? {
            1.0 => Ok(GerfSign::Plus),
            -1.0 => Ok(GerfSign::Minus),
            s => Err(format!("s is {s}")),
        }
    }

    /// The law that the middle of a formula's name states, `iid`, `ort` or `sim`, with coupled radii where the case has them.
    pub fn law(&self, pair: &Pair, radius: Radius) -> Result<Law, String> {
        let (d, m) = (pair.dim, self.count("m")?);
        if let Some(radii) = self.json["params"]["radii"].as_str().filter(|radii| *radii != "independent") {
            let directions = if self.formula.contains(".sim") { "simplex" } else { "orthogonal" };
            let radii = if radii == "stratified over the draw" { "overall" } else { radii };
            let coupling: Result<AnyCoupling, _> = format!("{directions}, {radii} radii").parse();
            return Ok(Draw::new(d, m, coupling.map_err(|e| e.to_string())?).with_radii(radius).law());
        }
        let dependence = if self.formula.contains(".ort") {
            Dependence::Orthogonal
        } else if self.formula.contains(".sim") {
            Dependence::Angle { cos: -1.0 / (d as f64 - 1.0) }
        } else {
            Dependence::Independent
        };
        Ok(Law::blocks(m, d, dependence, radius))
    }
}

fn pair_of(x: &Array1<f64>, y: &Array1<f64>) -> Pair {
    Pair::new(x.iter().copied().zip(y.iter().copied()))
}

pub fn complex(value: &Value) -> Result<Complex64, String> {
    match value.as_array().map(Vec::as_slice) {
        Some([re, im]) => Ok(Complex64::new(decimal(re)?, decimal(im)?)),
        _ => decimal(value).map(Complex64::from),
    }
}

pub fn rows<A: Clone>(value: &Value, entry: fn(&Value) -> Result<A, String>) -> Result<Array2<A>, String> {
    let rows = value.as_array().ok_or("a matrix is missing")?;
    let mut entries = Vec::new();
    for row in rows {
        for value in row.as_array().ok_or("a row is not a list")? {
            entries.push(entry(value)?);
        }
    }
    Array2::from_shape_vec((rows.len(), entries.len() / rows.len().max(1)), entries)
        .map_err(|e| e.to_string())
}

/// A computed number, or `None` for an unknown formula.
pub type Found = Result<Option<Computed>, String>;

pub fn number(value: SignedLog) -> Found {
    Ok(Some(Computed::Number(value)))
}

pub fn plain(value: f64) -> Found {
    number(SignedLog::from(value))
}

pub fn ln(ln: f64) -> Found {
    number(SignedLog::positive(ln))
}

pub fn known(ln_value: Option<f64>) -> Found {
    ln(ln_value.ok_or("the crate says that there is no closed form")?)
}

pub fn parts(parts: Vec<(&'static str, Vec<f64>)>) -> Found {
    Ok(Some(Computed::Parts(parts)))
}
