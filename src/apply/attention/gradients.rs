//! [`Gradients`] of attention: queries ask for sums over keys once more, and then keys for sums over queries.

use ndarray::{Array1, Array2, Array4, ArrayRef, ArrayView2, ArrayView4, ArrayViewMut2, Ix4, s};

use super::drive;
use super::element::Numbers;
use super::exact_keys::KeyChoice;
use super::heads::{Heads, Job, KeyRun, Member};
use super::pulls::{KEPT, Pulls, Role};
use super::scan::{Asker, Lag, Outlet, Scan};
use super::setup::Setup;
use super::{Attention, Element, check_shape, ways};
use crate::Real;
use crate::engine::{Side, has_gradients};
use crate::error::{Error, Result};
use crate::map::Map;
use crate::memory::check_memory;
use crate::once::once;
use crate::threads;

/// Gradients of a loss with respect to what attention reads.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Gradients<T> {
    /// \[batch, heads, queries, d\].
    pub queries: Array4<T>,
    /// \[batch, heads of keys, keys, d\]: where query heads share keys, the sum over these.
    pub keys: Array4<T>,
    /// \[batch, heads of keys, keys, d_v\], likewise.
    pub values: Array4<T>,
}

impl<T: Real> Attention<T> {
    /// Gradients of [bidirectional](Attention::bidirectional) attention: from those of a loss with respect to the output, of the output's
    /// shape \[batch, heads, queries, d_v\], to those with respect to queries, keys and values. Nothing of the forward pass is needed,
    /// features and sums are computed again.
    ///
    /// # Definition
    /// With weights pᵢⱼ = K̂(qᵢ, kⱼ)/Nᵢ, normalisers Nᵢ = Σⱼ K̂(qᵢ, kⱼ), outputs oᵢ = Σⱼ pᵢⱼ vⱼ and gradients gᵢ with respect to these:
    /// ∂/∂vⱼ is Σᵢ pᵢⱼ gᵢ, ∂/∂φ(qᵢ) is Σⱼ ψ(kⱼ) (gᵢ·vⱼ − gᵢ·oᵢ)/Nᵢ, and ∂/∂ψ(kⱼ) is Σᵢ φ(qᵢ) (gᵢ·vⱼ − gᵢ·oᵢ)/Nᵢ; features pass theirs on to
    /// points ([`Map::pull_back`]), points to tokens, through lengths too after [`cosine`](Attention::cosine). Not
    /// [normalised](Attention::normalised), Nᵢ is 1 and gᵢ·oᵢ is 0. They are the gradients of the estimate, not estimates of those of exact
    /// attention, to which they tend as features become many.
    ///
    /// A query without an output, be it that it sees no key or that its normaliser is not positive, has no part in any gradient; nor has a
    /// key that is masked. NaN in a token or in a gradient makes those gradients NaN in which it has a part.
    ///
    /// # Accuracy
    /// As of outputs, relative to the largest terms of a sum: gᵢ·vⱼ and gᵢ·oᵢ cancel where values have a large mean. Queries and keys for
    /// which products in `T` would lose something are computed from logarithms in `f64`. Where features are exponentials of projections,
    /// as those of [`Positive`](crate::Positive) and [`Hyperbolic`](crate::Hyperbolic) are, norms may be as large as in the forward pass; of other
    /// maps, features that underflow `T` beside the largest of their token are left out. Bit-identical on any number of threads.
    ///
    /// # Cost
    /// Three times the multiplications of the forward pass, O(L m (d + d_v)). Memory beyond inputs and gradients: for each head at work
    /// features and sums as in the forward pass, and d_v + 4 numbers for each query; with grouped queries once more the gradients of its
    /// keys and values.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if dimensions or heads are not those of the maps, or the output gradients are not of the output's shape.
    /// [`Unsupported`](Error::Unsupported) if a map has no gradients (see [`Map::pull_back`]), with [exact keys](Attention::with_keys_exact), with
    /// [neighbours](Attention::window) and with [ε](Attention::biased_epsilon), of which there is no backward pass yet.
    /// [`Memory`](Error::Memory) if there is none for the gradients.
    ///
    /// # Example
    /// ```
    /// use ndarray::Array4;
    /// use random_features::Positive;
    /// use random_features::apply::attention::{Attention, Heads};
    /// use random_features::frequency::{Coupling, Orthogonal};
    /// let token = |(_, _, i, k): (usize, usize, usize, usize)| ((3 * i + 5 * k) % 7) as f64 / 7.0;
    /// let (q, mut k) = (Array4::from_shape_fn((1, 1, 20, 4), token), Array4::from_shape_fn((1, 1, 30, 4), token));
    /// let v = Array4::from_shape_fn((1, 1, 30, 2), token);
    /// let attention = Attention::new(Positive.softmax::<f64>(Orthogonal.draw(4, 16, 5)?)?)?;
    /// // The loss is the sum of all outputs.
    /// let loss = |k: &Array4<f64>| -> Result<f64, random_features::Error> {
    ///     Ok(attention.bidirectional(&Heads::new(&q, k, &v)?)?.output.sum())
    /// };
    /// let gradients = attention.bidirectional_backward(&Heads::new(&q, &k, &v)?, &Array4::ones((1, 1, 20, 2)))?;
    /// let before = loss(&k)?;
    /// k[[0, 0, 7, 1]] += 1e-6;
    /// let slope = (loss(&k)? - before) / 1e-6;
    /// assert!((gradients.keys[[0, 0, 7, 1]] - slope).abs() < 1e-5);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # References
    /// The sums from either end: Katharopoulos et al., *Transformers are RNNs*, equations 13 to 15, there without normalisers.
    pub fn bidirectional_backward<E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<Gradients<T>> {
        self.check_backward(heads, output_gradients)?;
        self.backward(heads, output_gradients, false)
    }

    /// As [`bidirectional_backward`](Attention::bidirectional_backward), of [causal](Attention::causal) attention: the gradient of a query depends
    /// on no later token, and those of a key and its value, given the normalisers, on no earlier query, not even in their last bits.
    ///
    /// # Errors
    /// As [`bidirectional_backward`](Attention::bidirectional_backward); [`Shape`](Error::Shape) if a sequence has another number of keys than of
    /// queries.
    pub fn causal_backward<E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<Gradients<T>> {
        self.check_backward(heads, output_gradients)?;
        heads.check_causal()?;
        self.backward(heads, output_gradients, true)
    }

    fn check_backward<E>(&self, heads: &Heads<'_, E>, output_gradients: &ArrayRef<T, Ix4>) -> Result<()> {
        let what = [
            "the batch size of the output gradients",
            "the number of heads of the output gradients",
            "the length of the output gradients",
            "the dimension of the output gradients",
        ];
        self.check_inputs(heads)?;
        check_shape(what, output_gradients.shape(), heads.output_dim())?;
        self.check_differentiable()
    }

    /// Refuses what has no backward pass.
    #[inline(never)]
    fn check_differentiable(&self) -> Result<()> {
        let sides = [Side::X, Side::Y];
        let known = |map: &Map<T>| sides.iter().all(|side| has_gradients(map.program().plan(), *side));
        let refused = |what| Err(Error::Unsupported { what });
        if self.exact != KeyChoice::None {
            refused("gradients of attention with exact keys: use features alone where it is trained")
        } else if !self.window.is_none() {
            refused("gradients of attention with exact neighbours: use features alone where it is trained")
        } else if self.reading.epsilon > 0.0 {
            refused("gradients of attention with a biased ε: leave it out, since nothing here needs it")
        } else if !self.maps.iter().all(known) {
            refused("gradients of attention with a map without FeatureMap::pull_back: implement that")
        } else {
            Ok(())
        }
    }

    fn backward<E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
        causal: bool,
    ) -> Result<Gradients<T>> {
        let (queries, keys, values) = (heads.queries.dim(), heads.keys.dim(), heads.values.dim());
        let numbers = |(b, h, n, d): (usize, usize, usize, usize)| {
            [b, h, n, d].into_iter().fold(1, usize::saturating_mul)
        };
        let all = [queries, keys, values].map(numbers).into_iter().fold(0, usize::saturating_add);
        check_memory("gradients of attention", all, size_of::<T>())?;
        let mut gradients = Gradients {
            queries: Array4::zeros(queries),
            keys: Array4::zeros(keys),
            values: Array4::zeros(values),
        };
        self.run_backward(Backward::jobs(heads, output_gradients.view(), &mut gradients), causal);
        Ok(gradients)
    }

    /// Writes the gradients of jobs.
    #[inline(never)]
    fn run_backward(&self, jobs: Vec<Backward<'_, T>>, causal: bool) {
        let ways = ways(jobs.len());
        threads::for_each(jobs, |backward| {
            let head = backward.job.head;
            // The factors that outputs may do without have gradients like others.
            let program = self.maps[head % self.maps.len()].program();
            backward.run(Setup { program, causal, ..self.setup(head) }, ways);
        });
    }
}

/// The gradients of a job, whose outputs are those of queries.
struct Backward<'a, T> {
    job: Job<'a, T>,
    /// Gradients with respect to the outputs of each member.
    upstream: Vec<ArrayView2<'a, T>>,
    of_keys: ArrayViewMut2<'a, T>,
    of_values: ArrayViewMut2<'a, T>,
}

impl<'a, T: Real> Backward<'a, T> {
    /// Those of all heads, in order.
    fn jobs<E: Element<T>>(
        heads: &'a Heads<'_, E>,
        output_gradients: ArrayView4<'a, T>,
        Gradients { queries, keys, values }: &'a mut Gradients<T>,
    ) -> Vec<Self> {
        let [of_keys, of_values] = [keys, values].map(|all| heads.parts_of_keys(all.view_mut()));
        let upstream = |member: &Member<'a, T>| {
            let ([b, h, first], count) = (member.place, member.queries.nrows());
            output_gradients.slice_move(s![b, h, first..first + count, ..])
        };
        let backward = |(job, (of_keys, of_values)): (Job<'a, T>, (ArrayViewMut2<'a, T>, _))| {
            let upstream = job.members.iter().map(upstream).collect();
            Backward { job, upstream, of_keys, of_values }
        };
        let jobs = heads.jobs(queries.view_mut()).into_iter();
        jobs.zip(of_keys.into_iter().zip(of_values)).map(backward).collect()
    }

    fn run(mut self, setup: Setup<'_, T>, ways: usize) {
        let kept = self.pull_queries(setup, ways);
        let Backward { job, upstream, mut of_keys, mut of_values } = self;
        let setup = Setup { swapped: true, ..setup };
        for (h, (member, (upstream, kept))) in job.members.iter().zip(upstream.iter().zip(&kept)).enumerate()
        {
            let summed = Summed::new(member.queries.reborrow(), upstream.view(), kept);
            if h == 0 {
                let own = [of_keys.view_mut(), of_values.view_mut()];
                pull_keys(setup, job.keys.reborrow(), summed.run(), own, ways);
                continue;
            }
            let mut own = [of_keys.view(), of_values.view()].map(|all| Array2::zeros(all.dim()));
            let views = own.each_mut().map(|own| own.view_mut());
            pull_keys(setup, job.keys.reborrow(), summed.run(), views, ways);
            of_keys += &own[0];
            of_values += &own[1];
        }
    }

    /// Writes the gradients of queries; what keys need of each, for each member.
    fn pull_queries(&mut self, setup: Setup<'_, T>, ways: usize) -> Vec<Array2<f64>> {
        let rows = |member: &Member<'_, T>| Array2::zeros((member.queries.nrows(), KEPT));
        let mut kept: Vec<Array2<f64>> = self.job.members.iter().map(rows).collect();
        let members = self.job.members.iter_mut().zip(&self.upstream).zip(&mut kept);
        let askers = members.map(|((Member { queries, out, place }, upstream), kept)| {
            let role = Role::Queries { upstream: upstream.view(), kept: kept.view_mut() };
            let pulls = Pulls { tokens: queries.reborrow(), gradients: out.view_mut(), role };
            Asker { queries: queries.reborrow(), out: Outlet::Pulls(pulls), origin: *place, place: 0 }
        });
        let scan = Scan { keys: self.job.keys.reborrow(), askers: askers.collect(), lag: Lag::NONE };
        drive::see(setup, scan, ways);
        kept
    }
}

/// Queries that keys sum up: with the features φ/N and the values \[g, −g·o\].
struct Summed<'a, T> {
    queries: Numbers<'a, T>,
    values: Array2<T>,
    /// Those that have an output.
    mask: Array1<bool>,
    kept: &'a Array2<f64>,
}

impl<'a, T: Real> Summed<'a, T> {
    fn new(queries: Numbers<'a, T>, upstream: ArrayView2<'_, T>, kept: &'a Array2<f64>) -> Self {
        let targets = upstream.ncols();
        let mut values = Array2::zeros((upstream.nrows(), targets + 1));
        values.slice_mut(s![.., ..targets]).assign(&upstream);
        let products = values.column_mut(targets).into_iter().zip(kept.column(1));
        products.for_each(|(own, product)| *own = T::narrow(-product));
        Summed { queries, values, mask: kept.column(2).mapv(|has| has != 0.0), kept }
    }

    fn run(&self) -> KeyRun<'_, T> {
        let (mask, shifts) = (Some(self.mask.view()), Some(self.kept.column(0)));
        KeyRun { keys: self.queries.reborrow(), values: Numbers::Own(self.values.view()), mask, shifts }
    }
}

/// Writes the gradients of keys and of values, which ask for the sums over queries; causally from the last to the first, since a key is
/// seen by the queries from its own place on.
fn pull_keys<'a, T: Real>(
    setup: Setup<'_, T>,
    keys: KeyRun<'a, T>,
    queries: KeyRun<'a, T>,
    [gradients, of_values]: [ArrayViewMut2<'a, T>; 2],
    ways: usize,
) {
    let (keys, queries, gradients, of_values) = if setup.causal {
        let [gradients, of_values] = [gradients, of_values].map(|all| all.slice_move(s![..;-1, ..]));
        (keys.reversed(), queries.reversed(), gradients, of_values)
    } else {
        (keys, queries, gradients, of_values)
    };
    let role = Role::Keys { values: keys.values, mask: keys.mask, of_values };
    let pulls = Pulls { tokens: keys.keys, gradients, role };
    let asker = Asker { queries: keys.keys, out: Outlet::Pulls(pulls), origin: [0; 3], place: 0 };
    drive::see(setup, Scan { keys: queries, askers: vec![asker], lag: Lag::NONE }, ways);
}

once!(Attention::<T>::run_backward, Attention::<T>::check_differentiable);
