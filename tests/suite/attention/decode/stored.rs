//! States that were stored: they go on to the bit, and what no state can be is refused.

use crate::attention::decode::{CUTS, inputs, part, parts_are_the_whole, variants};
use crate::attention::positive;
use crate::common::{read_tokens, tokens};
use ndarray::{Array2, Array3, Axis, s};
use random_features::Error;
use random_features::apply::attention::{Attention, CausalState, Heads};

#[test]
fn stored_states_go_on_to_the_bit() {
    use crate::stored::resealed;

    let inputs = inputs::<f32>(2, 200, 0.7);
    let mask = Array2::from_shape_fn((2, 200), |(b, j)| (j * 7 + b) % 3 > 0);
    for attention in variants::<f32>() {
        for mask in [None, Some(&mask)] {
            parts_are_the_whole(&attention, inputs.each_ref(), mask, &[CUTS[1]], |state| {
                serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap()
            });
        }
    }
    // What no state can be is refused.
    let attention = variants::<f32>().swap_remove(5);
    let mut state = attention.state(2, 2, 5).unwrap();
    let [q, k, v] = inputs.each_ref().map(|x| part(x, 0, 80));
    state.prefill(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    let stored = serde_json::to_value(&state).unwrap();
    assert_eq!(resealed::<CausalState<f32>>(stored.clone()).unwrap().lengths(), [80, 80]);
    for (place, value) in [
        ("/data/heads/0/recent/mask", serde_json::json!([true])),
        ("/data/heads/0/exact/rows", serde_json::json!([0, 1])),
        ("/data/heads/0/exact/rows", serde_json::json!([0, 2, 64])),
        ("/data/heads/0/exact/rows", serde_json::json!([1, 0, 64])),
        ("/data/heads/0/exact/rows", serde_json::json!([0, 64, 129])),
        ("/data/heads/0/sequence/mask", serde_json::json!([true])),
        ("/data/heads/0/sequence/length", serde_json::json!(137)),
        ("/data/shape", serde_json::json!([2, 1, 5])),
    ] {
        let mut wrong = stored.clone();
        *wrong.pointer_mut(place).unwrap() = value;
        assert!(resealed::<CausalState<f32>>(wrong).is_err(), "{place}");
    }
    // As many in the last chunk of every head, but more than can be counted on.
    for (more, fits) in [(64u64, true), (1 << 63, false)] {
        let mut other = stored.clone();
        for head in 0..4 {
            let length = other.pointer_mut(&format!("/data/heads/{head}/sequence/length")).unwrap();
            *length = serde_json::json!(length.as_u64().unwrap() + more);
        }
        assert_eq!(resealed::<CausalState<f32>>(other).is_ok(), fits, "{more} more");
    }
    // Keys that later tokens choose have no state.
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let heaviest = attention.clone().with_heaviest_keys_exact(3).unwrap();
    assert!(matches!(heaviest.state(2, 2, 5), Err(Error::Unsupported { .. })));
    let mut wrong = serde_json::to_value(attention.state(2, 2, 5).unwrap()).unwrap();
    assert!(resealed::<CausalState<f32>>(wrong.clone()).is_ok());
    *wrong.pointer_mut("/data/attention").unwrap() = serde_json::to_value(&heaviest).unwrap();
    assert!(resealed::<CausalState<f32>>(wrong).is_err());
    let wrong = serde_json::to_value(attention.state(2, 0, 5).unwrap()).unwrap();
    assert_eq!(resealed::<CausalState<f32>>(wrong.clone()).unwrap().lengths(), [0, 0]);
    for (place, size) in [("/data/shape/0", u64::MAX), ("/data/shape/2", 0)] {
        let mut wrong = wrong.clone();
        *wrong.pointer_mut(place).unwrap() = serde_json::json!(size);
        assert!(resealed::<CausalState<f32>>(wrong).is_err(), "{place}");
    }
}

#[test]
fn a_stored_state_goes_on_to_the_bit() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap().with_cosine(0.3).unwrap();
    let x = tokens::<f32>([2, 2, 90, 6], 0.7, 1);
    for length in [0, 10, 64, 80] {
        let mut state = attention.state(2, 2, 6).unwrap();
        read_tokens(&mut state, &x.slice(s![.., .., ..length, ..]), &x.slice(s![.., .., ..length, ..]));
        let text = serde_json::to_string(&state).unwrap();
        let mut read: CausalState<f32> = serde_json::from_str(&text).unwrap();
        let mut compact: CausalState<f32> =
            postcard::from_bytes(&postcard::to_stdvec(&state).unwrap()).unwrap();
        let token = x.slice(s![.., .., length, ..]);
        for state in [&mut state, &mut read, &mut compact] {
            state.push(&token, &token).unwrap();
        }
        let out = state.query(&token).unwrap();
        assert_eq!((read.query(&token).unwrap(), compact.query(&token).unwrap()), (out.clone(), out));
        // Another shape than that of the sums.
        assert!(
            crate::stored::resealed::<CausalState<f32>>(
                serde_json::from_str(&text.replacen("\"shape\":[2,2,6]", "\"shape\":[2,2,7]", 1)).unwrap()
            )
            .is_err()
        );
    }
}

#[test]
fn states_of_a_map_for_each_head_are_read() {
    let attention = Attention::per_head(vec![positive::<f64>(6, 20), positive(6, 33)]).unwrap();
    let x = tokens::<f64>([1, 2, 9, 6], 0.7, 1);
    let mut state = attention.state(1, 2, 6).unwrap();
    read_tokens(&mut state, &x, &x);
    let mut read: CausalState<f64> = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
    let query: Array3<f64> = x.index_axis(Axis(2), 0).to_owned();
    assert_eq!(read.query(&query).unwrap(), state.query(&query).unwrap());
}

/// A stored state that cannot have come to be is an error, whatever it asks for.
#[test]
fn hostile_states_are_refused() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let mut state = attention.state(1, 1, 6).unwrap();
    let x = tokens::<f32>([1, 1, 70, 6], 0.7, 1);
    read_tokens(&mut state, &x, &x);
    let text = serde_json::to_string(&state).unwrap();
    let read = |text: &str| crate::stored::resealed::<CausalState<f32>>(serde_json::from_str(text).unwrap());
    assert!(read(&text).is_ok());
    for (from, to) in [
        ("\"shape\":[1,1,6]", "\"shape\":[1,1,17592186044416]"),
        ("\"shape\":[1,1,6]", "\"shape\":[1,1,18446744073709551615]"),
        ("\"shape\":[1,1,6]", "\"shape\":[0,1,6]"),
        ("\"targets\":6", "\"targets\":7"),
        ("\"length\":70", "\"length\":18446744073709551615"),
        ("\"length\":70", "\"length\":64"),
        ("\"reference\":[\"", "\"reference\":[\"1"),
        ("\"reference\":[\"", "\"reference\":[\"inf\",\""),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(read(&text.replacen(from, to, 1)).is_err(), "{to}");
    }
    // Heads have seen as many tokens.
    let mut state = attention.state(2, 1, 6).unwrap();
    let x = tokens::<f32>([2, 1, 70, 6], 0.7, 1);
    read_tokens(&mut state, &x, &x);
    let text = serde_json::to_string(&state).unwrap();
    assert!(read(&text).is_ok() && read(&text.replacen("\"length\":70", "\"length\":71", 1)).is_err());
}
