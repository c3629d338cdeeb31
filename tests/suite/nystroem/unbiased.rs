//! Nyström features made unbiased: against plain loops, over draws, at landmarks, refusals, gradients, storage.

use super::{gaussian, kernels, solved};
use crate::common::{Sample, points, shifted};
use ndarray::{Array1, Array2, Axis, concatenate, s};
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::{Gaussian, Softmax};
use random_features::map::{AnyKernel, Nystroem};
use random_features::recipe::Draw;
use random_features::testing::conform;
use random_features::{Error, Gerf, Hyperbolic, Map, Real, Recipe, Side};

/// Recipes without bias of each kernel: the usual one, and for softmax others, with different features on both sides or several blocks.
fn recipes() -> Vec<(AnyKernel, Recipe)> {
    let usual = |kernel: AnyKernel| (kernel.clone(), Recipe::for_kernel(kernel, 3, 6).unwrap());
    let mut all: Vec<_> = kernels().into_iter().map(usual).collect();
    let draw = |stream| Draw::new(3, 6, Orthogonal).with_stream(stream);
    let gerf = Gerf::optimal(3, 0.5).unwrap().recipe(draw(0), Softmax::default());
    all.push((Softmax::default().into(), gerf));
    let hyperbolic = Hyperbolic.recipe(draw(0), gaussian(0.8));
    all.push((gaussian(0.8).into(), hyperbolic));
    let bases = Bases::independent(draw(1), draw(2));
    let hybrid: Recipe = Hybrid::angular(bases, Draw::new(3, 4, Independent)).unwrap();
    all.push((Softmax::default().into(), hybrid));
    all
}

/// The features without scales, as plain numbers.
fn plain<T: Real>(map: &Map<T>, side: Side, x: &Array2<T>) -> Array2<f64> {
    map.features(side, x).unwrap().to_array().mapv(T::widen)
}

#[test]
fn estimates_follow_their_definition() {
    let (z, x) = (points::<f64>(5, 3, 1.2), points::<f64>(7, 3, 1.0));
    for (kernel, recipe) in recipes() {
        let f: Map<f64> = recipe.draw(3).unwrap();
        let map = Nystroem::new(kernel.clone(), &z).unwrap().unbiased(f.clone()).unwrap();
        let exact = kernel.kernel::<f64>().unwrap();
        let (own, near) = (exact.gram(&z, &z).unwrap(), exact.gram(&x, &z).unwrap());
        // f(x) − f(Z)ᵀ K⁻¹ k(x).
        let rest = |side| {
            let (landmarks, mut all) = (plain(&f, side, &z), plain(&f, side, &x));
            for (mut row, near) in all.rows_mut().into_iter().zip(near.rows()) {
                row -= &landmarks.t().dot(&solved(own.clone(), near.to_owned()));
            }
            all
        };
        let mut expected = rest(Side::X).dot(&rest(Side::Y).t());
        for ((i, j), entry) in expected.indexed_iter_mut() {
            *entry += near.row(i).dot(&solved(own.clone(), near.row(j).to_owned()));
        }
        let found = map.gram(&x, &x).unwrap();
        let size = expected.iter().fold(1.0, |top: f64, v| top.max(v.abs()));
        assert!((&found - &expected).iter().all(|v| v.abs() < 1e-9 * size), "{recipe}: {found} {expected}");
        assert_eq!(map.feature_dim(), 5 + f.feature_dim());
        let features = plain(&map, Side::X, &x).dot(&plain(&map, Side::Y, &x).t());
        assert!((features - &expected).iter().all(|v| v.abs() < 1e-9 * size), "{recipe}");
        assert_eq!(map.kernel().unwrap().identity(), exact.identity());
        assert_eq!(map.log_variance(&x.row(0), &x.row(1)), Ok(None));
        assert_eq!(map.facts().symmetric, f.facts().symmetric);
        assert!(map.to_string().contains("made unbiased by"));
    }
}

/// Means over draws are the kernel, before and after a truncation. Each draw is seen at three pairs of points, which are shifts of one
/// pair, and their errors are compared together and alone, since they may differ in sign. Each of 88 z exceeds 4.5 by chance with a
/// probability of 7e-6.
#[test]
fn estimates_are_unbiased() {
    let (z, x) = (points::<f64>(8, 3, 1.1), points::<f64>(40, 3, 1.0));
    let [a, b] = [0, 1].map(|i| shifted(&points::<f64>(2, 3, 1.4).row(i).to_owned(), 1));
    for (kernel, recipe) in recipes() {
        let own = Nystroem::new(kernel.clone(), &z).unwrap();
        let exact = kernel.kernel::<f64>().unwrap();
        let exact = Array1::from_shape_fn(3, |i| exact.value(&a.row(i), &b.row(i)).unwrap());
        for own in [own.clone(), own.truncated(&x, 3).unwrap()] {
            let unbiased = own.unbiased(recipe.clone()).unwrap();
            let errors = |seed| unbiased.draw::<f64>(seed).unwrap().estimate_rows(&a, &b).unwrap() - &exact;
            let errors: Vec<Array1<f64>> = (0..1400).map(errors).collect();
            let means: Vec<f64> = errors.iter().map(|draw| draw.mean().unwrap()).collect();
            let alone = (0..3).map(|pair: usize| errors.iter().map(|draw| draw[pair]).collect::<Vec<_>>());
            for errors in alone.chain([means]) {
                let error = Sample::of(&errors);
                // Where landmarks explain all, nothing but rounding is left.
                let is_rounding = error.mean.abs() < 1e-12;
                assert!(
                    error.z(0.0).abs() < 4.5 || is_rounding,
                    "{recipe}: {} ± {}",
                    error.mean,
                    error.error
                );
            }
        }
    }
}

#[test]
fn nothing_is_random_at_landmarks() {
    let (z, x) = (points::<f64>(6, 3, 1.1), points::<f64>(5, 3, 1.0));
    for (kernel, recipe) in recipes() {
        let map: Map<f64> =
            Nystroem::new(kernel.clone(), &z).unwrap().unbiased(recipe).unwrap().draw(1).unwrap();
        let exact = kernel.kernel::<f64>().unwrap().gram(&x, &z).unwrap();
        let found = map.gram(&x, &z).unwrap();
        assert!(
            (&found - &exact).iter().zip(&exact).all(|(e, k)| e.abs() < 1e-10 * (1.0 + k.abs())),
            "{map}"
        );
    }
}

/// The variance over draws is far below that of random features alone where the landmarks explain most of the kernel.
#[test]
fn the_variance_is_that_of_the_rest() {
    let x = points::<f64>(60, 2, 0.5);
    let (kernel, count) = (gaussian(0.5), 40);
    let own = Nystroem::fit(kernel.clone(), &x, 10, 1).unwrap();
    let random = Recipe::for_kernel(kernel.clone(), 2, 8).unwrap();
    let exact = kernel_gram(&kernel.into(), &x);
    let error = |recipe: &Recipe| -> f64 {
        let of_seed = |seed| (recipe.draw::<f64>(seed).unwrap().gram(&x, &x).unwrap() - &exact).pow2().sum();
        (0..count).map(of_seed).sum::<f64>() / count as f64
    };
    let (plain, unbiased) = (error(&random), error(&own.unbiased(random.clone()).unwrap()));
    let rest = own.trace_error(&x).unwrap();
    // Of the order of the squared share of the trace that is left.
    assert!(unbiased < 30.0 * rest * rest * plain && unbiased > 0.0, "{unbiased} {plain} {rest}");
}

fn kernel_gram(kernel: &AnyKernel, x: &Array2<f64>) -> Array2<f64> {
    kernel.kernel::<f64>().unwrap().gram(x, x).unwrap()
}

#[test]
fn maps_keep_what_every_map_keeps() {
    fn conforms<T: Real>() {
        for (kernel, recipe) in recipes() {
            for (m, n) in [(1, 30), (40, 300)] {
                let own = Nystroem::new(kernel.clone(), &points::<T>(m, 3, 1.0)).unwrap();
                let map: Map<T> = own.unbiased(recipe.clone()).unwrap().draw(1).unwrap();
                conform(&map, &points::<T>(n, 3, 1.5)).unwrap();
            }
        }
    }
    conforms::<f32>();
    conforms::<f64>();
}

/// Features of `f32` are near those of `f64`.
#[test]
fn single_precision_is_near() {
    let (z, x) = (points::<f64>(30, 3, 1.0), points::<f64>(50, 3, 1.0));
    for (kernel, recipe) in recipes() {
        let recipe = Nystroem::new(kernel.clone(), &z).unwrap().unbiased(recipe).unwrap().drawn(1).unwrap();
        let wide = recipe.build::<f64>().unwrap().gram(&x, &x).unwrap();
        let narrow = x.mapv(|v| v as f32);
        let narrow = recipe.build::<f32>().unwrap().gram(&narrow, &narrow).unwrap();
        for (narrow, wide) in narrow.iter().zip(&wide) {
            assert!(
                (f64::from(*narrow) - wide).abs() < 2e-4 * (1.0 + wide.abs()),
                "{recipe}: {narrow} {wide}"
            );
        }
    }
}

/// So they are at points far from the landmarks, and at an offset, where A multiplies rounding errors of features by millions.
#[test]
fn single_precision_is_near_beyond_the_landmarks() {
    for offset in [0.0, 100.0, 1000.0] {
        // Exact in `f32`.
        let z =
            Array2::from_shape_fn((200, 1), |(i, _)| offset + i as f64 * 0.05).mapv(|v| f64::from(v as f32));
        let own = Nystroem::new(gaussian(1.0), &z).unwrap();
        let recipe =
            own.unbiased(Recipe::for_kernel(gaussian(1.0), 1, 32).unwrap()).unwrap().drawn(3).unwrap();
        let (wide, narrow): (Map<f64>, Map<f32>) = (recipe.build().unwrap(), recipe.build().unwrap());
        for away in [-3.0, -1.0, 2.5, 12.0, 13.0] {
            let x = Array1::from_elem(1, offset + away);
            let [expected, found] = [
                wide.estimate(&x, &x).unwrap(),
                f64::from(narrow.estimate(&x.mapv(|v| v as f32), &x.mapv(|v| v as f32)).unwrap()),
            ];
            assert!((found - expected).abs() < 5e-3, "{offset} {away}: {found} {expected}");
        }
    }
    // A factor in `f64` is one for maps of `f32` too.
    let z = points::<f64>(120, 3, 1.0) + 1e4;
    let own = Nystroem::new(gaussian(1.0), &z).unwrap();
    assert!(own.unbiased(Recipe::for_kernel(gaussian(1.0), 3, 8).unwrap()).unwrap().draw::<f32>(1).is_ok());
}

/// Gradients are differences of features, with the scales held fixed.
#[test]
fn gradients_are_those_of_differences() {
    let (z, x) = (points::<f64>(6, 3, 1.1), points::<f64>(4, 3, 0.9) + 0.15);
    for (kernel, recipe) in recipes() {
        let map: Map<f64> =
            Nystroem::new(kernel.clone(), &z).unwrap().unbiased(recipe).unwrap().draw(1).unwrap();
        for side in [Side::X, Side::Y] {
            let scales = map.features(side, &x).unwrap().log_scales().to_owned();
            let c = points::<f64>(4, map.feature_dim(), 1.0);
            let mut cotangents = c.clone();
            let mut first = 0;
            for (b, width) in map.blocks().iter().enumerate() {
                for i in 0..4 {
                    let scale = scales[[i, b]].exp();
                    cotangents.slice_mut(s![i, first..first + width]).mapv_inplace(|v| v * scale);
                }
                first += width;
            }
            let Ok(gradient) = map.pull_back(side, &x, &cotangents) else {
                assert!(matches!(kernel, AnyKernel::ActivationKernel(_) | AnyKernel::Angular(_)), "{kernel}");
                continue;
            };
            let sum = |x: &Array2<f64>| (&plain(&map, side, x) * &c).sum_axis(Axis(1));
            for k in 0..3 {
                let moved = |by: f64| {
                    let mut x = x.clone();
                    x.column_mut(k).mapv_inplace(|v| v + by);
                    sum(&x)
                };
                let slopes = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                for (slope, found) in slopes.iter().zip(gradient.column(k)) {
                    assert!((slope - found).abs() < 1e-6 * (1.0 + slope.abs()), "{map}: {slope} {found}");
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let z = points::<f64>(6, 3, 1.1);
    let own = Nystroem::new(gaussian(0.8), &z).unwrap();
    let random = |lengthscale: f64, d| Recipe::for_kernel(gaussian(lengthscale), d, 4).unwrap();
    assert!(matches!(own.unbiased(random(0.8, 2)), Err(Error::Shape { .. })));
    assert!(matches!(own.unbiased(random(0.7, 3)), Err(Error::Unsupported { .. })));
    let softmax = Recipe::for_kernel(Softmax::default(), 3, 4).unwrap();
    assert!(matches!(own.unbiased(softmax), Err(Error::Unsupported { .. })));
    // Nyström features estimate K̂.
    assert!(matches!(own.unbiased(own.recipe()), Err(Error::Unsupported { .. })));
    // A factor for which A K Aᵀ is not 1 would leave a bias.
    let wrong = own.factor() * 1.001;
    let wrong = Nystroem::from_parts(gaussian(0.8), z.clone(), wrong).unwrap();
    let recipe = wrong.unbiased(random(0.8, 3)).unwrap();
    assert!(matches!(recipe.draw::<f64>(1), Err(Error::Unsupported { .. })));
    assert!(matches!(recipe.draw::<f32>(1), Err(Error::Unsupported { .. })));
    // One whose wrong entries are beside the diagonal, and one that is wrong where eigenvalues are small.
    let far = ndarray::arr2(&[[0.0], [1e3]]);
    let mixed = ndarray::arr2(&[[0.86395, 0.23149], [0.23149, 0.86395]]);
    let near = Array2::from_shape_fn((6, 1), |(i, _)| i as f64 / 5.0);
    let one = Recipe::for_kernel(gaussian(1.0), 1, 4).unwrap();
    let mut scaled = Nystroem::new(gaussian(1.0), &near).unwrap().factor().clone();
    let last = scaled.nrows() - 1;
    scaled.row_mut(last).mapv_inplace(|a| 3.0 * a);
    for (landmarks, factor) in [(far, mixed), (near, scaled)] {
        let wrong = Nystroem::from_parts(gaussian(1.0), landmarks, factor).unwrap();
        assert!(wrong.unbiased(one.clone()).unwrap().draw::<f64>(1).is_err());
    }
    // One that is turned is as good.
    let mut turned = own.factor().clone();
    turned.invert_axis(Axis(0));
    let turned = Nystroem::from_parts(gaussian(0.8), z, turned).unwrap();
    assert!(turned.unbiased(random(0.8, 3)).unwrap().draw::<f64>(1).is_ok());
}

/// Points of any size, copies of landmarks and points that are not finite give what they give other maps.
#[test]
fn extremes_are_as_elsewhere() {
    let z = concatenate![Axis(0), points::<f64>(5, 3, 1.0), points::<f64>(5, 3, 1.0)];
    for scale in [1e-30, 1.0, 1e30] {
        let (z, kernel) = (&z * scale, gaussian(scale));
        let random = Recipe::for_kernel(kernel.clone(), 3, 4).unwrap();
        let map: Map<f64> =
            Nystroem::new(kernel.clone(), &z).unwrap().unbiased(random).unwrap().draw(1).unwrap();
        let x = points::<f64>(6, 3, 1.0) * scale;
        let estimates = map.gram(&x, &x).unwrap();
        assert!(estimates.iter().all(|v| v.is_finite() && v.abs() < 3.0), "{estimates}");
    }
    let random = Recipe::for_kernel(Softmax::default(), 3, 4).unwrap();
    let own = Nystroem::new(Softmax::default(), &(points::<f64>(5, 3, 1.0) * 20.0)).unwrap();
    let map: Map<f64> = own.unbiased(random).unwrap().draw(1).unwrap();
    let mut x = points::<f64>(5, 3, 1.0) * 20.0;
    x[[2, 1]] = f64::NAN;
    let features = map.features(Side::X, &x).unwrap();
    for (i, row) in features.mantissas().rows().into_iter().enumerate() {
        assert_eq!(row.iter().all(|v| v.is_finite()), i != 2);
    }
    let far: Array1<f64> = Array1::from_elem(3, 1e200);
    let estimate = map.log_estimate(&far, &far).unwrap();
    assert!(estimate.ln_abs.is_nan(), "{estimate:?}");
}

/// Numbers of features are kept, flat spectra get random features alone, and steep ones are much better off.
#[test]
fn shares_are_chosen_from_points() {
    let x = points::<f64>(300, 3, 1.0);
    let error = |kernel: &Gaussian, recipe: &Recipe| -> f64 {
        let exact = kernel_gram(&kernel.clone().into(), &x);
        let of_seed = |seed| (recipe.draw::<f64>(seed).unwrap().gram(&x, &x).unwrap() - &exact).pow2().sum();
        ((0..8).map(of_seed).sum::<f64>() / 8.0 / exact.pow2().sum()).sqrt()
    };
    for (lengthscale, gain) in [(2.0, 0.05), (0.5, 0.9)] {
        let kernel = gaussian(lengthscale);
        let recipe = Nystroem::fit_unbiased(kernel.clone(), &x, 64, 1).unwrap();
        assert!((63..=64).contains(&recipe.feature_dim()), "{recipe}");
        let random = Recipe::for_kernel(kernel.clone(), 3, 32).unwrap();
        let [own, random] = [&recipe, &random].map(|recipe| error(&kernel, recipe));
        assert!(own < gain * random, "{lengthscale}: {own} {random}");
    }
    // All points are far from each other.
    let recipe = Nystroem::fit_unbiased(gaussian(1e-3), &x, 64, 1).unwrap();
    assert_eq!(recipe, Recipe::for_kernel(gaussian(1e-3), 3, 32).unwrap());
    // Points in turn from two places, copies, and points at which the kernel is 0.
    let turns = Array2::from_shape_fn((600, 3), |(i, k)| x[[i % 300, k]] + 10.0 * (i % 2) as f64);
    let recipe = Nystroem::fit_unbiased(gaussian(2.0), &turns, 64, 1).unwrap();
    assert!(recipe.children().first().is_some_and(|own| own.feature_dim() > 16), "{recipe}");
    let zeros = ndarray::arr2(&[[1.0, 2.0], [0.0, 0.0], [3.0, 1.0], [0.0, 0.0]]);
    let recipe = Nystroem::fit_unbiased(random_features::kernel::Angular, &zeros, 3, 1).unwrap();
    assert!(recipe.draw::<f64>(1).is_ok());
    let mut large = points::<f64>(10, 3, 1.0);
    large.row_mut(6).fill(30.0);
    let refused = Nystroem::fit_unbiased(Softmax::default(), &large, 8, 1);
    assert!(matches!(refused, Err(Error::NotFinite { row: 6, .. })), "{refused:?}");
    // An odd number of features is no reason for one of Nyström.
    let flat = Nystroem::fit_unbiased(gaussian(1e-3), &x, 33, 1).unwrap();
    assert_eq!(flat, Recipe::for_kernel(gaussian(1e-3), 3, 16).unwrap());
    // Odd numbers, few points, and a softmax kernel, whose features come one by one.
    for (kernel, features) in [(AnyKernel::from(gaussian(1.0)), 33), (Softmax::default().into(), 33)] {
        let recipe = Nystroem::fit_unbiased(kernel.clone(), &x, features, 1).unwrap();
        assert!((32..=33).contains(&recipe.feature_dim()), "{recipe}");
        for n in [1, 2, 3, 5] {
            let few = x.slice(s![..n, ..]);
            let recipe = Nystroem::fit_unbiased(kernel.clone(), &few, features, 1).unwrap();
            assert!(recipe.feature_dim() <= 33 && recipe.draw::<f32>(1).is_ok(), "{recipe}");
        }
    }
    for features in [0, 1] {
        let refused = Nystroem::fit_unbiased(gaussian(1.0), &x, features, 1);
        assert!(matches!(refused, Err(Error::Parameter { .. })), "{features}");
    }
    let none = x.slice(s![..0, ..]);
    assert!(matches!(Nystroem::fit_unbiased(gaussian(1.0), &none, 8, 1), Err(Error::NoData { .. })));
}

#[cfg(feature = "serde")]
#[test]
fn recipes_and_maps_are_read_back() {
    use serde_json::{from_str, to_string};
    let x = points::<f64>(9, 3, 1.0);
    for (kernel, recipe) in recipes() {
        let recipe = Nystroem::new(kernel, &points::<f64>(5, 3, 1.0)).unwrap().unbiased(recipe).unwrap();
        let again: Recipe = from_str(&to_string(&recipe).unwrap()).unwrap();
        assert_eq!((again.identity(), &again), (recipe.identity(), &recipe));
        assert!(!recipe.is_drawn());
        let map: Map<f64> = recipe.draw(7).unwrap();
        let again: Map<f64> = from_str(&to_string(&map).unwrap()).unwrap();
        assert_eq!(again.identity(), map.identity());
        assert_eq!(again.features(Side::Y, &x).unwrap(), map.features(Side::Y, &x).unwrap());
        assert_eq!(map.recipe(), Some(recipe.drawn(7).unwrap()));
    }
    // Features of another kernel are refused when they are read, with an identity that fits.
    let own = Nystroem::new(gaussian(0.8), &points::<f64>(5, 3, 1.0)).unwrap();
    let recipe = own.unbiased(Recipe::for_kernel(gaussian(0.8), 3, 4).unwrap()).unwrap();
    let stored = to_string(&recipe).unwrap();
    let changed = stored.replace("0.8", "0.7");
    assert_ne!(stored, changed);
    assert!(from_str::<Recipe>(&changed).is_err());
}
