//! The lengthscales of a search for which none are given.

use ndarray::{Array1, CowArray, Ix2};

use super::attempts::{Attempts, SearchPoint};
use super::growth::{End, Growth};
use super::periodogram::{self, Peak};
use super::steps::Search;
use crate::data::lengthscale::{median_of_subsample, own_scales};
use crate::error::Result;
use crate::kernel::Lengthscale;
use crate::{Points, Real};

/// The maximum number of points whose distances are computed, and of numbers in these points.
const POINTS: usize = 1000;
const NUMBERS: usize = 1 << 24;
/// The lengthscales that are tried for a wave, in units of 1/ω.
const OF_WAVE: [f64; 3] = [0.5, 1.0, 2.0];
/// The maximum number of waves for which a search with a common lengthscale tries lengthscales.
const WAVES: usize = 3;

/// The lengthscales ℓ₀·2^{k/2} of the default grid.
pub(super) struct Scales(Lengthscale);

impl Scales {
    /// The lengthscale at place k.
    pub fn at(&self, k: i32) -> Lengthscale {
        let factor = 2f64.powf(0.5 * f64::from(k));
        match &self.0 {
            Lengthscale::Isotropic(scale) => (scale * factor).into(),
            Lengthscale::PerDimension(scales) => {
                scales.iter().map(|scale| scale * factor).collect::<Vec<_>>().into()
            }
        }
    }
}

impl<T: Real> Search<'_, '_, T> {
    /// The default grid: from the median distance, or from the medians of coordinates if each has its own lengthscale.
    pub fn scales(&self) -> Result<Scales> {
        let x = &self.all.x;
        let most = x.nrows().min(POINTS).min(NUMBERS / x.ncols().max(1)).max(2);
        let drawn = if x.nrows() > most { Some(x.select(&self.draw(x.nrows(), most, 0))?) } else { None };
        let points = drawn.as_ref().map_or_else(|| Points::from(x), Points::from);
        let points = self.seen(&points)?;
        if self.options.sweeps == 0 {
            return Ok(Scales(median_of_subsample(&points, most, self.options.seed)?.into()));
        }
        let (medians, common) = own_scales(&points)?;
        Ok(Scales(medians.into_iter().map(|median| common * median).collect::<Vec<_>>().into()))
    }

    /// Points as they are given to maps: standardised if inputs are.
    fn seen<'p>(&self, points: &'p Points<'_, T>) -> Result<CowArray<'p, T, Ix2>> {
        let points = points.to_dense()?;
        match &self.inputs {
            Some(inputs) => Ok(inputs.apply(&points)?.into()),
            None => Ok(points),
        }
    }

    /// The strongest waves along coordinates, in the rows of the search.
    fn peaks(&self) -> Result<Vec<Peak>> {
        let rows = self.training();
        let (n, d) = (rows.x.nrows(), rows.x.ncols());
        let rows = rows.select(&self.draw(n, n.min(periodogram::rows(d)), 3))?;
        let x = self.seen(&rows.x)?.mapv(Real::widen);
        let y = rows.targets.columns.mapv(Real::widen);
        let weights: Array1<f64> = (0..x.nrows()).map(|i| rows.weight(i)).collect();
        periodogram::peaks(x.view(), y.view(), weights.view())
    }

    /// Tries lengthscales beyond the first ones of the default grid. Returns whether the grid ended at its limit, for the
    /// shortest and for the longest lengthscale. Lengthscales for which no map can be made or fitted are left out.
    pub fn extend(&mut self, scales: &Scales, attempts: &mut Attempts) -> Result<[bool; 2]> {
        if attempts.best().1.is_constant() {
            return Ok([false; 2]);
        }
        if self.options.sweeps == 0 {
            self.try_waves(scales, attempts)?;
        }
        let part = attempts.best().0.part;
        let mut growth = Growth::default();
        let at = |k: &i32| SearchPoint { part, lengthscale: scales.at(*k) };
        for k in growth.next() {
            growth.tell(k, attempts.rank(&at(&k)));
        }
        growth.tell_other(&attempts.best().1.rank());
        loop {
            let next = growth.next();
            if next.is_empty() {
                let limit = |end: End| growth.edge() == Some((end, true));
                return Ok([End::Lower, End::Upper].map(limit));
            }
            self.try_more(next.iter().map(at).collect(), attempts)?;
            next.into_iter().for_each(|k| growth.tell(k, attempts.rank(&at(&k))));
        }
    }

    /// Tries lengthscales for the strongest waves whose 1/ω is outside of the first lengthscales of the default grid.
    fn try_waves(&mut self, scales: &Scales, attempts: &mut Attempts) -> Result<()> {
        let seen = [scales.at(-4).at(0), scales.at(4).at(0)];
        let mut peaks = self.peaks()?;
        peaks.retain(|peak| !(seen[0]..=seen[1]).contains(&peak.omega.recip()));
        periodogram::sort_by_power(&mut peaks);
        peaks.truncate(WAVES);
        let parts = self.parts.len().max(1);
        let of_peak = |peak: &Peak| OF_WAVE.map(|factor| Lengthscale::from(factor / peak.omega));
        let lengthscales: Vec<Lengthscale> = peaks.iter().flat_map(of_peak).collect();
        let of = |part| lengthscales.iter().map(move |ell| SearchPoint { part, lengthscale: ell.clone() });
        self.try_more((0..parts).flat_map(of).collect(), attempts)
    }

    /// Tries lengthscales of each coordinate, one coordinate after the other: steps up and down. The first sweep of a default
    /// grid also tries lengthscales for the strongest wave along the coordinate.
    pub fn sweep(&mut self, attempts: &mut Attempts) -> Result<()> {
        let d = self.all.x.ncols();
        let is_default = self.options.lengthscales.is_none() && self.options.sweeps > 0;
        let peaks = if is_default && !attempts.best().1.is_constant() { self.peaks()? } else { Vec::new() };
        let mut factor: f64 = 2.0;
        for sweep in 0..self.options.sweeps {
            let before = attempts.best;
            for k in 0..d {
                let scale = attempts.best().0.lengthscale.at(k);
                let mut scales = vec![scale * factor, scale / factor];
                if let (0, Some(peak)) = (sweep, peaks.iter().find(|peak| peak.coordinate == k)) {
                    self.total = self.total.saturating_add(OF_WAVE.len());
                    scales.extend(OF_WAVE.map(|factor| factor / peak.omega));
                }
                let of = |scale: f64| self.with_scale(attempts.best().0, k, scale);
                let candidates = scales.into_iter().map(of).collect();
                self.attempt(candidates, attempts)?;
            }
            if attempts.best == before {
                factor = factor.sqrt();
            }
        }
        Ok(())
    }

    /// The candidate with another lengthscale of coordinate `k`.
    fn with_scale(&self, from: &SearchPoint, k: usize, scale: f64) -> SearchPoint {
        let mut scales: Vec<f64> = (0..self.all.x.ncols()).map(|k| from.lengthscale.at(k)).collect();
        scales[k] = scale;
        SearchPoint { lengthscale: scales.into(), ..*from }
    }

    /// Tries candidates in addition to those counted in `total`, without candidates for which no map can be made.
    fn try_more(&mut self, mut more: Vec<SearchPoint>, attempts: &mut Attempts) -> Result<()> {
        more.retain(|candidate| self.map(candidate).is_ok());
        self.total = self.total.saturating_add(more.len());
        self.attempt(more, attempts).map(drop)
    }
}
