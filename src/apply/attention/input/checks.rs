//! Checks of shapes, each with an error that names what does not fit.

use ndarray::{ArrayRef, Ix4};

use super::attention::Attention;
use super::heads::Heads;
use crate::Real;
use crate::error::{Result, check_size};

impl<T: Real> Attention<T> {
    /// Checks that heads have the dimension of the maps and, if there is a map or a share of the mean for each head, as many heads of keys.
    pub(in super::super) fn check_inputs<E>(&self, heads: &Heads<'_, E>) -> Result<()> {
        check_size("the dimension of the queries", self.maps[0].dim(), heads.queries.dim().3)?;
        if self.maps.len() > 1 {
            check_size(HEADS_WITH_MAPS, self.maps.len(), heads.keys.dim().1)?;
        }
        self.check_shrinkage(heads.keys.dim().1)
    }
}

/// What must be as many as maps.
pub(in super::super) const HEADS_WITH_MAPS: &str =
    "the number of heads of the keys, of which each has its own map,";

/// Checks the sizes of the output.
pub(in super::super) fn check_output<E, T>(heads: &Heads<'_, E>, out: &ArrayRef<T, Ix4>) -> Result<()> {
    let what = [
        "the batch size of the output",
        "the number of heads of the output",
        "the length of the output",
        "the dimension of the output",
    ];
    check_shape(what, out.shape(), heads.output_dim())
}

/// Checks the sizes of an array, which are called `what`.
pub(in super::super) fn check_shape<const N: usize>(
    what: [&'static str; N],
    found: &[usize],
    expected: [usize; N],
) -> Result<()> {
    let sizes = expected.into_iter().zip(found);
    what.into_iter().zip(sizes).try_for_each(|(what, (expected, found))| check_size(what, expected, *found))
}
