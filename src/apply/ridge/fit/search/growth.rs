//! [`Growth`]: which lengthscales of an unbounded grid are tried, one after the other.

/// The places that are tried first, and the first and last ones that may be.
const FIRST: [i32; 2] = [-4, 4];
const LIMITS: [i32; 2] = [-24, 20];
/// The most places that are tried beyond the first.
const BUDGET: usize = 16;

/// The search for the place k of least error among whole numbers. [`next`](Growth::next) returns the places to try, and
/// [`tell`](Growth::tell) takes the error of each. Errors are of any ordered type; of equal ones, the first that was told is the
/// best.
///
/// 1. The first places are tried.
/// 2. While the best place is the outermost on the lower side, one below it is tried, twice as far each time; then on the upper side.
/// 3. Gaps beside the best place are halved.
#[derive(Clone, Debug)]
pub struct Growth<E> {
    limits: [i32; 2],
    budget: usize,
    /// All places with their errors, in the order in which they were told.
    tried: Vec<(i32, E)>,
    /// The index of the best place in `tried`; `None` if an error outside of the grid was less.
    best: Option<usize>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The first places, from one to another.
    First([i32; 2]),
    /// An end, and how far beyond it the next place is.
    End(End, i32),
    Between,
}

/// An end of the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end of the least place.
    Lower,
    /// The end of the largest place.
    Upper,
}

impl<E: PartialOrd> Default for Growth<E> {
    fn default() -> Self {
        Growth::new(FIRST, LIMITS, BUDGET)
    }
}

impl<E: PartialOrd> Growth<E> {
    /// A search that begins with the places from `first[0]` to `first[1]`, stays within limits, and tries `budget` more places.
    pub fn new(first: [i32; 2], limits: [i32; 2], budget: usize) -> Self {
        Growth { limits, budget, tried: Vec::new(), best: None, stage: Stage::First(first) }
    }

    /// The places to try next, in any order; none at the end.
    #[allow(clippy::should_implement_trait, reason = "it must be told errors between two calls")]
    pub fn next(&mut self) -> Vec<i32> {
        let next = match self.stage {
            Stage::First([from, to]) => {
                self.stage = Stage::End(End::Lower, 1);
                return (from..=to).collect();
            }
            Stage::End(end, step) => match (self.at_end(end), end) {
                (Some(best), _) if best != self.limit(end) => {
                    self.stage = Stage::End(end, step.saturating_mul(2));
                    vec![self.beyond(best, end, step)]
                }
                (_, End::Lower) => {
                    self.stage = Stage::End(End::Upper, 1);
                    return self.next();
                }
                (_, End::Upper) => {
                    self.stage = Stage::Between;
                    return self.next();
                }
            },
            Stage::Between => self.halves(),
        };
        let next: Vec<i32> = next.into_iter().take(self.budget).collect();
        self.budget -= next.len();
        next
    }

    /// Takes the error of a place.
    pub fn tell(&mut self, k: i32, error: E) {
        let better = match self.best {
            Some(best) => error < self.tried[best].1,
            None => self.tried.is_empty(),
        };
        if better {
            self.best = Some(self.tried.len());
        }
        self.tried.push((k, error));
    }

    /// Takes an error outside of the grid; if it is the least, the search ends.
    pub fn tell_other(&mut self, error: &E) {
        if self.best.is_some_and(|best| *error < self.tried[best].1) {
            self.best = None;
        }
    }

    /// The places that were tried, in order.
    pub fn tried(&self) -> impl Iterator<Item = i32> {
        self.tried.iter().map(|(k, _)| *k)
    }

    /// The best place.
    pub fn best(&self) -> Option<i32> {
        self.best.map(|best| self.tried[best].0)
    }

    /// The end at which the best place lies, and whether that is at the limit.
    pub fn edge(&self) -> Option<(End, bool)> {
        let found = [End::Lower, End::Upper].into_iter().find_map(|end| Some((end, self.at_end(end)?)))?;
        Some((found.0, found.1 == self.limit(found.0)))
    }

    /// The best place if it is the outermost at this end.
    fn at_end(&self, end: End) -> Option<i32> {
        let best = self.best()?;
        let outermost = match end {
            End::Lower => self.tried().min(),
            End::Upper => self.tried().max(),
        };
        (outermost == Some(best)).then_some(best)
    }

    fn limit(&self, end: End) -> i32 {
        match end {
            End::Lower => self.limits[0],
            End::Upper => self.limits[1],
        }
    }

    fn beyond(&self, best: i32, end: End, step: i32) -> i32 {
        match end {
            End::Lower => best.saturating_sub(step).max(self.limits[0]),
            End::Upper => best.saturating_add(step).min(self.limits[1]),
        }
    }

    /// The middles of the gaps beside the best place, each nearer to it where there are two.
    fn halves(&self) -> Vec<i32> {
        let Some(best) = self.best() else { return Vec::new() };
        let below = self.tried().filter(|k| *k < best).max();
        let above = self.tried().filter(|k| *k > best).min();
        let below = below.filter(|k| best - k > 1).map(|k| (k + best).div_euclid(2));
        let above = above.filter(|k| k - best > 1).map(|k| -(-k - best).div_euclid(2));
        below.into_iter().chain(above).collect()
    }
}
