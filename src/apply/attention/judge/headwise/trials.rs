//! [`Trial`]: a way in which a head may attend, with its error on the calibration sequences; [`HeadTokens`]: these.

use ndarray::{Array2, Array4, ArrayView2, Axis, s};

use super::super::super::input::{Attention, Heads, Job, Numbers, QueryRun, TokenElement, Window};
use super::super::costs::{AttentionCosts, ExactPairs, Lengths};
use super::fit::{Fit, completed, means};
use super::{HeadCalibration, HeadCandidate, exact_of, scaled};
use crate::Real;
use crate::data::spread::spread;
use crate::data::{PairStatistics, Statistics};
use crate::error::Result;
use crate::frequency::Orthogonal;
use crate::map::Map;
use crate::memory::check_memory;
use crate::numeric::matrix_of;
use crate::progress;
use crate::theory::gerf::GerfSign;
use crate::{Gerf, Positive};

/// Neighbours on either side of a query with exact weights; causally, twice as many before it.
const WINDOWS: [usize; 6] = [0, 4, 8, 16, 32, 64];
/// Numbers of weights that a shape keeps for each key at most.
const WEIGHTS: usize = 1024;
/// The most places of queries whose pairs are counted.
const PLACES: usize = 10_000;
/// Numbers of keys with exact weights.
const EXACT_KEYS: [usize; 3] = [0, 4, 16];

/// A way in which a head may attend.
#[derive(Clone, Debug)]
pub(super) struct Trial<T: Real> {
    /// `None` for exact attention.
    pub attention: Option<Attention<T>>,
    pub candidate: HeadCandidate,
    /// Σ ‖o − e‖² over the calibration sequences, in units of the layer.
    pub square: f64,
    /// The error on sequences that had no part in the choice, if there are several.
    fit: Fit,
}

/// Points of queries and keys.
pub(super) struct PairPoints {
    /// n × d.
    pub queries: Array2<f64>,
    /// l × d; masked keys are 0.
    pub keys: Array2<f64>,
    /// Which keys are not masked.
    pub seen: Vec<bool>,
}

/// A map by name, with the maps that are chosen from either half of the sequences, if it depends on them and there are several.
pub(super) struct NamedMap<T: Real> {
    pub name: String,
    /// The number of frequencies.
    pub m: usize,
    pub map: Map<T>,
    pub halves: Option<[Map<T>; 2]>,
}

/// The calibration sequences of a head of keys.
pub(super) struct HeadTokens<'a, T, E> {
    sequences: Vec<Sequence<'a, T, E>>,
    /// Points of the queries of a head and of the keys of a sequence, with the number of the calibration sequence.
    points: Vec<(usize, PairPoints)>,
    /// Dimensions of queries and values.
    dims: [usize; 2],
}

/// One batch of a head of keys, with its exact outputs and the means of its values.
struct Sequence<'a, T, E> {
    heads: Heads<'a, E>,
    exact: Array4<T>,
    means: Array4<T>,
}

/// Which pairs of a head have exact weights.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairOption {
    pub window: Window,
    pub exact_keys: usize,
}

impl<T: Real> Trial<T> {
    /// Exact attention.
    fn exact(lengths: Lengths, dims: [usize; 2]) -> Self {
        let operations = AttentionCosts::new(dims[0], 1, dims[1]).exact(lengths) / lengths.queries as f64;
        let candidate = HeadCandidate {
            features: "exact".into(),
            m: 0,
            window: [0, 0],
            exact_keys: 0,
            share: 0.0,
            pairs: lengths.mean_pairs(PairOption::all()),
            operations,
            error: 0.0,
        };
        Trial { attention: None, candidate, square: 0.0, fit: Fit::default() }
    }

    /// The largest number of the outputs of which its error is made.
    pub fn largest(&self) -> f64 {
        self.fit.largest()
    }

    /// With its squared error in a unit that all heads share.
    pub fn in_unit(self, unit: f64) -> Self {
        Trial { square: self.fit.square_over(0.0, unit), ..self }
    }
}

impl PairOption {
    /// All pairs.
    fn all() -> Self {
        PairOption { window: Window { before: usize::MAX, after: usize::MAX }, exact_keys: 0 }
    }

    /// The options for sequences of at least so many keys, which stand beside their queries or not: windows up to a quarter of the keys.
    fn ladder(keys: usize, side_by_side: bool, causal: bool) -> Vec<Self> {
        let window = |side: usize| match (side, causal) {
            (0, _) => Window::default(),
            (side, true) => Window { before: 2 * side + 1, after: 0 },
            (side, false) => Window { before: side + 1, after: side },
        };
        // Neighbours have places in common.
        let fits = |side: &usize| *side == 0 || side_by_side && 8 * side <= keys;
        let exact_keys = move || EXACT_KEYS.into_iter().filter(move |count| 4 * count <= keys);
        let with_keys =
            |side| exact_keys().map(move |exact_keys| PairOption { window: window(side), exact_keys });
        WINDOWS.into_iter().filter(fits).flat_map(with_keys).collect()
    }

    /// Attention of a map with these exact pairs.
    fn attention<T: Real>(self, map: Map<T>, calibration: &HeadCalibration) -> Result<Attention<T>> {
        let attention = Attention::new(map)?.with_window(self.window.before, self.window.after)?;
        let attention = match calibration.causal {
            true => attention.with_keys_exact(&Vec::from_iter(0..self.exact_keys))?,
            false => attention.with_heaviest_keys_exact(self.exact_keys)?,
        };
        scaled(attention, calibration.scale)
    }
}

impl Lengths {
    /// The number of exact pairs a query, on average: neighbours, and keys beside them, as if these were no neighbours.
    fn mean_pairs(self, PairOption { window, exact_keys }: PairOption) -> f64 {
        let end = |i: usize| if self.causal { self.keys.min(i + 1) } else { self.keys };
        let near = |i: usize| {
            let places = window.places(i);
            places.end.min(end(i)).saturating_sub(places.start)
        };
        let of_query = |i: usize| near(i).saturating_add(exact_keys).min(end(i)) as f64;
        // Evenly spaced queries stand for all of long sequences.
        let queries = spread(self.queries, PLACES);
        queries.iter().map(|i| of_query(*i)).sum::<f64>() / queries.len() as f64
    }
}

impl<'a, T: Real, E: TokenElement<T>> HeadTokens<'a, T, E> {
    /// The tokens of a head of keys.
    pub fn new(all: &'a [Heads<'_, E>], head: usize, calibration: &HeadCalibration) -> Result<Self> {
        let (mut sequences, mut points, mut dims) = (Vec::new(), Vec::new(), [0; 2]);
        let exact = exact_of(calibration.scale)?;
        check_room(all)?;
        for heads in all {
            let ((.., d), (.., d_v)) = (heads.queries.dim(), heads.values.dim());
            dims = [d, d_v];
            for batch in 0..heads.queries.dim().0 {
                progress::check()?;
                let heads = heads.part(batch..batch + 1, head);
                points.extend(points_of(&heads, calibration.factor(d)).map(|pair| (sequences.len(), pair)));
                let means = means(&heads, calibration.causal);
                let out = if calibration.causal { exact.causal(&heads) } else { exact.bidirectional(&heads) };
                sequences.push(Sequence { exact: completed(out?, &means), means, heads });
            }
        }
        Ok(HeadTokens { sequences, points, dims })
    }

    /// The ways of this head, without those that another betters in pairs, operations and error.
    pub fn trials(&self, calibration: &HeadCalibration, lengths: Lengths) -> Result<Vec<Trial<T>>> {
        let mut trials = vec![Trial::exact(lengths, self.dims)];
        let fixed = self.fixed_maps(calibration)?;
        let (keys, side_by_side) = self.shape_of_sequences();
        for option in PairOption::ladder(keys, side_by_side, calibration.causal) {
            for map in &fixed {
                trials.push(self.trial(calibration, lengths, option, map)?);
            }
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            for map in &self.shaped_maps(calibration, option)? {
                trials.push(self.trial(calibration, lengths, option, map)?);
            }
        }
        Ok(undominated(trials))
    }

    /// The least number of keys of a sequence, and whether all have as many keys as queries.
    fn shape_of_sequences(&self) -> (usize, bool) {
        let ranges = self.sequences.iter().flat_map(|sequence| sequence.heads.ranges());
        ranges.fold((usize::MAX, true), |(keys, side_by_side), (own_queries, own_keys)| {
            (keys.min(own_keys.len()), side_by_side && own_queries.len() == own_keys.len())
        })
    }

    /// A way, with the share that is best on all sequences, and the error on those that had no part in the choice.
    fn trial(
        &self,
        calibration: &HeadCalibration,
        lengths: Lengths,
        option: PairOption,
        NamedMap { name, m, map, halves }: &NamedMap<T>,
    ) -> Result<Trial<T>> {
        progress::check()?;
        let attention = option.attention(map.clone(), calibration)?;
        let fits = self.fits(&attention, calibration.causal)?;
        let share = sum(&fits, |_| true).share()?;
        let fit = match halves {
            _ if fits.len() == 1 => sum(&fits, |_| true).at(share),
            None => judged(&fits, 0)?.plus(judged(&fits, 1)?),
            Some([first, second]) => {
                let of_half = |map: &Map<T>, half| -> Result<Fit> {
                    let attention = option.attention(map.clone(), calibration)?;
                    judged(&self.fits(&attention, calibration.causal)?, half)
                };
                of_half(first, 0)?.plus(of_half(second, 1)?)
            }
        };
        let pairs = ExactPairs { window: option.window, keys: option.exact_keys };
        let costs = AttentionCosts::new(self.dims[0], map.feature_dim(), self.dims[1]);
        let candidate = HeadCandidate {
            features: name.clone(),
            m: *m,
            window: [option.window.before, option.window.after],
            exact_keys: option.exact_keys,
            share,
            pairs: lengths.mean_pairs(option),
            operations: costs.linear(lengths, pairs) / lengths.queries as f64,
            error: fit.error(0.0),
        };
        Ok(Trial { attention: Some(attention.with_shrinkage(&[share])?), candidate, square: 0.0, fit })
    }

    /// How far outputs are from the exact ones, for each sequence.
    fn fits(&self, attention: &Attention<T>, causal: bool) -> Result<Vec<Fit>> {
        let of_sequence = |Sequence { heads, exact, means }: &Sequence<'_, T, E>| {
            let own = if causal { attention.causal(heads) } else { attention.bidirectional(heads) };
            let (own, mut fit) = (completed(own?, means), Fit::default());
            for h in 0..own.dim().1 {
                fit.add_rows([exact, &own, means].map(|all| all.slice(s![.., h, .., ..])));
            }
            Ok(fit)
        };
        self.sequences.iter().map(of_sequence).collect()
    }

    /// Maps that are alike for all exact pairs.
    fn fixed_maps(&self, calibration: &HeadCalibration) -> Result<Vec<NamedMap<T>>> {
        // One number is chosen from the tokens, which hardly depends on the sequence.
        let gerf = Gerf::optimal(self.dims[0], self.mean_squared_sum()?)?;
        let mut maps = Vec::new();
        for m in &calibration.m {
            let omega = || Orthogonal.draw(self.dims[0], *m, calibration.seed);
            let (positive, generalised) = (Positive.softmax(omega()?)?, gerf.softmax(omega()?)?);
            for (name, map) in [("positive", positive), ("generalised", generalised)] {
                maps.push(NamedMap { name: name.into(), m: *m, map, halves: None });
            }
        }
        Ok(maps)
    }

    /// What is chosen from either half of the sequences; `None` if there is one sequence.
    pub fn halves<A>(&self, of_half: impl Fn(Option<usize>) -> A) -> Option<[A; 2]> {
        (self.sequences.len() > 1).then(|| [of_half(Some(0)), of_half(Some(1))])
    }

    /// Points of queries and keys, of all sequences or one half of them.
    pub fn points(&self, half: Option<usize>) -> Vec<&PairPoints> {
        let is_own = |sequence: usize| half.is_none_or(|half| sequence % 2 == half);
        self.points.iter().filter(|(sequence, _)| is_own(*sequence)).map(|(_, points)| points).collect()
    }

    /// The mean of ‖x + y‖² over pairs of a query and a key that is not masked.
    fn mean_squared_sum(&self) -> Result<f64> {
        let points = self.points(None);
        let queries = Vec::from_iter(points.iter().map(|pair| pair.queries.view()));
        let seen = |pair: &&PairPoints| {
            let rows = Vec::from_iter((0..pair.seen.len()).filter(|j| pair.seen[*j]));
            pair.keys.select(Axis(0), &rows)
        };
        let keys = Vec::from_iter(points.iter().map(seen));
        let keys = Vec::from_iter(keys.iter().map(|keys| keys.view()));
        let statistics = [queries, keys].map(|side| Statistics::of(&concatenated(&side)));
        let [x, y] = statistics;
        Ok(PairStatistics::new(&x?, &y?)?.mean_squared_sum(GerfSign::Plus))
    }
}

/// Refuses sequences for which there is no memory: for points of queries and of the keys of each head of queries, exact outputs, means of
/// values, and weights of some queries.
fn check_room<E>(all: &[Heads<'_, E>]) -> Result<()> {
    let tokens = |heads: &Heads<'_, E>| {
        let ((b, h, n, _), (.., l, _)) = (heads.queries.dim(), heads.keys.dim());
        b.saturating_mul(h).saturating_mul(n.saturating_add(l))
    };
    let tokens = all.iter().map(tokens).fold(0, usize::saturating_add);
    let widest = all.iter().map(|heads| heads.queries.dim().3.saturating_add(heads.values.dim().3));
    let numbers = widest.fold(0, usize::max).saturating_mul(2).saturating_add(WEIGHTS);
    check_memory("points of calibration sequences", tokens, numbers.saturating_mul(size_of::<f64>()))
}

/// The sum over some sequences.
fn sum(fits: &[Fit], takes: impl Fn(usize) -> bool) -> Fit {
    let own = fits.iter().enumerate().filter(|(i, _)| takes(*i));
    own.fold(Fit::default(), |sum, (_, fit)| sum.plus(*fit))
}

/// The error on the other half of the sequences with the share that is best on this half.
fn judged(fits: &[Fit], half: usize) -> Result<Fit> {
    let share = sum(fits, |i| i % 2 == half).share()?;
    Ok(sum(fits, |i| i % 2 != half).at(share))
}

/// The ways that no other is as good as in all respects, of equal ones the first.
fn undominated<T: Real>(trials: Vec<Trial<T>>) -> Vec<Trial<T>> {
    let key = |trial: &Trial<T>| {
        let HeadCandidate { pairs, operations, error, .. } = trial.candidate;
        [pairs, operations, error]
    };
    let keys: Vec<[f64; 3]> = trials.iter().map(key).collect();
    let is_left = |i: usize| {
        !keys.iter().enumerate().any(|(j, other)| {
            let as_good = other.iter().zip(&keys[i]).all(|(other, own)| other <= own);
            as_good && (*other != keys[i] || j < i)
        })
    };
    trials.into_iter().enumerate().filter(|(i, _)| is_left(*i)).map(|(_, trial)| trial).collect()
}

/// Points of the queries of each head and of the keys of each sequence.
fn points_of<T: Real, E: TokenElement<T>>(
    heads: &Heads<'_, E>,
    factor: f64,
) -> impl Iterator<Item = PairPoints> {
    let points = |x: Numbers<'_, T>| {
        let mut own = Vec::new();
        x.read(T::one(), &mut own);
        matrix_of(x.nrows(), x.ncols(), own.iter().map(|v| v.widen() * factor).collect())
    };
    let of_job = |job: Job<'_, T>| -> Vec<PairPoints> {
        let (mut keys, seen) = (points(job.keys.keys), (0..job.keys.len()).map(|j| job.keys.sees(j)));
        let seen: Vec<bool> = seen.collect();
        (0..seen.len()).filter(|j| !seen[*j]).for_each(|j| keys.row_mut(j).fill(0.0));
        let of_head = |queries: &QueryRun<'_, T>| PairPoints {
            queries: points(queries.rows),
            keys: keys.clone(),
            seen: seen.clone(),
        };
        job.queries.iter().map(of_head).collect()
    };
    heads.jobs().into_iter().flat_map(of_job).collect::<Vec<_>>().into_iter()
}

/// All rows, one after the other.
pub(super) fn concatenated(parts: &[ArrayView2<'_, f64>]) -> Array2<f64> {
    let columns = parts.first().map_or(0, |part| part.ncols());
    let rows = parts.iter().map(|part| part.nrows()).sum();
    matrix_of(rows, columns, parts.iter().flat_map(|part| part.iter().copied()).collect())
}
