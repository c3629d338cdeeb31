//! [`Tokens`]: queries or keys of a run of tokens as points, and their features.

use std::ops::Range;
use std::sync::Arc;

use super::super::input::{KeptRows, KeyRun, Lifted, LogScale, Numbers, QueryRun};
use super::setup::Setup;
use crate::Real;
use crate::engine::{Batch, Form, Scratch, Side};
use crate::numeric::matrix_view;
use crate::reduce::{LogRow, Precision};

/// Queries or keys of a run of tokens.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Tokens<T> {
    points: Vec<T>,
    /// The features as they are kept for others too, until one is changed here.
    lifted: Arc<Lifted<T>>,
    /// Features in the map's best form of the rows `logged`, computed when one of them first needs them.
    logs: Batch<T>,
    logged: Range<usize>,
    /// How well `T` holds the features of each row, in all blocks and divided.
    precision: Vec<Precision>,
    /// The [scale](finite) of each row before and after it was divided; none if no row was.
    divided: Vec<[f64; 2]>,
}

impl<T: Real> Tokens<T> {
    pub fn len(&self) -> usize {
        self.precision.len()
    }

    /// All features, tokens × D.
    pub fn features(&self) -> &[T] {
        &self.lifted.features.values()[..self.len() * self.width()]
    }

    /// D.
    pub fn width(&self) -> usize {
        self.lifted.features.width()
    }

    /// The features of row `i`.
    pub fn row(&self, i: usize) -> &[T] {
        self.lifted.features.row(i).values
    }

    /// How well `T` holds the features of row `i`.
    pub fn precision(&self, i: usize) -> Precision {
        self.precision[i]
    }

    /// ln of the scale of row `i` for gradients. A row of zero features counts with the scale 1, since its derivative is not zero; its
    /// scale is −∞ only if all blocks are absent.
    pub fn gradient_scale(&self, i: usize) -> f64 {
        let (scale, blocks) = (self.precision[i].scale, self.block_scales(i));
        let present = blocks.iter().any(|block| *block > f64::NEG_INFINITY);
        if scale == f64::NEG_INFINITY && present { 0.0 } else { scale }
    }

    /// The point of row `i`.
    pub fn point(&self, i: usize) -> &[T] {
        self.points_of(i..i + 1)
    }

    /// The points of some rows.
    pub fn points_of(&self, rows: Range<usize>) -> &[T] {
        let d = self.points.len() / self.len().max(1);
        &self.points[rows.start * d..rows.end * d]
    }

    /// The points of all rows.
    #[cfg(feature = "serde")]
    pub fn points(&self) -> &[T] {
        &self.points
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.points.clear();
        self.precision.clear();
        self.divided.clear();
        self.logged = 0..0;
    }

    /// Reads the tokens `x`.
    pub fn fill(&mut self, setup: Setup<'_, T>, side: Side, x: Numbers<'_, T>, scratch: &mut Scratch<T>) {
        self.fill_kept(setup, side, (x, KeptRows::default()), scratch);
    }

    /// Reads keys.
    pub fn read_keys(&mut self, setup: Setup<'_, T>, run: KeyRun<'_, T>, scratch: &mut Scratch<T>) {
        self.fill_kept(setup, setup.summed_side(), (run.keys, run.kept), scratch);
        if let Some(divisors) = &run.divisors {
            self.divide(LogScale::of_rows(divisors));
        }
    }

    /// Reads queries.
    pub fn read_queries(&mut self, setup: Setup<'_, T>, run: QueryRun<'_, T>, scratch: &mut Scratch<T>) {
        self.fill_kept(setup, setup.reading_side(), (run.rows, run.kept), scratch);
    }

    /// Reads tokens, whose features are taken from where they are kept, or are kept there.
    fn fill_kept(
        &mut self,
        setup: Setup<'_, T>,
        side: Side,
        (x, kept): (Numbers<'_, T>, KeptRows<'_, T>),
        scratch: &mut Scratch<T>,
    ) {
        let n = x.nrows();
        setup.reading.points(x, &mut self.points);
        if let Some(lifted) = self.shared(setup, side, (n, kept), scratch) {
            self.lifted = Arc::clone(lifted);
        } else if !self.gather(kept, n) {
            self.lift(setup, side, n, scratch);
        }
        self.begin(n);
    }

    /// The features of a run that begins with these `n` rows, computed if they are not there yet. `None` if the rows begin no run, or one
    /// that was kept with fewer rows.
    fn shared<'a>(
        &self,
        setup: Setup<'_, T>,
        side: Side,
        (n, kept): (usize, KeptRows<'a, T>),
        scratch: &mut Scratch<T>,
    ) -> Option<&'a Arc<Lifted<T>>> {
        let run = kept.run(n)?;
        let lifted = run.lifted.get().unwrap_or_else(|| {
            let mut lifted = Lifted::default();
            lifted.fill(setup.program, side, (n, &self.points), scratch);
            run.lifted.get_or_init(|| Arc::new(lifted))
        });
        // Another thread may have been first, with fewer rows.
        (lifted.precision.len() >= n).then_some(lifted)
    }

    /// Takes the features of `n` rows from where they are kept. False if those of a row are not.
    fn gather(&mut self, kept: KeptRows<'_, T>, n: usize) -> bool {
        let Some((first, _)) = kept.lifted(0).filter(|_| n > 0) else { return false };
        let own = self.own();
        own.features.resize_like(&first.features, n);
        own.precision.clear();
        (0..n).all(|i| {
            let Some((from, row)) = kept.lifted(i) else { return false };
            let (features, to) = (from.features.row(row), own.features.row_mut(i));
            to.values.copy_from_slice(features.values);
            to.log_scales.copy_from_slice(features.log_scales);
            own.precision.push(from.precision[row]);
            true
        })
    }

    /// Features that are nobody else's, to be written anew.
    fn own(&mut self) -> &mut Lifted<T> {
        if Arc::get_mut(&mut self.lifted).is_none() {
            self.lifted = Arc::default();
        }
        Arc::make_mut(&mut self.lifted)
    }

    /// Reads the points of tokens alone, without features.
    pub fn read_points(&mut self, setup: Setup<'_, T>, x: Numbers<'_, T>) {
        self.clear();
        setup.reading.points(x, &mut self.points);
        self.precision.resize(x.nrows(), Precision::NOTHING);
    }

    /// Reads tokens from their points.
    #[cfg(feature = "serde")]
    pub fn fill_points(&mut self, setup: Setup<'_, T>, side: Side, points: &[T], scratch: &mut Scratch<T>) {
        self.points.clear();
        self.points.extend_from_slice(points);
        let n = points.len() / setup.program.facts().dim;
        self.lift(setup, side, n, scratch);
        self.begin(n);
    }

    /// Computes the features of `n` points.
    fn lift(&mut self, setup: Setup<'_, T>, side: Side, n: usize, scratch: &mut Scratch<T>) {
        let points = std::mem::take(&mut self.points);
        self.own().fill(setup.program, side, (n, &points), scratch);
        self.points = points;
    }

    /// Begins with the first `n` rows of the features.
    fn begin(&mut self, n: usize) {
        self.precision.clear();
        self.precision.extend_from_slice(&self.lifted.precision[..n]);
        self.divided.clear();
        self.logged = 0..0;
    }

    /// Appends row `i` of others, of the same map and side, to rows that were appended, of which there are never more than
    /// `most`.
    pub fn push(&mut self, other: &Self, i: usize, most: usize) {
        if self.precision.is_empty() {
            self.own().features.resize_like(&other.lifted.features, most);
        }
        let features = &mut Arc::make_mut(&mut self.lifted).features;
        features.row_mut(self.precision.len()).values.copy_from_slice(other.row(i));
        self.points.extend_from_slice(other.point(i));
        self.precision.push(other.precision(i));
        self.divided.extend(other.divided.get(i));
    }

    /// Divides the features of each row by a scale.
    pub fn divide(&mut self, divisors: impl IntoIterator<Item = LogScale>) {
        for (precision, divisor) in self.precision.iter_mut().zip(divisors) {
            let by_divisor = |own: f64| LogScale { own, read: 0.0 }.minus(divisor);
            let own = finite(precision.scale);
            self.divided.push([own, by_divisor(own)]);
            precision.scale = by_divisor(precision.scale);
            precision.is_representable &= !precision.scale.is_nan();
        }
    }

    /// ln of the scale of row `i` in each block of its values, as the map gives them.
    pub fn block_scales(&self, i: usize) -> &[f64] {
        self.lifted.features.row(i).log_scales
    }

    /// Makes all features of row `i` 0.
    pub fn clear_row(&mut self, i: usize) {
        Arc::make_mut(&mut self.lifted).features.row_mut(i).values.fill(T::zero());
        self.precision[i] = Precision::NOTHING;
    }

    /// The features of row `i` by their logarithms.
    pub fn log_row(
        &mut self,
        setup: Setup<'_, T>,
        side: Side,
        i: usize,
        scratch: &mut Scratch<T>,
        row: &mut LogRow,
    ) {
        let Precision { scale, is_representable, .. } = self.precision[i];
        if is_representable {
            return row.scaled(self.row(i), scale);
        }
        let [before, after] = self.divided.get(i).copied().unwrap_or_default();
        self.write_logs(setup, side, (i, before), scratch, row);
        row.logs.iter_mut().for_each(|log| *log += after);
    }

    /// The features of row `i` by their logarithms, divided by the [scale](finite) of the row. Returns ln of the scale.
    pub fn relative_log_row(
        &mut self,
        setup: Setup<'_, T>,
        side: Side,
        i: usize,
        scratch: &mut Scratch<T>,
        row: &mut LogRow,
    ) -> f64 {
        debug_assert!(self.divided.is_empty(), "rows that read are not divided");
        let Precision { scale, is_representable, .. } = self.precision[i];
        let own = finite(scale);
        if is_representable {
            row.scaled(self.row(i), scale - own);
        } else {
            self.write_logs(setup, side, (i, own), scratch, row);
        }
        own
    }

    /// Writes the logarithms of the features of row `i`, less `own`, which the scales of blocks are near.
    fn write_logs(
        &mut self,
        Setup { program, .. }: Setup<'_, T>,
        side: Side,
        (i, own): (usize, f64),
        scratch: &mut Scratch<T>,
        row: &mut LogRow,
    ) {
        row.clear();
        let (d, form) = (program.facts().dim, program.best_form());
        if !self.logged.contains(&i) {
            self.logged = i..self.len();
            let points = matrix_view(self.logged.len(), d, &self.points[i * d..]);
            self.logs.fill(program, side, form, points.into(), scratch);
        }
        let features = self.logs.row(i - self.logged.start);
        for (columns, scale) in program.blocks().iter().zip(features.log_scales) {
            let (values, scale) = (&features.values[columns.clone()], scale - own);
            match form {
                _ if scale == f64::NEG_INFINITY => values.iter().for_each(|_| row.push(scale, 0.0)),
                Form::Values => values.iter().for_each(|v| row.push(scale, v.widen())),
                Form::Logarithms => {
                    let signs = &features.signs[columns.clone()];
                    values.iter().zip(signs).for_each(|(v, sign)| row.push(v.widen() + scale, sign.widen()));
                }
            }
        }
    }
}

/// ln of a scale to which a row is relative; 0 where the scale is not finite.
fn finite(scale: f64) -> f64 {
    if scale.is_finite() { scale } else { 0.0 }
}
