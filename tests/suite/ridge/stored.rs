//! Statistics and models are read back to the bit, and what does not fit is refused.

use random_features::EluPlusOne;
use random_features::apply::{Ridge, RidgeClassifier, RidgePosterior, RidgeStatistics, Standardisation};
use serde_json::{Value, from_value, json, to_value};

use super::{data, trigonometric};
use crate::stored::resealed;

fn fitted() -> RidgeStatistics<f32> {
    let (map, (x, y)) = (trigonometric::<f32>(5, 1.0), data::<f32>(300));
    let inputs = Standardisation::of(&x).unwrap();
    let mut statistics = RidgeStatistics::new(map, 2).unwrap().with_standardisation(inputs).unwrap();
    statistics.update(&x, &y).unwrap();
    statistics
}

#[test]
fn read_back_to_the_bit() {
    let (statistics, (x, y)) = (fitted(), data::<f32>(40));
    let text: RidgeStatistics<f32> = from_value(to_value(&statistics).unwrap()).unwrap();
    let bytes = postcard::to_stdvec(&statistics).unwrap();
    let binary: RidgeStatistics<f32> = postcard::from_bytes(&bytes).unwrap();
    for mut read in [text, binary] {
        assert_eq!(format!("{read:?}"), format!("{statistics:?}"));
        let mut goes_on = statistics.clone();
        goes_on.update(&x, &y).unwrap();
        read.update(&x, &y).unwrap();
        assert_eq!(read.solve(0.1).unwrap().predict(&x), goes_on.solve(0.1).unwrap().predict(&x));
        assert!(read.merge(&statistics).is_err());
    }
    let model = statistics.solve(0.1).unwrap();
    let read: Ridge<f32> = postcard::from_bytes(&postcard::to_stdvec(&model).unwrap()).unwrap();
    assert_eq!(read.predict(&x), model.predict(&x));
    let labels: Vec<usize> = (0..40).map(|i| i % 2).collect();
    let classifier = RidgeClassifier::new(model).unwrap().with_calibration(&x, &labels).unwrap();
    let read: RidgeClassifier<f32> = from_value(to_value(&classifier).unwrap()).unwrap();
    assert_eq!(read.probabilities(&x), classifier.probabilities(&x));
}

/// A map that is read as a model is told from one that was damaged.
#[test]
fn what_is_stored_of_another_type_is_named() {
    let statistics = fitted();
    let map = to_value(statistics.map()).unwrap();
    let error = from_value::<Ridge<f32>>(map.clone()).unwrap_err().to_string();
    assert!(error.starts_with("this is not the stored form of Ridge: missing field `map`"), "{error}");
    let text = serde_json::to_string(&statistics.solve(0.1).unwrap()).unwrap();
    let error = serde_json::from_str::<random_features::Map<f32>>(&text).unwrap_err().to_string();
    assert!(error.starts_with("this is not the stored form of Map: missing field"), "{error}");
    assert!(error.contains("at line 1 column") && error.matches("line").count() == 1, "{error}");
}

fn one_dimension() -> Value {
    to_value(Standardisation::new(vec![0.0], vec![1.0]).unwrap()).unwrap()
}

#[test]
fn what_does_not_fit_is_refused() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = to_value(fitted()).unwrap();
        change(&mut value["data"]["intake"]["sums"]);
        resealed::<RidgeStatistics<f32>>(value).map(drop)
    };
    assert!(changed(&|_| {}).is_ok());
    assert!(changed(&|v| v["totals"]["gram"]["words"] = Value::Array(Vec::new())).is_err());
    assert!(changed(&|v| v["totals"]["gram"]["words"][0] = "NaN".into()).is_err());
    assert!(changed(&|v| v["totals"]["gram"]["level"] = 1000.into()).is_err());
    assert!(changed(&|v| v["totals"]["gram"]["depth"] = 3.into()).is_err());
    assert!(changed(&|v| v["totals"]["cross"] = Value::Array(Vec::new())).is_err());
    assert!(changed(&|v| v["totals"]["moments"] = Value::Array(Vec::new())).is_err());
    assert!(changed(&|v| v["rows"]["ranges"][0]["end"] = 0.into()).is_err());
    assert!(changed(&|v| v["inputs"]["data"]["scale"][0] = "0.0".into()).is_err());
    assert!(changed(&|v| v["inputs"] = one_dimension()).is_err());
    assert!(changed(&|v| v["inputs"]["data"]["constant"] = json!([3])).is_err());
    assert!(changed(&|v| v["target_ranges"] = v["ranges"].clone()).is_err());
    assert!(changed(&|v| v["target_ranges"]["least"][0] = "1e9".into()).is_err());
    assert!(changed(&|v| v["totals"]["removed"]["depth"] = 3.into()).is_err());
    // 8 TB of sums, if they were made before those that are stored are looked at.
    assert!(changed(&|v| v["map"]["feature_dim"] = (1 << 20).into()).unwrap_err().contains("another shape"));
    assert!(changed(&|v| v["map"]["feature_dim"] = u64::MAX.into()).unwrap_err().contains("addressed"));
    assert!(changed(&|v| v["map"]["input_dim"] = 2.into()).unwrap_err().contains("another dimension"));
    let mut value = to_value(fitted()).unwrap();
    value["data"]["intake"]["map"] = to_value(EluPlusOne.build::<f32>(1 << 20, 1.0).unwrap()).unwrap();
    assert!(resealed::<RidgeStatistics<f32>>(value).unwrap_err().contains("their maps differ"));
    let ranges = |of: Value| {
        changed(&|v| {
            v["rows"]["ranges"] = of.clone();
            v["present"] = json!({"all": 10, "not_zero": [10, 3]});
        })
    };
    assert!(ranges(json!([{"start": 0, "end": 10}, {"start": 11, "end": 20}])).is_ok());
    assert!(ranges(json!([{"start": 0, "end": 10}, {"start": 9, "end": 20}])).is_err());
    assert!(ranges(json!([{"start": 0, "end": 10}, {"start": 10, "end": 20}])).is_err());
    assert!(ranges(json!([{"start": 20, "end": 30}, {"start": 0, "end": 10}])).is_err());
    for wrong in [json!([1000, [1, 1]]), json!([10, [11, 1]]), json!([10, [1]])] {
        let counts = json!({"all": wrong[0], "not_zero": wrong[1]});
        let error = changed(&|v| v["present"] = counts.clone()).unwrap_err();
        assert!(error.contains("positive weight"), "{error}");
    }
}

#[test]
fn models_that_do_not_fit_are_refused() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = to_value(fitted().solve(0.1).unwrap()).unwrap();
        change(&mut value["data"]);
        resealed::<Ridge<f32>>(value).map(drop)
    };
    assert!(changed(&|_| {}).is_ok());
    assert!(changed(&|v| v["intercepts"] = Value::Array(Vec::new())).is_err());
    assert!(changed(&|v| v["intercepts"][1] = "NaN".into()).is_err());
    assert!(changed(&|v| v["inputs"] = one_dimension()).is_err());
    let (x, labels) = (data::<f32>(40).0, (0..40).map(|i| i % 2).collect::<Vec<usize>>());
    let classifier =
        RidgeClassifier::new(fitted().solve(0.1).unwrap()).unwrap().with_calibration(&x, &labels).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = to_value(&classifier).unwrap();
        change(&mut value["data"]["calibration"]);
        resealed::<RidgeClassifier<f32>>(value).map(drop)
    };
    assert!(changed(&|_| {}).is_ok());
    assert!(changed(&|v| v["slope"] = "-1.0".into()).is_err());
    assert!(changed(&|v| v["slope"] = "inf".into()).is_err());
    assert!(changed(&|v| v["offsets"][0] = "NaN".into()).is_err());
    assert!(changed(&|v| v["offsets"] = json!(["0.0"])).is_err());
}

/// Sums are exact for 2²⁴ additions, and more are refused.
#[test]
fn updates_have_no_limit() {
    let after = |updates: u64, first: u64| {
        let mut value = to_value(fitted()).unwrap();
        let intake = &mut value["data"]["intake"];
        intake["sums"]["totals"]["parts"] = updates.into();
        intake["sums"]["rows"]["ranges"] = json!([{"start": first, "end": first + 300}]);
        intake["next"] = (first + 300).into();
        resealed::<RidgeStatistics<f32>>(value).unwrap()
    };
    let same = |left: &RidgeStatistics<f32>, right: &RidgeStatistics<f32>| {
        let [left, right] = [left, right].map(|statistics| statistics.products().unwrap());
        let scale = right.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        assert!((left - right).iter().all(|v| v.abs() < 1e-12 * scale));
    };
    let (x, y) = data::<f32>(40);
    let most = 1 << 24;
    let mut few = fitted();
    few.update(&x, &y).unwrap();
    for updates in [most - 1, most, u64::MAX] {
        let mut many = after(updates, 0);
        many.update(&x, &y).unwrap();
        same(&many, &few);
        let before = many.products().unwrap();
        many.update(&x, &y).unwrap();
        many.downdate(340, &x, &y).unwrap();
        assert_eq!(many.products().unwrap(), before);
    }
    let mut half = after(most / 2, 0);
    for (updates, first) in [(most / 2, 1000), (1, 2000), (most, 3000)] {
        half.merge(&after(updates, first)).unwrap();
    }
    few = fitted();
    (1..4).for_each(|k| few.merge(&after(1, 1000 * k)).unwrap());
    same(&half, &few);
    assert_eq!(half.rows(), 1200);
}

/// What was stored for one scalar is not read for another, and no changed byte goes unnoticed.
#[test]
fn scalars_and_bytes_are_checked() {
    let statistics = fitted();
    let error = from_value::<RidgeStatistics<f64>>(to_value(&statistics).unwrap()).unwrap_err().to_string();
    assert!(error.contains("stored for f32"), "{error}");
    let model = statistics.solve(0.1).unwrap();
    let bytes = postcard::to_stdvec(&model).unwrap();
    for place in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[place] ^= 1 << (place % 8);
        assert!(postcard::from_bytes::<Ridge<f32>>(&wrong).is_err(), "byte {place} of {}", bytes.len());
    }
}

#[test]
fn posteriors_that_do_not_fit_are_refused() {
    let posterior = fitted().spectrum().unwrap().posterior(0.1).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = to_value(&posterior).unwrap();
        change(&mut value["data"]);
        resealed::<RidgePosterior<f32>>(value).map(drop)
    };
    assert!(changed(&|_| {}).is_ok());
    for noise in [json!([]), json!(["0.1"]), json!(["0.1", "0.1", "0.1"]), json!(["0.1", "-0.1"])] {
        assert!(changed(&|v| v["noise"] = noise.clone()).is_err(), "{noise}");
    }
    assert!(changed(&|v| v["mean_features"] = json!(["0.0"])).is_err());
    for lambdas in [json!(["0.1"]), json!(["0.1", "0.0"]), json!(["0.1", "NaN"])] {
        assert!(changed(&|v| v["lambdas"] = lambdas.clone()).is_err(), "{lambdas}");
    }
    assert!(changed(&|v| v["values"][0] = "-1.0".into()).is_err());
    assert!(changed(&|v| v["values"] = json!([])).is_err());
    assert!(changed(&|v| v["mean"] = "NaN".into()).is_err());
}
