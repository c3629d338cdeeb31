//! How the rows of a search are divided for its criterion: into groups that are left out together, or into folds.

use rand::RngExt;

use super::super::Criterion;
use super::super::groups::rows_of_groups;
use crate::Real;
use crate::data::lengthscale::choose;
use crate::error::{Error, Result, check_size};

/// The stream of random numbers by which rows are drawn into folds.
const STREAM: u64 = 3;

/// The folds of a search's training rows.
pub(super) struct FoldRows {
    /// The rows of each fold, ascending.
    folds: Vec<Vec<usize>>,
    /// The number of blocks just before the tested one that are left out, if folds are consecutive blocks.
    gap: Option<usize>,
}

impl FoldRows {
    /// The folds of a criterion for `rows` rows, if it has folds.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if there are too few folds, or fewer rows than folds.
    pub fn of<T: Real>(criterion: &Criterion<'_, T>, rows: usize, seed: u64) -> Result<Option<Self>> {
        let Some((count, gap)) = folds_of(criterion, rows)? else { return Ok(None) };
        let mut places: Vec<usize> = (0..rows).map(|row| block_of(row, count, rows)).collect();
        if gap.is_none() {
            let mut rng = crate::rng_of_step(seed, STREAM);
            (1..rows).for_each(|last| places.swap(last, rng.random_range(0..=last)));
        }
        let mut folds = vec![Vec::new(); count];
        places.iter().enumerate().for_each(|(row, place)| folds[*place].push(row));
        Ok(Some(FoldRows { folds, gap }))
    }

    /// The rows for training and the rows for testing, for each fold that is tested.
    pub fn splits(&self) -> impl Iterator<Item = (Vec<usize>, &[usize])> {
        let first = self.gap.map_or(0, |gap| gap + 1);
        (first..self.folds.len()).map(move |k| {
            let trains = |other: &usize| self.gap.map_or(*other != k, |gap| other + gap < k);
            let others = (0..self.folds.len()).filter(trains).flat_map(|other| self.folds[other].clone());
            (others.collect(), self.folds[k].as_slice())
        })
    }
}

/// The number of folds or blocks of a criterion for `rows` rows, and the gap of blocks, if it has folds.
///
/// # Errors
/// The errors of [`check_parts`].
pub(in crate::apply) fn folds_of<T: Real>(
    criterion: &Criterion<'_, T>,
    rows: usize,
) -> Result<Option<(usize, Option<usize>)>> {
    let (name, count, gap) = match criterion {
        Criterion::Folds(count) => ("the number of folds", *count, None),
        Criterion::Forward { blocks, gap } => ("the number of blocks", *blocks, Some(*gap)),
        _ => return Ok(None),
    };
    check_parts((name, count), gap, rows)?;
    Ok(Some((count, gap)))
}

/// Rejects too few parts of the rows, and more parts than rows.
///
/// # Errors
/// [`Parameter`](Error::Parameter) with the name and the number of the parts.
pub(in crate::apply) fn check_parts(
    (name, count): (&'static str, usize),
    gap: Option<usize>,
    rows: usize,
) -> Result<()> {
    if (gap.unwrap_or(0).saturating_add(2)..=rows).contains(&count) {
        return Ok(());
    }
    let domain = "at least 2 more than the gap, if there is one, and at most the number of rows";
    Err(Error::Parameter { name, value: count as f64, domain })
}

/// The block of a row, of `count` blocks of consecutive rows.
pub(in crate::apply) fn block_of(row: usize, count: usize, rows: usize) -> usize {
    (row as u128 * count as u128 / rows as u128) as usize
}

/// The labels of a search's rows, if its criterion leaves groups out.
///
/// # Errors
/// [`Shape`](Error::Shape) if there are not as many labels as rows.
pub(in crate::apply) fn labels_of<'c, T: Real>(
    criterion: &Criterion<'c, T>,
    rows: usize,
) -> Result<Option<&'c [usize]>> {
    let Criterion::LeaveGroupsOut(labels) = criterion else { return Ok(None) };
    check_size("the number of groups' labels", rows, labels.len())?;
    Ok(Some(labels))
}

/// The rows of groups that are drawn at random, ascending. As many groups are drawn as have about `count` rows, at least two.
///
/// # Errors
/// [`Parameter`](Error::Parameter) if there are fewer than two groups.
pub(super) fn draw_groups(labels: &[usize], count: usize, (seed, stream): (u64, u64)) -> Result<Vec<usize>> {
    let groups = rows_of_groups(labels, labels.len(), |_| true)?;
    let share = count as f64 / labels.len() as f64;
    let wanted = ((share * groups.len() as f64).round() as usize).clamp(2, groups.len());
    let chosen = choose(groups.len(), wanted, &mut crate::rng_of_step(seed, stream));
    let mut rows: Vec<usize> = chosen.iter().flat_map(|group| groups[*group].iter().copied()).collect();
    rows.sort_unstable();
    Ok(rows)
}
