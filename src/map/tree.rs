//! [`MapTree`]: the definition, the user-defined map or the combination that a map consists of.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use ndarray::ArrayRef1;

use super::compose::{Composite, Entry, Known, Part};
use super::{Map, PlainRecipe};
use crate::digest::{Digest, Identify, Identity};
use crate::engine::FeatureMap;
use crate::error::Result;
use crate::kernel::{Exponential, Kernel};
use crate::once::once;
use crate::{Real, SignedLog};

/// The content of a [`Map`].
pub(super) enum MapTree<T: Real> {
    /// A map of this crate.
    Plain(PlainRecipe),
    /// A user-defined map.
    Own(OwnMap<T>),
    /// A combination of other maps.
    Composite(Composite<Map<T>>),
}

/// A user-defined map, with an identity that only clones of its [`Map`] share.
pub(super) struct OwnMap<T> {
    map: Arc<dyn FeatureMap<T>>,
    identity: Identity,
}

impl<T: Real> OwnMap<T> {
    pub fn new(map: Arc<dyn FeatureMap<T>>) -> Self {
        OwnMap { map, identity: unique() }
    }

    /// The kernel that the map states.
    pub fn kernel(&self) -> Option<Arc<dyn Kernel<T>>> {
        self.map.kernel().is_some().then(|| Arc::new(KernelOf(self.map.clone())) as _)
    }
}

impl<T: Real> Map<T> {
    /// The map as plain data, if it is not made of others and not a user-defined one.
    pub(crate) fn plain_recipe(&self) -> Option<&PlainRecipe> {
        if let MapTree::Plain(plain) = self.tree() { Some(plain) } else { None }
    }
}

impl<T: Real> Part for Map<T> {
    type Scalar = T;

    #[inline(never)]
    fn of_plain(plain: PlainRecipe) -> Result<Self> {
        plain.check()?;
        let (known, plan) = (Known::of_kernel(plain.kernel()), plain.lower()?);
        Self::of_tree(MapTree::Plain(plain), known, plan)
    }

    #[inline(never)]
    fn of_composite(composite: Composite<Self>) -> Result<Self> {
        composite.check()?;
        let (known, plan) = (composite.known(), composite.lower()?);
        Self::of_tree(MapTree::Composite(composite), known, plan)
    }

    fn plain(&self) -> Option<&PlainRecipe> {
        self.plain_recipe()
    }

    fn composite(&self) -> Option<&Composite<Self>> {
        if let MapTree::Composite(composite) = self.tree() { Some(composite) } else { None }
    }

    #[inline(never)]
    fn entries(&self) -> Vec<Entry<'_>> {
        match self.tree() {
            MapTree::Plain(plain) => vec![Entry::Draw(&plain.omega)],
            MapTree::Own(own) => vec![Entry::Own(own.identity)],
            MapTree::Composite(composite) => {
                composite.children().into_iter().flat_map(Part::entries).collect()
            }
        }
    }

    fn dim(&self) -> usize {
        self.dim()
    }

    fn width(&self) -> usize {
        self.feature_dim()
    }

    fn known(&self) -> Arc<Known<T>> {
        self.shared_known()
    }

    #[inline(never)]
    fn ln_variance(&self, x: &ArrayRef1<T>, y: &ArrayRef1<T>) -> Option<f64> {
        match self.tree() {
            MapTree::Plain(plain) => plain.ln_variance(x, y),
            MapTree::Own(own) => own.map.log_variance(x, y),
            MapTree::Composite(composite) => composite.ln_variance(&self.known(), x, y),
        }
    }
}

impl<T: Real> Identify for Map<T> {
    fn identify(&self, digest: &mut Digest) {
        match self.tree() {
            MapTree::Plain(plain) => ("plain", plain).identify(digest),
            MapTree::Own(own) => ("own", own.identity).identify(digest),
            MapTree::Composite(composite) => ("composite", composite).identify(digest),
        }
    }
}

impl<T: Real> std::fmt::Display for Map<T> {
    #[inline(never)]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.tree() {
            MapTree::Plain(plain) => plain.fmt(f),
            MapTree::Own(own) => write!(f, "{:?}", own.map),
            MapTree::Composite(composite) => composite.fmt(f),
        }
    }
}

/// The kernel of a user-defined map that has one.
#[derive(Debug)]
struct KernelOf<T>(Arc<dyn FeatureMap<T>>);

impl<T: Real> Kernel<T> for KernelOf<T> {
    fn check_dim(&self, d: usize) -> Result<()> {
        self.0.kernel().map_or(Ok(()), |kernel| kernel.check_dim(d))
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        self.0.kernel().map_or(SignedLog::from(f64::NAN), |kernel| kernel.log_of_slices(x, y))
    }

    fn gradient_of_slices(&self, x: &[T], y: &[T], out: &mut [f64]) -> Option<f64> {
        self.0.kernel()?.gradient_of_slices(x, y, out)
    }

    fn exponential(&self) -> Option<Exponential> {
        self.0.kernel()?.exponential()
    }

    fn identity(&self) -> Option<Identity> {
        self.0.kernel()?.identity()
    }
}

/// An identity that no other call gives, in this process or (with the probability of random numbers) in another. A forked
/// process has its parent's random number and count, but another process id.
fn unique() -> Identity {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one("process"));
    let (process, count) = (u64::from(std::process::id()), COUNT.fetch_add(1, Ordering::Relaxed));
    Identity::of(&("own", [*PROCESS, process, count]))
}

once!(
    <Map<T> as Part>::of_plain,
    <Map<T> as Part>::of_composite,
    <Map<T> as Part>::entries,
    <Map<T> as Part>::ln_variance,
    <Map<T> as std::fmt::Display>::fmt,
);
