//! [`Role`]: what the sums that a token has read say about its gradient, as a query or as a key.

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2};

use super::super::input::{LogScale, Numbers, SplitRows, Undivided};
use super::rows::GradientTerm;
use crate::Real;
use crate::numeric::copy_row;

/// What tokens are, and what is known of them.
pub(super) trait Role<T: Real>: SplitRows + Send {
    /// Whether coefficients are known without what rows read.
    const KNOWN: bool = false;

    /// The number of sums of each feature.
    fn targets(&self) -> usize;

    /// Takes all that row `i` has read, and writes the coefficients of its gradient. `None` if the row has no part in any output.
    fn take<U: Real>(
        &mut self,
        normalised: bool,
        sum: Undivided<'_, U>,
        i: usize,
        coefficients: &mut [T],
    ) -> Option<GradientTerm>;
}

/// Queries that read for the first time.
pub(super) struct NewQueries<'a, T> {
    /// Gradients with respect to the outputs.
    pub upstream: ArrayView2<'a, T>,
    /// What keys need of each query: [`SUMMARY`] numbers.
    pub summaries: ArrayViewMut2<'a, f64>,
}

/// Queries whose normaliser and g·o are known, which read another part of the keys.
pub(super) struct KnownQueries<'a, T> {
    /// Gradients with respect to the outputs.
    pub upstream: ArrayView2<'a, T>,
    /// As [`NewQueries`] have written them.
    pub summaries: ArrayView2<'a, f64>,
}

/// Keys, which read sums over queries.
pub(super) struct Keys<'a, T> {
    pub values: Numbers<'a, T>,
    /// False for keys that do not count.
    pub mask: Option<ArrayView1<'a, bool>>,
    /// Gradients with respect to the values.
    pub of_values: ArrayViewMut2<'a, T>,
}

/// Numbers that keys need of a query, which are those of its term: both parts of the scale, of which the second is ∞ if the query has no
/// output; the logarithm; and the weight −g·o.
pub(super) const SUMMARY: usize = 4;

/// Summaries of so many queries, which have no output yet.
pub(super) fn summaries(count: usize) -> Array2<f64> {
    let none = summary(None);
    Array2::from_shape_fn((count, SUMMARY), |(_, k)| none[k])
}

/// The summary of a query.
fn summary(term: Option<GradientTerm>) -> [f64; SUMMARY] {
    let none = GradientTerm { scale: LogScale { own: 0.0, read: f64::INFINITY }, ..GradientTerm::default() };
    let GradientTerm { weight, log, scale } = term.unwrap_or(none);
    [scale.own, scale.read, log, weight]
}

/// The term of a query with this summary; `None` if it has no output.
pub(super) fn term_of(summary: ArrayView1<'_, f64>) -> Option<GradientTerm> {
    let scale = LogScale { own: summary[0], read: summary[1] };
    (scale.read != f64::INFINITY).then(|| GradientTerm { weight: summary[3], log: summary[2], scale })
}

impl<T: Real> Role<T> for NewQueries<'_, T> {
    fn targets(&self) -> usize {
        self.upstream.ncols()
    }

    fn take<U: Real>(
        &mut self,
        normalised: bool,
        sum: Undivided<'_, U>,
        i: usize,
        coefficients: &mut [T],
    ) -> Option<GradientTerm> {
        copy_row(self.upstream.row(i), coefficients);
        let term = of_query(normalised, &sum, coefficients);
        self.summaries.row_mut(i).iter_mut().zip(summary(term)).for_each(|(own, number)| *own = number);
        term
    }
}

impl<T: Real> Role<T> for KnownQueries<'_, T> {
    const KNOWN: bool = true;

    fn targets(&self) -> usize {
        self.upstream.ncols()
    }

    fn take<U: Real>(
        &mut self,
        _: bool,
        _: Undivided<'_, U>,
        i: usize,
        coefficients: &mut [T],
    ) -> Option<GradientTerm> {
        copy_row(self.upstream.row(i), coefficients);
        term_of(self.summaries.row(i))
    }
}

impl<T: Real> Role<T> for Keys<'_, T> {
    fn targets(&self) -> usize {
        self.of_values.ncols() + 1
    }

    fn take<U: Real>(
        &mut self,
        _: bool,
        sum: Undivided<'_, U>,
        i: usize,
        coefficients: &mut [T],
    ) -> Option<GradientTerm> {
        let (own, one) = coefficients.split_at_mut(self.of_values.ncols());
        let counts = self.mask.is_none_or(|mask| mask[i]);
        let Undivided { scale, normaliser, sums, seen } = sum;
        let seen = seen && counts;
        let sums = &mut sums[..own.len()];
        Undivided { scale, normaliser, sums, seen }.write(false, self.of_values.row_mut(i));
        self.values.copy_row(i, own);
        one.fill(T::one());
        seen.then(GradientTerm::default)
    }
}

impl<T: Real> SplitRows for NewQueries<'_, T> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        let ((upstream, others), (own, rest)) = (self.upstream.split_rows(at), self.summaries.split_rows(at));
        (NewQueries { upstream, summaries: own }, NewQueries { upstream: others, summaries: rest })
    }
}

impl<T: Real> SplitRows for KnownQueries<'_, T> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        let ((upstream, others), (own, rest)) = (self.upstream.split_rows(at), self.summaries.split_rows(at));
        (KnownQueries { upstream, summaries: own }, KnownQueries { upstream: others, summaries: rest })
    }
}

impl<T: Real> SplitRows for Keys<'_, T> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        let ((values, others), (mask, later)) = (self.values.split_rows(at), self.mask.split_rows(at));
        let (own, rest) = self.of_values.split_rows(at);
        (Keys { values, mask, of_values: own }, Keys { values: others, mask: later, of_values: rest })
    }
}

/// The term of a query whose output has the gradient `upstream`; `None` if the output is 0 whatever the values.
fn of_query<T: Real, U: Real>(
    normalised: bool,
    sum: &Undivided<'_, U>,
    upstream: &[T],
) -> Option<GradientTerm> {
    let Undivided { scale, normaliser, ref sums, seen } = *sum;
    // As outputs do, gradients show a normaliser that is NaN, whatever its scale.
    let none = scale.sum() == f64::NEG_INFINITY || (normalised && normaliser <= 0.0);
    if !seen || (none && !normaliser.is_nan()) {
        return None;
    }
    if !normalised {
        return Some(GradientTerm::default());
    }
    let inverse = normaliser.recip();
    // An inverse beyond the range would be no number for sums that are 0.
    let product = match inverse.is_normal() {
        true => product(upstream, sums, |sum| sum * inverse),
        false => product(upstream, sums, |sum| sum / normaliser),
    };
    let ln = normaliser.ln();
    let read = scale.read + ln;
    // What the sum has lost: half of its last place, or all of ln.
    let lost = ln - (read - scale.read);
    let log = if scale.read.abs() > FAR && lost.abs() < MOST { -lost } else { 0.0 };
    Some(GradientTerm { weight: -product, log, scale: LogScale { read, ..scale } })
}

/// The largest logarithm beside which ln of a normaliser keeps ten digits.
const FAR: f64 = 1e6;
/// The largest logarithm of a factor of values, which must not take them out of their range.
const MOST: f64 = 30.0;

/// Σ gₖ `divided`(sₖ), in lanes: in a single sum each addition waits for the one before.
fn product<T: Real, U: Real>(upstream: &[T], sums: &[U], divided: impl Fn(f64) -> f64) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0.0; LANES];
    let mut add = |g: &[T], sums: &[U]| {
        let each = lanes.iter_mut().zip(g).zip(sums);
        each.for_each(|((lane, g), sum)| *lane += g.widen() * divided(sum.widen()));
    };
    let ((whole, rest), (sums, last)) = (upstream.as_chunks::<LANES>(), sums.as_chunks::<LANES>());
    whole.iter().zip(sums).for_each(|(g, sums)| add(g, sums));
    add(rest, last);
    lanes.iter().sum()
}
