//! [`SketchKinds`]: the sketches that a program can read.

use std::cell::RefCell;
use std::sync::Arc;

use super::erased::AnySketch;
use super::{Sketch, SketchNumbers};
use crate::error::Result;
use crate::map::ImportanceMixture;
use crate::map::nystroem::NystroemSketch;

/// How a sketch is made of its numbers.
pub(super) type SketchReader = fn(&SketchNumbers) -> Result<Arc<dyn AnySketch>>;

/// The kinds of [`Sketch`] that stored data may hold, by their names.
///
/// A stored sketch is a name and numbers. What was stored with sketches of your own, such as recipes, maps and models, is read while
/// their kinds are known:
///
/// ```
/// # use random_features::extend::{Facts, FeatureMap, Form, Sketch, SketchNumbers, Tile};
/// # use random_features::map::{AnyKernel, Side};
/// # #[derive(Debug)] struct One;
/// # impl Sketch for One {
/// #     const NAME: &'static str = "one";
/// #     type Drawn = One;
/// #     fn dim(&self) -> usize { 1 }
/// #     fn feature_dim(&self) -> usize { 1 }
/// #     fn numbers(&self) -> SketchNumbers { SketchNumbers::default() }
/// #     fn of_numbers(_: &SketchNumbers) -> random_features::Result<Self> { Ok(One) }
/// #     fn serves(&self, _: &AnyKernel) -> bool { true }
/// #     fn draw(&self, _: &AnyKernel, _: &mut random_features::extend::Generator) -> random_features::Result<One> { Ok(One) }
/// # }
/// # impl<T: random_features::Real> FeatureMap<T> for One {
/// #     fn facts(&self) -> Facts { Facts::new(1, vec![1]) }
/// #     fn fill(&self, _: Side, x: random_features::ndarray::ArrayView2<'_, T>, _: Form, tile: &mut Tile<'_, T>) {
/// #         for i in 0..x.nrows() { tile.row(i).values.fill(T::one()); tile.row(i).log_scales.fill(0.0); }
/// #     }
/// # }
/// use random_features::Recipe;
/// use random_features::extend::SketchKinds;
/// use random_features::map::Sketched;
/// // `One` is a sketch without parameters, whose only feature is 1.
/// let recipe = Sketched.recipe(One, AnyKernel::implied(1.0));
/// let text = serde_json::to_string(&recipe).unwrap();
/// assert!(serde_json::from_str::<Recipe>(&text).is_err());
/// let kinds = SketchKinds::new().with::<One>();
/// let again = kinds.reading(|| serde_json::from_str::<Recipe>(&text)).unwrap();
/// assert_eq!(again, recipe);
/// ```
#[derive(Clone, Debug)]
pub struct SketchKinds(Vec<(&'static str, SketchReader)>);

thread_local! {
    /// The kinds of the calls of `reading` on this thread, the innermost last.
    static KNOWN: RefCell<Vec<SketchKinds>> = const { RefCell::new(Vec::new()) };
}

impl SketchKinds {
    /// The kinds of this crate, which are known everywhere: those of [`Nystroem`](crate::map::Nystroem) and
    /// [`ImportanceMixture`].
    pub fn new() -> Self {
        SketchKinds(Vec::new()).with::<NystroemSketch>().with::<ImportanceMixture>()
    }

    /// Adds a kind; the last one of a name counts.
    #[must_use]
    pub fn with<S: Sketch>(mut self) -> Self {
        self.0.push((S::NAME, |numbers| Ok(Arc::new(S::of_numbers(numbers)?))));
        self
    }

    /// Runs `read`, and knows these kinds meanwhile, on the thread that calls it. Kinds of a call around it are known, too.
    pub fn reading<A>(&self, read: impl FnOnce() -> A) -> A {
        /// Forgets the kinds, after a panic too.
        struct Scope;

        impl Drop for Scope {
            fn drop(&mut self) {
                KNOWN.with_borrow_mut(Vec::pop);
            }
        }

        KNOWN.with_borrow_mut(|known| known.push(self.clone()));
        let _scope = Scope;
        read()
    }

    /// How the last kind of this name is read.
    fn reader(&self, name: &str) -> Option<SketchReader> {
        self.0.iter().rev().find(|(known, _)| *known == name).map(|(_, reader)| *reader)
    }
}

impl Default for SketchKinds {
    fn default() -> Self {
        SketchKinds::new()
    }
}

/// How a sketch of this name is read; `None` if its kind is not known on this thread.
pub(super) fn reader(name: &str) -> Option<SketchReader> {
    let scoped = KNOWN.with_borrow(|known| known.iter().rev().find_map(|kinds| kinds.reader(name)));
    scoped.or_else(|| SketchKinds::new().reader(name))
}
