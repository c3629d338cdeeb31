//! [`Shrinkage`]: the option that draws outputs towards the mean of the values; [`SeenValues`]: that mean, as queries see it.

use ndarray::ArrayViewMut1;

use super::attention::Attention;
use super::job::KeyRun;
use crate::Real;
use crate::error::{Error, Result, check_positive, check_size};

/// The share α of the mean of the values in the outputs of each head of keys: none if all are 0, one for all heads, or one for each.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(in super::super) struct Shrinkage {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    shares: Vec<f64>,
}

/// The sum of the values that a query sees, and how many they are.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(in super::super) struct SeenValues {
    /// Σ v, d_v; empty before the first.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    sums: Vec<f64>,
    count: usize,
}

impl<T: Real> Attention<T> {
    /// Draws outputs towards the mean of the values, which is **biased** but may err less: they are (1 − α) out(q) + α v̄, where v̄ is the
    /// mean of the values that the query sees. There is one share α for all heads, or one for each head of keys.
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::rand::RngExt;
    /// use random_features::apply::attention::{Attention, Heads};
    /// let mut rng = random_features::rng(1);
    /// let mut token = || rng.random_range(-1.5..1.5);
    /// let mut tokens = || Array4::from_shape_simple_fn((1, 2, 90, 8), &mut token);
    /// let [q, k, v] = [tokens(), tokens(), tokens()];
    /// let heads = Heads::new(&q, &k, &v)?;
    /// let attention = Attention::favor_plus(8, 16, 7)?;
    /// // The shares that are best for these tokens, one for each head.
    /// let shares = attention.bidirectional_shrinkage(&heads)?;
    /// let shrunk = attention.with_shrinkage(&shares)?;
    /// assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
    /// let out = shrunk.bidirectional(&heads)?.output;
    /// assert_eq!(out.dim(), (1, 2, 90, 8));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Where features are too few for queries and keys, outputs err more than the mean of the values. If the errors e
    /// of outputs and μ of the mean are uncorrelated, the share α = e²/(e² + μ²) makes outputs err less than both.
    /// [`bidirectional_shrinkage`](Attention::bidirectional_shrinkage) and
    /// [`causal_shrinkage`](Attention::causal_shrinkage) choose shares from tokens, and
    /// [`ErrorReport::shrinkage`](super::super::ErrorReport::shrinkage) computes one from closed forms.
    ///
    /// Masked keys do not count for the mean; keys with exact weights do. A query whose normaliser is not positive gets
    /// the mean itself, if α is above 0, and is reported. A share of 0 changes no bit.
    /// [`exact_counterpart`](Attention::exact_counterpart) has no share.
    ///
    /// # Cost
    /// O(d_v) for each query and each key. A [state](super::super::CausalState) keeps d_v numbers more for each head of keys.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) without a share or unless all are from 0 to 1. Attention
    /// [without normalisers](Attention::without_normalisers) is refused with [`Unsupported`](Error::Unsupported) where it is used, and other
    /// numbers of heads with [`Shape`](Error::Shape).
    ///
    /// # References
    /// Shrinkage of estimates towards a fixed value goes back to James and Stein. Its use for weights of attention is
    /// this crate's own.
    #[doc(alias = "with_biased_epsilon")]
    pub fn with_shrinkage(self, shares: &[f64]) -> Result<Self> {
        check_positive("the number of shares of the mean", shares.len())?;
        self.shrunk(Shrinkage { shares: shares.to_vec() })
    }

    pub(in super::super) fn shrunk(mut self, Shrinkage { shares }: Shrinkage) -> Result<Self> {
        if let Some(value) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            let (name, domain) = ("the share of the mean of the values", "from 0 to 1");
            return Err(Error::Parameter { name, value: *value, domain });
        }
        let none = shares.iter().all(|share| *share == 0.0);
        self.shrinkage = Shrinkage { shares: if none { Vec::new() } else { shares } };
        Ok(self)
    }

    /// Refuses shares that do not fit so many heads of keys, or outputs that are not normalised.
    pub(in super::super) fn check_shrinkage(&self, heads: usize) -> Result<()> {
        if !self.shrinkage.is_none() && !self.normalised {
            let what = "shrinkage of outputs that are not divided by their normalisers";
            return Err(Error::Unsupported { what });
        }
        let what = "the number of heads of the keys, of which each has its own share of the mean,";
        self.shrinkage.heads().map_or(Ok(()), |own| check_size(what, own, heads))
    }
}

impl Shrinkage {
    /// The share of a head of keys.
    pub fn of(&self, head: usize) -> f64 {
        match &self.shares[..] {
            [] => 0.0,
            shares => shares[head % shares.len()],
        }
    }

    /// The number of heads of keys that have shares of their own; `None` if all have the same.
    pub fn heads(&self) -> Option<usize> {
        Some(self.shares.len()).filter(|heads| *heads > 1)
    }

    /// Whether no output is drawn anywhere.
    pub fn is_none(&self) -> bool {
        self.shares.is_empty()
    }
}

impl SeenValues {
    /// Sees the next key, row `j` of some, unless it is masked.
    pub fn see<T: Real>(&mut self, keys: &KeyRun<'_, T>, j: usize, value: &mut Vec<T>) {
        if !keys.sees(j) {
            return;
        }
        value.clear();
        keys.values.rows(j..j + 1).read(T::one(), value);
        self.count = self.count.saturating_add(1);
        self.sums.resize(value.len(), 0.0);
        self.sums.iter_mut().zip(value).for_each(|(sum, v)| *sum += v.widen());
    }

    /// Sees all keys of a run.
    pub fn see_all<T: Real>(&mut self, keys: &KeyRun<'_, T>) {
        let mut value = Vec::new();
        (0..keys.len()).for_each(|j| self.see(keys, j, &mut value));
    }

    /// out ← (1 − share) · out + share · mean; nothing if no value was seen.
    pub fn shrink<T: Real>(&self, share: f64, out: ArrayViewMut1<'_, T>) {
        let (rest, count) = (1.0 - share, self.count as f64);
        let pairs = out.into_iter().zip(&self.sums);
        pairs.for_each(|(out, sum)| *out = T::narrow(rest * out.widen() + share * (sum / count)));
    }

    /// Whether there are sums of so many coordinates over at most so many values, or nothing was seen.
    #[cfg(feature = "serde")]
    pub fn fits(&self, targets: usize, values: usize) -> bool {
        let width = if self.count == 0 { 0 } else { targets };
        self.count <= values && self.sums.len() == width
    }
}
