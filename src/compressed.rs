//! [`Compressed`]: points in compressed rows, made from SciPy's arrays or from a matrix of `sprs` (feature `sparse`).

use std::borrow::Cow;

use sprs::CsMatView;

use crate::Real;
use crate::engine::SparsePoints;
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::numeric::{self, Columns};

/// An integer of the arrays of compressed rows: `i32`, `u32`, `i64`, `u64` or `usize`. Programs do not name it.
///
/// Columns in `i32`, `u32` and `usize` are borrowed, columns in `i64` and `u64` are copied.
pub trait Index: Copy {
    /// The number, if it is in the range of `usize`.
    fn to_usize(self) -> Option<usize>;

    /// The number for a message.
    fn to_f64(self) -> f64;

    /// Columns, of which none is below 0.
    fn columns(all: &[Self]) -> OwnColumns<'_>;
}

macro_rules! index {
    ($($I:ty => |$all:ident| $columns:expr),* $(,)?) => {$(
        impl Index for $I {
            #[inline]
            fn to_usize(self) -> Option<usize> {
                usize::try_from(self).ok()
            }

            fn to_f64(self) -> f64 {
                self as f64
            }

            fn columns($all: &[Self]) -> OwnColumns<'_> {
                $columns
            }
        }
    )*};
}

index! {
    i32 => |all| OwnColumns::Narrow(numeric::unsigned(all).into()),
    u32 => |all| OwnColumns::Narrow(all.into()),
    i64 => |all| OwnColumns::Wide(all.iter().map(|k| *k as usize).collect()),
    u64 => |all| OwnColumns::Wide(all.iter().map(|k| *k as usize).collect()),
    usize => |all| OwnColumns::Wide(all.into()),
}

/// Columns of entries, owned or borrowed.
#[derive(Clone, Debug)]
pub enum OwnColumns<'a> {
    Wide(Cow<'a, [usize]>),
    Narrow(Cow<'a, [u32]>),
}

impl OwnColumns<'_> {
    fn view(&self) -> Columns<'_> {
        match self {
            OwnColumns::Wide(all) => Columns::Wide(all),
            OwnColumns::Narrow(all) => Columns::Narrow(all),
        }
    }
}

/// The parts of [`SparsePoints`], owned if the matrix does not have them in this form.
#[derive(Clone, Debug)]
pub(crate) struct Compressed<'a, T: Real> {
    starts: Cow<'a, [usize]>,
    columns: OwnColumns<'a>,
    values: Cow<'a, [T]>,
    dim: usize,
}

impl<'a, T: Real> Compressed<'a, T> {
    /// The points of SciPy's arrays of compressed rows.
    pub fn of_csr<C: Index, O: Index>(
        values: &'a [T],
        columns: &'a [C],
        offsets: &[O],
        dim: usize,
    ) -> Result<Self> {
        check_size("the number of columns of entries", values.len(), columns.len())?;
        let (starts, first) = starts(offsets, values.len())?;
        let entries = first..first + starts.last().copied().unwrap_or(0);
        let (values, columns) = (&values[entries.clone()], &columns[entries]);
        check_columns(columns, &starts, dim)?;
        Ok(Compressed { starts: starts.into(), columns: C::columns(columns), values: values.into(), dim })
    }

    /// The points of a matrix of `sprs`, whose columns are converted to rows.
    pub fn of_matrix(x: CsMatView<'a, T>) -> Self {
        let dim = x.cols();
        if x.is_csc() {
            let (starts, columns, values) = x.to_csr().into_raw_storage();
            let columns = OwnColumns::Wide(columns.into());
            return Compressed { starts: starts.into(), columns, values: values.into(), dim };
        }
        let (starts, columns, values) = x.into_raw_storage();
        let columns = OwnColumns::Wide(columns.into());
        Compressed { starts: from_zero(starts), columns, values: values.into(), dim }
    }

    /// Copies of some rows.
    pub fn of_rows(x: SparsePoints<'_, T>, rows: &[usize]) -> Compressed<'static, T> {
        let (mut starts, mut values) = (vec![0], Vec::new());
        for i in rows {
            values.extend_from_slice(x.row(*i).1);
            starts.push(values.len());
        }
        let all = || rows.iter().flat_map(|i| x.starts[*i]..x.starts[*i + 1]);
        let columns = match x.columns {
            Columns::Wide(columns) => OwnColumns::Wide(all().map(|entry| columns[entry]).collect()),
            Columns::Narrow(columns) => OwnColumns::Narrow(all().map(|entry| columns[entry]).collect()),
        };
        Compressed { starts: starts.into(), columns, values: values.into(), dim: x.dim }
    }

    pub fn view(&self) -> SparsePoints<'_, T> {
        let Compressed { starts, columns, values, dim } = self;
        SparsePoints { starts, columns: columns.view(), values, dim: *dim }
    }

    pub fn borrowed(&self) -> Compressed<'_, T> {
        let SparsePoints { starts, columns, values, dim } = self.view();
        let columns = match columns {
            Columns::Wide(all) => OwnColumns::Wide(all.into()),
            Columns::Narrow(all) => OwnColumns::Narrow(all.into()),
        };
        Compressed { starts: starts.into(), columns, values: values.into(), dim }
    }
}

/// The starts of rows, counted from the first: a slice of rows may begin anywhere.
fn from_zero(starts: &[usize]) -> Cow<'_, [usize]> {
    match starts {
        [0, ..] => starts.into(),
        [first, ..] => starts.iter().map(|start| start - first).collect(),
        [] => Cow::Borrowed(&[0]),
    }
}

/// The starts of rows, counted from the first, and the place of the first among `entries` entries.
fn starts<O: Index>(offsets: &[O], entries: usize) -> Result<(Vec<usize>, usize)> {
    let wrong = |row: usize, domain| {
        let value = offsets.get(row).map_or(0.0, |offset| offset.to_f64());
        Error::Entry { what: "the offsets", row, value, domain }
    };
    let Some(first) = offsets.first() else {
        return Err(Error::Parameter {
            name: "the number of offsets",
            value: 0.0,
            domain: "one more than rows",
        });
    };
    let first = first.to_usize().ok_or_else(|| wrong(0, "0 or above"))?;
    check_memory("offsets of rows", offsets.len(), size_of::<usize>())?;
    let (mut starts, mut last) = (Vec::with_capacity(offsets.len()), first);
    for (row, offset) in offsets.iter().enumerate() {
        let offset = offset.to_usize().filter(|offset| *offset >= last);
        last = offset.ok_or_else(|| wrong(row, "at least the offset before it"))?;
        if last > entries {
            return Err(wrong(row, "at most the number of entries"));
        }
        starts.push(last - first);
    }
    Ok((starts, first))
}

/// Rejects columns that are not below `dim`, or do not ascend in a row.
fn check_columns<C: Index>(columns: &[C], starts: &[usize], dim: usize) -> Result<()> {
    for (row, run) in starts.windows(2).enumerate() {
        let mut least = 0;
        for column in &columns[run[0]..run[1]] {
            let wrong = |domain| Error::Entry { what: "the columns", row, value: column.to_f64(), domain };
            match column.to_usize().filter(|column| *column < dim) {
                None => return Err(wrong("0 or above, and below the number of columns d")),
                Some(place) if place < least => {
                    return Err(wrong(
                        "above the one before it in the row, as SciPy's sum_duplicates() leaves them",
                    ));
                }
                Some(place) => least = place + 1,
            }
        }
    }
    Ok(())
}
