//! Stored forms that somebody has changed, with checksums that fit: they are refused, or what is read can be used like any other value.
//! Nothing panics, hangs or ends the process, and no result is NaN but those of points and tokens that are not finite or overflow.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rand::{Rng, RngExt};
use random_features::rng;
use serde_json::{Value, json};

use super::samples::{Sample, samples};
use super::{role, run_alone, this_program};

/// How long reading and use of a tiny value may take.
const MOST: Duration = Duration::from_secs(20);

/// Numbers as text that mean something to somebody.
const NUMBERS: [&str; 16] = [
    "NaN",
    "inf",
    "-inf",
    "0.0",
    "-0.0",
    "1.0",
    "-1.0",
    "2.0",
    "1e-300",
    "5e-324",
    "1e308",
    "-1e308",
    "1e30",
    "-1e30",
    "0.999999999999",
    "9007199254740993.0",
];

/// Numbers that points and tokens may have, but whose squared norms and logits are not finite.
const FAR: [&str; 3] = ["NaN", "inf", "1e308"];

/// Sizes, and what differs from a size by one.
const SIZES: [u64; 14] = [0, 1, 2, 3, 4, 7, 64, 255, 1 << 16, 1 << 31, 1 << 33, 1 << 53, 1 << 60, u64::MAX];

/// The paths of all parts of a value but its checksums, which are made anew, and what they protect only against accidents.
fn paths(value: &Value) -> Vec<String> {
    fn of(value: &Value, path: String, all: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields.iter().filter(|(name, _)| *name != "checksum") {
                    of(field, format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), all);
                }
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| of(item, format!("{path}/{i}"), all));
            }
            _ => {}
        }
        all.push(path);
    }
    let mut all = Vec::new();
    of(value, String::new(), &mut all);
    all
}

fn one_of<'a, A>(all: &'a [A], rng: &mut impl Rng) -> &'a A {
    &all[rng.random_range(0..all.len())]
}

/// Another value for a part of a stored form.
fn other(part: &Value, whole: &Value, paths: &[String], rng: &mut impl Rng) -> Value {
    // Now and then what is somewhere else, whatever it is.
    if rng.random_bool(0.1) {
        return whole.pointer(one_of::<String>(paths, rng)).cloned().unwrap_or_default();
    }
    match part {
        Value::Null => json!(one_of(&SIZES, rng)),
        Value::Bool(is) => json!(!is),
        Value::Number(number) => match (number.as_u64(), rng.random_range(0..6)) {
            (Some(number), 0) => json!(number.wrapping_add(1)),
            (Some(number), 1) => json!(number.wrapping_sub(1)),
            (Some(number), 2) => json!(number.wrapping_mul(2)),
            (_, 3) => json!(-1),
            _ => json!(one_of(&SIZES, rng)),
        },
        Value::String(text) => match text.parse::<f64>() {
            Ok(number) => match rng.random_range(0..4) {
                0 => json!(format!("{:?}", -number)),
                1 => json!(format!("{:?}", number * 1.5)),
                _ => json!(one_of(&NUMBERS, rng)),
            },
            Err(_) => {
                let texts: BTreeSet<&str> =
                    paths.iter().filter_map(|path| whole.pointer(path)?.as_str()).collect();
                json!(one_of(&texts.into_iter().collect::<Vec<_>>(), rng))
            }
        },
        Value::Array(items) => {
            let mut items = items.clone();
            match (items.len(), rng.random_range(0..5)) {
                (0, _) => items.push(Value::Null),
                (_, 0) => drop(items.pop()),
                (_, 1) => items.clear(),
                (_, 2) => items.push(items[items.len() - 1].clone()),
                (n, 3) => items.swap(0, n - 1),
                (n, _) => items[n - 1] = items[0].clone(),
            }
            Value::Array(items)
        }
        Value::Object(fields) => {
            let mut fields = fields.clone();
            let names: Vec<String> = fields.keys().cloned().collect();
            match names.is_empty() {
                true => drop(fields.insert("more".into(), Value::Null)),
                false if rng.random_bool(0.5) => drop(fields.remove(one_of(&names, rng))),
                false => {
                    let from = fields[one_of(&names, rng)].clone();
                    fields.insert(one_of(&names, rng).clone(), from);
                }
            }
            Value::Object(fields)
        }
    }
}

/// A stored form with one to three parts that are others, and what they are.
fn changed(stored: &Value, paths: &[String], rng: &mut impl Rng) -> (Value, String) {
    let (mut value, mut changes) = (stored.clone(), String::new());
    for _ in 0..*one_of(&[1, 1, 1, 1, 2, 3], rng) {
        let path: &String = one_of(paths, rng);
        // A part of what is gone is gone.
        let Some(part) = value.pointer(path) else { continue };
        let other = other(part, stored, paths, rng);
        changes += &format!("{path}: {other}; ");
        if let Some(part) = value.pointer_mut(path) {
            *part = other;
        }
    }
    (value, changes)
}

/// Ends the process where something hangs, and says what.
struct Watch {
    now: Mutex<Option<(Instant, String)>>,
}

static WATCH: Watch = Watch { now: Mutex::new(None) };

impl Watch {
    /// Watches from now on.
    fn start(&'static self, most: Duration) {
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(most / 10);
                let now = self.now.lock().unwrap();
                if let Some((_, what)) = now.as_ref().filter(|(since, _)| since.elapsed() > most) {
                    use std::io::Write;
                    let _ = writeln!(std::io::stderr(), "hangs: {what}");
                    std::process::abort();
                }
            }
        });
    }

    fn set(&self, what: Option<String>) {
        *self.now.lock().unwrap() = what.map(|what| (Instant::now(), what));
    }
}

/// How many changed forms were refused and used, and what went wrong with others.
#[derive(Default)]
struct Outcome {
    refused: usize,
    used: usize,
    faults: Vec<String>,
}

/// Whether a change, as "path: value; " for each, makes results NaN by what is documented.
fn overflows(sample: &Sample, changes: &str) -> bool {
    let is_far = |change: &str| FAR.iter().any(|far| change.contains(far));
    let overflows = |part: &str| changes.split("; ").any(|change| change.contains(part) && is_far(change));
    sample.overflowing.is_some_and(overflows)
}

/// Reads changed forms of a sample, and uses what is read.
fn attack(sample: &Sample, count: usize, rng: &mut impl Rng) -> Outcome {
    let (paths, mut outcome) = (paths(&sample.stored), Outcome::default());
    for _ in 0..count {
        let (value, changes) = changed(&sample.stored, &paths, rng);
        let what = format!("{} with {changes}", sample.name);
        WATCH.set(Some(what.clone()));
        match catch_unwind(AssertUnwindSafe(|| (sample.read)(value))) {
            Ok(Err(_)) => outcome.refused += 1,
            Ok(Ok(numbers))
                if numbers.iter().any(|number| number.is_nan()) && !overflows(sample, &changes) =>
            {
                outcome.faults.push(format!("{what}: NaN"));
            }
            Ok(Ok(_)) => outcome.used += 1,
            Err(_) => outcome.faults.push(format!("{what}: a panic")),
        }
    }
    WATCH.set(None);
    outcome
}

/// Attacks all samples, with so many changed forms each.
#[track_caller]
fn attack_all(count: usize, seed: u64) {
    let (mut faults, mut refused, mut used) = (Vec::new(), 0, 0);
    for (number, sample) in samples().iter().enumerate() {
        // What was not changed can be read and used.
        let whole = (sample.read)(sample.stored.clone());
        assert!(
            whole.as_ref().is_ok_and(|all| all.iter().all(|v| v.is_finite())),
            "{}: {whole:?}",
            sample.name
        );
        let outcome = attack(sample, count, &mut rng(seed + number as u64));
        refused += outcome.refused;
        used += outcome.used;
        faults.extend(outcome.faults);
    }
    println!("{refused} refused, {used} used, {} faults", faults.len());
    assert!(faults.is_empty(), "{} faults: {:#?}", faults.len(), &faults[..faults.len().min(40)]);
    assert!(
        refused > used / 20 && used > refused / 50,
        "{refused} refused and {used} used: too few of a kind"
    );
}

/// Runs a test of this module alone, with few addresses, and gives its success and words.
fn alone(test: &str, within: Duration) -> super::Ended {
    let mut command = Command::new("sh");
    // A size that was changed may ask for what is there.
    let script = if cfg!(target_os = "linux") {
        "ulimit -v 8388608; exec \"$0\" \"$@\""
    } else {
        "exec \"$0\" \"$@\""
    };
    command.args(["-c", script]).arg(this_program());
    run_alone(command, &format!("standing::stored::{test}"), "attack", within)
}

#[test]
fn changed_forms_are_refused_or_usable() {
    WATCH.start(MOST);
    attack_all(12, 1);
}

#[test]
#[ignore = "minutes: run by .ci/full"]
fn many_changed_forms_are_refused_or_usable() {
    if role().is_some() {
        WATCH.start(MOST);
        return attack_all(1500, 1000);
    }
    let ended = alone("many_changed_forms_are_refused_or_usable", Duration::from_secs(600));
    assert!(ended.succeeded(), "{}", ended.text);
}

/// What is stored as a number and a list of sizes, and used as no type here is.
fn broken() -> Sample {
    let use_it = |(number, sizes): (String, Vec<u8>)| {
        assert_eq!(sizes.len(), 2, "as many as nobody has checked");
        Ok(vec![number.parse().unwrap_or(0.0)])
    };
    Sample::new("a type without checks", &("1.5".to_string(), vec![1u8, 2]), use_it)
}

#[test]
fn panics_and_nans_are_noticed() {
    let outcome = attack(&broken(), 300, &mut rng(1));
    let of = |end: &str| outcome.faults.iter().filter(|fault| fault.ends_with(end)).count();
    assert!(of(": a panic") > 10 && of(": NaN") > 0, "{:?}", outcome.faults);
    assert!(outcome.refused > 10 && outcome.used > 10);
}

#[test]
fn hangs_are_noticed() {
    if role().is_some() {
        WATCH.start(Duration::from_millis(50));
        let sample = Sample::new("a type that sleeps", &vec![1u8], |_: Vec<u8>| {
            std::thread::sleep(Duration::from_secs(60));
            Ok(Vec::new())
        });
        attack(&sample, 9, &mut rng(1));
        return;
    }
    let ended = alone("hangs_are_noticed", Duration::from_secs(30));
    assert!(ended.status.is_some() && !ended.succeeded(), "{}", ended.text);
    assert!(ended.text.contains("hangs: a type that sleeps with"), "{}", ended.text);
}

/// The source names each type that has a stored form of its own; none is without a sample.
#[cfg(feature = "faer")]
#[test]
fn every_type_with_a_checksum_is_here() {
    fn sources(folder: &std::path::Path, all: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("sealed.rs") {
                all.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let (mut texts, mut types) = (Vec::new(), BTreeSet::new());
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../src"), &mut texts);
    for text in &texts {
        for start in ["sealed!(", "sealed_fields! {"] {
            for rest in text.split(start).skip(1) {
                let rest = rest.trim_start();
                let end = rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len());
                types.insert(&rest[..end]);
            }
        }
    }
    assert!(types.len() > 15, "{types:?}");
    let names: Vec<&str> = samples().iter().map(|sample| sample.name).collect();
    let is_here = |name: &str| {
        names.iter().any(|known| {
            known.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
        })
    };
    let missing: Vec<&&str> = types.iter().filter(|name| !is_here(name)).collect();
    assert!(missing.is_empty(), "{missing:?} have no sample");
}
