//! A sample of every type that is stored, small, and what can be done with one that was read.

use std::fmt::{Debug, Display};

use ndarray::{Array2, Array4, ArrayRef, Axis, Dimension, arr1, s};
use num_complex::Complex64;
use random_features::apply::attention::{
    Attention, CausalState, HeadBudget, HeadCalibration, Heads, HeadwiseAttention, HeadwiseState,
};
use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax, SoftmaxSampler};
use random_features::apply::{ExactSmoother, Smoother, Standardisation};
use random_features::compose::{Bases, Centres, Clustered, Coefficient, Conditioning, Diagonal, Hybrid};
use random_features::data::shaping::{Moments, PairMoments};
use random_features::data::{Clustering, PairStatistics, Reservoir, Statistics};
use random_features::extend::{Coupling, Radius};
use random_features::frequency::{
    Antithetic, Counts, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal, RadiusCoupling,
    Simplex, SimplexPlus, Sobol,
};
use random_features::kernel::{
    Activation, ActivationKernel, Angular, Gaussian, Kernel, Laplace, Lengthscale, Matern,
    PoweredExponential, RationalQuadratic, RegularisedSoftmax, Smoothness, Softmax, SpectralMixture,
};
use random_features::map::{AnyKernel, Importance, ImportanceMixture, Shift, Transform};
use random_features::planner::{Calibration, Measure, Plan, Planner};
use random_features::recipe::{AnyCoupling, CountLaw, Draw, DrawCounts, Rates};
use random_features::reduce::KernelSums;
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::theory::{BlockLaw, Dependence, Law};
use random_features::workbench;
use random_features::workbench::RootDim;
use random_features::workbench::structured::Structured;
use random_features::{
    ComplexExponential, DenseExponential, EluPlusOne, Error, Geometric, Gerf, Hyperbolic, Map, Nonlinear,
    Poisson, Positive, Real, Recipe, Side, Sign, Trigonometric,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, to_value};

use crate::common::{points, tokens};
use crate::stored::resealed;

/// What reading and use of a stored form give: numbers, or the reason why they are refused.
pub type Read = Result<Vec<f64>, String>;

/// The stored form of a value, and what reads such forms and uses what it has read.
pub struct Sample {
    pub name: &'static str,
    pub stored: Value,
    pub read: Box<dyn Fn(Value) -> Read>,
    /// A part of the paths of numbers that overflow when they are far, so that results are NaN: features of points whose squared norm
    /// overflows are NaN, and so are outputs of such tokens. `None` if there are none.
    pub overflowing: Option<&'static str>,
}

impl Sample {
    pub fn new<V>(
        name: &'static str,
        value: &V,
        serve: impl Fn(V) -> Result<Vec<f64>, Error> + 'static,
    ) -> Self
    where
        V: Serialize + DeserializeOwned + Debug + 'static,
    {
        let read = move |stored| {
            let value = resealed::<V>(stored)?;
            assert!(!format!("{value:?}").is_empty());
            serve(value).map_err(|error| error.to_string())
        };
        Sample { name, stored: to_value(value).unwrap(), read: Box::new(read), overflowing: None }
    }

    /// States that the value holds tokens, which may stand anywhere in it.
    pub fn of_tokens(self) -> Self {
        Sample { overflowing: Some(""), ..self }
    }

    /// States that the value centres points before its map is applied.
    pub fn of_centred_points(self) -> Self {
        Sample { overflowing: Some("/centre/"), ..self }
    }
}

fn numbers<T: Real, D: Dimension>(array: &ArrayRef<T, D>) -> Vec<f64> {
    array.iter().map(|v| v.widen()).collect()
}

/// Nothing but words, which are written.
fn words(value: &impl Display) -> Result<Vec<f64>, Error> {
    assert!(!value.to_string().is_empty());
    Ok(Vec::new())
}

/// Points of as many dimensions as a value of unknown size says, or none if these are too many for a test.
fn points_of<T: Real>(n: usize, d: usize) -> Result<Array2<T>, Error> {
    match d {
        0..100 => Ok(points(n, d, 0.8)),
        _ => Err(Error::Unsupported { what: "so many dimensions, in a test" }),
    }
}

fn omega(m: usize, seed: u64) -> Frequencies {
    Orthogonal.draw(2, m, seed).unwrap()
}

fn positive() -> Map<f64> {
    Positive.softmax(omega(3, 1)).unwrap()
}

fn trigonometric() -> Map<f64> {
    Trigonometric.gaussian(omega(2, 2), 0.8).unwrap()
}

fn use_map<T: Real>(map: &Map<T>) -> Result<Vec<f64>, Error> {
    words(map)?;
    assert!(!format!("{:?} {:?}", map.facts(), map.identity()).is_empty());
    let x = points_of::<T>(5, map.dim())?;
    if map.feature_dim() > 10_000 {
        return Err(Error::Unsupported { what: "so many features, in a test" });
    }
    let mut all = numbers(&map.gram(&x, &x)?);
    for side in [Side::X, Side::Y] {
        all.extend(map.features(side, &x)?.to_array().iter().map(|v| v.widen()).filter(|v| v.is_nan()));
    }
    if map.facts().logarithms {
        map.log_features(Side::X, &x)?;
    }
    map.log_variance(&x.row(0), &x.row(1))?;
    map.relative_error(&x.row(0), &x.row(1))?;
    if let Some(kernel) = map.kernel() {
        kernel.gram(&x, &x)?;
    }
    Ok(all)
}

fn use_recipe(recipe: &Recipe) -> Result<Vec<f64>, Error> {
    words(recipe)?;
    assert!(!format!("{:?}", recipe.identity()).is_empty());
    let x = points_of::<f64>(2, recipe.dim())?;
    if recipe.feature_dim() > 10_000 {
        return Err(Error::Unsupported { what: "so many features, in a test" });
    }
    recipe.log_variance(&x.row(0), &x.row(1))?;
    recipe.relative_error(&x.row(0), &x.row(1))?;
    use_map(&recipe.draw::<f64>(7)?)
}

fn use_omega(omega: Frequencies) -> Result<Vec<f64>, Error> {
    assert!(!format!("{:?} {:?}", omega.law(), omega.drawn_from()).is_empty());
    points_of::<f64>(1, omega.padded_dim())?;
    if omega.m() > 10_000 {
        return Err(Error::Unsupported { what: "so many frequencies, in a test" });
    }
    let mut all = numbers(&omega.rows());
    all.extend(omega.squared_norms());
    // With the kernel that the law of their radii implies; other maps take some laws alone.
    all.extend(use_map::<f64>(&Trigonometric.build(omega.clone(), AnyKernel::implied(1.0))?)?);
    if let Ok(map) = Positive.softmax::<f32>(omega) {
        use_map(&map)?;
    }
    Ok(all)
}

fn use_law(law: Law) -> Result<Vec<f64>, Error> {
    assert!(!format!("{:?} {:?}", law.runs(), law.radius()).is_empty());
    assert!(!format!("{:?}", [law.is_approximate(), law.is_independent()]).is_empty());
    if law.len() < 1000 {
        let rows = points::<f64>(law.len(), 2, 1.0);
        use_omega(Frequencies::from_parts(rows, law.clone())?)?;
    }
    let rows = law.len();
    assert_eq!(law.antithetic().with_radius(Radius::Other).len(), rows);
    Ok(Vec::new())
}

fn use_kernel(kernel: impl Kernel<f64>) -> Result<Vec<f64>, Error> {
    let x = points::<f64>(5, 2, 0.8);
    let mut all = numbers(&kernel.gram(&x, &x)?);
    all.extend(numbers(&kernel.log_gram(&x, &x)?));
    Ok(all)
}

fn mixture() -> SpectralMixture {
    let wave = SpectralMixture::cosine(vec![0.5, -1.0]).unwrap();
    let periodic = SpectralMixture::periodic(vec![1.0, 0.5], 0.7).unwrap();
    let product =
        SpectralMixture::product(&[&wave, &periodic, &Laplace::new(vec![0.7, 1.3]).unwrap()]).unwrap();
    SpectralMixture::sum(&[(0.3, &product), (0.7, &Gaussian::new(0.7).unwrap())]).unwrap()
}

fn small_draw(draw: &Draw) -> Result<Vec<f64>, Error> {
    if draw.d.max(draw.m) > 1000 {
        return Err(Error::Unsupported { what: "so many frequencies, in a test" });
    }
    draw.law();
    draw.padded_dim();
    use_omega(draw.draw(3)?)
}

fn use_counts(counts: Counts) -> Result<Vec<f64>, Error> {
    assert!(!format!("{:?} {:?}", counts.law(), counts.drawn_from()).is_empty());
    let drawn = Poisson::default().gaussian::<f64>(counts.clone(), 1.0);
    match drawn.or_else(|_| Geometric::default().gaussian(counts, 1.0)) {
        Ok(map) => use_map(&map),
        Err(error) => Err(error),
    }
}

/// Laws, draws and kernels.
fn laws() -> Vec<Sample> {
    let overall = Draw::new(2, 5, Orthogonal.with_coupled_radii(RadiusCoupling::Overall)).law();
    let each = || vec![0.7, 1.3];
    let structured = |coupling: &dyn Coupling| coupling.draw(3, 5, 4).unwrap();
    let block =
        BlockLaw::new(3, Dependence::Angle { cos: -0.5 }, Radius::Matern(Smoothness::Half)).in_pairs();
    let coupling = |name, coupling: AnyCoupling| {
        Sample::new(name, &coupling, |coupling: AnyCoupling| {
            words(&coupling)?;
            use_omega(coupling.draw(3, 5, 1)?)
        })
    };
    let rotation = structured(&Hadamard::default());
    vec![
        Sample::new("Frequencies, dense", &omega(5, 1), use_omega),
        Sample::new("Frequencies, given", &Frequencies::from_rows(points(3, 2, 1.0)).unwrap(), use_omega),
        Sample::new("Frequencies, Hadamard", &rotation, use_omega),
        Sample::new("Frequencies, Givens", &structured(&Givens::default()), use_omega),
        Sample::new("Structured", rotation.structured().unwrap(), |structured: Structured| {
            points_of::<f64>(structured.m().min(10_000), structured.padded())?;
            let x = arr1(&[0.3, 0.2, 0.1]);
            let mut all = numbers(&structured.project(x.view())?);
            all.extend(structured.to_rows());
            Ok(all)
        }),
        Sample::new("Law", &Law::of_blocks([block]), use_law),
        Sample::new("Law, orthogonal", &Law::orthogonal(3, 7), use_law),
        Sample::new("Law, radii of a whole draw", &overall, use_law),
        Sample::new("Draw", &Draw::new(2, 3, Simplex::default()).with_radii(RootDim), |draw: Draw| {
            small_draw(&draw)
        }),
        Sample::new(
            "Draw, structured",
            &Draw::new(2, 3, Hadamard::default()).with_stream(3),
            |draw: Draw| small_draw(&draw),
        ),
        coupling("AnyCoupling", Antithetic(Orthogonal).into()),
        coupling("AnyCoupling, coupled radii", Orthogonal.with_coupled_radii(RadiusCoupling::Paired).into()),
        coupling("AnyCoupling, overall radii", Orthogonal.with_coupled_radii(RadiusCoupling::Overall).into()),
        coupling("AnyCoupling, with options", SimplexPlus::default().into()),
        coupling("AnyCoupling, quasi", Sobol.into()),
        coupling("AnyCoupling, Halton", Halton.into()),
        coupling("AnyCoupling, Givens", Givens::default().into()),
        Sample::new("Counts, Poisson", &Counts::poisson(2, 4, each(), 1).unwrap(), use_counts),
        Sample::new("Counts, geometric", &Counts::geometric(2, 4, 0.3, 1).unwrap(), use_counts),
        Sample::new(
            "DrawCounts",
            &DrawCounts::new(2, 4, CountLaw::Poisson(Rates::Same(0.7))).unwrap(),
            |draw: DrawCounts| {
                if draw.d.max(draw.m) > 1000 {
                    return Err(Error::Unsupported { what: "so many counts, in a test" });
                }
                use_counts(draw.draw(3)?)
            },
        ),
        Sample::new("CountLaw", &CountLaw::Geometric(0.3), |law: CountLaw| {
            use_counts(DrawCounts::new(2, 3, law)?.draw(1)?)
        }),
        Sample::new("Lengthscale", &Lengthscale::from(each()), |lengthscale: Lengthscale| {
            use_kernel(Gaussian::new(lengthscale)?)
        }),
        Sample::new("Gaussian", &Gaussian::new(each()).unwrap(), use_kernel),
        Sample::new("Softmax", &Softmax::new(0.7).unwrap(), use_kernel),
        Sample::new("Laplace", &Laplace::new(each()).unwrap(), use_kernel),
        Sample::new("Matern", &Matern::new(Smoothness::FiveHalves, 0.7).unwrap(), use_kernel),
        Sample::new("RationalQuadratic", &RationalQuadratic::new(1.5, 0.7).unwrap(), use_kernel),
        Sample::new("PoweredExponential", &PoweredExponential::new(1.5, 0.7).unwrap(), use_kernel),
        Sample::new("SpectralMixture", &mixture(), use_kernel),
        Sample::new(
            "RegularisedSoftmax",
            &RegularisedSoftmax::in_dimension(2).with_lengthscale(each()).unwrap(),
            use_kernel,
        ),
        Sample::new("Angular", &Angular, use_kernel),
        Sample::new(
            "ActivationKernel",
            &ActivationKernel::new(Activation::Relu).unwrap().with_offset(0.1).unwrap(),
            use_kernel,
        ),
    ]
}

/// Maps and their recipes, of every mechanism and combination.
fn maps() -> Vec<Sample> {
    let map = |name, map: Map<f64>| Sample::new(name, &map, |map: Map<f64>| use_map(&map));
    let recipe = |name, recipe: Recipe| Sample::new(name, &recipe, |recipe: Recipe| use_recipe(&recipe));
    let diagonal = Transform::diagonal(vec![Complex64::new(0.9, 0.3); 2]).unwrap();
    let full = Transform::full(Array2::from_shape_fn((2, 2), |(i, j)| {
        if i == j { Complex64::new(1.1, 0.1) } else { Complex64::new(0.2, -0.1) }
    }));
    let poisson =
        |stream| DrawCounts::new(2, 4, CountLaw::Poisson(Rates::Same(0.7))).unwrap().with_stream(stream);
    let shift = Shift::new(vec![1.0, 1.5], 0.1).unwrap();
    let clusters = |seed| Clustering::of(&points::<f64>(20, 2, 1.0), 2, seed).unwrap();
    let (queries, keys) = (clusters(1), clusters(2));
    let centres = Centres::new(&queries, &keys);
    let turned = Array2::from_shape_fn((2, 2), |(i, j)| if i == j { 1.1 } else { 0.2 });
    let turned = Conditioning::new(turned).unwrap().shifted(vec![0.1, 0.0], vec![0.0, -0.2]).unwrap();
    let weight = (0.7, 1.1);
    let half = || Coefficient::constant(0.3).unwrap();
    let draw = |m| Draw::new(2, m, Orthogonal);
    vec![
        map("Map, positive", positive()),
        map("Map, trigonometric", trigonometric()),
        Sample::new("Map, f32", &Hyperbolic.softmax::<f32>(omega(3, 1)).unwrap(), |map: Map<f32>| {
            use_map(&map)
        }),
        map("Map, structured", Positive.softmax(Hadamard::default().draw(2, 3, 1).unwrap()).unwrap()),
        map(
            "Map, GERF",
            Gerf::new(Complex64::new(-0.1, 0.2), GerfSign::Minus).unwrap().softmax(omega(3, 1)).unwrap(),
        ),
        map("Map, complex", ComplexExponential::new(diagonal, Symmetry::Plain).softmax(omega(3, 1)).unwrap()),
        map(
            "Map, full",
            ComplexExponential::new(full.unwrap(), Symmetry::Symmetric).softmax(omega(3, 1)).unwrap(),
        ),
        map(
            "Map, Poisson",
            Poisson::default().shifted(shift).gaussian(poisson(1).draw(1).unwrap(), 1.0).unwrap(),
        ),
        map(
            "Map, geometric",
            Geometric::with_p(0.3).softmax(Counts::geometric(2, 4, 0.3, 1).unwrap()).unwrap(),
        ),
        map("Map, sign", Sign.build(omega(3, 1), 1.0).unwrap()),
        map(
            "Map, ReLU",
            Nonlinear::new(Activation::Relu).with_offset(0.1).unwrap().build(omega(3, 1), 1.0).unwrap(),
        ),
        map("Map, ELU", EluPlusOne.build(2, 1.0).unwrap()),
        map(
            "Map, dense exponential",
            DenseExponential::new(vec![-0.1, -0.2]).unwrap().softmax(omega(3, 1)).unwrap(),
        ),
        map("Map, importance", Importance::new(vec![0.1, -0.2, 0.0]).unwrap().softmax(omega(3, 1)).unwrap()),
        map(
            "Map, importance mixture",
            ImportanceMixture::new(&points::<f64>(3, 2, 0.6), 3)
                .unwrap()
                .recipe(Softmax::default())
                .draw(1)
                .unwrap(),
        ),
        map("Map, angular hybrid", Hybrid::angular(Bases::shared(omega(3, 1)), omega(2, 2)).unwrap()),
        map(
            "Map, Gaussian hybrid",
            Hybrid::gaussian(Bases::independent(omega(3, 1), omega(2, 3)), omega(2, 2), weight).unwrap(),
        ),
        map(
            "Map, sum",
            Hybrid::sum(vec![(half(), positive())], Trigonometric.softmax(omega(2, 5)).unwrap()).unwrap(),
        ),
        map("Map, clusters", Clustered::by_centres(centres, omega(3, 1), Softmax::default()).unwrap()),
        map("Map, conditioned", positive().conditioned(&turned).unwrap()),
        recipe("Recipe", Positive.recipe(draw(3), Softmax::default())),
        recipe("Recipe, counts", Poisson::default().recipe(poisson(3), Gaussian::default())),
        recipe("Recipe, hybrid", Hybrid::angular(Bases::shared(draw(3)), draw(2)).unwrap()),
        recipe(
            "Recipe, conditioned",
            Positive.recipe(draw(3), Softmax::default()).conditioned(&turned).unwrap(),
        ),
        Sample::new("Conditioning", &turned, |turned: Conditioning| {
            points_of::<f64>(1, turned.dim())?;
            use_map::<f64>(&Positive.softmax(omega(3, 1))?.conditioned(&turned)?)
        }),
        Sample::new("Diagonal", &Diagonal::robust(), move |diagonal: Diagonal| {
            let entries = diagonal.entries(&queries, 0, &keys, 1)?;
            Ok(entries.into_iter().flat_map(|entry| [entry.re, entry.im]).collect())
        }),
    ]
}

/// What is measured of data.
fn data() -> Vec<Sample> {
    let x = points::<f64>(20, 2, 1.0);
    let moments = Moments::of(&x).unwrap();
    let pairs = PairMoments::weighted(moments.clone(), &x, &x, &Array2::ones((20, 20))).unwrap();
    let mut reservoir = Reservoir::new(2).unwrap().with_capacity(3).unwrap();
    reservoir.update(&x).unwrap();
    vec![
        Sample::new("Statistics", &Statistics::of(&x).unwrap(), use_statistics),
        Sample::new("Standardisation", &Standardisation::of(&x).unwrap(), |inputs: Standardisation| {
            let x = points_of::<f64>(3, inputs.scales().len())?;
            Ok(numbers(&inputs.apply(&x)?))
        }),
        Sample::new("Clustering", &Clustering::of(&x, 2, 1).unwrap(), |clusters: Clustering| {
            let x = points_of::<f64>(9, clusters.dim())?;
            clusters.nearest(&x.row(0))?;
            let centres = Centres::new(&clusters, &clusters);
            let omega = Orthogonal.draw(clusters.dim(), 2, 1)?;
            use_map::<f64>(&Clustered::by_centres(centres, omega, Softmax::default())?)?;
            Ok(numbers(clusters.with_spread_of(&x)?.mean_squares()))
        }),
        Sample::new("Moments", &moments, |mut moments: Moments| {
            let mut all = numbers(&moments.covariance()?);
            moments.update(&points_of::<f64>(9, moments.dim())?)?;
            moments.merge(&moments.clone())?;
            all.extend(moments.mean()?);
            Ok(all)
        }),
        Sample::new("PairMoments", &pairs, |mut pairs: PairMoments| {
            pairs.merge(&pairs.clone())?;
            #[cfg(feature = "faer")]
            solvers::use_shape(random_features::data::shaping::Shaping::new().of_moments(&pairs)?)?;
            Ok(numbers(&pairs.cross_covariance()))
        }),
        Sample::new("Reservoir", &reservoir, |mut reservoir: Reservoir| {
            let x = points_of::<f64>(9, reservoir.dim())?;
            let kept = numbers(&reservoir.points());
            reservoir.update(&x)?;
            // A part with another seed or size, of rows that both have read, or another part: any answer will do.
            drop(reservoir.merge(&Reservoir::of(&x)?));
            use_statistics(reservoir.statistics().clone())?;
            Ok(kept)
        }),
    ]
}

fn use_statistics(mut statistics: Statistics) -> Result<Vec<f64>, Error> {
    let mut all = [statistics.mean()?, statistics.variance()?, statistics.min()?, statistics.max()?].concat();
    all.extend(Standardisation::of_statistics(&statistics)?.scales());
    let pairs = PairStatistics::new(&statistics, &statistics)?;
    let parameters = (pairs.oprf(), pairs.gerf(), pairs.poisson(), pairs.geometric());
    assert!(!format!("{parameters:?} {:?}", pairs.poisson_per_dimension()).is_empty());
    statistics.update(&points_of::<f64>(9, statistics.dim())?)?;
    statistics.merge(&statistics.clone())?;
    Ok(all)
}

/// Models, sums and states of applications.
fn applications() -> Vec<Sample> {
    let (x, y) = (points::<f64>(12, 2, 1.0), points::<f64>(12, 2, 0.9));
    let mut smoother = Smoother::new(positive(), 2).unwrap();
    smoother.update(&x, &y).unwrap();
    let mut exact = ExactSmoother::new(Gaussian::new(0.8).unwrap(), 2, 2).unwrap();
    exact.update(&x, &y).unwrap();
    let attention =
        Attention::new(positive()).unwrap().with_window(2, 0).unwrap().with_keys_exact(&[0, 3]).unwrap();
    let shrunk = Attention::new(positive()).unwrap().with_shrinkage(&[0.3]).unwrap();
    let mut shrunk = shrunk.state(1, 2, 2).unwrap();
    let mut state = attention.state(1, 2, 2).unwrap();
    let prompt = tokens::<f64>([1, 2, 7, 2], 0.6, 1);
    state.prefill(&Heads::new(&prompt, &prompt, &prompt).unwrap()).unwrap();
    shrunk.prefill(&Heads::new(&prompt, &prompt, &prompt).unwrap()).unwrap();
    let layer = |leaf, exact| {
        let proposal = Proposal::new(positive()).with_uniform(0.1).unwrap().with_leaf_size(leaf).unwrap();
        let mut layer = SampledSoftmax::new(proposal.with_exact_below(exact), &x).unwrap();
        layer.remove(&[3, 7]).unwrap();
        layer
    };
    vec![
        Sample::new("Smoother", &smoother, use_smoother),
        Sample::new("KernelSums", smoother.sums(), |mut sums: KernelSums<f64>| {
            sums.merge(&sums.clone()).err();
            use_smoother(Smoother::of_sums(positive(), sums)?)
        }),
        Sample::new("ExactSmoother", &exact, |mut smoother: ExactSmoother<f64, Gaussian>| {
            let (x, y) = (points::<f64>(5, 2, 0.8), points::<f64>(5, 2, 0.9));
            let found = numbers(&smoother.predict(&x)?);
            smoother.update(&x, &y)?;
            smoother.classify(&x)?;
            Ok(found)
        }),
        Sample::new("Attention", &attention, use_attention),
        Sample::new("CausalState", &state, use_state).of_tokens(),
        Sample::new("CausalState, shrunk", &shrunk, use_state).of_tokens(),
        Sample::new("HeadwiseAttention", &headwise(), use_headwise),
        Sample::new("HeadwiseState", &headwise_state(), use_headwise_state).of_tokens(),
        Sample::new("SoftmaxSampler, nodes", layer(1, 0).sampler(), use_sampler),
        Sample::new("SoftmaxSampler, leaves", layer(4, 0).sampler(), use_sampler),
        Sample::new("SoftmaxSampler, exact", layer(1, 99).sampler(), use_sampler),
        Sample::new("SampledSoftmax, nodes", &layer(1, 0), use_layer),
        Sample::new("SampledSoftmax, exact", &layer(1, 99), use_layer),
    ]
}

fn use_smoother(mut smoother: Smoother<f64>) -> Result<Vec<f64>, Error> {
    let (x, y) = (points_of::<f64>(5, smoother.map().dim())?, points::<f64>(5, 2, 0.9));
    let mut found = numbers(&smoother.predict(&x)?);
    smoother.merge(&smoother.clone()).err();
    smoother.update(&x, &y)?;
    found.extend(numbers(&smoother.predict(&x)?));
    smoother.classify(&x)?;
    Ok(found)
}

fn use_attention(attention: Attention<f64>) -> Result<Vec<f64>, Error> {
    let d = attention.maps()[0].dim();
    points_of::<f64>(1, d)?;
    let x: Array4<f64> = tokens([1, attention.maps().len(), 9, d], 0.6, 1);
    let heads = Heads::new(&x, &x, &x)?;
    let mut all = numbers(&attention.bidirectional(&heads)?.output);
    all.extend(numbers(&attention.causal(&heads)?.output));
    attention.causal_backward(&heads, &x)?;
    attention.causal_auto(&heads)?;
    Ok(all)
}

fn headwise() -> HeadwiseAttention<f64> {
    let x: Array4<f64> = tokens([1, 2, 12, 2], 1.5, 1);
    let heads = Heads::new(&x, &x, &x).unwrap();
    // One head is linear with a share of the mean, the other may stay exact.
    HeadCalibration::bidirectional().with_m(&[3]).choose(&[heads], HeadBudget::Pairs(7.0)).unwrap()
}

fn headwise_state() -> HeadwiseState<f64> {
    let x: Array4<f64> = tokens([1, 2, 12, 2], 1.5, 1);
    let heads = Heads::new(&x, &x, &x).unwrap();
    let calibration = HeadCalibration::causal().with_m(&[3]);
    let layer: HeadwiseAttention<f64> =
        calibration.choose(std::slice::from_ref(&heads), HeadBudget::Pairs(4.0)).unwrap();
    let mut state = layer.state(1, 2).unwrap();
    state.prefill(&heads).unwrap();
    state
}

fn use_headwise_state(mut state: HeadwiseState<f64>) -> Result<Vec<f64>, Error> {
    let x: Array4<f64> = tokens([1, 2, 3, 2], 0.6, 2);
    let token = x.index_axis(Axis(2), 0);
    let mut all = numbers(&state.step(&token, &token, &token)?.output);
    all.extend(numbers(&state.prefill(&Heads::new(&x, &x, &x)?)?.output));
    assert!(!state.lengths().is_empty());
    state.append(state.clone())?;
    state.select(&[1, 0, 1])?;
    Ok(all)
}

fn use_headwise(layer: HeadwiseAttention<f64>) -> Result<Vec<f64>, Error> {
    words(&layer)?;
    let x: Array4<f64> = tokens([1, layer.heads(), 9, 2], 0.6, 1);
    Ok(numbers(&layer.attend(&Heads::new(&x, &x, &x)?)?.output))
}

fn use_state(mut state: CausalState<f64>) -> Result<Vec<f64>, Error> {
    let x: Array4<f64> = tokens([1, 2, 3, 2], 0.6, 2);
    let mut all = Vec::new();
    for i in 0..3 {
        let x = x.index_axis(Axis(2), i);
        all.extend(numbers(&state.step(&x, &x, &x)?.output));
    }
    all.extend(numbers(&state.prefill(&Heads::new(&x, &x, &x)?)?.output));
    assert!(!state.lengths().is_empty());
    state.append(state.clone())?;
    state.select(&[1, 0, 1])?;
    use_attention(state.attention().clone())?;
    Ok(all)
}

fn use_sampler(mut sampler: SoftmaxSampler<f64>) -> Result<Vec<f64>, Error> {
    if sampler.classes() > 10_000 {
        return Err(Error::Unsupported { what: "so many classes, in a test" });
    }
    let h = points_of::<f64>(3, sampler.map().dim())?;
    let mut all = numbers(&sampler.sample(&h, 9, 1)?.log_probabilities);
    let present: Vec<usize> = (0..sampler.classes()).filter(|class| sampler.is_present(*class)).collect();
    all.extend(sampler.log_probabilities(&h.row(0), &present)?.into_iter().filter(|log| log.is_nan()));
    let added = sampler.add(&h)?;
    sampler.replace(&[added.start], &h.slice(s![..1, ..]))?;
    sampler.remove(&[added.start])?;
    all.extend(numbers(&sampler.sample(&h, 9, 2)?.log_probabilities));
    Ok(all)
}

fn use_layer(mut layer: SampledSoftmax<f64>) -> Result<Vec<f64>, Error> {
    use_sampler(layer.sampler().clone())?;
    let h = points_of::<f64>(2, layer.vectors().ncols())?;
    let target = (0..layer.sampler().classes()).find(|class| layer.sampler().is_present(*class)).unwrap_or(0);
    let loss = layer.loss(&h, &[target, target], 5, 1)?;
    layer.step(&loss, 0.1)?;
    layer.report(&h, &[])?;
    layer.partition(&h.row(0), 9, 1)?.log_interval(0.9)?;
    layer.add(&h)?;
    layer.rebuild()?;
    Ok(loss.losses().to_vec())
}

/// A plan, of which one is made for all tests.
fn plan() -> &'static Plan {
    static PLAN: std::sync::LazyLock<Plan> = std::sync::LazyLock::new(|| {
        let planner =
            Planner::of_one_set(&points::<f64>(16, 2, 0.6)).unwrap().with_kernel(Gaussian::default());
        let planner = planner.with_couplings([Independent.into()]).with_calibration(calibration());
        planner.with_max_features(6).plan().unwrap()
    });
    &PLAN
}

fn calibration() -> Calibration {
    workbench::calibration(std::array::from_fn(|i| 0.5 + i as f64))
}

fn plans() -> Vec<Sample> {
    let mut small = plan().clone();
    small.choices.truncate(2);
    vec![
        Sample::new("Plan", &small, |plan: Plan| {
            assert!(!format!("{plan} {plan:#}").is_empty());
            plan.pareto();
            for choice in &plan.choices {
                use_recipe(&choice.recipe)?;
            }
            Ok(Vec::new())
        }),
        Sample::new("Calibration", &calibration(), |calibration: Calibration| {
            words(&calibration)?;
            let planner = Planner::of_one_set(&points::<f64>(12, 2, 0.6))?.with_calibration(calibration);
            planner.cost(
                &Positive.recipe(Draw::new(2, 3, Orthogonal), Softmax::default()),
                Measure::Nanoseconds,
            );
            Ok(Vec::new())
        }),
    ]
}

#[cfg(feature = "faer")]
mod solvers {
    use random_features::apply::pca::{KernelPca, PcaStatistics};
    use random_features::apply::{
        Criterion, Glm, GlmStream, GlmSums, Ridge, RidgeClassifier, RidgeGrid, RidgePosterior,
        RidgeStatistics,
    };
    use random_features::data::shaping::{Shape, Shaping};
    use random_features::reduce::GramSums;

    use super::*;

    pub fn samples() -> Vec<Sample> {
        let (x, y) = (points::<f64>(12, 2, 1.0), points::<f64>(12, 2, 0.9));
        let statistics = RidgeStatistics::new(trigonometric(), 2).unwrap();
        let mut statistics = statistics.with_standardisation(Standardisation::of(&x).unwrap()).unwrap();
        statistics.update(&x, &y).unwrap();
        let model = statistics.solve(0.1).unwrap();
        let labels: Vec<usize> = (0..12).map(|i| i % 2).collect();
        let classifier = RidgeClassifier::new(model.clone()).unwrap().with_calibration(&x, &labels).unwrap();
        let posterior = statistics.spectrum().unwrap().posterior(0.1).unwrap();
        let posterior = posterior.with_landmarks(&x.slice(s![..3, ..])).unwrap();
        let mut grid = RidgeGrid::new([trigonometric(), positive()], 2).unwrap();
        grid.update(&x, &y).unwrap();
        // A frequency on a line: sums have many numbers, each of which is changed.
        let line = points::<f64>(6, 1, 1.0);
        let map = Trigonometric.gaussian(Orthogonal.draw(1, 1, 3).unwrap(), 1.0).unwrap();
        let glm = Glm::logistic(map, 2).unwrap();
        let fitted = glm.fit(&line, &labels[..6], 0.5).unwrap().into_model();
        let mut glm_sums = GlmSums::at(&fitted).unwrap();
        glm_sums.update(&line, &labels[..6]).unwrap();
        let mut glm_stream = GlmStream::new(&glm, 0.5).unwrap();
        glm_stream.update(&line, &labels[..6]).unwrap();
        let mut sums = PcaStatistics::new(trigonometric()).unwrap();
        sums.update(&x).unwrap();
        vec![
            Sample::new("RidgeStatistics", &statistics, use_statistics).of_centred_points(),
            Sample::new("GramSums", statistics.sums(), |mut sums: GramSums<f64>| {
                sums.merge(&sums.clone()).err();
                assert!(sums.bytes() > 0);
                use_statistics(RidgeStatistics::of_sums(trigonometric(), sums)?)
            }),
            Sample::new("Ridge", &model, use_model).of_centred_points(),
            Sample::new("RidgeClassifier", &classifier, |classifier: RidgeClassifier<f64>| {
                let x = points_of::<f64>(5, classifier.model().map().dim())?;
                classifier.classify(&x)?;
                Ok(numbers(&classifier.probabilities(&x)?))
            })
            .of_centred_points(),
            Sample::new("RidgePosterior", &posterior, |posterior: RidgePosterior<f64>| {
                let x = points_of::<f64>(5, posterior.model().map().dim())?;
                let prediction = posterior.predict(&x)?;
                let mut all = numbers(&prediction.interval(0.9)?.0);
                all.extend(numbers(&prediction.variance_of_targets()));
                Ok(all)
            })
            .of_centred_points(),
            Sample::new("RidgeGrid", &grid, |mut grid: RidgeGrid<f64>| {
                let (x, y) = (points::<f64>(5, 2, 0.8), points::<f64>(5, 2, 0.9));
                let fit = grid.choose(&Criterion::GeneralisedCrossValidation, None)?;
                words(&fit)?;
                grid.update(&x, &y)?;
                use_model(fit.model().clone())
            }),
            Sample::new("Glm", &fitted, use_glm),
            Sample::new("GlmSums", &glm_sums, |mut sums: GlmSums<f64>| {
                sums.merge(&sums.clone()).err();
                sums.loss(0.5)?;
                use_glm(sums.step(0.5)?)
            }),
            Sample::new("GlmStream", &glm_stream, |mut stream: GlmStream<f64>| {
                let x = points_of::<f64>(4, stream.model()?.map().dim())?;
                stream.update(&x, &[0, 1, 1, 0])?;
                use_glm(stream.model()?.clone())
            }),
            Sample::new("PcaStatistics", &sums, |mut sums: PcaStatistics<f64>| {
                sums.merge(&sums.clone()).err();
                let found = use_components(sums.components(2)?)?;
                sums.update(&points_of::<f64>(5, sums.map().dim())?)?;
                Ok(found)
            }),
            Sample::new("KernelPca", &sums.components(2).unwrap(), use_components),
            Sample::new("Shape", &Shaping::new().of_points(&x, &y).unwrap(), use_shape),
        ]
    }

    fn use_statistics(mut statistics: RidgeStatistics<f64>) -> Result<Vec<f64>, Error> {
        let (x, y) = (points_of::<f64>(5, statistics.map().dim())?, points::<f64>(5, 2, 0.9));
        statistics.merge(&statistics.clone()).err();
        statistics.input_warnings();
        let spectrum = statistics.spectrum()?;
        spectrum.choose(&Criterion::GeneralisedCrossValidation, &spectrum.lambdas())?;
        let found = use_model(statistics.solve(0.1)?)?;
        statistics.update(&x, &y)?;
        statistics.downdate(0, &x, &y).err();
        use_model(statistics.solve(0.1)?)?;
        Ok(found)
    }

    fn use_model(model: Ridge<f64>) -> Result<Vec<f64>, Error> {
        let x = points_of::<f64>(5, model.map().dim())?;
        let mut out = vec![0.0; model.intercepts().len()];
        model.predictor().predict_into(&x.row(0), &mut out)?;
        model.classify(&x)?;
        Ok(numbers(&model.predict(&x)?))
    }

    fn use_glm(model: Glm<f64>) -> Result<Vec<f64>, Error> {
        let x = points_of::<f64>(5, model.map().dim())?;
        let mut all = numbers(&model.scores(&x)?);
        model.classify(&x)?;
        all.extend(numbers(&model.probabilities(&x)?));
        Ok(all)
    }

    fn use_components(model: KernelPca<f64>) -> Result<Vec<f64>, Error> {
        let x = points_of::<f64>(5, model.map().dim())?;
        let mut all = numbers(&model.transform(&x)?);
        all.extend(model.explained_variance_ratio());
        Ok(all)
    }

    pub fn use_shape(shape: Shape) -> Result<Vec<f64>, Error> {
        assert!(!shape.summary(64).is_empty());
        points_of::<f64>(1, shape.dim())?;
        shape.conditioning()?;
        shape.dense_exponential()?;
        let omega = Orthogonal.draw(shape.rank(), 3, 1)?;
        use_map::<f64>(&shape.build(omega, Softmax::default())?)
    }
}

pub fn samples() -> Vec<Sample> {
    #[cfg(feature = "faer")]
    let solvers = solvers::samples();
    #[cfg(not(feature = "faer"))]
    let solvers = Vec::new();
    [laws(), maps(), data(), applications(), plans(), solvers].into_iter().flatten().collect()
}
