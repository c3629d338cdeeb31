//! [`Work`]: the operations behind the features of a point.

use crate::Recipe;
use crate::engine::{givens_cost, hadamard_cost};
use crate::frequency::{Coupling, Draw, RotationLaw};
use crate::map::compose::{Clustered, Composite, Conditioned, UnbiasedNystroem};
use crate::map::{Lift, Omega, PlainRecipe};

/// What takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A multiplication in a product with a matrix.
    Dense,
    /// A multiplication in a Hadamard transform.
    Hadamard,
    /// A multiplication in a rotation of a plane.
    Givens,
    /// A feature that is an exponential, or another function of a real number.
    Exponential,
    /// A cosine or a sine.
    Sinusoid,
    /// A cosine or a sine, times an exponential.
    ComplexExponential,
    /// A product of powers, of counts.
    Power,
    /// A product of features.
    Product,
    /// A coordinate of a point that is transformed by a complex matrix.
    Complex,
    /// A plain map, once for each point whatever its features.
    Part,
    /// A plain map whose points were gathered from a cluster.
    Gathered,
}

/// The number of operations, the last of which is a plain map of gathered points.
pub(crate) const OPERATIONS: usize = Operation::Gathered as usize + 1;

/// The number of operations of each kind, on average over both sides.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work([f64; OPERATIONS]);

impl Work {
    pub fn of(recipe: &Recipe) -> Self {
        match recipe {
            Recipe::Plain(plain) => Work::of_plain(plain),
            Recipe::Composite(composite) => match &**composite {
                Composite::WeightedSum(_) => Work::of_parts(&composite.children()),
                Composite::Hybrid(_) => {
                    Work::of_parts(&composite.children()).and(Operation::Product, recipe.feature_dim() as f64)
                }
                Composite::Conditioned(conditioned) => Work::of_conditioned(conditioned),
                Composite::Clustered(clustered) => Work::of_clustered(clustered),
                Composite::UnbiasedNystroem(UnbiasedNystroem { nystroem, features }) => {
                    // The features that those of Nyström explain are a product with a matrix.
                    let product = nystroem.feature_dim() as f64 * features.feature_dim() as f64;
                    Work::of(nystroem).plus(Work::of(features)).and(Operation::Dense, product)
                }
            },
        }
    }

    /// The work of D Nyström features: the kernel at M landmarks in ℝᵈ, and a product with a D × M matrix.
    pub fn of_nystroem(d: usize, landmarks: usize, features: usize) -> Self {
        let (d, landmarks, features) = (d as f64, landmarks as f64, features as f64);
        Work::default()
            .and(Operation::Part, 1.0)
            .and(Operation::Exponential, landmarks)
            .and(Operation::Dense, landmarks * (d + features))
    }

    pub fn count(&self, operation: Operation) -> f64 {
        self.0[operation as usize]
    }

    /// Σ weight · count over the kinds of operation.
    pub fn weighed(&self, weights: [f64; OPERATIONS]) -> f64 {
        self.0.iter().zip(weights).map(|(count, weight)| count * weight).sum()
    }

    /// All operations but the maps themselves: multiplications, and one for each value that is lifted or multiplied.
    pub fn multiplications(&self) -> f64 {
        let maps = self.count(Operation::Part) + self.count(Operation::Gathered);
        self.weighed([1.0; OPERATIONS]) - maps
    }

    fn and(mut self, operation: Operation, count: f64) -> Self {
        self.0[operation as usize] += count;
        self
    }

    fn without(mut self, operation: Operation) -> Self {
        self.0[operation as usize] = 0.0;
        self
    }

    fn plus(mut self, other: Work) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
        self
    }

    fn times(mut self, factor: f64) -> Self {
        self.0.iter_mut().for_each(|count| *count *= factor);
        self
    }

    /// Work of several parts, where parts with equal frequencies share one projection.
    fn of_parts(parts: &[&Recipe]) -> Self {
        let mut sum = Work::default();
        for (i, part) in parts.iter().enumerate() {
            let known = |other: &&Recipe| match (other, part) {
                (Recipe::Plain(a), Recipe::Plain(b)) => a.omega.same(&b.omega) && a.kernel == b.kernel,
                _ => false,
            };
            let projections = [Operation::Dense, Operation::Hadamard, Operation::Givens];
            let work = match parts[..i].iter().any(known) {
                true => projections.into_iter().fold(Work::of(part), Work::without),
                false => Work::of(part),
            };
            sum = sum.plus(work);
        }
        sum
    }

    fn of_plain(plain: &PlainRecipe) -> Self {
        if let Omega::Sketch(draw) = &plain.omega
            && let Some(landmarks) = draw.landmark_count()
        {
            return Work::of_nystroem(draw.dim(), landmarks, draw.feature_dim());
        }
        let (d, m) = (plain.omega.dim() as f64, plain.omega.m() as f64);
        let lifted = match (&plain.omega, plain.mechanism.lift()) {
            (Omega::Counts(_) | Omega::DrawCounts(_), _) => Operation::Power,
            (_, Some(Lift::Polar)) => Operation::Sinusoid,
            (_, Some(Lift::ExpPolar { .. })) => Operation::ComplexExponential,
            _ => Operation::Exponential,
        };
        let own = Work::default()
            .and(Operation::Part, 1.0)
            .and(lifted, Recipe::Plain(plain.clone()).feature_dim() as f64);
        let fast = match &plain.omega {
            Omega::Draw(draw) => fast_product(draw),
            _ => None,
        };
        let projections = plain.mechanism.projections() as f64;
        let own = if projections > 1.0 { own.and(Operation::Complex, d) } else { own };
        match fast {
            Some((operation, count)) => own.and(operation, projections * count),
            None => own.and(Operation::Dense, projections * m * d),
        }
    }

    fn of_conditioned(conditioned: &Conditioned<Recipe>) -> Self {
        let (base, d) = (Work::of(&conditioned.base), conditioned.conditioning.dim() as f64);
        let r = conditioned.conditioning.rank() as f64;
        let fast = base.count(Operation::Hadamard) + base.count(Operation::Givens) > 0.0;
        // A whole transformation is multiplied into dense frequencies and leaves a norm to compute.
        base.and(Operation::Dense, if r < d || fast { r * d } else { 0.5 * d * (d + 1.0) })
    }

    fn of_clustered(clustered: &Clustered<Recipe>) -> Self {
        let (queries, keys) = (clustered.queries.len() as f64, clustered.keys.len() as f64);
        let all = clustered.bases.iter().map(Work::of).fold(Work::default(), Work::plus);
        // A point of one side needs a row or a column of the bases, and the nearest of its side's centres.
        let mean = 0.5 * (queries + keys);
        let own = all.times(mean / (queries * keys));
        let parts = own.count(Operation::Part);
        own.without(Operation::Part)
            .and(Operation::Gathered, parts)
            .and(Operation::Dense, mean * clustered.queries.dim() as f64)
    }
}

/// The multiplications of a fast product with the frequencies of a draw; `None` where the engine multiplies by a matrix.
fn fast_product(draw: &Draw) -> Option<(Operation, f64)> {
    let n = draw.padded_dim();
    let (operation, of_block, cost) = match draw.coupling.fast_rotation()? {
        RotationLaw::Haar => return None,
        RotationLaw::Hadamard(own) => {
            let steps = n.ilog2() as usize + 1;
            (Operation::Hadamard, own.rounds * n * steps, hadamard_cost(own.rounds, n))
        }
        RotationLaw::Givens(own) => {
            let planes = own.rounds_in(n) * (n / 2);
            (Operation::Givens, 4 * planes, givens_cost(planes, n))
        }
    };
    let blocks = draw.m.div_ceil(draw.coupling.capacity(draw.d).max(1)) as f64;
    let faster = blocks * cost < draw.m as f64 * draw.d as f64;
    faster.then_some((operation, blocks * of_block as f64 + draw.m as f64))
}
