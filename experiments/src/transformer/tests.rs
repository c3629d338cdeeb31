//! Gradients against differences, checkpoints, and states against whole texts.

use random_features::Positive;
use random_features::apply::attention::Attention;
use random_features::frequency::Orthogonal;

use super::mechanism::Mechanism;
use super::model::Model;
use super::shape::{Shape, Size};
use super::task::Task;
use super::text::{Text, Window};
use super::train::{Plan, Run};
use super::{checkpoint, generate};

const SIZE: Size = Size { characters: 63, context: 256, width: 8, heads: 2, layers: 2 };

fn plan(method: &str) -> Plan {
    let task = Task::Text;
    Plan { task, method: method.into(), size: SIZE, seed: 3, steps: 12, batch: 2, rate: 1e-3 }
}

#[test]
fn gradients_are_those_of_differences() {
    let shape = Shape::new(Size { characters: 5, context: 12, ..SIZE });
    let map = Positive.softmax::<f64>(Orthogonal.draw(4, 8, 5).unwrap()).unwrap();
    let attention = Box::new(Attention::new(map).unwrap());
    let (linear, wide) = (Mechanism::Linear(attention.clone()), Mechanism::Wide(attention));
    let window = |start: usize| {
        let tokens = (start..start + 13).map(|i| (i * i % 5) as u8).collect();
        Window { tokens, counted: 2..12 }
    };
    let windows = [window(0), window(2)];
    for mechanism in [linear, wide, Mechanism::Exact, Mechanism::Blocks(5), Mechanism::Values] {
        let attention = [mechanism.clone(), mechanism];
        let mut parameters: Vec<f64> = shape.draw(7);
        let model = |parameters: &[f64]| {
            let model = Model { shape: &shape, parameters, attention: &attention };
            model.gradient(&windows, 20).unwrap()
        };
        let gradient = model(&parameters).1;
        let largest = gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
        for place in (0..shape.count).step_by(7) {
            let own = parameters[place];
            let mut loss = |step: f64| {
                parameters[place] = own + step;
                model(&parameters).0.loss / 20.0
            };
            let slope = (loss(1e-5) - loss(-1e-5)) / 2e-5;
            parameters[place] = own;
            assert!((slope - gradient[place]).abs() < 1e-7 * largest, "{place}: {slope} {}", gradient[place]);
        }
    }
}

#[test]
fn runs_resume_to_the_same_bits() {
    let text = Text::bundled().unwrap();
    let directory = std::env::temp_dir().join(format!("charlm-{}", std::process::id()));
    for method in ["exact", "favor-orthogonal/redrawn", "shaped", "clusters", "shaped/near/wide"] {
        let path = checkpoint::path(&directory, &plan(method));
        let mut whole = Run::new(plan(method), &text).unwrap();
        while !whole.is_done() {
            whole.step().unwrap();
            if whole.state.step == 7 {
                checkpoint::write(&path, &whole.state).unwrap();
            }
        }
        let state = checkpoint::read(&path).unwrap().unwrap();
        let mut resumed = Run::resume(state, &text).unwrap();
        while !resumed.is_done() {
            resumed.step().unwrap();
        }
        assert_eq!(whole.state, resumed.state);
        assert_eq!(whole.judge(4).unwrap().loss, resumed.judge(4).unwrap().loss);
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A checkpoint that has changed anywhere, or is cut off, is none.
#[test]
fn changed_checkpoints_are_refused() {
    let directory = std::env::temp_dir().join(format!("charlm-changed-{}", std::process::id()));
    let path = directory.join("numbers.run");
    checkpoint::write(&path, &vec![1.5f32, -2.0]).unwrap();
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(checkpoint::read::<Vec<f32>>(&path).unwrap(), Some(vec![1.5, -2.0]));
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        std::fs::write(&path, changed).unwrap();
        assert!(checkpoint::read::<Vec<f32>>(&path).is_err(), "byte {place}");
        std::fs::write(&path, &whole[..place]).unwrap();
        assert!(checkpoint::read::<Vec<f32>>(&path).is_err(), "{place} bytes");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn threads_do_not_matter() {
    let text = Text::bundled().unwrap();
    let state = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut run = Run::new(plan("favor-orthogonal"), &text).unwrap();
            run.step().unwrap();
            run.step().unwrap();
            run.state
        })
    };
    assert_eq!(state(1), state(3));
}

#[test]
fn states_foretell_what_whole_texts_foretell() {
    let text = Text::bundled().unwrap();
    let run = Run::new(plan("favor-orthogonal"), &text).unwrap();
    let beginning = &text.held_out[..40];
    let [whole, stepped] = generate::both_logits(&run.model(), beginning).unwrap();
    for (a, b) in whole.iter().zip(&stepped) {
        assert!((a - b).abs() < 1e-5 * (1.0 + a.abs()), "{a} {b}");
    }
    // Longer than there are places.
    let written = generate::generate(&run.model(), beginning, 300, 1).unwrap();
    assert_eq!(written.len(), 300);
}

#[test]
fn a_key_is_seen_before_it_counts() {
    let text = Text::bundled().unwrap();
    for window in Task::Copy.batch(&text, 20, 256, [1, 2]) {
        for place in window.counted.clone() {
            assert_eq!(window.target(place), usize::from(window.tokens[place + 1 - super::task::DISTANCE]));
        }
    }
}

/// The value of the list or digit that tokens start with, which are left without it.
fn value(tokens: &mut &[u8]) -> u8 {
    let first = tokens[0];
    *tokens = &tokens[1..];
    if first < 10 {
        return first;
    }
    let mut values = Vec::new();
    while tokens[0] != 14 {
        values.push(value(tokens));
    }
    *tokens = &tokens[1..];
    values.sort_unstable();
    match first {
        10 => values[values.len() - 1],
        11 => values[0],
        12 => values[values.len() / 2],
        _ => values.iter().fold(0, |sum, value| (sum + value) % 10),
    }
}

#[test]
fn values_of_lists_count() {
    let text = Text::bundled().unwrap();
    for window in Task::Lists.batch(&text, 200, 64, [1, 2]) {
        let start = window.tokens.iter().position(|token| *token != 15).unwrap();
        let mut expression = &window.tokens[start..64];
        assert_eq!(usize::from(value(&mut expression)), window.target(63));
        assert!(expression.is_empty() && window.counted == (63..64));
    }
}
