//! Estimates from given frequencies.

use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{CountLaw, Counts, Frequencies};
use random_features::map::Transform;
use random_features::theory::complex_exponential::Symmetry;
use random_features::{
    ComplexExponential, Geometric, Gerf, Hyperbolic, Map, Poisson, Positive, Trigonometric,
};
use serde_json::Value;

use super::case::{Case, Found, number, rows};

pub fn estimate(case: &Case) -> Found {
    let omega = || Frequencies::from_rows(case.matrix("W")?).map_err(|e| e.to_string());
    let tau = || Frequencies::from_rows(case.matrix("T")?).map_err(|e| e.to_string());
    let counts = |law: CountLaw| {
        if case.json["params"]["kernel"] != "gaussian" {
            return Err("the kernel is not gaussian".into());
        }
        let count = |value: &Value| value.as_u64().ok_or(format!("{value} is not a count"));
        Counts::from_parts(rows(&case.json["params"]["omega"], count)?, law).map_err(|e| e.to_string())
    };
    let map: Map<f64> = match case.formula {
        "estimate.poisson" => {
            let omega = counts(CountLaw::Poisson(case.number("lambda")?.into()))?;
            Poisson::default().gaussian(omega, 1.0).map_err(|e| e.to_string())?
        }
        "estimate.geometric" => {
            let omega = counts(CountLaw::Geometric(case.number("p")?))?;
            Geometric::default().gaussian(omega, 1.0).map_err(|e| e.to_string())?
        }
        "estimate.trig" => Trigonometric.softmax(omega()?).map_err(|e| e.to_string())?,
        "estimate.positive" => Positive.softmax(omega()?).map_err(|e| e.to_string())?,
        "estimate.hyperbolic" => Hyperbolic.softmax(omega()?).map_err(|e| e.to_string())?,
        "estimate.gerf_real" => {
            let gerf = Gerf::new(case.complex("A")?, case.sign()?).map_err(|e| e.to_string())?;
            gerf.gaussian(omega()?, 1.0).map_err(|e| e.to_string())?
        }
        "estimate.ce_real" => {
            let a = Transform::diagonal(case.diagonal("A_diag")?).map_err(|e| e.to_string())?;
            let map = ComplexExponential::new(a, Symmetry::Plain).softmax(omega()?);
            map.map_err(|e| e.to_string())?
        }
        "estimate.angular_hybrid_shared" => {
            Hybrid::angular(Bases::shared(omega()?), tau()?).map_err(|e| e.to_string())?
        }
        "estimate.gaussian_hybrid_shared" => {
            let (sigma, r) = (case.number("sigma")?, case.number("r")?);
            let map = Hybrid::gaussian(Bases::shared(omega()?), tau()?, (sigma, r));
            map.map_err(|e| e.to_string())?
        }
        "estimate.smreg_positive" => {
            // Rows of norm √d.
            let mut rows = case.matrix("W")?;
            let root = (rows.ncols() as f64).sqrt();
            rows.rows_mut().into_iter().for_each(|mut row| row *= root / row.dot(&row).sqrt());
            let omega = Frequencies::from_rows(rows).map_err(|e| e.to_string())?;
            Positive.softmax(omega).map_err(|e| e.to_string())?
        }
        _ => return Ok(None),
    };
    let (x, y) = case.points()?;
    number(map.log_estimate(&x, &y).map_err(|e| e.to_string())?)
}
