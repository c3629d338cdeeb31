//! [`Targets`]: the numbers or labels that a regression predicts, with weights of the rows.

use ndarray::{
    Array1, Array2, ArrayBase, ArrayRef1, ArrayRef2, ArrayView1, ArrayView2, Axis, CowArray, Data, Ix1, Ix2,
    aview1,
};

use crate::Real;
use crate::error::{Error, Result, check_size};
use crate::labels::{check_labels, one_hot};
use crate::numeric::matrix_of;
use crate::reduce::{check_precisions, check_weights, check_weights_of};

/// Targets of a regression: numbers, n or n × t, or n labels of classes, with a weight for each row if you set weights. Methods
/// take `impl Into<Targets<T>>`.
///
/// ```
/// use random_features::Targets;
/// use random_features::ndarray::arr1;
/// let y = arr1(&[1.0, 2.0, 3.0]);
/// let (weights, labels) = (arr1(&[1.0, 0.5, 2.0]), vec![0, 2, 2]);
/// assert_eq!(Targets::from(&y).ncols(), 1);
/// assert_eq!(Targets::from(&y).with_weights(&weights)?.nrows(), 3);
/// assert_eq!(Targets::<f64>::from(&labels).ncols(), 3);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Arrays of one dimension hold one target for each of n points; arrays of two dimensions hold t targets in each row. Arrays of
/// any layout (owned, shared, views) of the scalar of the points convert by reference, views also by value, and vectors and slices by reference. Nothing is
/// copied. A model's `predict` gives n × t numbers, and its `predict_single` gives n numbers for one target.
///
/// # Labels
/// Labels are whole numbers from 0. They are regressed as indicators: each class has a target that is 1 for its rows and 0 for
/// others. In statistics, the number of classes is the number of targets. In a search, it is the number that
/// [`of_labels`](Targets::of_labels) states, or else one more than the largest label. A regression of
/// a single target refuses labels: give counts as `f32` or `f64`. [`Glm::poisson`](crate::apply::Glm::poisson) takes whole
/// numbers as counts.
///
/// # Weights
/// A weight says how often a row counts: a row of weight 2 is the row given twice, and a row of weight 0 is absent.
///
/// # Precisions
/// A precision p says how precisely the targets of a row are known: their noise has the variance σ²/p. A row of large p has more
/// influence on a regression, as a row of large weight has, but it still counts as one observation:
/// [`with_precisions`](Targets::with_precisions).
#[derive(Clone, Debug)]
pub struct Targets<'a, T: Real> {
    kind: Kind<'a, T>,
    weights: Option<CowArray<'a, f64, Ix1>>,
    precisions: Option<CowArray<'a, f64, Ix1>>,
    /// Whether the weights balance classes.
    balanced: bool,
    /// The weights of classes that the weights contain; empty if none were given.
    class_weights: Vec<f64>,
}

#[derive(Clone, Debug)]
enum Kind<'a, T: Real> {
    /// Numbers, n × t.
    Numbers(CowArray<'a, T, Ix2>),
    /// Labels of n rows, and the number of classes if it is stated.
    Labels(ArrayView1<'a, usize>, Option<usize>),
}

/// Targets as numbers, with the weights of their rows.
#[derive(Clone, Debug)]
pub(crate) struct TargetRows<'a, T: Real> {
    /// Numbers or indicators, n × t.
    pub columns: CowArray<'a, T, Ix2>,
    /// How often each row counts; `None` if all count once.
    weights: Option<CowArray<'a, f64, Ix1>>,
    /// The precision of each row; `None` if all are 1.
    precisions: Option<CowArray<'a, f64, Ix1>>,
}

impl<'a, T: Real> Targets<'a, T> {
    /// Labels of a given number of classes, some of which need not occur.
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) with the row of a label that is not below the number of classes.
    pub fn of_labels(labels: &'a [usize], classes: usize) -> Result<Self> {
        check_labels(aview1(labels), classes)?;
        Ok(Kind::Labels(aview1(labels), Some(classes)).into())
    }

    /// Sets the weight of each row, which says how often the row counts. [Balanced](Targets::balanced) classes stay balanced, and
    /// [weights of classes](Targets::with_class_weights) stay, as if the weights of rows had been set first.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there are not n weights, [`Entry`](Error::Entry) if one is negative or not finite; the errors of
    /// [`balanced`](Targets::balanced) where classes are balanced.
    pub fn with_weights(self, weights: &'a ArrayRef1<f64>) -> Result<Self> {
        check_weights(Some(weights), self.nrows())?;
        let Targets { kind, precisions, balanced, class_weights, .. } = self;
        let weighted = Targets { precisions, ..kind.into() };
        let weighted = Targets { weights: Some(weights.view().into()), ..weighted };
        match (balanced, class_weights) {
            (true, _) => weighted.balanced(),
            (false, classes) if !classes.is_empty() => weighted.with_class_weights(&classes),
            _ => Ok(weighted),
        }
    }

    /// Sets the precision p of each row, so that its noise has the variance σ²/p. For measurements with error bars s, p is 1/s².
    ///
    /// The variance σ² is estimated from the data, or it is [known](crate::apply::RidgeSpectrum::log_evidence_with_noise): σ² = 1
    /// states that the error bars are exact. Multiplying all precisions and λ by one number changes no prediction, interval or
    /// choice.
    ///
    /// ```
    /// use random_features::Targets;
    /// use random_features::apply::RidgeSearch;
    /// use random_features::ndarray::{Array1, Array2};
    /// // Every second row has ten times the noise.
    /// let bar = |i: usize| if i % 2 == 0 { 0.1 } else { 1.0 };
    /// let x = Array2::from_shape_fn((400, 1), |(i, _)| i as f64 / 100.0);
    /// let noise = |i: usize| bar(i) * ((i * i) as f64).sin();
    /// let y = Array2::from_shape_fn((400, 1), |(i, _)| x[[i, 0]].sin() + noise(i));
    /// let precisions = Array1::from_shape_fn(400, |i| bar(i).powi(-2));
    /// let targets = Targets::from(&y).with_precisions(&precisions)?;
    /// let fit = RidgeSearch::gaussian(1, 32, 7)?.fit(&x, targets)?;
    /// let error = fit.model().predict(&x)? - x.mapv(f64::sin);
    /// assert!(error.iter().all(|error| error.abs() < 0.1));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there are not n precisions, [`Entry`](Error::Entry) if one is not positive and finite.
    pub fn with_precisions(self, precisions: &'a ArrayRef1<f64>) -> Result<Self> {
        check_precisions(precisions, self.nrows())?;
        Ok(Targets { precisions: Some(precisions.view().into()), ..self })
    }

    /// Sets weights of labels for which all classes that occur count equally. A row of class c has the weight n/(K n_c), where K
    /// classes occur and n_c of the n rows are of class c. Weights that are set before or after are multiplied by these, and n and
    /// n_c are then sums of weights.
    ///
    /// Only the rows that are given count. If data come in batches, each batch is balanced by itself, so that a rare class has
    /// less weight where it happens to be frequent. State weights of the classes by
    /// [`with_class_weights`](Targets::with_class_weights) then.
    ///
    /// ```
    /// use random_features::Targets;
    /// use random_features::apply::RidgeSearch;
    /// use random_features::ndarray::Array2;
    /// // One row of ten is of class 1.
    /// let labels: Vec<usize> =
    ///     (0..200).map(|i| usize::from(i % 10 == 0)).collect();
    /// let x = Array2::from_shape_fn((200, 1), |(i, _)| {
    ///     labels[i] as f64 + (i as f64).sin()
    /// });
    /// let fit = RidgeSearch::gaussian(1, 32, 7)?
    ///     .fit(&x, Targets::from(&labels).balanced()?)?;
    /// assert_eq!(fit.model().classify(&Array2::from_elem((1, 1), 2.0))?, [1]);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) for targets that are not labels, [`NoData`](Error::NoData) if no row has a weight,
    /// [`Entry`](Error::Entry) if a weight overflows.
    #[doc(alias = "class_weight")]
    pub fn balanced(self) -> Result<Self> {
        let Kind::Labels(labels, _) = &self.kind else {
            return Err(Error::Unsupported { what: "balanced weights of targets that are not labels" });
        };
        if self.balanced {
            return Ok(self);
        }
        let mut of_class = std::collections::BTreeMap::<usize, f64>::new();
        labels
            .iter()
            .enumerate()
            .for_each(|(i, label)| *of_class.entry(*label).or_default() += self.weight(i));
        of_class.retain(|_, total| *total > 0.0);
        if of_class.is_empty() {
            return Err(Error::NoData { what: "balanced weights" });
        }
        let share = of_class.values().sum::<f64>() / of_class.len() as f64;
        let weights =
            self.multiplied(*labels, |label| of_class.get(&label).map_or(0.0, |total| share / total))?;
        Ok(Targets { weights: Some(weights.into()), balanced: true, ..self })
    }

    /// Sets weights of labels by class: a row of class c has the weight `weights[c]`. Weights of rows, set before or after, are
    /// multiplied by these.
    ///
    /// For classes that count equally, the weight of class c is n/(K n_c), with n_c of the n rows of all data. Such weights are the
    /// same for all batches of a stream, where [`balanced`](Targets::balanced) is not.
    ///
    /// ```
    /// use random_features::Trigonometric;
    /// use random_features::Targets;
    /// use random_features::apply::RidgeStatistics;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::{Array2, s};
    /// // One row of twenty is of class 1, and some batches have none.
    /// let labels: Vec<usize> =
    ///     (0..200).map(|i| usize::from(i % 20 == 0)).collect();
    /// let x = Array2::from_shape_fn((200, 1), |(i, _)| {
    ///     2.0 * labels[i] as f64 + (i as f64).sin()
    /// });
    /// let map = Trigonometric.gaussian(Orthogonal.draw(1, 32, 1)?, 1.0)?;
    /// let mut statistics = RidgeStatistics::new(map, 2)?;
    /// for rows in [0..15, 15..100, 100..200] {
    ///     let targets = Targets::of_labels(&labels[rows.clone()], 2)?;
    ///     let targets = targets.with_class_weights(&[0.5, 10.0])?;
    ///     statistics.update(&x.slice(s![rows, ..]), targets)?;
    /// }
    /// let model = statistics.solve(1.0)?;
    /// assert_eq!(model.classify(&Array2::from_elem((1, 1), 2.5))?, [1]);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) for targets that are not labels, and if classes have weights already.
    /// [`Shape`](Error::Shape) if the number of classes is stated and there are not as many weights. [`Entry`](Error::Entry) with the row of a label that has no weight, with a class
    /// whose weight is negative or not finite, or with a row whose weight overflows.
    #[doc(alias = "class_weight")]
    pub fn with_class_weights(self, weights: &[f64]) -> Result<Self> {
        let Kind::Labels(labels, classes) = &self.kind else {
            return Err(Error::Unsupported { what: "weights of classes for targets that are not labels" });
        };
        if self.balanced || !self.class_weights.is_empty() {
            return Err(Error::Unsupported { what: "weights of classes that have weights already" });
        }
        check_size("the number of weights of classes", classes.unwrap_or(weights.len()), weights.len())?;
        check_weights_of("the weights of the classes", &aview1(weights))?;
        let has_none = |(_, label): &(usize, &usize)| **label >= weights.len();
        if let Some((row, label)) = labels.iter().enumerate().find(has_none) {
            let (value, domain) = (*label as f64, "below the number of weights of classes");
            return Err(Error::Entry { what: "the labels", row, value, domain });
        }
        let of_rows = self.multiplied(*labels, |label| weights[label])?;
        Ok(Targets { weights: Some(of_rows.into()), class_weights: weights.to_vec(), ..self })
    }

    /// The weight of each row, times a factor of its class.
    fn multiplied(
        &self,
        labels: ArrayView1<'_, usize>,
        factor: impl Fn(usize) -> f64,
    ) -> Result<Array1<f64>> {
        let of_row = |(i, label): (usize, &usize)| self.weight(i) * factor(*label);
        let weights: Array1<f64> = labels.iter().enumerate().map(of_row).collect();
        check_weights(Some(&weights), labels.len())?;
        Ok(weights)
    }

    /// The weight of a row.
    fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// n, the number of rows.
    pub fn nrows(&self) -> usize {
        match &self.kind {
            Kind::Numbers(columns) => columns.nrows(),
            Kind::Labels(labels, _) => labels.len(),
        }
    }

    /// t, the number of targets of each row: for labels the stated number of classes, or one more than the largest label.
    pub fn ncols(&self) -> usize {
        match &self.kind {
            Kind::Numbers(columns) => columns.ncols(),
            Kind::Labels(_, Some(classes)) => *classes,
            Kind::Labels(labels, None) => labels.iter().max().map_or(0, |most| most.saturating_add(1)),
        }
    }

    /// Whether targets are labels of classes.
    pub fn are_labels(&self) -> bool {
        matches!(self.kind, Kind::Labels(..))
    }

    /// The targets as numbers, n × `count`; labels without a stated number of classes get `count` classes.
    #[inline(never)]
    pub(crate) fn rows(&self, count: usize) -> Result<TargetRows<'_, T>> {
        let columns = match &self.kind {
            Kind::Numbers(columns) => columns.view().into(),
            Kind::Labels(labels, classes) => {
                check_size("the number of classes", count, classes.unwrap_or(count))?;
                if count == 1 {
                    let what = "labels of a single target: whole numbers are labels of classes, and each class is a \
                                target; give counts as f32 or f64";
                    return Err(Error::Unsupported { what });
                }
                one_hot(*labels, count)?.into()
            }
        };
        Ok(TargetRows { columns, weights: view(&self.weights), precisions: view(&self.precisions) })
    }

    /// Whole numbers as counts, n × 1; `None` if targets are not labels.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the number of classes is stated, so that they are labels.
    #[inline(never)]
    pub(crate) fn counts(&self) -> Result<Option<Targets<'_, T>>> {
        let Kind::Labels(counts, classes) = &self.kind else { return Ok(None) };
        if classes.is_some() {
            return Err(Error::Unsupported { what: "labels of classes as counts" });
        }
        let numbers = counts.iter().map(|count| T::narrow(*count as f64)).collect();
        let kind = Kind::Numbers(matrix_of(counts.len(), 1, numbers).into());
        let (weights, precisions) = (view(&self.weights), view(&self.precisions));
        Ok(Some(Targets { weights, precisions, ..kind.into() }))
    }

    /// The targets as numbers, n × `count`, for methods that take no weights; `what` names the weights in the error.
    pub(crate) fn unweighted(&self, count: usize, what: &'static str) -> Result<CowArray<'_, T, Ix2>> {
        let TargetRows { columns, weights, precisions } = self.rows(count)?;
        if weights.is_some() || precisions.is_some() { Err(Error::Unsupported { what }) } else { Ok(columns) }
    }
}

impl<'a, T: Real> TargetRows<'a, T> {
    /// No targets, for `rows` rows.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn none(rows: usize, weights: Option<&'a ArrayRef1<f64>>) -> Self {
        let weights = weights.map(|weights| weights.view().into());
        TargetRows { columns: Array2::zeros((rows, 0)).into(), weights, precisions: None }
    }

    /// Borrows the targets.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn borrowed(&self) -> TargetRows<'_, T> {
        let (weights, precisions) = (view(&self.weights), view(&self.precisions));
        TargetRows { columns: self.columns.view().into(), weights, precisions }
    }

    /// Copies of the rows with these numbers, each below n.
    pub fn select(&self, rows: &[usize]) -> TargetRows<'static, T> {
        let of =
            |all: &Option<CowArray<'_, f64, Ix1>>| all.as_ref().map(|all| all.select(Axis(0), rows).into());
        let columns = self.columns.select(Axis(0), rows).into();
        TargetRows { columns, weights: of(&self.weights), precisions: of(&self.precisions) }
    }

    /// How often each row counts; `None` if all count once.
    pub fn weights(&self) -> Option<&ArrayRef1<f64>> {
        self.weights.as_deref()
    }

    /// The precision of each row; `None` if all are 1.
    pub fn precisions(&self) -> Option<&ArrayRef1<f64>> {
        self.precisions.as_deref()
    }

    /// The factor of a row in sums: its weight times its precision.
    pub fn weight(&self, row: usize) -> f64 {
        let of = |all: &Option<CowArray<'_, f64, Ix1>>| all.as_ref().map_or(1.0, |all| all[row]);
        of(&self.weights) * of(&self.precisions)
    }

    /// The [factors](TargetRows::weight) of all rows; `None` if all are 1.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn products(&self) -> Option<CowArray<'_, f64, Ix1>> {
        match (&self.weights, &self.precisions) {
            (None, None) => None,
            (Some(all), None) | (None, Some(all)) => Some(all.view().into()),
            (Some(weights), Some(precisions)) => Some((weights * precisions).into()),
        }
    }

    /// Σ a and Σ a ln p, with the weight a and the precision p of each row.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn counts(&self) -> [f64; 2] {
        let count = |row: usize| self.weights.as_ref().map_or(1.0, |weights| weights[row]);
        let logarithm = |row: usize| self.precisions.as_ref().map_or(0.0, |all| all[row].ln());
        let rows = 0..self.columns.nrows();
        rows.fold([0.0; 2], |[n, l], row| [n + count(row), l + count(row) * logarithm(row)])
    }

    /// The sum of all [factors](TargetRows::weight).
    pub fn total(&self) -> f64 {
        match (&self.weights, &self.precisions) {
            (None, None) => self.columns.nrows() as f64,
            (Some(all), None) | (None, Some(all)) => all.sum(),
            _ => (0..self.columns.nrows()).map(|row| self.weight(row)).sum(),
        }
    }

    /// Rejects weights or precisions that are not `rows` numbers, or out of their domains.
    pub fn check_weights(&self, rows: usize) -> Result<()> {
        check_weights(self.weights(), rows)?;
        self.precisions().map_or(Ok(()), |precisions| check_precisions(precisions, rows))
    }
}

/// Borrows the numbers, one for each row.
fn view<'a>(all: &'a Option<CowArray<'_, f64, Ix1>>) -> Option<CowArray<'a, f64, Ix1>> {
    all.as_ref().map(|all| all.view().into())
}

impl<'a, T: Real> From<Kind<'a, T>> for Targets<'a, T> {
    fn from(kind: Kind<'a, T>) -> Self {
        Targets { kind, weights: None, precisions: None, balanced: false, class_weights: Vec::new() }
    }
}

impl<'a, T: Real> From<TargetRows<'a, T>> for Targets<'a, T> {
    fn from(TargetRows { columns, weights, precisions }: TargetRows<'a, T>) -> Self {
        Targets { weights, precisions, ..Kind::Numbers(columns).into() }
    }
}

/// The predictions of a model of one target, n × 1, as n numbers.
pub(crate) fn single<T>(predictions: Array2<T>) -> Result<Array1<T>> {
    check_size("the number of targets of single predictions", 1, predictions.ncols())?;
    Ok(predictions.index_axis_move(Axis(1), 0))
}

/// The element type of targets: a number, or a label.
pub(crate) trait Target<T: Real>: Sized {
    fn targets(entries: ArrayView1<'_, Self>) -> Targets<'_, T>;
}

impl<T: Real> Target<T> for T {
    fn targets(entries: ArrayView1<'_, T>) -> Targets<'_, T> {
        entries.insert_axis(Axis(1)).into()
    }
}

impl<T: Real> Target<T> for usize {
    fn targets(labels: ArrayView1<'_, usize>) -> Targets<'_, T> {
        Kind::Labels(labels, None).into()
    }
}

impl<'a, T: Real> From<ArrayView2<'a, T>> for Targets<'a, T> {
    fn from(columns: ArrayView2<'a, T>) -> Self {
        Kind::Numbers(columns.into()).into()
    }
}

impl<'a, T: Real> From<&'a ArrayRef2<T>> for Targets<'a, T> {
    fn from(columns: &'a ArrayRef2<T>) -> Self {
        columns.view().into()
    }
}

impl<'a, T: Real, S: Data<Elem = T>> From<&'a ArrayBase<S, Ix2>> for Targets<'a, T> {
    fn from(columns: &'a ArrayBase<S, Ix2>) -> Self {
        columns.view().into()
    }
}

impl<'a, T: Real, E: Target<T>> From<ArrayView1<'a, E>> for Targets<'a, T> {
    fn from(entries: ArrayView1<'a, E>) -> Self {
        E::targets(entries)
    }
}

impl<'a, T: Real, E: Target<T>> From<&'a ArrayRef1<E>> for Targets<'a, T> {
    fn from(entries: &'a ArrayRef1<E>) -> Self {
        E::targets(entries.view())
    }
}

impl<'a, T: Real, S: Data<Elem: Target<T>>> From<&'a ArrayBase<S, Ix1>> for Targets<'a, T> {
    fn from(entries: &'a ArrayBase<S, Ix1>) -> Self {
        S::Elem::targets(entries.view())
    }
}

impl<'a, T: Real, E: Target<T>> From<&'a [E]> for Targets<'a, T> {
    fn from(entries: &'a [E]) -> Self {
        E::targets(entries.into())
    }
}

impl<'a, T: Real, E: Target<T>> From<&'a Vec<E>> for Targets<'a, T> {
    fn from(entries: &'a Vec<E>) -> Self {
        entries.as_slice().into()
    }
}

impl<'a, T: Real, E: Target<T>, const N: usize> From<&'a [E; N]> for Targets<'a, T> {
    fn from(entries: &'a [E; N]) -> Self {
        entries.as_slice().into()
    }
}

/// Borrows targets that were converted before.
impl<'a, T: Real> From<&'a Targets<'_, T>> for Targets<'a, T> {
    fn from(targets: &'a Targets<'_, T>) -> Self {
        let kind = match &targets.kind {
            Kind::Numbers(columns) => Kind::Numbers(columns.view().into()),
            Kind::Labels(labels, classes) => Kind::Labels(labels.reborrow(), *classes),
        };
        let (weights, precisions) = (view(&targets.weights), view(&targets.precisions));
        Targets {
            kind,
            weights,
            precisions,
            balanced: targets.balanced,
            class_weights: targets.class_weights.clone(),
        }
    }
}
