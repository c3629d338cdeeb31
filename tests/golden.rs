//! Kernels, closed forms and estimates against values computed independently to 32 digits.
//!
//! `data/golden.json.gz` has some 3000 cases, each with the tolerance that its formula's conditioning allows. Formulas of which the crate
//! has no code yet are passed over; the number of cases that are not is pinned.

mod common;

use std::io::Read;

use common::Name;
use ndarray::{Array1, Array2};
use random_features::frequency::Frequencies;
use random_features::kernel::{Gaussian, Kernel, Softmax};
use random_features::theory::{self, Law, Pair};
use random_features::{FeatureMap, SignedLog};
use serde_json::Value;

/// The formulas that the crate has code for.
const FORMULAS: [&str; 11] = [
    "kernel.softmax",
    "kernel.gaussian",
    "mse.trig.iid.softmax",
    "mse.trig.iid.gaussian",
    "mse.positive.iid.softmax",
    "mse.positive.iid.gaussian",
    "mse.hyperbolic.iid.softmax",
    "mse.hyperbolic.iid.gaussian",
    "estimate.trig",
    "estimate.positive",
    "estimate.hyperbolic",
];

fn cases() -> Vec<Value> {
    let mut json = String::new();
    flate2::read::GzDecoder::new(&include_bytes!("data/golden.json.gz")[..])
        .read_to_string(&mut json)
        .unwrap();
    match serde_json::from_str::<Value>(&json).unwrap()["cases"].take() {
        Value::Array(cases) => cases,
        other => panic!("cases are {other}"),
    }
}

fn vector(value: &Value) -> Array1<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn frequencies(rows: &Value) -> Frequencies {
    let rows: Vec<Array1<f64>> = rows.as_array().unwrap().iter().map(vector).collect();
    Frequencies::from_rows(Array2::from_shape_fn((rows.len(), rows[0].len()), |(j, k)| rows[j][k])).unwrap()
}

/// What this crate computes for a case, or `None` if it has no code for the formula.
fn compute(case: &Value) -> Option<SignedLog> {
    let formula = case["formula"].as_str().unwrap();
    if !FORMULAS.contains(&formula) {
        return None;
    }
    let (x, y) = (vector(&case["x"]), vector(&case["y"]));
    let pair = Pair::new(x.iter().copied().zip(y.iter().copied()));
    let mse = |log_mse: fn(&Pair, &Law) -> Option<f64>, gaussian: bool| {
        let law = Law::independent(case["m"].as_u64().unwrap() as usize);
        let scale = if gaussian { -pair.norms } else { 0.0 };
        SignedLog::positive(log_mse(&pair, &law).unwrap() + scale)
    };
    let estimate = |name: Name| {
        let target = match case["params"]["kernel"].as_str() {
            Some("gaussian") => common::gaussian(),
            _ => common::softmax(),
        };
        name.make::<f64>(frequencies(&case["params"]["W"]), target).log_estimate(&x, &y).unwrap()
    };
    Some(match formula {
        "kernel.softmax" => Softmax::default().log_value(&x, &y).unwrap(),
        "kernel.gaussian" => {
            let lengthscale = case["params"]["lengthscale"].as_f64().unwrap();
            Gaussian::new(lengthscale).unwrap().log_value(&x, &y).unwrap()
        }
        "mse.trig.iid.softmax" => mse(theory::trigonometric, false),
        "mse.trig.iid.gaussian" => mse(theory::trigonometric, true),
        "mse.positive.iid.softmax" => mse(theory::positive, false),
        "mse.positive.iid.gaussian" => mse(theory::positive, true),
        "mse.hyperbolic.iid.softmax" => mse(theory::hyperbolic, false),
        "mse.hyperbolic.iid.gaussian" => mse(theory::hyperbolic, true),
        "estimate.trig" => estimate(Name::Trigonometric),
        "estimate.positive" => estimate(Name::Positive),
        "estimate.hyperbolic" => estimate(Name::Hyperbolic),
        other => panic!("{other} is listed but not computed"),
    })
}

/// Whether a computed number meets an expected one, by the rules of the table.
fn meets(computed: SignedLog, case: &Value) -> bool {
    let (expected, tolerance) = (&case["expected"], &case["tolerance"]);
    let decimal = |v: &Value| v.as_str().and_then(|s| s.parse::<f64>().ok());
    let (value, sign) = (decimal(&expected["value"]).unwrap_or(f64::NAN), expected["sign"].as_f64());
    if sign == Some(0.0) {
        return computed.value().abs() <= 1e-300;
    }
    let error = (computed.value() - value).abs();
    let relative = tolerance["rel"].as_f64().is_some_and(|rel| error <= rel * value.abs());
    let absolute = tolerance["abs"].as_f64().is_some_and(|abs| error <= abs);
    let logarithmic = decimal(&expected["ln_abs"]).zip(tolerance["ln_abs"].as_f64());
    let logarithmic = logarithmic.is_some_and(|(ln, tolerance)| (computed.ln_abs - ln).abs() <= tolerance);
    relative || absolute || (logarithmic && Some(computed.sign) == sign)
}

#[test]
fn golden_values_are_met() {
    let mut checked = 0;
    for case in cases() {
        if let Some(computed) = compute(&case) {
            assert!(meets(computed, &case), "{computed:?} ({}) for {case}", computed.value());
            checked += 1;
        }
    }
    // 32 each of two kernels, 40 each of six errors, 24 each of three estimates.
    assert_eq!(checked, 2 * 32 + 6 * 40 + 3 * 24);
}
