//! [`GlmStream`]: a model that is updated by batches of rows, each of which is read once.

use ndarray::{Array2, aview1};

use super::curvature::Matrix;
use super::response::Given;
use super::{Glm, GlmSums, Response, Step};
use crate::engine::PointsView;
use crate::error::{Error, Result, check_size, checked_positive};
use crate::linalg::Backend;
use crate::once::once;
use crate::reduce::check_points;
use crate::{Points, Real, Targets, progress};

/// The maximum number of times that a batch is linearised, and the mean squared change of its decision values above which it is
/// linearised again.
const ROUNDS: usize = 10;
const FAR: f64 = 1.0;

/// Updates a generalised linear model by batches of rows, each of which is read once. Approximate: the loss of a batch is
/// linearised at the model before it, and not again at later models.
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
/// for batch in 0..10 {
///     let rows = 200 * batch..200 * (batch + 1);
///     stream.update(&x.slice(s![rows.clone(), ..]), &labels[rows])?;
/// }
/// let all = Glm::logistic(map, 2)?.fit(&x, &labels, 0.1)?;
/// let [streamed, best] = [stream.model(), all.model()]
///     .map(|model| model.probabilities(&x))
///     .map(|p| p.unwrap());
/// assert!((streamed - best).iter().all(|d| d.abs() < 0.1));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Let θ = (β, b) be the model before a batch, with decision values η and predictions π, let φ̃ = (φ, 1), and let s be the second
/// derivatives of the loss. The batch changes A ← A + Σ sφ̃φ̃ᵀ and c ← c + Σ φ̃(sη + y − π), and the model becomes θ = A⁻¹c. A
/// begins as λI, with 0 for the intercept b. The first batch is linearised twice. A later batch is linearised again if it changes
/// its η by more than 1 in the root mean square, for example because a new class occurs. A pass of [`GlmSums`](super::GlmSums) at
/// the model squares the remaining error.
///
/// # Cost
/// A batch of n rows takes O(n D² + D³) time, and a stream holds 8 D² bytes. With K > 2 classes there are K(K − 1)/2 times as
/// many products, and matrices have K (D + 1) rows.
#[derive(Clone, Debug)]
pub struct GlmStream<T: Real> {
    pub(super) model: Glm<T>,
    pub(super) lambda: f64,
    /// A without λ, of which the lower triangle is used. Classes follow each other, each with its weights and then its intercept.
    pub(super) matrix: Array2<f64>,
    /// c.
    pub(super) right: Vec<f64>,
    /// Σ a.
    pub(super) weight: f64,
}

impl<T: Real> GlmStream<T> {
    /// A stream without rows, which begins at a model, with the penalty λ.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if λ is not positive and finite, and the errors of [`GlmSums::at`].
    #[inline(never)]
    pub fn new(model: &Glm<T>, lambda: f64) -> Result<Self> {
        checked_positive("λ", lambda)?;
        GlmSums::at(model)?;
        let size = model.values() * entries(model);
        let (matrix, right) = (Array2::zeros((size, size)), vec![0.0; size]);
        Ok(GlmStream { model: model.clone(), lambda, matrix, right, weight: 0.0 })
    }

    /// Adds a batch: points `x`, n × d, with their targets. A class may occur for the first time in any batch.
    ///
    /// # Errors
    /// The errors of [`GlmSums::update`]; the stream is unchanged then.
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
        let weight = response.weights.sum();
        if weight <= 0.0 {
            return Ok(());
        }
        let is_first = self.weight == 0.0;
        let start = self.model.clone();
        let mut model = if is_first { start.with_start(&response) } else { start };
        let mut eta = model.linear.scores(x)?;
        for round in 1..=ROUNDS {
            let next = self.after(model, x, (&eta, &response))?;
            let new = next.model.linear.scores(x)?;
            let moved = (&new - &eta).iter().map(|d| d * d).sum::<f64>() > FAR * eta.len() as f64;
            if round == ROUNDS || !(moved || is_first && round == 1) {
                *self = GlmStream { weight: self.weight + weight, ..next };
                break;
            }
            (model, eta) = (next.model, new);
        }
        Ok(())
    }

    /// The stream after a batch that is linearised at a model.
    fn after(
        &self,
        model: Glm<T>,
        x: PointsView<'_, T>,
        (eta, response): (&Array2<f64>, &Response),
    ) -> Result<Self> {
        progress::check()?;
        let mut sums = GlmSums::at(&model)?;
        sums.add(x, &model.loss.terms(eta, response), response)?;
        let own = Matrix::bordered(&sums).full();
        let right =
            own.dot(&model.parameters().flat(entries(&model))) + sums.gradient(0.0).flat(entries(&model));
        let right = self.right.iter().zip(&right).map(|(a, b)| a + b).collect();
        let next = GlmStream { matrix: &self.matrix + &own, right, ..self.clone() };
        GlmStream { model, ..next }.solved()
    }

    /// The stream with the model of its sums.
    fn solved(mut self) -> Result<Self> {
        let (count, width) = (entries(&self.model), self.model.map().feature_dim());
        let mut matrix = self.matrix.clone();
        let places = (0..matrix.nrows()).filter(|place| place % count < width);
        places.for_each(|place| matrix[[place, place]] += self.lambda);
        let solution = Backend::default().cholesky(&matrix)?.solve_vector(&aview1(&self.right))?;
        let mut parameters = Step::of_flat(&solution, count, width);
        parameters.centre();
        self.model = self.model.with_parameters(parameters);
        Ok(self)
    }

    /// Adds the batches of another stream, which has other rows, an equal λ, and a model of the same kind and map.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if maps, standardisations, kinds or λ differ, [`Factorisation`](Error::Factorisation) if rounding hides
    /// the model.
    #[inline(never)]
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let (own, their) = (&self.model, &other.model);
        let alike = own.map().identity() == their.map().identity()
            && own.standardisation() == their.standardisation()
            && (own.loss, own.intercept, own.classes) == (their.loss, their.intercept, their.classes)
            && own.present == their.present
            && self.lambda == other.lambda;
        if !alike {
            return Err(Error::Merge { reason: "their models or λ differ" });
        }
        if other.weight == 0.0 {
            return Ok(());
        }
        let right = self.right.iter().zip(&other.right).map(|(a, b)| a + b).collect();
        let matrix = &self.matrix + &other.matrix;
        let weight = self.weight + other.weight;
        *self = GlmStream { matrix, right, weight, ..self.clone() }.solved()?;
        Ok(())
    }

    /// The model after all batches.
    pub fn model(&self) -> &Glm<T> {
        &self.model
    }

    /// The penalty λ.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }
}

/// The number of weights and intercepts of a class: D, or D + 1 with an intercept.
pub(super) fn entries<T: Real>(model: &Glm<T>) -> usize {
    model.map().feature_dim() + usize::from(model.intercept)
}

once!(GlmStream::<T>::new, GlmStream::<T>::take_in, GlmStream::<T>::merge);
