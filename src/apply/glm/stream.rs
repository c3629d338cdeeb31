//! [`GlmStream`]: a model that is updated by batches of rows, each of which is read once.

use ndarray::{Array1, Array2};

use super::curvature::{Hessian, factorised};
use super::newton::{ARMIJO, ROUNDING};
use super::response::Given;
use super::sample::{ClassSample, SampledRow, WeightedRows};
use super::{Glm, GlmSums, Response, Step};
use crate::engine::PointsView;
use crate::error::{Error, Result, check_alike, check_results, check_size, checked_positive, singular};
use crate::once::once;
use crate::reduce::{GramSums, LEAST_SUMMAND, check_points};
use crate::{Points, Real, Targets, progress};

/// The least number of rows of a batch. Fewer rows are held back.
const BATCH: usize = 64;
/// The maximum number of steps of Newton's method for a batch.
const ROUNDS: usize = 100;
/// The decrease of the loss, as a multiple of the mean weight, below which a step is not followed by another. For counts the mean
/// weight is taken as 1 if it is larger.
const ENOUGH: f64 = 0.1;
/// The largest sum over a chunk of the rows of an update. Sums of 2⁶⁴ that are as large are in range.
const LARGEST: f64 = 1e268;
/// The part of the sum of |∂/∂η| that linearised losses may miss.
const DRIFT: f64 = 0.5;

/// Updates a generalised linear model by batches of rows, each of which is read once. Approximate: the loss of a batch is
/// linearised when the batch is read, and not again at later models.
///
/// ```
/// use random_features::Trigonometric;
/// use random_features::apply::{Glm, GlmStream};
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::{Array2, s};
/// let x = Array2::from_shape_fn((2000, 1), |(i, _)| (i as f64).sin() * 2.0);
/// let labels: Vec<usize> = (0..2000)
///     .map(|i| usize::from(x[[i, 0]] + (7.0 * i as f64).cos() > 0.0))
///     .collect();
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 40, 1)?, 1.0)?;
/// let mut stream = GlmStream::new(&Glm::logistic(map.clone(), 2)?, 0.1)?;
/// for i in 0..2000 {
///     stream.update(&x.slice(s![i..i + 1, ..]), &labels[i..i + 1])?;
/// }
/// let all = Glm::logistic(map, 2)?.fit(&x, &labels, 0.1)?;
/// let streamed = stream.model()?.probabilities(&x)?;
/// let best = all.model().probabilities(&x)?;
/// assert!((streamed - best).iter().all(|d| d.abs() < 0.1));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Let θ = (β, b), φ̃ = (φ, 1), and let s be the second derivatives of a row's loss. A stream holds the matrix A and the vector c
/// of the losses of earlier batches, which are ½θᵀAθ − cᵀθ up to a constant. For a new batch, θ minimises the sum of this, of
/// ½λ‖β‖² and of the loss of the batch, by Newton's method with halving. Then A ← A + Σ sφ̃φ̃ᵀ and c ← c + Σ φ̃(sη + y − π), with
/// the batch's decision values η and predictions π at that minimum.
///
/// Rows come one by one or in batches of any size. Rows of small updates are held back until there are 64 of them, or
/// as many as the model has weights if these are more. [`model`](GlmStream::model) includes the rows that are held
/// back.
///
/// Responses are smoothed as if one further row, which belongs to all classes in equal parts, were spread over the
/// points. The intercept thus stays finite while a class has no rows. For counts, half a count is spread over the points in equal
/// parts, or less if weights are below 1.
///
/// A stream also keeps a uniform sample of 512 rows of each class. At these rows it compares derivatives of the linearised losses
/// with those of the losses. If they differ by more than half on average, for example after many rows of one class, earlier rows
/// are replaced by the sample, with the weights of all rows for which it stands.
///
/// # Error
/// In a test, 1 % of 20,000 rows in the plane belonged to one class. With 32 frequencies and λ = 0.1, its probabilities
/// added up to 1.09 times its number of rows in batches of 50, and to 1.05 times in batches of 2000. In the worst
/// orders, all rows of one class first, this factor was 0.6 to 1.5. [`Glm::fit`] of the stream's model to all rows
/// leads to the minimum, and so do passes of [`GlmSums`](super::GlmSums). After one pass with a full step the factor
/// was 0.99 to 1.2 in all orders. A full step may increase the loss: take half of it then.
///
/// # Cost
/// A batch of n rows takes O(n D² + D³) time for each step, mostly one or two, and the first batch some more. A row that is held
/// back takes O(m d + D), and the model with such rows as much as a batch. A stream holds 8 D² bytes, the rows that are held back,
/// and the samples. With K > 2 classes there are K(K − 1)/2 times as many products, and matrices have K (D + 1) rows.
#[derive(Clone, Debug)]
pub struct GlmStream<T: Real> {
    /// The model of all rows that are not held back.
    pub(super) model: Glm<T>,
    pub(super) lambda: f64,
    pub(super) sums: StreamSums,
    /// The rows that are held back.
    pub(super) pending: WeightedRows<T>,
    /// A sample for each class.
    pub(super) samples: Vec<ClassSample<T>>,
    /// The model with the rows that are held back, once it has been asked for.
    pub(super) latest: Option<Glm<T>>,
}

/// The sums over the rows of a stream, without those that are held back.
#[derive(Clone, Debug)]
pub(super) struct StreamSums {
    /// A without λ. Classes follow each other, each with its weights and then its intercept.
    pub matrix: Array2<f64>,
    /// c.
    pub right: Array1<f64>,
    /// The gradient of smoothing, times the number of rows.
    pub smoothing: Array1<f64>,
    /// The number of rows of positive weight.
    pub rows: u64,
}

/// Rows with their responses.
#[derive(Clone, Copy)]
struct ObservedRows<'a, T: Real> {
    x: PointsView<'a, T>,
    response: &'a Response,
}

impl<T: Real> ObservedRows<'_, T> {
    /// These rows, with a shorter lifetime, to which views of points do not shorten by themselves.
    fn borrowed(&self) -> ObservedRows<'_, T> {
        ObservedRows { x: self.x.rows(0..self.x.nrows()), response: self.response }
    }
}

/// The decision values of some rows: where their losses are linearised, and those of the model after that step.
struct Moved {
    at: Array2<f64>,
    after: Array2<f64>,
}

impl<T: Real> GlmStream<T> {
    /// A stream without rows, which begins at a model, with the penalty λ.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if λ is below 1e-271 or not finite, and the errors of [`GlmSums::at`].
    #[inline(never)]
    pub fn new(model: &Glm<T>, lambda: f64) -> Result<Self> {
        checked_positive("λ", lambda)?;
        // Sums lose second derivatives that are as small.
        if lambda < LEAST_SUMMAND {
            return Err(Error::Parameter {
                name: "λ of a stream", value: lambda, domain: "at least 1e-271"
            });
        }
        GlmSums::at(model)?;
        let size = model.values() * entries(model);
        let (matrix, zeros) = (Array2::zeros((size, size)), Array1::zeros(size));
        let sums = StreamSums { matrix, right: zeros.clone(), smoothing: zeros, rows: 0 };
        let samples = vec![ClassSample::empty(); model.strata()];
        let model = model.clone();
        Ok(GlmStream { model, lambda, sums, pending: WeightedRows::none(), samples, latest: None })
    }

    /// Adds a batch: points `x`, n × d, with their targets. A class may occur for the first time in any batch.
    ///
    /// # Errors
    /// The errors of [`GlmSums::update`]; [`Parameter`](Error::Parameter) if a sum over 4,096 or fewer of these rows exceeds 1e268, beyond
    /// which sums of a stream might leave their range. The stream is unchanged then.
    pub fn update<'a, 't>(
        &mut self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<()> {
        self.take_in(x.into().view(), &targets.into())
    }

    #[inline(never)]
    fn take_in(&mut self, x: PointsView<'_, T>, targets: &Targets<'_, T>) -> Result<()> {
        check_size("the number of columns of x", self.model.map().dim(), x.ncols())?;
        check_points(x)?;
        let response = Given::new(&self.model, targets, x.nrows())?.response(&self.model)?;
        if response.weights.sum() <= 0.0 {
            return Ok(());
        }
        self.check_rows(x, &response)?;
        let least = BATCH.max(self.sums.right.len());
        if self.pending.len() + x.nrows() < least {
            self.pending.append(x, &response)?;
            self.latest = None;
            return Ok(());
        }
        *self = self.with_pending(Some(ObservedRows { x: x.rows(0..x.nrows()), response: &response }))?;
        Ok(())
    }

    /// Rejects rows that could not be taken in later: those without finite features, and those of too large sums.
    fn check_rows(&self, x: PointsView<'_, T>, response: &Response) -> Result<()> {
        let eta = self.model.linear.scores(x)?;
        check_results("the features of x", &eta)?;
        let value = self.model.size_of_sums(x, &self.model.loss.terms(&eta, response), response)?;
        if value <= LARGEST {
            return Ok(());
        }
        let name = "a sum of products of features, targets and weights of a stream";
        let domain = "at most 1e268: scale the weights, or take a map for the Gaussian kernel";
        Err(Error::Parameter { name, value, domain })
    }

    /// The stream after the rows that are held back, and some more.
    fn with_pending(&self, more: Option<ObservedRows<'_, T>>) -> Result<Self> {
        let response = self.pending.response(self.model.values(), 1.0);
        let pending = ObservedRows { x: self.pending.points(self.model.map().dim()), response: &response };
        let is_needed = self.pending.len() > 0;
        let more = more.iter().map(ObservedRows::borrowed);
        let added: Vec<ObservedRows<'_, T>> = is_needed.then_some(pending).into_iter().chain(more).collect();
        let empty = GlmStream { pending: WeightedRows::none(), latest: None, ..self.clone() };
        if added.is_empty() { Ok(empty) } else { empty.with(&added) }
    }

    /// The stream after a batch, which is given in parts.
    fn with(mut self, added: &[ObservedRows<'_, T>]) -> Result<Self> {
        if self.sums.rows == 0
            && let Some(last) = added.last()
        {
            self.model = self.model.with_start(last.response);
        }
        for source in added {
            self.count(source)?;
        }
        let model = self.model.clone();
        let enough = self.enough(added);
        let mut moved = self.minimise(added, enough)?;
        let mut samples = std::mem::take(&mut self.samples);
        if self.has_drifted(&samples, added, &moved)? {
            self.sums.matrix.fill(0.0);
            self.sums.right.fill(0.0);
            self.model = model;
            let mut all = self.minimise_again(&samples, added, enough)?;
            moved = all.split_off(samples.len());
            let kept = samples.iter_mut().zip(all);
            kept.for_each(|(sample, moved)| sample.eta = moved.at.into_iter().collect());
        }
        let total: usize = added.iter().map(|source| source.response.present()).sum();
        let mut number = self.sums.rows - total as u64;
        for (source, moved) in added.iter().zip(&moved) {
            for i in (0..source.x.nrows()).filter(|i| source.response.weights[*i] > 0.0) {
                let (y, eta) = (source.response.y.row(i), moved.at.row(i));
                let sample = &mut samples[self.model.stratum(y)];
                if let Some(place) = sample.place(number) {
                    let point = source.x.rows(i..i + 1).to_dense()?;
                    let row = SampledRow {
                        number,
                        point: &point.iter().copied().collect::<Vec<T>>(),
                        y: &y.to_vec(),
                        weight: source.response.weights[i],
                        eta: &eta.to_vec(),
                    };
                    sample.put(place, &row);
                }
                sample.count += 1;
                number += 1;
            }
        }
        Ok(GlmStream { samples, ..self })
    }

    /// Moves the model to the minimum of the losses of samples and of more rows, all of which are added to the sums.
    fn minimise_again(
        &mut self,
        samples: &[ClassSample<T>],
        added: &[ObservedRows<'_, T>],
        enough: f64,
    ) -> Result<Vec<Moved>> {
        let (values, dim) = (self.model.values(), self.model.map().dim());
        let response = |sample: &ClassSample<T>| sample.rows.response(values, sample.factor());
        let responses: Vec<Response> = samples.iter().map(response).collect();
        let kept = samples.iter().zip(&responses);
        let kept = kept.map(|(sample, response)| ObservedRows { x: sample.rows.points(dim), response });
        let sources: Vec<ObservedRows<'_, T>> =
            kept.chain(added.iter().map(ObservedRows::borrowed)).collect();
        self.minimise(&sources, enough)
    }

    /// Counts rows, and adds them to the gradient of smoothing.
    fn count(&mut self, source: &ObservedRows<'_, T>) -> Result<()> {
        let ObservedRows { x, response } = *source;
        let pulled = self.model.pulled(x, &self.model.smoothing(response))?;
        self.sums.smoothing += &pulled.of(&self.model);
        self.sums.rows += response.present() as u64;
        Ok(())
    }

    /// Moves the model to the minimum of the sums and of the losses of more rows, and adds these rows to the sums. No step follows
    /// one that lowers the loss by less than `enough`.
    fn minimise(&mut self, sources: &[ObservedRows<'_, T>], enough: f64) -> Result<Vec<Moved>> {
        let smoothing = &self.sums.smoothing / self.sums.rows.max(1) as f64;
        let linear = &self.sums.right + &smoothing;
        let weight: f64 = sources.iter().map(|source| source.response.weights.sum()).sum();
        let mut eta: Vec<Array2<f64>> =
            sources.iter().map(|source| self.model.linear.scores(source.x)).collect::<Result<_>>()?;
        for round in 1..=ROUNDS {
            progress::check()?;
            let (own, pull, total) = self.linearised(sources, &eta)?;
            let at = self.model.parameters().of(&self.model);
            let rest = &linear - &self.sums.matrix.dot(&at) - &self.penalty(&at);
            let gradient = &rest + &pull;
            let direction = self.solve(&own, &gradient)?;
            let promise = direction.dot(&gradient);
            let bend =
                direction.dot(&self.sums.matrix.dot(&direction)) + direction.dot(&self.penalty(&direction));
            let step = self.step_of(&direction);
            let along = self.model.clone().with_parameters(step.clone());
            let change: Vec<Array2<f64>> =
                sources.iter().map(|source| along.linear.scores(source.x)).collect::<Result<_>>()?;
            let slack = ROUNDING * (total.abs() + weight);
            let falls = |fraction: f64| {
                let of = |((source, eta), change): ((&ObservedRows<'_, T>, &Array2<f64>), &Array2<f64>)| {
                    self.model.loss.total(&(eta + &(change * fraction)), source.response)
                };
                let new: f64 = sources.iter().zip(&eta).zip(&change).map(of).sum();
                let quadratic = 0.5 * fraction * fraction * bend - fraction * rest.dot(&direction);
                new - total + quadratic <= slack - ARMIJO * fraction * promise
            };
            let mut fraction = 1.0;
            while fraction > 1e-12 && !falls(fraction) {
                fraction *= 0.5;
            }
            let is_last = fraction <= 1e-12 || round == ROUNDS || fraction == 1.0 && promise <= enough;
            let mut parameters = self.model.parameters();
            parameters.add(fraction, &step);
            parameters.centre();
            self.model = self.model.clone().with_parameters(parameters);
            let after = eta.iter().zip(&change).map(|(eta, change)| eta + &(change * fraction));
            let after: Vec<Array2<f64>> = after.collect();
            if is_last {
                self.sums.right += &(own.dot(&at) + &pull);
                self.sums.matrix += &own;
                return Ok(eta.into_iter().zip(after).map(|(at, after)| Moved { at, after }).collect());
            }
            eta = after;
        }
        Ok(Vec::new())
    }

    /// The decrease of the loss below which no further step is taken for a batch.
    fn enough(&self, added: &[ObservedRows<'_, T>]) -> f64 {
        let rows: usize = added.iter().map(|source| source.response.present()).sum();
        let weight: f64 = added.iter().map(|source| source.response.weights.sum()).sum();
        // Without rows, the loss is quadratic, and one step leads to its minimum.
        if rows == 0 {
            return f64::INFINITY;
        }
        ENOUGH * (weight / rows as f64).min(self.model.loss.most_of_exposure())
    }

    /// The second derivatives of the losses of some rows, minus their first derivatives, and the losses.
    fn linearised(
        &self,
        sources: &[ObservedRows<'_, T>],
        eta: &[Array2<f64>],
    ) -> Result<(Array2<f64>, Array1<f64>, f64)> {
        let (mut own, mut pull) =
            (Array2::zeros(self.sums.matrix.dim()), Array1::zeros(self.sums.right.len()));
        let mut total = 0.0;
        for (source, eta) in sources.iter().zip(eta).filter(|(source, _)| source.x.nrows() > 0) {
            let mut sums = GlmSums::at(&self.model)?;
            let terms = self.model.loss.terms(eta, source.response);
            sums.add(source.x, &terms, source.response)?;
            own += &Hessian::bordered(&sums).full();
            pull += &sums.gradient(0.0).of(&self.model);
            total += terms.losses.sum();
        }
        Ok((own, pull, total))
    }

    /// The step that takes a gradient to 0, with the second derivatives `own` beside those of the sums.
    fn solve(&self, own: &Array2<f64>, gradient: &Array1<f64>) -> Result<Array1<f64>> {
        let mut matrix = &self.sums.matrix + own;
        let largest = matrix.diag().iter().fold(0.0, |a: f64, v| a.max(*v));
        let least = GramSums::<T>::rounding() * largest * matrix.nrows() as f64;
        let diagonal = &matrix.diag() + &self.penalty(&Array1::ones(gradient.len()));
        let factor = factorised(&mut matrix, |shift| diagonal.mapv(|v| v + shift * least))?;
        let (factor, _) = factor.ok_or_else(|| singular(self.lambda, least))?;
        factor.solve_vector(gradient)
    }

    /// λ times the weights, and 0 for intercepts.
    fn penalty(&self, parameters: &Array1<f64>) -> Array1<f64> {
        let (count, width) = (entries(&self.model), self.model.map().feature_dim());
        let of = |place: usize| if place % count < width { self.lambda * parameters[place] } else { 0.0 };
        Array1::from_shape_fn(parameters.len(), of)
    }

    fn step_of(&self, flat: &Array1<f64>) -> Step {
        Step::of_flat(flat, entries(&self.model), self.model.map().feature_dim())
    }

    /// Whether the model has moved too far for losses that were linearised before.
    fn has_drifted(
        &self,
        samples: &[ClassSample<T>],
        added: &[ObservedRows<'_, T>],
        moved: &[Moved],
    ) -> Result<bool> {
        let [mut beyond, mut whole] = [0.0; 2];
        for sample in samples.iter().filter(|sample| sample.count > 0) {
            let [own, all] = sample.drift(&self.model)?;
            (beyond, whole) = (beyond + own, whole + all);
        }
        for (source, moved) in added.iter().zip(moved) {
            let terms = self.model.loss.terms(&moved.after, source.response);
            whole += terms.pull.iter().map(|pull| pull.abs()).sum::<f64>();
        }
        Ok(beyond > DRIFT * whole)
    }

    /// Adds the batches of another stream, which has other rows, an equal λ, and a model of the same kind and map.
    ///
    /// # Errors
    /// [`Merge`](crate::Error::Merge) if maps, standardisations, kinds or λ differ, [`Singular`](crate::Error::Singular) if rounding hides the
    /// model.
    #[inline(never)]
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.model.check_kind(&other.model)?;
        check_alike([(self.lambda != other.lambda, "their λ differ")])?;
        let (mut joined, other) = (self.with_pending(None)?, other.with_pending(None)?);
        if other.sums.rows > 0 {
            joined.sums.matrix += &other.sums.matrix;
            joined.sums.right += &other.sums.right;
            joined.sums.smoothing += &other.sums.smoothing;
            joined.sums.rows += other.sums.rows;
            joined.samples.iter_mut().zip(&other.samples).for_each(|(own, other)| own.merge(other));
            joined = joined.with(&[])?;
        }
        *self = joined;
        Ok(())
    }

    /// The model after all rows. Rows that are held back stay so: it does not matter how often the model is asked for.
    ///
    /// # Errors
    /// [`Singular`](crate::Error::Singular) if rounding hides the model, [`Cancelled`](crate::Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn model(&mut self) -> Result<&Glm<T>> {
        if self.pending.len() == 0 {
            return Ok(&self.model);
        }
        let latest = match self.latest.take() {
            Some(latest) => latest,
            None => self.with_pending(None)?.model,
        };
        Ok(self.latest.insert(latest))
    }

    /// The penalty λ.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }
}

impl Response {
    /// The number of rows of positive weight.
    fn present(&self) -> usize {
        self.weights.iter().filter(|weight| **weight > 0.0).count()
    }
}

impl Step {
    /// The entries in the order of the sums of a stream.
    fn of<T: Real>(&self, model: &Glm<T>) -> Array1<f64> {
        self.flat(entries(model))
    }
}

/// The number of weights and intercepts of a class: D, or D + 1 with an intercept.
pub(super) fn entries<T: Real>(model: &Glm<T>) -> usize {
    model.map().feature_dim() + usize::from(model.intercept)
}

once!(GlmStream::<T>::new, GlmStream::<T>::take_in, GlmStream::<T>::merge, GlmStream::<T>::model);
