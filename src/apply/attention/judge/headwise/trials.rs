//! [`Trial`]: a way in which a head may attend, with its error on the calibration sequences; [`HeadTokens`]: these.

use ndarray::{Array2, Array4, ArrayView2, s};

use super::super::super::input::{Attention, Heads, Job, Numbers, TokenElement, Window};
use super::super::costs::{AttentionCosts, ExactPairs, Lengths};
use super::fit::{Fit, completed, means};
use super::{Calibration, HeadBudget, HeadCandidate, exact_of};
use crate::Real;
use crate::data::{PairStatistics, Statistics};
use crate::error::Result;
use crate::frequency::Orthogonal;
use crate::map::Map;
use crate::numeric::matrix_of;
use crate::progress;
use crate::theory::gerf::GerfSign;
use crate::{Gerf, Positive};

/// Neighbours on either side of a query with exact weights; causally, twice as many before it.
const WINDOWS: [usize; 7] = [0, 2, 4, 8, 16, 32, 64];
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

/// A map by name, with the maps that are chosen from either half of the sequences, if it depends on them and there are several.
pub(super) struct NamedMap<T: Real> {
    pub name: String,
    pub map: Map<T>,
    pub halves: Option<[Map<T>; 2]>,
}

/// The calibration sequences of a head of keys.
pub(super) struct HeadTokens<'a, T, E> {
    sequences: Vec<Sequence<'a, T, E>>,
    /// Points of the queries of a head and of the keys of a sequence, with the number of the calibration sequence.
    points: Vec<(usize, [Array2<f64>; 2])>,
    /// Dimensions of queries and values.
    dims: [usize; 2],
}

/// One batch of a head of keys, with its exact outputs and the means of its values.
struct Sequence<'a, T, E> {
    heads: Heads<'a, E>,
    exact: Array4<T>,
    means: Array4<T>,
}

/// What pairs of a head have exact weights.
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
            pairs: lengths.mean_pairs(PairOption::all(lengths)),
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
    fn all(lengths: Lengths) -> Self {
        PairOption { window: Window { before: lengths.keys, after: lengths.keys }, exact_keys: 0 }
    }

    /// The options for sequences of these lengths: windows up to a quarter of the keys.
    pub fn ladder(lengths: Lengths) -> Vec<Self> {
        let window = |side: usize| match (side, lengths.causal) {
            (0, _) => Window::default(),
            (side, true) => Window { before: 2 * side + 1, after: 0 },
            (side, false) => Window { before: side + 1, after: side },
        };
        // Neighbours have places in common.
        let fits = |side: &usize| *side == 0 || lengths.queries == lengths.keys && 8 * side <= lengths.keys;
        let keys = || EXACT_KEYS.into_iter().filter(|keys| 4 * keys <= lengths.keys);
        let with_keys = |side| keys().map(move |exact_keys| PairOption { window: window(side), exact_keys });
        WINDOWS.into_iter().filter(fits).flat_map(with_keys).collect()
    }

    /// Attention of a map with these exact pairs.
    fn attention<T: Real>(self, map: Map<T>, calibration: &Calibration) -> Result<Attention<T>> {
        let attention = Attention::new(map)?.with_window(self.window.before, self.window.after)?;
        let attention = match calibration.causal {
            true => attention.with_keys_exact(&Vec::from_iter(0..self.exact_keys))?,
            false => attention.with_heaviest_keys_exact(self.exact_keys)?,
        };
        calibration.scale.map_or(Ok(attention.clone()), |scale| attention.with_scale(scale))
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
        let of_query = |i: usize| (near(i) + exact_keys).min(end(i));
        (0..self.queries).map(of_query).sum::<usize>() as f64 / self.queries as f64
    }
}

impl<'a, T: Real, E: TokenElement<T>> HeadTokens<'a, T, E> {
    /// The tokens of a head of keys.
    pub fn new(all: &'a [Heads<'_, E>], head: usize, calibration: &Calibration) -> Result<Self> {
        let (mut sequences, mut points, mut dims) = (Vec::new(), Vec::new(), [0; 2]);
        let exact = exact_of(calibration.scale)?;
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

    /// The ways of this head that nothing cheaper betters, the cheapest first: the last is exact.
    pub fn trials(
        &self,
        calibration: &Calibration,
        budget: HeadBudget,
        lengths: Lengths,
    ) -> Result<Vec<Trial<T>>> {
        let mut trials = vec![Trial::exact(lengths, self.dims)];
        let fixed = self.fixed_maps(calibration)?;
        for option in PairOption::ladder(lengths) {
            for map in &fixed {
                trials.push(self.trial(calibration, lengths, option, map)?);
            }
            for map in &self.shaped_maps(calibration, option)? {
                trials.push(self.trial(calibration, lengths, option, map)?);
            }
        }
        Ok(front(trials, |trial| budget.cost(trial)))
    }

    /// A way, with the share that is best on all sequences, and the error on those that had no part in the choice.
    fn trial(
        &self,
        calibration: &Calibration,
        lengths: Lengths,
        option: PairOption,
        NamedMap { name, map, halves }: &NamedMap<T>,
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
            m: calibration.m,
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
    fn fixed_maps(&self, calibration: &Calibration) -> Result<Vec<NamedMap<T>>> {
        let omega = || Orthogonal.draw(self.dims[0], calibration.m, calibration.seed);
        let positive = Positive.softmax(omega()?)?;
        let generalised = |half: Option<usize>| {
            let sum = self.mean_squared_sum(half)?;
            Gerf::optimal(self.dims[0], sum)?.softmax(omega()?)
        };
        Ok(vec![
            NamedMap { name: "positive".into(), map: positive, halves: None },
            NamedMap {
                name: "generalised".into(),
                map: generalised(None)?,
                halves: self.halves(generalised)?,
            },
        ])
    }

    /// The maps that are chosen from either half of the sequences; `None` if there is one sequence.
    pub fn halves(&self, map: impl Fn(Option<usize>) -> Result<Map<T>>) -> Result<Option<[Map<T>; 2]>> {
        match self.sequences.len() {
            1 => Ok(None),
            _ => Ok(Some([map(Some(0))?, map(Some(1))?])),
        }
    }

    /// Points of queries and keys, of all sequences or one half of them.
    pub fn points(&self, half: Option<usize>) -> Vec<&[Array2<f64>; 2]> {
        let is_own = |sequence: usize| half.is_none_or(|half| sequence % 2 == half);
        self.points.iter().filter(|(sequence, _)| is_own(*sequence)).map(|(_, points)| points).collect()
    }

    /// The mean of ‖x + y‖² over pairs of a query and a key.
    fn mean_squared_sum(&self, half: Option<usize>) -> Result<f64> {
        let points = self.points(half);
        let of_side = |side: usize| -> Result<Statistics> {
            let views: Vec<ArrayView2<'_, f64>> = points.iter().map(|pair| pair[side].view()).collect();
            Statistics::of(&concatenated(&views))
        };
        Ok(PairStatistics::new(&of_side(0)?, &of_side(1)?)?.mean_squared_sum(GerfSign::Plus))
    }
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

/// The ways that nothing cheaper betters, the cheapest first.
fn front<T: Real>(mut trials: Vec<Trial<T>>, cost: impl Fn(&Trial<T>) -> f64) -> Vec<Trial<T>> {
    let key = |trial: &Trial<T>| (cost(trial), trial.candidate.error);
    trials.sort_by(|a, b| key(a).0.total_cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
    let mut least = f64::INFINITY;
    trials.retain(|trial| {
        let better = trial.candidate.error < least;
        least = least.min(trial.candidate.error);
        better
    });
    trials
}

/// Points of the queries of each head and of the keys of each sequence; masked keys are 0.
fn points_of<T: Real, E: TokenElement<T>>(
    heads: &Heads<'_, E>,
    factor: f64,
) -> impl Iterator<Item = [Array2<f64>; 2]> {
    let points = |x: Numbers<'_, T>| {
        let mut own = Vec::new();
        x.read(T::one(), &mut own);
        matrix_of(x.nrows(), x.ncols(), own.iter().map(|v| v.widen() * factor).collect())
    };
    let of_job = |job: Job<'_, T>| -> Vec<[Array2<f64>; 2]> {
        let mut keys = points(job.keys.keys);
        (0..job.keys.len()).filter(|j| !job.keys.sees(*j)).for_each(|j| keys.row_mut(j).fill(0.0));
        job.queries.iter().map(|queries| [points(queries.rows), keys.clone()]).collect()
    };
    let all: Vec<_> = heads.jobs().into_iter().flat_map(of_job).collect();
    all.into_iter().filter(|[queries, keys]| !queries.is_empty() && !keys.is_empty())
}

/// All rows, one after the other.
pub(super) fn concatenated(parts: &[ArrayView2<'_, f64>]) -> Array2<f64> {
    let columns = parts.first().map_or(0, |part| part.ncols());
    let rows = parts.iter().map(|part| part.nrows()).sum();
    matrix_of(rows, columns, parts.iter().flat_map(|part| part.iter().copied()).collect())
}
