//! Lengthscales from data: the bound of the median's pairs. Sentences about lengthscales that do not fit.

use ndarray::{Array1, Array2};
use random_features::Positive;
use random_features::data::{Statistics, lengthscale};
use random_features::frequency::Independent;
use random_features::kernel::{Gaussian, Kernel};

use crate::common::{frequencies, points};

/// All pairs of many points would take minutes and gigabytes.
#[test]
fn medians_take_so_many_points_and_no_more() {
    let x = points::<f64>(12_000, 1, 1.0);
    let median = |most: usize| lengthscale::median_of_subsample(&x, most, 3).unwrap();
    let most = median(8192);
    assert_eq!(median(usize::MAX), most);
    assert_ne!(median(8191), most);
    assert_eq!(lengthscale::median(&x), lengthscale::median_of_subsample(&x, 1000, 0));
    let few = points::<f64>(300, 2, 1.0);
    let all = lengthscale::median_of_subsample(&few, 300, 1).unwrap();
    assert_eq!(lengthscale::median_of_subsample(&few, usize::MAX, 2).unwrap(), all);
}

#[test]
fn sentences_name_what_does_not_fit() {
    let equal = Array2::from_elem((4, 2), 3.0);
    let median = lengthscale::median_of_subsample(&equal, 10, 1).unwrap_err().to_string();
    assert_eq!(median, "the median distance is 0, but must be positive: at least two points must differ");
    let scale = lengthscale::of_statistics(&Statistics::of(&equal).unwrap()).unwrap_err().to_string();
    assert_eq!(scale, "the variance is 0, but must be positive: at least two coordinates must differ");

    let (two, x) = (|| vec![1.0, 2.0], Array1::<f64>::zeros(4));
    let kernel = Gaussian::new(two()).unwrap().value(&x, &x).unwrap_err().to_string();
    let map = Positive.gaussian::<f64>(frequencies(4, 4, &Independent, 1), two()).unwrap_err().to_string();
    for error in [kernel, map] {
        assert_eq!(error, "the number of lengthscales, one for each dimension, is 2, but must be 4");
    }
}
