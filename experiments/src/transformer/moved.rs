//! Weights of exact attention that are moved to linear attention: what is lost at once (*Performers*, Figure 14: the error
//! after each layer), and what some more training brings back (Figure 5).

use ndarray::Array2;

use super::text::Text;
use super::train::{Plan, Run};

/// The share of the steps that follows.
const MORE: usize = 4;
/// Windows in which layers are compared.
const COMPARED: usize = 8;

/// A model whose weights are those of exact attention.
pub struct Moved<'a> {
    pub run: Run<'a>,
    /// ‖x − exact x‖/‖exact x‖ of the residual stream behind each layer.
    pub errors: Vec<f64>,
}

impl<'a> Moved<'a> {
    /// The weights of a run under another method, with a plan to train on.
    pub fn new(exact: &Run<'_>, method: &str, text: &'a Text) -> Result<Self, String> {
        let plan = &exact.state.plan;
        let steps = (plan.steps / MORE).max(1);
        let plan = Plan { method: method.into(), steps, rate: plan.rate / 4.0, ..plan.clone() };
        let run = Run::from_parameters(plan, exact.state.parameters.clone(), text)?;
        let errors = errors(&run, exact, text)?;
        Ok(Moved { run, errors })
    }
}

fn errors(run: &Run<'_>, exact: &Run<'_>, text: &Text) -> Result<Vec<f64>, String> {
    let Plan { task, size, .. } = exact.state.plan;
    let windows: Vec<_> = task.examination(text, size.context).into_iter().take(COMPARED).collect();
    let streams = |run: &Run<'_>| run.model().streams(&windows).map_err(|error| error.to_string());
    let error = |(own, exact): (Array2<f32>, Array2<f32>)| {
        let square = |x: Array2<f32>| x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        (square(own - &exact) / square(exact)).sqrt()
    };
    Ok(streams(run)?.into_iter().zip(streams(exact)?).map(error).collect())
}
