//! `rf predict`.

use datafusion::common::Column;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, ScalarUDF, lit};
use datafusion::parquet::arrow::ArrowWriter;
use futures::TryStreamExt;
use random_features_distributed::fault::sentence;
use random_features_distributed::fit;
use random_features_distributed::model::Model;
use random_features_distributed::scalar::PredictFunction;
use random_features_distributed::table::{FILE, ROW};

use crate::arguments::Predict;
use crate::asked::{Asked, explain};
use crate::output::Output;
use crate::say::say;

/// Bytes of a model that travels in a plan. Messages of Ballista hold 16 MiB.
const MODEL: usize = 8 << 20;

pub async fn run(predict: Predict) -> Result<(), String> {
    let name = predict.model.display();
    let json =
        std::fs::read_to_string(&predict.model).map_err(|error| format!("{name} cannot be read: {error}"))?;
    let model = Model::parse(&json).map_err(|error| format!("{name}: {}", sentence(&error)))?;
    if predict.source.ballista.is_some() && json.len() > MODEL {
        return Err(format!(
            "{name} is too large for the messages of a cluster, {} MB of at most 8: predict without --ballista",
            json.len() >> 20
        ));
    }
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

/// File, row and prediction, in the order of rows.
fn frame(asked: &Asked, model: &str) -> datafusion::common::Result<DataFrame> {
    let column = |name: &str| Expr::Column(Column::from_name(name));
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
