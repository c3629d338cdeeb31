//! Schedules of redraws.

use random_features::frequency::Orthogonal;
use random_features::kernel::Softmax;
use random_features::map::Redraw;
use random_features::recipe::Draw;
use random_features::{Error, Positive};

/// The frequencies of a step depend on the seed and the step alone.
#[test]
fn redraws_follow_their_schedule() {
    let recipe = Positive.recipe(Draw::new(6, 20, Orthogonal), Softmax::default());
    let redraw = Redraw::new(recipe.clone(), 7, 100).unwrap();
    let identity = |redraw: &Redraw, step| redraw.build::<f32>(step).unwrap().identity();
    assert_eq!(identity(&redraw, 99), recipe.draw::<f32>(7).unwrap().identity());
    let mut known: Vec<_> = (0..50).map(|number| identity(&redraw, 100 * number + 3)).collect();
    known.push(identity(&Redraw::new(recipe.clone(), 8, 100).unwrap(), 250));
    known.push(identity(&redraw, u64::MAX));
    for (i, own) in known.iter().enumerate() {
        assert!(known[..i].iter().all(|other| other != own), "redraw {i}");
    }
    assert_eq!(identity(&redraw, 4950), known[49]);
    assert!(matches!(Redraw::new(recipe, 7, 0), Err(Error::Parameter { .. })));
}
