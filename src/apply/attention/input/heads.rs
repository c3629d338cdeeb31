//! [`Heads`]: queries, keys and values of many heads, and how they are cut into jobs.

use std::ops::Range;

use ndarray::{ArrayRef, ArrayView2, ArrayView4, Axis, Ix2, Ix4, s};

use super::job::{Job, QueryRun};
use crate::error::{Error, Result, check_positive, check_size};
use crate::memory::{check_addressable, check_memory};

/// The input of attention: queries, keys and values, borrowed as `[batch, heads, length, dim]` with any strides.
///
/// ```
/// use random_features::ndarray::{Array2, Array4, s};
/// use random_features::apply::attention::Heads;
/// let q = Array4::<f32>::zeros((2, 8, 10, 16));
/// let kv = Array4::<f32>::zeros((2, 2, 12, 16));
/// let heads = Heads::new(&q, &kv, &kv)?;
/// // The last two keys of the second batch are padding.
/// let mut mask = Array2::from_elem((2, 12), true);
/// mask.slice_mut(s![1, 10..]).fill(false);
/// let masked = heads.with_mask(&mask)?;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Keys and values may have fewer heads than queries (grouped queries): query head h attends to key head h / (query
/// heads / key heads). The numbers of queries and of keys may differ, and so may the dimensions of keys and of values.
/// Numbers are of any [`TokenElement`](super::TokenElement).
#[doc(alias = "GQA")]
#[doc(alias = "grouped-query attention")]
#[derive(Clone, Debug)]
pub struct Heads<'a, E> {
    pub(in super::super) queries: ArrayView4<'a, E>,
    pub(in super::super) keys: ArrayView4<'a, E>,
    pub(in super::super) values: ArrayView4<'a, E>,
    pub(in super::super) mask: Option<ArrayView2<'a, bool>>,
    /// Where sequences begin and end, if a batch is many of them.
    pub(super) offsets: Option<(&'a [usize], &'a [usize])>,
}

impl<'a, E> Heads<'a, E> {
    /// Queries \[b, h, n, d\], keys \[b, h′, l, d\] and values \[b, h′, l, d_v\], h a multiple of h′.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if they do not fit, [`Multiple`](Error::Multiple) if h is no multiple of h′,
    /// [`Parameter`](Error::Parameter) if d_v is 0, or h′ but not h.
    pub fn new(
        queries: &'a ArrayRef<E, Ix4>,
        keys: &'a ArrayRef<E, Ix4>,
        values: &'a ArrayRef<E, Ix4>,
    ) -> Result<Self> {
        let ((b, h, _, d), (kb, kh, l, kd), (vb, vh, vl, dv)) = (queries.dim(), keys.dim(), values.dim());
        check_size("the batch size of the keys", b, kb)?;
        check_size("the batch size of the values", b, vb)?;
        check_size("the number of heads of the values", kh, vh)?;
        check_size("the length of the values", l, vl)?;
        check_size("the dimension of the keys", d, kd)?;
        check_positive("the dimension of the values", dv)?;
        check_multiple(kh, h)?;
        let (queries, keys, values) = (queries.view(), keys.view(), values.view());
        Ok(Heads { queries, keys, values, mask: None, offsets: None })
    }

    /// Takes keys \[b, h′, l, d\] and values \[b, h′, l, d_v\] without queries, for [`prefill`](super::super::CausalState::prefill). Offsets
    /// of queries are all 0 then.
    ///
    /// # Errors
    /// The errors of [`new`](Heads::new).
    pub fn without_queries(keys: &'a ArrayRef<E, Ix4>, values: &'a ArrayRef<E, Ix4>) -> Result<Self> {
        let none = keys.slice(s![.., .., ..0, ..]);
        let all = Heads::new(keys, keys, values)?;
        Ok(Heads { queries: none, ..all })
    }

    /// Sets the mask of the keys, \[b, l\]. A key has no weight where the mask is false, even if the key is NaN.
    /// Queries that see no key get the output 0.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if there is not one entry for each key.
    pub fn with_mask(self, mask: &'a ArrayRef<bool, Ix2>) -> Result<Self> {
        check_size("the number of rows of the mask", self.keys.dim().0, mask.nrows())?;
        check_size("the number of columns of the mask", self.keys.dim().2, mask.ncols())?;
        Ok(Heads { mask: Some(mask.view()), ..self })
    }

    /// Sets where sequences begin and end, for sequences of different lengths that are packed one after the other in
    /// each batch, without padding.
    ///
    /// Sequence s has the queries from `queries[s]` to `queries[s + 1]` and the keys from `keys[s]` to `keys[s + 1]`.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the lists differ in length or do not go from 0 to the lengths,
    /// [`Parameter`](Error::Parameter) if there are fewer than two offsets, [`Entry`](Error::Entry) if one decreases.
    pub fn with_sequences(self, queries: &'a [usize], keys: &'a [usize]) -> Result<Self> {
        check_size("the number of key offsets", queries.len(), keys.len())?;
        if queries.len() < 2 {
            let (name, value) = ("the number of query offsets", queries.len() as f64);
            return Err(Error::Parameter {
                name,
                value,
                domain: "at least 2: the start of a sequence and its end",
            });
        }
        let of_queries = ["the query offsets", "the first query offset", "the last query offset"];
        let of_keys = ["the key offsets", "the first key offset", "the last key offset"];
        check_offsets(of_queries, queries, self.queries.dim().2)?;
        check_offsets(of_keys, keys, self.keys.dim().2)?;
        Ok(Heads { offsets: Some((queries, keys)), ..self })
    }

    /// The keys of one head and some batches, and the queries that attend to them.
    pub(in super::super) fn part(&self, batches: Range<usize>, head: usize) -> Heads<'_, E> {
        let group = self.queries.dim().1 / self.keys.dim().1.max(1);
        let (own, of_keys) = (head * group..(head + 1) * group, head..head + 1);
        Heads {
            queries: self.queries.slice(s![batches.clone(), own, .., ..]),
            keys: self.keys.slice(s![batches.clone(), of_keys.clone(), .., ..]),
            values: self.values.slice(s![batches.clone(), of_keys, .., ..]),
            mask: self.mask.as_ref().map(|mask| mask.slice(s![batches, ..])),
            offsets: self.offsets,
        }
    }

    /// The shape of the output: \[b, h, n, d_v\].
    pub fn output_dim(&self) -> [usize; 4] {
        let (b, h, n, _) = self.queries.dim();
        [b, h, n, self.values.dim().3]
    }

    /// Refuses an output for which there is no memory, of so many more bytes for each query.
    pub(in super::super) fn check_output<T>(&self, more: usize) -> Result<()> {
        let [b, h, n, d_v] = self.output_dim();
        let queries = b.saturating_mul(h).saturating_mul(n);
        check_memory("outputs", queries, d_v.saturating_mul(size_of::<T>()).saturating_add(more))?;
        // Also sizes of an array without elements must be counted, without those that are 0.
        let sizes = [b, h, n, d_v].into_iter().filter(|size| *size > 0);
        check_addressable("outputs", sizes.fold(1, usize::saturating_mul))
    }

    /// Refuses more heads and sequences than there is memory for to list them, also where they are empty.
    pub(in super::super) fn check_count<T>(&self) -> Result<()> {
        let heads = self.queries.dim().1.saturating_add(self.keys.dim().1).max(1);
        let batches = self.queries.dim().0.max(1);
        let count = batches.saturating_mul(heads).saturating_mul(self.ranges().len());
        check_memory(
            "heads and sequences",
            count,
            2 * (size_of::<Job<'_, T>>() + size_of::<QueryRun<'_, T>>()),
        )
    }

    /// Where sequences begin and end among the queries and the keys.
    pub(in super::super) fn ranges(&self) -> Vec<(Range<usize>, Range<usize>)> {
        match self.offsets {
            None => vec![(0..self.queries.dim().2, 0..self.keys.dim().2)],
            Some((queries, keys)) => {
                let ranges = |offsets: &'a [usize]| offsets.windows(2).map(|pair| pair[0]..pair[1]);
                ranges(queries).zip(ranges(keys)).collect()
            }
        }
    }

    /// Which keys a query sees.
    pub(in super::super) fn seen(&self, batch: usize, row: usize, causal: bool) -> Vec<bool> {
        let mut seen = vec![false; self.keys.dim().2];
        for (queries, keys) in self.ranges().into_iter().filter(|(queries, _)| queries.contains(&row)) {
            let last = if causal { keys.end.min(keys.start + row - queries.start + 1) } else { keys.end };
            seen[keys.start..last].fill(true);
        }
        let mask = self.mask.map(|mask| mask.index_axis_move(Axis(0), batch));
        mask.iter().flatten().zip(&mut seen).for_each(|(mask, seen)| *seen &= *mask);
        seen
    }

    /// For causal attention: every sequence has as many keys as queries.
    pub(in super::super) fn check_causal(&self) -> Result<()> {
        self.ranges().iter().try_for_each(|(queries, keys)| {
            check_size("the number of keys of a sequence in causal attention", queries.len(), keys.len())
        })
    }
}

/// Checks that offsets, of which there are some, go from 0 to the length. `names` are those of all, the first and the last.
fn check_offsets([what, first, last]: [&'static str; 3], offsets: &[usize], length: usize) -> Result<()> {
    check_size(first, 0, offsets[0])?;
    check_size(last, length, offsets[offsets.len() - 1])?;
    match offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        None => Ok(()),
        Some(row) => {
            let (row, domain) = (row + 1, "at least the one before");
            Err(Error::Entry { what, row, value: offsets[row] as f64, domain })
        }
    }
}

/// Checks that the heads of the queries share those of the keys evenly.
pub(in super::super) fn check_multiple(keys: usize, queries: usize) -> Result<()> {
    if keys == queries || (keys > 0 && queries.is_multiple_of(keys)) {
        return Ok(());
    }
    check_positive("the number of heads of the keys", keys)?;
    Err(Error::Multiple { what: "the number of heads of the queries", of: keys, found: queries })
}
