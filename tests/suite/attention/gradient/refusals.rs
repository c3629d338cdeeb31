//! Gradients that are refused.

use crate::attention::positive;
use crate::common::own_map::ones;
use crate::common::tokens;
use random_features::Error;
use random_features::apply::attention::{Attention, Heads};
use random_features::extend::Facts;

#[test]
fn what_does_not_fit_is_refused() {
    let x = tokens::<f64>([1, 1, 10, 4], 0.8, 1);
    let longer = tokens::<f64>([1, 1, 11, 4], 0.8, 1);
    let attention = Attention::new(positive::<f64>(4, 12)).unwrap();
    let (heads, uneven) = (Heads::new(&x, &x, &x).unwrap(), Heads::new(&x, &longer, &longer).unwrap());
    assert!(matches!(attention.bidirectional_backward(&heads, &longer), Err(Error::Shape { .. })));
    assert!(matches!(attention.causal_backward(&heads, &longer), Err(Error::Shape { .. })));
    assert!(matches!(attention.causal_backward(&uneven, &x), Err(Error::Shape { .. })));
    assert!(attention.bidirectional_backward(&uneven, &x).is_ok());
    let other = Attention::new(positive::<f64>(5, 12)).unwrap();
    assert!(matches!(other.bidirectional_backward(&heads, &x), Err(Error::Shape { .. })));
    let without_gradients = ones(Facts::new(4, vec![1]).non_negative()).unwrap();
    for refused in
        [Attention::new(without_gradients).unwrap(), attention.clone().with_heaviest_keys_exact(1).unwrap()]
    {
        assert!(matches!(refused.causal_backward(&heads, &x), Err(Error::Unsupported { .. })));
    }
}
