//! Models, sums and streams are stored and read back to the bit.

use random_features::apply::{Glm, GlmStream, GlmSums, RidgeClassifier, RidgeStatistics, Standardisation};

use super::{labelled, trigonometric};

#[test]
fn what_is_stored_is_read_back() {
    let (x, labels) = labelled::<f32>(120, 3);
    let inputs = Standardisation::of(&x).unwrap();
    let model = Glm::logistic(trigonometric(6, 1.0), 3).unwrap().with_standardisation(inputs).unwrap();
    let model = model.fit(&x, &labels, 0.5).unwrap().into_model();
    let text = serde_json::to_string(&model).unwrap();
    let read: Glm<f32> = serde_json::from_str(&text).unwrap();
    assert_eq!(read.probabilities(&x).unwrap(), model.probabilities(&x).unwrap());
    assert!(serde_json::from_str::<Glm<f32>>(&text.replace("Logistic", "Poisson")).is_err());
    let mut sums = GlmSums::at(&model).unwrap();
    sums.update(&x, &labels).unwrap();
    let bytes = postcard::to_stdvec(&sums).unwrap();
    let mut read: GlmSums<f32> = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(read.step(0.5).unwrap().weights(), sums.step(0.5).unwrap().weights());
    read.update(&x, &labels).unwrap();
    assert_eq!(read.rows(), 240);
    let mut stream = GlmStream::new(&model, 0.5).unwrap();
    stream.update(&x, &labels).unwrap();
    let bytes = postcard::to_stdvec(&stream).unwrap();
    let mut read: GlmStream<f32> = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(read.model().unwrap().weights(), stream.model().unwrap().weights());
    [&mut read, &mut stream].into_iter().for_each(|stream| stream.update(&x, &labels).unwrap());
    assert_eq!(read.model().unwrap().weights(), stream.model().unwrap().weights());
    // With rows that are held back.
    stream.update(x.slice(ndarray::s![..5, ..]), &labels[..5]).unwrap();
    let text = serde_json::to_string(&stream).unwrap();
    let mut read: GlmStream<f32> = serde_json::from_str(&text).unwrap();
    assert_eq!(read.model().unwrap().weights(), stream.model().unwrap().weights());
}

#[test]
fn a_threshold_is_stored() {
    let (x, labels) = labelled::<f64>(120, 2);
    let mut statistics = RidgeStatistics::new(trigonometric(6, 1.0), 2).unwrap();
    statistics.update(&x, &labels).unwrap();
    let model = statistics.solve(1.0).unwrap();
    let scores = model.predict(&x).unwrap();
    let classifier = RidgeClassifier::new(model).unwrap().with_threshold(&scores, &labels).unwrap();
    let read: RidgeClassifier<f64> =
        postcard::from_bytes(&postcard::to_stdvec(&classifier).unwrap()).unwrap();
    assert_eq!(read.threshold(), classifier.threshold());
    assert_eq!(read.classify(&x).unwrap(), classifier.classify(&x).unwrap());
}
