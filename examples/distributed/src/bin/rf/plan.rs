//! `rf plan`.

use random_features::planner::Planner;
use random_features_distributed::map::MapSpec;

use crate::arguments::Plan;
use crate::asked::Asked;
use crate::choice::{Roles, Sampled};
use crate::say::say;

/// The size of a number of sums of `f32` and of `f64` features, in bytes.
const BYTES: [usize; 2] = [9, 13];

pub async fn run(plan: Plan) -> Result<(), String> {
    let asked = Asked::open(&plan.input, plan.source.clone()).await?;
    if let Some(out) = &plan.out {
        asked.output(out, None)?;
    }
    let target = plan.target.as_deref();
    let columns = asked.columns(&Vec::from_iter(target))?;
    let roles = Roles { target, ..Roles::default() };
    if plan.source.explain {
        return asked.explain(&Sampled::task(&asked, &columns, &roles), None).await;
    }
    let sampled = Sampled::of(&asked, &columns, &roles).await?;
    let map = sampled.choose(&columns, &plan.choice, &roles)?;
    if let Some(out) = &plan.out {
        let json = map.to_json().map_err(|error| error.to_string())?;
        asked.output(out, None)?.write(&json)?;
    }
    describe(&asked, &columns, &sampled)?;
    forecast(&sampled, &map, &plan)
}

/// What is in the files.
fn describe(asked: &Asked, columns: &[String], sampled: &Sampled) -> Result<(), String> {
    let files = asked.table.files();
    say(&format!("{} rows in {} files", files.rows(), files.files.len()))?;
    let statistics = sampled.reservoir.statistics();
    let read = |values: random_features::Result<Vec<f64>>| values.map_err(|error| error.to_string());
    let (mean, variance) = (read(statistics.mean())?, read(statistics.variance())?);
    let (min, max) = (read(statistics.min())?, read(statistics.max())?);
    let heads = ["mean", "deviation", "least", "largest"].map(|head| format!(" {head:>12}"));
    say(&format!("{:>16}{}", "column", heads.concat()))?;
    let coordinate =
        |k: usize| if columns.len() == 1 { format!("{}[{k}]", columns[0]) } else { columns[k].clone() };
    for k in 0..sampled.dim {
        let (name, deviation) = (coordinate(k), variance[k].sqrt());
        let numbers = [mean[k], deviation, min[k], max[k]].map(|number| format!(" {number:>12.4e}"));
        say(&format!("{name:>16}{}", numbers.concat()))?;
    }
    Ok(())
}

/// The errors to expect, and what a fit takes.
fn forecast(sampled: &Sampled, map: &MapSpec, plan: &Plan) -> Result<(), String> {
    let x = sampled.points()?;
    let planner = Planner::of_one_set(&x).map_err(|error| error.to_string())?;
    let kernel = match &map.recipe {
        random_features::map::Recipe::Plain(plain) => plain.kernel.clone(),
        _ => return Err("the recipe is not plain".into()),
    };
    let planner = planner
        .with_kernel(kernel)
        .with_max_features(plan.choice.features())
        .only_symmetric()
        .with_seed(plan.choice.seed());
    say(&planner.plan().map_err(|error| error.to_string())?.to_string())?;
    let width = map.recipe.feature_dim();
    let [single, double] = BYTES.map(|bytes| (bytes * width * width) as f64 / 1e6);
    let seed = map.seed;
    say(&format!(
        "errors are those of the kernel. Proposed: {width} trigonometric features of orthogonal frequencies, seed {seed}, which are bounded: \
         sums of f32 resolve them; sums of {single:.1} MB (f32) or {double:.1} MB (f64)"
    ))
}
