//! [`Problem`]: a question with what answers to it are made of.

use super::candidates::{Candidate, SearchSpace, coupling_name};
use crate::error::{Error, Result};
use crate::frequency::AnyCoupling;
use crate::kernel::Kernel;
use crate::planner::costs::{Calibration, Measure};
use crate::planner::forecasts::{Pairs, TaskLoss};
use crate::planner::plan::LeftOut;
use crate::planner::proposals::{Couplings, FitInput, proposals, stated};
use crate::planner::question::{Goal, Planner};
use crate::progress;

/// A question with all that its answer is made of: the kernel, the search space, pairs of points and the loss of a task.
pub(crate) struct Problem<'a> {
    pub planner: &'a Planner,
    pub kernel: Box<dyn Kernel<f64>>,
    pub space: SearchSpace,
    pub pairs: Pairs,
    pub task_loss: Option<TaskLoss>,
    pub calibration: Option<Calibration>,
}

impl<'a> Problem<'a> {
    pub fn new(planner: &'a Planner, kernel: Box<dyn Kernel<f64>>) -> Result<Self> {
        let (data, lengthscale) = (&planner.data, planner.kernel.lengthscale());
        let statistics =
            [&data.sides[0], &data.sides[1]].map(|side| side.statistics.divided_by(lengthscale.clone()));
        let [x, y] = statistics;
        let (x, y) = (x?, y?);
        let points =
            [&data.sides[0], &data.sides[1]].map(|side| lengthscale.divide_rows(side.points.clone()));
        let attention = planner.loss.is_of_attention();
        let input = FitInput {
            kernel: &planner.kernel,
            statistics: [&x, &y],
            points: [&points[0], &points[1]],
            one_set: data.one_set,
            attention,
            features: match planner.goal {
                Goal::Budget { measure: Measure::Features, most } => most.min(65_536.0) as usize,
                Goal::Budget { measure: Measure::Bytes, most } => {
                    (most / data.scalar as f64).min(65_536.0) as usize
                }
                _ => 256,
            },
            seed: planner.seed,
        };
        let mut maps = proposals(input);
        if maps.usable.iter().any(|map| planner.stated.iter().any(|own| own.name == map.name)) {
            return Err(Error::Unsupported { what: "a plan with a recipe under a name of the plan's own" });
        }
        maps.usable.extend(planner.stated.iter().map(stated));
        let space = SearchSpace::new(planner, maps)?;
        // A map that was stopped is not one that could not be made.
        progress::check()?;
        if space.kinds().is_empty() {
            let what = "map: none of this crate serves this kernel under these constraints";
            return Err(Error::Unsupported { what });
        }
        let timed = planner.goal.measure() == Measure::Nanoseconds;
        let calibration = if timed { Some(planner.calibration()?) } else { planner.calibration };
        let pairs = Pairs::draw(data, kernel.as_ref(), planner.seed)?;
        let task_loss = TaskLoss::new(planner, kernel.as_ref())?;
        Ok(Problem { planner, kernel, space, pairs, task_loss, calibration })
    }

    /// The first seed of a stream of draws. Streams share no seed.
    pub fn seed_of(&self, stream: u64) -> u64 {
        self.planner.seed.wrapping_mul(1 << 20).wrapping_add(stream << 16)
    }

    pub fn leave_out(&mut self, (map, coupling): (usize, AnyCoupling), why: String) {
        let (name, coupling) = (&self.space.maps[map].name, coupling_name(&coupling));
        let of_map = format!("{name}: ");
        let known =
            self.space.left_out.iter_mut().find(|left| left.why == why && left.what.starts_with(&of_map));
        match known {
            Some(left) => left.what.push_str(&format!(", {coupling}")),
            None => self.space.left_out.push(LeftOut { what: of_map + &coupling, why }),
        }
    }

    /// The names of the map and of the coupling.
    pub fn names(&self, candidate: &Candidate) -> (String, String) {
        let map = &self.space.maps[candidate.map];
        let coupling = match map.couplings {
            Couplings::Planned | Couplings::Stated(Some(_)) => coupling_name(&candidate.coupling),
            Couplings::Stated(None) | Couplings::None => "–".into(),
        };
        (map.name.clone(), coupling)
    }
}
