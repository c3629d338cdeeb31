//! Moments of points and of weighted pairs: what sums say, in any batches, weights and layouts.

use crate::common;
use ndarray::{Array1, Array2, Axis, arr1, arr2, s};
use random_features::Error;
use random_features::data::Statistics;
use random_features::data::shaping::{Moments, PairMoments};

fn points(n: usize, d: usize) -> Array2<f64> {
    // Correlated, with another mean and spread in each coordinate.
    let base = common::points::<f64>(n, d + 1, 1.0);
    Array2::from_shape_fn((n, d), |(i, k)| {
        (k as f64 + 1.0) * (base[[i, k]] + 0.5 * base[[i, k + 1]]) - k as f64
    })
}

fn near(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    let size = b.iter().fold(0.0, |size: f64, v| size.max(v.abs()));
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance * size, "{a} instead of {b}, to {tolerance} of {size}");
    }
}

fn same(a: &Moments, b: &Moments, tolerance: f64) {
    assert!((a.weight() - b.weight()).abs() <= tolerance * b.weight());
    let row = |moments: &Moments| moments.mean().unwrap().insert_axis(Axis(0));
    near(&row(a), &row(b), tolerance);
    near(&a.covariance().unwrap(), &b.covariance().unwrap(), tolerance);
}

#[test]
fn moments_are_their_definition() {
    // More than a run of rows and a block of columns.
    for (n, d) in [(1, 1), (7, 3), (700, 130), (300, 5)] {
        let x = points(n, d);
        let moments = Moments::of(&x).unwrap();
        let mean = x.mean_axis(Axis(0)).unwrap();
        let centred = &x - &mean;
        near(&moments.covariance().unwrap(), &(centred.t().dot(&centred) / n as f64), 1e-13);
        near(&moments.mean().unwrap().insert_axis(Axis(0)), &mean.insert_axis(Axis(0)), 1e-14);
        assert_eq!((moments.rows(), moments.weight(), moments.dim()), (n as u64, n as f64, d));
    }
}

#[test]
fn merging_is_one_pass() {
    let x = points(613, 9);
    let whole = Moments::of(&x).unwrap();
    for cuts in [vec![1], vec![300, 301], vec![0, 5, 256, 600, 613]] {
        let mut ends = cuts.clone();
        ends.push(x.nrows());
        let (mut streamed, mut merged, mut start) = (Moments::new(9).unwrap(), Moments::new(9).unwrap(), 0);
        for end in ends {
            let part = x.slice(s![start..end, ..]);
            streamed.update(&part).unwrap();
            let mut other = Moments::of(&part).unwrap();
            // The other way round.
            other.merge(&merged).unwrap();
            merged = other;
            start = end;
        }
        same(&streamed, &whole, 1e-13);
        same(&merged, &whole, 1e-13);
    }
}

#[test]
fn weights_are_repeated_points() {
    let x = points(40, 4);
    let weights: Array1<f64> = (0..40).map(|i| f64::from(i % 4)).collect();
    let repeated: Vec<usize> = (0..40).flat_map(|i| vec![i; i % 4]).collect();
    let mut weighted = Moments::new(4).unwrap();
    weighted.update_weighted(&x, &weights).unwrap();
    same(&weighted, &Moments::of(&x.select(Axis(0), &repeated)).unwrap(), 1e-13);
    assert_eq!(weighted.rows(), 30);
    let mut scaled = Moments::new(4).unwrap();
    scaled.update_weighted(&x, &(&weights * 1e300)).unwrap();
    near(&scaled.covariance().unwrap(), &weighted.covariance().unwrap(), 1e-13);
}

#[test]
fn a_far_mean_cancels_nothing() {
    let x = points(500, 3);
    let far = Moments::of(&(&x + 2f64.powi(30))).unwrap();
    near(&far.covariance().unwrap(), &Moments::of(&x).unwrap().covariance().unwrap(), 1e-6);
    let constant = Moments::of(&Array2::from_elem((700, 2), 0.1)).unwrap();
    assert_eq!(
        (constant.mean().unwrap(), constant.covariance().unwrap()),
        (arr1(&[0.1; 2]), Array2::zeros((2, 2)))
    );
    let huge = Moments::of(&(&x * 1e150)).unwrap();
    near(&(huge.covariance().unwrap() / 1e300), &Moments::of(&x).unwrap().covariance().unwrap(), 1e-13);
}

#[test]
fn any_layout_and_scalar() {
    let x = points(50, 4);
    let moments = Moments::of(&x).unwrap();
    let wide = Array2::from_shape_fn((100, 8), |(i, k)| x[[i / 2, k / 2]]);
    assert_eq!(Moments::of(&wide.slice(s![..;2, ..;2])).unwrap(), moments);
    assert_eq!(Moments::of(&x.t().to_owned().t()).unwrap(), moments);
    let single = x.mapv(|v| v as f32);
    assert_eq!(Moments::of(&single).unwrap(), Moments::of(&single.mapv(f64::from)).unwrap());
}

#[test]
fn pairs_are_their_definition() {
    let (x, y) = (points(12, 3), points(9, 3).slice(s![.., ..;-1]).to_owned());
    let weights = Array2::from_shape_fn((5, 9), |(i, j)| ((3 * i + 5 * j) % 7) as f64);
    let queries = x.slice(s![..5, ..]);
    let pairs = PairMoments::weighted(Moments::of(&x).unwrap(), &queries, &y, &weights).unwrap();
    assert_eq!(pairs.x(), &Moments::of(&x).unwrap());
    let repeated: Vec<(usize, usize)> =
        weights.indexed_iter().flat_map(|((i, j), weight)| vec![(i, j); *weight as usize]).collect();
    let side = |x: &Array2<f64>, rows: Vec<usize>| x.select(Axis(0), &rows);
    let (left, right) = repeated.iter().copied().unzip();
    let (left, right) = (side(&x, left), side(&y, right));
    same(pairs.y(), &Moments::of(&right).unwrap(), 1e-13);
    let centred = |x: &Array2<f64>| x - &x.mean_axis(Axis(0)).unwrap();
    let cross = centred(&left).t().dot(&centred(&right)) / repeated.len() as f64;
    near(&pairs.cross_covariance(), &cross, 1e-13);
    // Merging is both together, whatever the totals of weights.
    let part = |rows: std::ops::Range<usize>, queries: std::ops::Range<usize>| {
        let of_x = Moments::of(&x.slice(s![rows, ..])).unwrap();
        let weights = weights.slice(s![queries.clone(), ..]);
        PairMoments::weighted(of_x, &x.slice(s![queries, ..]), &y, &weights).unwrap()
    };
    let mut merged = part(0..7, 0..2);
    merged.merge(&part(7..12, 2..5)).unwrap();
    same(merged.x(), pairs.x(), 1e-13);
    same(merged.y(), pairs.y(), 1e-13);
    near(&merged.cross_covariance(), &cross, 1e-13);
    // Equal weights are independent pairs.
    let all = PairMoments::weighted(Moments::of(&x).unwrap(), &x, &y, &Array2::ones((12, 9))).unwrap();
    let product = PairMoments::new(Moments::of(&x).unwrap(), Moments::of(&y).unwrap()).unwrap();
    near(&all.y().covariance().unwrap(), &product.y().covariance().unwrap(), 1e-13);
    assert!(all.cross_covariance().iter().all(|v| v.abs() < 1e-13) && all.is_weighted());
    assert_eq!((product.cross_covariance(), product.is_weighted()), (Array2::zeros((3, 3)), false));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let shape = |found| Error::Shape { what: "the number of columns of x", expected: 2, found };
    assert!(matches!(Moments::new(0), Err(Error::Parameter { .. })));
    let mut moments = Moments::of(&arr2(&[[1.0, 2.0], [2.0, 4.0]])).unwrap();
    let before = moments.clone();
    assert_eq!(moments.update(&arr2(&[[1.0]])), Err(shape(1)));
    for wrong in [f64::NAN, f64::INFINITY, 1e160] {
        let error = moments.update(&arr2(&[[1.0, 1.0], [0.0, wrong]])).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 1, .. }), "{error}");
    }
    for wrong in [f64::NAN, f64::INFINITY, -1.0] {
        let error = moments.update_weighted(&arr2(&[[1.0, 1.0]]), &arr1(&[wrong])).unwrap_err();
        assert!(matches!(error, Error::Entry { row: 0, .. }), "{error}");
    }
    let large = arr1(&[1e308, 1e308]);
    assert!(moments.update_weighted(&arr2(&[[1.0, 1.0], [0.0, 1.0]]), &large).is_err());
    assert!(moments.update_weighted(&arr2(&[[1.0, 1.0]]), &arr1(&[1.0, 1.0])).is_err());
    assert!(moments.merge(&Moments::new(3).unwrap()).is_err());
    moments.update_weighted(&arr2(&[[9.0, 1.0]]), &arr1(&[0.0])).unwrap();
    assert_eq!(moments, before);
    let empty = Moments::new(2).unwrap();
    assert!(matches!(empty.mean(), Err(Error::NoData { .. })) && empty.covariance().is_err());
    assert!(PairMoments::new(moments.clone(), empty).is_err());
    let x = arr2(&[[1.0, 2.0]]);
    let weighted = |weight: f64| PairMoments::weighted(before.clone(), &x, &x, &arr2(&[[weight]]));
    assert!(matches!(weighted(0.0), Err(Error::NoData { .. })));
    assert!(matches!(weighted(-1.0), Err(Error::Entry { .. })) && weighted(f64::NAN).is_err());
    assert!(PairMoments::weighted(before.clone(), &x, &x, &Array2::ones((1, 2))).is_err());
    let mut pairs = PairMoments::new(before.clone(), before.clone()).unwrap();
    assert!(matches!(pairs.merge(&weighted(1.0).unwrap()), Err(Error::Merge { .. })));
}

#[cfg(feature = "serde")]
#[test]
fn moments_are_stored_to_the_bit() {
    use crate::stored::resealed;

    let (x, y) = (points(30, 3), points(20, 3));
    let weights = Array2::from_shape_fn((30, 20), |(i, j)| ((i + j) as f64 / 3.0).fract());
    let pairs = PairMoments::weighted(Moments::of(&x).unwrap(), &x, &y, &weights).unwrap();
    let text = serde_json::to_string(&pairs).unwrap();
    assert_eq!(serde_json::from_str::<PairMoments>(&text).unwrap(), pairs);
    let bytes = postcard::to_stdvec(&pairs).unwrap();
    assert_eq!(postcard::from_bytes::<PairMoments>(&bytes).unwrap(), pairs);
    let mut value = serde_json::to_value(Moments::of(&x).unwrap()).unwrap();
    for (name, wrong) in [("weight", serde_json::json!(-1.0)), ("mean", serde_json::json!([0.0, 1.0]))] {
        let right = std::mem::replace(&mut value["data"][name], wrong);
        let error = resealed::<Moments>(value.clone()).unwrap_err();
        assert!(!error.contains("checksum"), "{name}: {error}");
        value["data"][name] = right;
    }
}

/// Of more dimensions than any machine has memory for.
#[test]
fn dimensions_beyond_memory_are_refused() {
    for d in [1 << 44, 1 << 60, usize::MAX] {
        assert!(matches!(Statistics::new(d), Err(Error::Memory { .. })), "{d}");
    }
    for d in [1 << 24, 1 << 40, usize::MAX] {
        assert!(matches!(Moments::new(d), Err(Error::Memory { .. })), "{d}");
    }
}
