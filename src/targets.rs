//! [`Targets`]: what a regression predicts, numbers or labels, with weights of the rows.

use ndarray::{
    Array1, Array2, ArrayBase, ArrayRef1, ArrayRef2, ArrayView1, ArrayView2, Axis, CowArray, Data, Ix1, Ix2,
    aview1,
};

use crate::Real;
use crate::error::{Error, Result, check_size};
use crate::labels::{check_labels, one_hot};
use crate::reduce::check_weights;

/// Targets of a regression, for methods that take `impl Into<Targets<T>>`: numbers, n or n × t, or n labels of classes. They may
/// carry a weight for each row.
///
/// ```
/// use random_features::Targets;
/// use random_features::ndarray::{arr1, arr2};
/// let one: Targets<f64> = (&arr1(&[1.0, 2.0, 3.0])).into();
/// let two = arr2(&[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]);
/// let two = Targets::from(&two).with_weights(&arr1(&[1.0, 0.5, 2.0]))?;
/// let labels: Targets<f64> = (&vec![0, 2, 2]).into();
/// assert_eq!((one.ncols(), two.ncols(), labels.ncols()), (1, 2, 3));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Arrays of one dimension hold one target for each of n points, arrays of two dimensions hold t of them in each row. Arrays of any
/// layout (owned, shared, views) convert by reference, views also by value, and vectors and slices by reference. Nothing is
/// copied. `predict` gives n × t numbers, and `predict_single` n numbers for one target.
///
/// # Labels
/// Labels are whole numbers from 0. Each class has a target that is 1 for its rows and 0 for others: indicators. There are as many
/// classes as the receiver has targets; a search takes one more than the largest label, or as many as
/// [`of_labels`](Targets::of_labels) states.
///
/// # Weights
/// A weight says how often a row counts: a row of weight 2 is the row given twice, and a row of weight 0 is absent.
#[derive(Clone, Debug)]
pub struct Targets<'a, T: Real> {
    kind: Kind<'a, T>,
    weights: Option<CowArray<'a, f64, Ix1>>,
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
    /// A weight for each row; `None` if all are 1.
    pub weights: Option<CowArray<'a, f64, Ix1>>,
}

impl<'a, T: Real> Targets<'a, T> {
    /// Labels below a number of classes, some of which need not occur.
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) with the row of a label that is too large.
    pub fn of_labels(labels: &'a [usize], classes: usize) -> Result<Self> {
        check_labels(aview1(labels), classes)?;
        Ok(Targets { kind: Kind::Labels(aview1(labels), Some(classes)), weights: None })
    }

    /// Sets the weight of each row: how often it counts.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there are not n weights, [`Entry`](Error::Entry) if one is negative or not finite.
    pub fn with_weights(self, weights: &'a ArrayRef1<f64>) -> Result<Self> {
        check_weights(Some(weights), self.nrows())?;
        Ok(Targets { weights: Some(weights.view().into()), ..self })
    }

    /// Weighs labels so that all classes that occur count alike: by n/(K n_c) for a row of class c, with n_c rows of it and K
    /// classes that occur. Weights that were set before are multiplied by it, and n and n_c are their sums.
    ///
    /// ```
    /// use random_features::Targets;
    /// use random_features::apply::RidgeSearch;
    /// use random_features::ndarray::Array2;
    /// // One row of ten is of class 1.
    /// let labels: Vec<usize> = (0..200).map(|i| usize::from(i % 10 == 0)).collect();
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
    /// [`Unsupported`](Error::Unsupported) for targets that are no labels, [`NoData`](Error::NoData) if no row has a weight,
    /// [`Entry`](Error::Entry) if a weight overflows.
    #[doc(alias = "class_weight")]
    pub fn balanced(self) -> Result<Self> {
        let Kind::Labels(labels, _) = &self.kind else {
            return Err(Error::Unsupported { what: "balanced weights of targets that are no labels" });
        };
        let weight = |i: usize| self.weights.as_ref().map_or(1.0, |weights| weights[i]);
        let mut of_class = std::collections::BTreeMap::<usize, f64>::new();
        labels.iter().enumerate().for_each(|(i, label)| *of_class.entry(*label).or_default() += weight(i));
        of_class.retain(|_, total| *total > 0.0);
        if of_class.is_empty() {
            return Err(Error::NoData { what: "balanced weights" });
        }
        let share = of_class.values().sum::<f64>() / of_class.len() as f64;
        let balanced = |(i, label): (usize, &usize)| {
            of_class.get(label).map_or(0.0, |total| weight(i) * (share / total))
        };
        let weights: Array1<f64> = labels.iter().enumerate().map(balanced).collect();
        check_weights(Some(&weights), labels.len())?;
        Ok(Targets { weights: Some(weights.into()), ..self })
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

    /// The targets as numbers, n × `count`; labels without a stated number of classes have `count` of them.
    #[inline(never)]
    pub(crate) fn rows(&self, count: usize) -> Result<TargetRows<'_, T>> {
        let columns = match &self.kind {
            Kind::Numbers(columns) => columns.view().into(),
            Kind::Labels(labels, classes) => {
                check_size("the number of classes", count, classes.unwrap_or(count))?;
                one_hot(*labels, count)?.into()
            }
        };
        Ok(TargetRows { columns, weights: self.weights.as_ref().map(|weights| weights.view().into()) })
    }

    /// The targets as numbers, for what does not weigh rows.
    pub(crate) fn unweighted(&self, count: usize, what: &'static str) -> Result<CowArray<'_, T, Ix2>> {
        let TargetRows { columns, weights } = self.rows(count)?;
        if weights.is_some() { Err(Error::Unsupported { what }) } else { Ok(columns) }
    }
}

impl<'a, T: Real> TargetRows<'a, T> {
    /// No targets, for this number of rows.
    pub fn none(rows: usize, weights: Option<&'a ArrayRef1<f64>>) -> Self {
        let weights = weights.map(|weights| weights.view().into());
        TargetRows { columns: Array2::zeros((rows, 0)).into(), weights }
    }

    /// Borrows the targets.
    pub fn borrowed(&self) -> TargetRows<'_, T> {
        let weights = self.weights.as_ref().map(|weights| weights.view().into());
        TargetRows { columns: self.columns.view().into(), weights }
    }

    /// A weight for each row; `None` if all are 1.
    pub fn weights(&self) -> Option<&ArrayRef1<f64>> {
        self.weights.as_deref()
    }
}

impl<'a, T: Real> From<TargetRows<'a, T>> for Targets<'a, T> {
    fn from(TargetRows { columns, weights }: TargetRows<'a, T>) -> Self {
        Targets { kind: Kind::Numbers(columns), weights }
    }
}

/// The predictions of a model of one target, n × 1, as n numbers.
pub(crate) fn single<T>(predictions: Array2<T>) -> Result<Array1<T>> {
    check_size("the number of targets of single predictions", 1, predictions.ncols())?;
    Ok(predictions.index_axis_move(Axis(1), 0))
}

/// What a target is made of: a number, or a label.
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
        Targets { kind: Kind::Labels(labels, None), weights: None }
    }
}

impl<'a, T: Real> From<ArrayView2<'a, T>> for Targets<'a, T> {
    fn from(columns: ArrayView2<'a, T>) -> Self {
        Targets { kind: Kind::Numbers(columns.into()), weights: None }
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
        Targets { kind, weights: targets.weights.as_ref().map(|weights| weights.view().into()) }
    }
}
