//! [`Candidate`]: a map with a coupling and a size.

use crate::error::Result;
use crate::frequency::{AnyCoupling, Coupling, Independent, PlainCoupling};
use crate::map::{Omega, Recipe};
use crate::planner::costs::{Calibration, Cost, Measure};
use crate::planner::plan::LeftOut;
use crate::planner::proposals::{Couplings, MapFamily, Proposals};
use crate::planner::question::{Planner, is_biased};

/// The most frequencies that are considered.
const MOST: usize = 1 << 24;

/// All maps that may be planned, with the couplings that they can have.
pub(crate) struct SearchSpace {
    pub maps: Vec<MapFamily>,
    pub couplings: Vec<AnyCoupling>,
    pub left_out: Vec<LeftOut>,
}

/// A map, by its index in the search space, with a coupling and a number of frequencies.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub map: usize,
    pub coupling: AnyCoupling,
    pub m: usize,
    pub recipe: Recipe,
    pub cost: Cost,
    pub biased: bool,
    /// The recipe that is tried in place of one that was fitted to the held-out points of the task, too.
    pub trial: Option<Box<Recipe>>,
}

impl Candidate {
    /// The recipe whose loss of a task is that of this one.
    pub fn tried(&self) -> &Recipe {
        self.trial.as_deref().unwrap_or(&self.recipe)
    }

    pub fn kind(&self) -> (usize, AnyCoupling) {
        (self.map, self.coupling)
    }

    /// The number of frequencies that its coupling draws together.
    pub fn block(&self) -> usize {
        let drawn = self.recipe.draws();
        let dim = drawn.first().map_or(1, |omega| omega.dim());
        let counts = matches!(drawn.first(), Some(Omega::DrawCounts(_)));
        let capacity = self.coupling.capacity(dim);
        if counts || capacity == usize::MAX { 1 } else { capacity.clamp(1, MOST) }
    }

    /// The most frequencies up to `most` that make whole blocks, or of a sequence a power of two; `most` where there are no blocks.
    pub fn whole(&self, most: usize) -> usize {
        use PlainCoupling::{Halton, HaltonProduct, Sobol, SobolProduct};
        match (self.coupling.plain(), self.block()) {
            (Sobol | Halton | SobolProduct(_) | HaltonProduct(_), _) if most > 1 => 1 << most.ilog2(),
            (_, block) if block <= most => most - most % block,
            _ => most,
        }
    }
}

impl SearchSpace {
    /// The maps that constraints allow.
    pub fn new(planner: &Planner, maps: Proposals) -> Result<Self> {
        let mut left_out: Vec<LeftOut> = (maps.refused.into_iter())
            .map(|(map, error)| LeftOut { what: map.into(), why: error.to_string() })
            .collect();
        let couplings = planner.constraints.couplings(&planner.kernel, planner.data.dim());
        // Frequencies of a product law have couplings of their own.
        let first = couplings.first().copied().unwrap_or(Independent.into());
        let mut usable = Vec::new();
        for map in maps.usable {
            let small = map.recipe(2, first);
            match small.and_then(|small| planner.constraints.allow(&small, &planner.kernel)) {
                Ok(true) => usable.push(map),
                Ok(false) if map.is_stated() => {
                    left_out.push(LeftOut { what: map.name, why: "options of the plan exclude it".into() });
                }
                Ok(false) => {}
                Err(error) => left_out.push(LeftOut { what: map.name, why: error.to_string() }),
            }
        }
        Ok(SearchSpace { maps: usable, couplings, left_out })
    }

    /// All kinds of candidates: the index of a map with each of its couplings.
    pub fn kinds(&self) -> Vec<(usize, AnyCoupling)> {
        let of = |(i, map): (usize, &MapFamily)| {
            let couplings = match map.couplings {
                Couplings::Planned => self.couplings.clone(),
                Couplings::Stated(Some(coupling)) => vec![coupling],
                Couplings::Stated(None) | Couplings::None => vec![Independent.into()],
            };
            couplings.into_iter().map(move |coupling| (i, coupling))
        };
        self.maps.iter().enumerate().flat_map(of).collect()
    }

    /// The candidate with m frequencies.
    pub fn candidate(
        &self,
        planner: &Planner,
        calibration: Option<&Calibration>,
        (map, coupling): (usize, AnyCoupling),
        m: usize,
    ) -> Result<Candidate> {
        let recipe = self.maps[map].recipe(m, coupling)?;
        let cost = Cost::of(&recipe, planner.data.scalar, calibration);
        let biased = is_biased(&recipe, &planner.kernel);
        Ok(Candidate { map, coupling, m, recipe, cost, biased, trial: None })
    }

    /// The candidates of a kind within a budget: with the most frequencies, and with the most that make whole blocks, whose errors may be
    /// smaller; none if one frequency costs more.
    pub fn within(
        &self,
        planner: &Planner,
        calibration: Option<&Calibration>,
        kind: (usize, AnyCoupling),
        budget: (Measure, f64),
    ) -> Result<Vec<Candidate>> {
        let Some(largest) = self.largest(planner, calibration, kind, budget)? else { return Ok(Vec::new()) };
        let whole = largest.whole(largest.m);
        let smaller =
            (whole < largest.m).then(|| self.candidate(planner, calibration, kind, whole)).transpose()?;
        Ok([largest].into_iter().chain(smaller).collect())
    }

    /// The candidate with the most frequencies within a budget; `None` if one costs more.
    fn largest(
        &self,
        planner: &Planner,
        calibration: Option<&Calibration>,
        kind: (usize, AnyCoupling),
        (measure, most): (Measure, f64),
    ) -> Result<Option<Candidate>> {
        let within = |m: usize| -> Result<bool> {
            let recipe = self.maps[kind.0].recipe(m, kind.1)?;
            Ok(Cost::of(&recipe, planner.data.scalar, calibration).in_measure(measure) <= most)
        };
        if !within(1)? {
            return Ok(None);
        }
        let mut high = 2;
        while high < MOST && within(high)? {
            high *= 2;
        }
        let mut low = high / 2;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if within(middle)? { low = middle } else { high = middle }
        }
        self.candidate(planner, calibration, kind, low).map(Some)
    }
}

/// The name of a coupling.
pub(crate) fn coupling_name(coupling: &AnyCoupling) -> String {
    match coupling {
        AnyCoupling::Plain(plain) => plain.tag().into(),
        AnyCoupling::Antithetic(plain) => format!("±{}", plain.tag()),
        AnyCoupling::CoupledRadii(own) => format!("{} {}", own.radii.tag(), own.coupling.tag()),
    }
}
