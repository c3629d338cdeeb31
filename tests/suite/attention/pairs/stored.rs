//! Stored attention with exact keys.

use crate::attention::pairs::inputs;
use crate::attention::positive;
use random_features::apply::attention::{Attention, CausalState, Heads};

#[test]
fn the_choice_is_stored() {
    let attention = Attention::new(positive::<f64>(4, 8)).unwrap().with_heaviest_keys_exact(2).unwrap();
    let read: Attention<f64> = serde_json::from_str(&serde_json::to_string(&attention).unwrap()).unwrap();
    let [q, k, v] = inputs(1, 30, 4, &[3, 9]);
    let heads = Heads::new(&q, &k, &v).unwrap();
    assert_eq!(read.bidirectional(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
}

#[test]
fn stored_choices_are_checked() {
    use crate::stored::resealed;

    let attention = Attention::new(positive::<f64>(4, 8)).unwrap().with_keys_exact(&[1]).unwrap();
    let mut stored = serde_json::to_value(&attention).unwrap();
    let rows = stored.pointer_mut("/data/exact/1").unwrap();
    *rows = serde_json::json!([7, 1, 1, 1]);
    let read = resealed::<Attention<f64>>(stored.clone()).unwrap();
    let [q, k, v] = inputs(1, 30, 4, &[1]);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let expected = Attention::new(positive::<f64>(4, 8)).unwrap().with_keys_exact(&[1, 7]).unwrap();
    assert_eq!(read.bidirectional(&heads).unwrap(), expected.bidirectional(&heads).unwrap());
    // A state with the heaviest keys has never been.
    let state = Attention::new(positive::<f64>(4, 8)).unwrap().state(1, 1, 4).unwrap();
    let mut state = serde_json::to_value(&state).unwrap();
    let heaviest = Attention::new(positive::<f64>(4, 8)).unwrap().with_heaviest_keys_exact(3).unwrap();
    state["data"]["attention"] = serde_json::to_value(&heaviest).unwrap();
    let refused = resealed::<CausalState<f64>>(state).map(drop).unwrap_err();
    assert!(refused.contains("heaviest keys"), "{refused}");
}
