//! `rf predict`.

use std::path::Path;

use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{ScalarUDF, lit};
use datafusion::parquet::arrow::ArrowWriter;
use futures::TryStreamExt;
use random_features_distributed::fault::sentence;
use random_features_distributed::fit::{self, column};
use random_features_distributed::model::Model;
use random_features_distributed::scalar::PredictFunction;
use random_features_distributed::table::{FILE, ROW};

use crate::arguments::{Predict, Source};
use crate::asked::{Asked, explain};
use crate::output::Output;
use crate::say::say;

/// Bytes of a model that travels in a plan. Messages of Ballista hold 16 MiB.
const MODEL: usize = 8 << 20;

pub async fn run(predict: Predict) -> Result<(), String> {
    let (model, json) = read(&predict.model)?;
    check_travels(&predict.model.display().to_string(), json.len(), &predict.source)?;
    let mut source = predict.source.clone();
    if source.columns.is_empty() {
        source.columns = model.columns.clone();
    }
    let asked = Asked::open(&predict.input, source).await?;
    fit::check_points(&asked.table, &asked.source.columns).map_err(|error| sentence(&error))?;
    let frame = frame(&asked, &json).map_err(|error| sentence(&error))?;
    if asked.source.explain {
        return explain(frame).await;
    }
    let output = asked.output(&predict.out, Some(&predict.model))?;
    let rows = asked.passed("predicting", write(frame, &output)).await?;
    if rows != asked.table.files().rows() {
        return Err(format!("the engine delivered {rows} rows of {}", asked.table.files().rows()));
    }
    output.finish()?;
    say(&format!("{rows} predictions in {}", predict.out.display()))
}

/// Reads a model, and gives its JSON too.
pub fn read(path: &Path) -> Result<(Model, String), String> {
    let name = path.display();
    let json = std::fs::read_to_string(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
    let model = Model::parse(&json).map_err(|error| format!("{name}: {}", sentence(&error)))?;
    Ok((model, json))
}

/// Rejects a model of so many bytes that is too large for the plans of a cluster, if passes are made on one.
pub fn check_travels(name: &str, bytes: usize, source: &Source) -> Result<(), String> {
    match source.ballista.is_some() && bytes > MODEL {
        true => Err(format!(
            "{name} is too large for the messages of a cluster, {} MB of at most 8: leave --ballista out",
            bytes >> 20
        )),
        false => Ok(()),
    }
}

/// File, row and prediction, in the order of rows.
fn frame(asked: &Asked, model: &str) -> datafusion::common::Result<DataFrame> {
    let points = asked.source.columns.iter().map(|name| column(name));
    let arguments = [lit(model), column(ROW)].into_iter().chain(points).collect();
    let prediction = ScalarUDF::from(PredictFunction::with_rows()).call(arguments).alias("prediction");
    let table = asked.context.read_table(std::sync::Arc::new(asked.table.clone()))?;
    table.select(vec![column(FILE), column(ROW), prediction])?.sort(vec![column(ROW).sort(true, false)])
}

/// Writes rows as they come, and counts them.
async fn write(frame: DataFrame, output: &Output) -> datafusion::common::Result<u64> {
    let mut rows = 0;
    let mut stream = frame.execute_stream().await?;
    let mut writer = ArrowWriter::try_new(output.create()?, stream.schema(), None)?;
    while let Some(batch) = stream.try_next().await? {
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(rows)
}
