//! The golden table: reading it, and comparing a computed value with an expected one.

pub mod formulas;

use std::io::Read;

use random_features::SignedLog;
use serde_json::Value;

/// The table that comes with the crate, compressed.
const BUNDLED: &[u8] = include_bytes!("../../data/golden/golden.json.gz");

/// The table of regressions.
const REGRESSION: &[u8] = include_bytes!("../../data/golden/golden-regression.json.gz");

/// The table of kernels.
const KERNELS: &[u8] = include_bytes!("../../data/golden/golden-kernels.json.gz");

/// The cases of the bundled table.
pub fn bundled() -> Result<Vec<Value>, String> {
    unpacked(BUNDLED)
}

/// The cases of the bundled table of regressions.
pub fn regression() -> Result<Vec<Value>, String> {
    unpacked(REGRESSION)
}

/// The cases of the bundled table of kernels.
pub fn kernels() -> Result<Vec<Value>, String> {
    unpacked(KERNELS)
}

fn unpacked(table: &[u8]) -> Result<Vec<Value>, String> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(table)
        .read_to_string(&mut text)
        .map_err(|e| format!("the bundled table cannot be unpacked: {e}"))?;
    cases("the bundled table", &text)
}

/// The cases of a file.
pub fn read(file: &str) -> Result<Vec<Value>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file} cannot be read: {e}"))?;
    cases(file, &text)
}

fn cases(name: &str, text: &str) -> Result<Vec<Value>, String> {
    let mut table: Value =
        serde_json::from_str(&with_decimals_quoted(text)).map_err(|e| format!("{name} is not JSON: {e}"))?;
    match table.get_mut("cases").map(Value::take) {
        Some(Value::Array(cases)) => Ok(cases),
        _ => Err(format!("{name} has no list of \"cases\"")),
    }
}

/// The JSON of a table with every decimal as a string, which [`decimal`] reads to the bit: where it stands as a number,
/// serde_json may read a neighbour. Whole numbers stay.
fn with_decimals_quoted(text: &str) -> String {
    let in_number = |c: char| c.is_ascii_alphanumeric() || ['.', '+', '-'].contains(&c);
    let quote = |token: &str| {
        let (number, rest) = token.split_at(token.trim_end_matches(|c| !in_number(c)).len());
        let starts = number.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let mark = if starts && number.contains(['.', 'e', 'E']) { "\"" } else { "" };
        [mark, number, mark, rest].concat()
    };
    // Every second part is a string; none in the table holds a quotation mark itself.
    let parts = text.split('"').enumerate().map(|(i, part)| match i % 2 {
        0 => part.split_inclusive(|c| !in_number(c)).map(quote).collect(),
        _ => part.to_string(),
    });
    parts.collect::<Vec<_>>().join("\"")
}

/// What the crate computes for a case: a number, or several by name.
pub enum Computed {
    Number(SignedLog),
    Parts(Vec<(&'static str, Vec<f64>)>),
    Arrays(Vec<Scaled>),
}

/// A named array that passes relative to the largest expected magnitude of each of its units.
pub struct Scaled {
    pub name: &'static str,
    /// The numbers, in the order of the table.
    pub values: Vec<f64>,
    /// The unit of each number; empty where there is one for all.
    pub units: Vec<usize>,
}

impl Scaled {
    /// An array of one unit.
    pub fn new(name: &'static str, values: impl IntoIterator<Item = f64>) -> Self {
        Scaled { name, values: values.into_iter().collect(), units: Vec::new() }
    }

    /// An array whose number `i` has the unit `unit(i)`.
    pub fn of_units(
        name: &'static str,
        values: impl IntoIterator<Item = f64>,
        unit: impl Fn(usize) -> usize,
    ) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let units = (0..values.len()).map(unit).collect();
        Scaled { name, values, units }
    }
}

/// The distance of a computed value from the expected one, in units of the tolerance: at most 1 passes.
pub fn distance(computed: &Computed, case: &Value) -> Result<f64, String> {
    let (expected, tolerance) = (&case["expected"], &case["tolerance"]);
    let bounds = tolerance.as_object().ok_or("the tolerance is missing")?;
    if bounds.is_empty() || bounds.values().filter_map(|v| decimal(v).ok()).any(|bound| bound < 0.0) {
        return Err("the tolerance allows nothing".into());
    }
    match computed {
        Computed::Number(number) => of_number(*number, expected, tolerance),
        Computed::Parts(parts) => parts.iter().try_fold(0.0, |worst: f64, (name, values)| {
            Ok(worst.max(of_part(name, values, &expected[*name], tolerance)?))
        }),
        Computed::Arrays(arrays) => arrays.iter().try_fold(0.0, |worst: f64, array| {
            Ok(worst.max(of_array(array, &expected[array.name], &tolerance["rel"])?))
        }),
    }
}

/// An array passes if each number does, relative to the largest of its unit. Numbers without a value must be so.
fn of_array(array: &Scaled, expected: &Value, relative: &Value) -> Result<f64, String> {
    let mut values = Vec::new();
    flatten(expected, &mut values)?;
    let (name, relative) = (array.name, decimal(relative)?);
    if values.len() != array.values.len() {
        return Err(format!("{name} has {} numbers, but {} are expected", array.values.len(), values.len()));
    }
    let unit = |i: usize| array.units.get(i).copied().unwrap_or(0);
    let mut largest = vec![0.0f64; (0..values.len()).map(unit).max().map_or(0, |most| most + 1)];
    values.iter().enumerate().for_each(|(i, v)| largest[unit(i)] = largest[unit(i)].max(v.abs()));
    Ok(array.values.iter().zip(values).enumerate().fold(0.0, |worst, (i, (computed, value))| {
        let distance = ratio((computed - value).abs(), relative * largest[unit(i)]);
        if distance.is_nan() { f64::INFINITY } else { worst.max(distance) }
    }))
}

/// A number passes if one of three holds: relative, logarithmic (with the right sign) or absolute.
fn of_number(computed: SignedLog, expected: &Value, tolerance: &Value) -> Result<f64, String> {
    let value = decimal(&expected["value"])?;
    let sign = expected["sign"].as_f64().ok_or("the expected sign is missing")?;
    if (sign == 0.0) != (value == 0.0) && expected["ln_abs"].is_null() {
        return Err("the expected sign and value contradict each other".into());
    }
    let error = (computed.value() - value).abs();
    if sign == 0.0 && computed.value().abs() <= 1e-300 {
        return Ok(0.0);
    }
    let mut ways = Vec::new();
    if let Ok(absolute) = decimal(&tolerance["abs"]) {
        ways.push(ratio(error, absolute));
    }
    if sign != 0.0 {
        if let Ok(relative) = decimal(&tolerance["rel"]) {
            ways.push(ratio(error, relative * value.abs()));
        }
        if let (Ok(logarithmic), true) = (decimal(&tolerance["ln_abs"]), computed.sign == sign) {
            ways.push(ratio((computed.ln_abs - decimal(&expected["ln_abs"])?).abs(), logarithmic));
        }
    }
    // Where the value leaves the range its differences are NaN, and the logarithm decides.
    Ok(ways.into_iter().filter(|way| !way.is_nan()).fold(f64::INFINITY, f64::min))
}

/// An error in units of a tolerance, which may be 0.
fn ratio(error: f64, tolerance: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / tolerance }
}

/// A named part passes elementwise, absolutely or relatively; some have tolerances of their own.
fn of_part(name: &str, computed: &[f64], expected: &Value, tolerance: &Value) -> Result<f64, String> {
    let mut values = Vec::new();
    flatten(expected, &mut values)?;
    if values.len() != computed.len() {
        return Err(format!("{name} has {} numbers, but {} are expected", computed.len(), values.len()));
    }
    let key = |kind: &str| {
        let own = &tolerance[format!("{kind}_{name}")];
        decimal(own).or_else(|_| decimal(&tolerance[kind]))
    };
    let (relative, absolute) = (key("rel").unwrap_or(0.0), key("abs").unwrap_or(0.0));
    Ok(computed.iter().zip(values).fold(0.0, |worst, (computed, value)| {
        let error = (computed - value).abs();
        let distance = ratio(error, (relative * value.abs()).max(absolute));
        if distance.is_nan() { f64::INFINITY } else { worst.max(distance) }
    }))
}

/// All numbers in a value, in order; numbers may be written as text.
fn flatten(value: &Value, into: &mut Vec<f64>) -> Result<(), String> {
    match value {
        Value::Array(values) => values.iter().try_for_each(|value| flatten(value, into)),
        Value::Bool(value) => {
            into.push(f64::from(u8::from(*value)));
            Ok(())
        }
        value => {
            into.push(decimal(value)?);
            Ok(())
        }
    }
}

/// A number, or a decimal number as text; ±∞ beyond the range.
pub fn decimal(value: &Value) -> Result<f64, String> {
    let parsed = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    parsed.ok_or(format!("{value} stands where a number should"))
}
