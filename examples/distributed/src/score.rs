//! [`Score`]: how good the predictions of a model are on the rows of a table.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast as cast_array;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::dataframe::DataFrame;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::logical_expr::{Expr, ScalarUDF, cast, lit};
use datafusion::prelude::SessionContext;
use ndarray::{Array2, Axis};

use crate::fault::refuse;
use crate::fit::{check_points, check_target, check_weight, column};
use crate::labels::ClassNames;
use crate::model::Model;
use crate::scalar::PredictFunction;
use crate::table::{ROW, RowTable};

/// How good predictions are.
#[derive(Clone, Debug, PartialEq)]
pub enum Score {
    /// The score of predictions of numbers.
    Numbers(NumberScore),
    /// The score of predictions of labels.
    Classes(ClassScore),
}

/// How good predictions ŷ of numbers y are, where a row counts w times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberScore {
    /// The mean of the target, ȳ = Σ w y / Σ w.
    pub mean: f64,
    /// The variance of the target, Σ w (y − ȳ)² / Σ w.
    pub variance: f64,
    /// The mean squared error, Σ w (y − ŷ)² / Σ w.
    pub squared_error: f64,
    /// The mean absolute error, Σ w |y − ŷ| / Σ w.
    pub absolute_error: f64,
}

impl NumberScore {
    /// R², the share of the target's variance that predictions explain; `None` for a constant target.
    pub fn explained(&self) -> Option<f64> {
        (self.variance > 0.0).then(|| 1.0 - self.squared_error / self.variance)
    }
}

/// How good predictions of labels are.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassScore {
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The weight of the rows of each class, in rows, that are predicted to be of each class, in columns.
    pub counts: Array2<f64>,
}

impl ClassScore {
    /// The share of all rows that are predicted right.
    pub fn accuracy(&self) -> f64 {
        self.counts.diag().sum() / self.counts.sum()
    }

    /// The share of the rows of each class that are predicted right; `None` for a class without rows.
    pub fn recalls(&self) -> Vec<Option<f64>> {
        self.shares(Axis(1))
    }

    /// The share of the rows predicted to be of each class that are; `None` for a class that is never predicted.
    pub fn precisions(&self) -> Vec<Option<f64>> {
        self.shares(Axis(0))
    }

    /// The mean recall of the classes that have rows.
    pub fn balanced_accuracy(&self) -> f64 {
        let recalls: Vec<f64> = self.recalls().into_iter().flatten().collect();
        recalls.iter().sum::<f64>() / recalls.len() as f64
    }

    fn shares(&self, axis: Axis) -> Vec<Option<f64>> {
        let right = self.counts.diag();
        let all = self.counts.sum_axis(axis);
        right.iter().zip(&all).map(|(right, all)| (*all > 0.0).then(|| right / all)).collect()
    }
}

/// A model, and the columns that its predictions are compared with.
#[derive(Clone, Debug)]
pub struct Scoring {
    model: Model,
    json: String,
    target: String,
    weight: Option<Expr>,
}

impl Scoring {
    /// The comparison of a model's predictions with the column of its target.
    ///
    /// # Errors
    /// A sentence if the model predicts no column, or cannot be stored.
    pub fn new(model: Model) -> Result<Self> {
        let Some(target) = model.target.clone() else {
            return refuse("the model predicts no column: only regressions have a score");
        };
        Ok(Scoring { json: model.to_json()?, model, target, weight: None })
    }

    /// Sets the column that predictions are compared with.
    pub fn with_target(self, target: impl Into<String>) -> Self {
        Scoring { target: target.into(), ..self }
    }

    /// Sets how often each row counts.
    pub fn with_weight(self, weight: Expr) -> Self {
        Scoring { weight: Some(weight), ..self }
    }

    /// The model as it travels, in bytes.
    pub fn bytes(&self) -> usize {
        self.json.len()
    }

    /// The name of the column that predictions are compared with.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The pass over the model's columns of a table, to be explained or [run](Scoring::run).
    ///
    /// # Errors
    /// A sentence if a column is missing, of another type, or has nulls; errors of the engine.
    pub fn frame(&self, context: &SessionContext, table: &RowTable) -> Result<DataFrame> {
        self.frame_about(context, table, 0.0)
    }

    /// The pass, with sums of the target less a reference.
    fn frame_about(&self, context: &SessionContext, table: &RowTable, reference: f64) -> Result<DataFrame> {
        check_points(table, &self.model.columns)?;
        check_target(table, &self.target, self.model.classes.is_some())?;
        if let Some(Expr::Column(weight)) = &self.weight {
            check_weight(table, weight.name())?;
        }
        let points = self.model.columns.iter().map(|name| column(name));
        let arguments = [lit(self.json.as_str()), column(ROW)].into_iter().chain(points).collect();
        let prediction = ScalarUDF::from(PredictFunction::with_rows()).call(arguments);
        let weight = self.weight.clone().map_or(lit(1.0), |weight| cast(weight, DataType::Float64));
        let rows = context.read_table(Arc::new(table.clone()))?;
        match self.model.classes {
            None => self.of_numbers(rows, prediction, weight, reference),
            Some(_) => self.of_labels(rows, prediction, weight),
        }
    }

    /// Sums of errors, and of the target less a reference.
    fn of_numbers(
        &self,
        rows: DataFrame,
        prediction: Expr,
        weight: Expr,
        reference: f64,
    ) -> Result<DataFrame> {
        let y = || cast(column(&self.target), DataType::Float64);
        let error = y() - cast(prediction, DataType::Float64);
        let offset = y() - lit(reference);
        let rows = rows.select(vec![weight.alias("w"), error.alias("e"), offset.alias("o")])?;
        let [w, e, o] = ["w", "e", "o"].map(|name| move || column(name));
        let absolute = datafusion::functions::math::abs().call(vec![e()]);
        let sums = [w(), w() * o(), w() * o() * o(), w() * e() * e(), w() * absolute];
        let sums = sums.into_iter().map(sum).chain([min(w()), max(w())]);
        let named = sums.enumerate().map(|(k, sum)| sum.alias(format!("s{k}")));
        rows.aggregate(vec![], named.chain([count(w()).alias("rows")]).collect())
    }

    /// The weight of the rows of each pair of a label and a prediction.
    fn of_labels(&self, rows: DataFrame, prediction: Expr, weight: Expr) -> Result<DataFrame> {
        let label = cast(column(&self.target), DataType::Utf8).alias("label");
        let rows = rows.select(vec![weight.alias("w"), label, prediction.alias("prediction")])?;
        let w = || column("w");
        let sums = [sum(w()), min(w()), max(w())].into_iter().enumerate();
        let named = sums.map(|(k, sum)| sum.alias(format!("s{k}"))).chain([count(w()).alias("rows")]);
        rows.aggregate(vec![column("label"), column("prediction")], named.collect())
    }

    /// The middle of the target's range, about which sums keep their digits for a target of any mean. This reads the column.
    async fn reference(&self, context: &SessionContext, table: &RowTable) -> Result<f64> {
        let y = || cast(column(&self.target), DataType::Float64);
        let rows = context.read_table(Arc::new(table.clone()))?;
        let ends = rows.aggregate(vec![], vec![min(y()).alias("least"), max(y()).alias("most")])?;
        let batches = ends.collect().await?;
        let batch = batches.iter().find(|batch| batch.num_rows() > 0);
        match batch.map(|batch| [0, 1].map(|k| number(batch, k, 0))) {
            Some([least, most]) if least.is_finite() && most.is_finite() => Ok(least / 2.0 + most / 2.0),
            _ => refuse(format!("column {} holds a number that is not finite", self.target)),
        }
    }

    /// The score on all rows of a table.
    ///
    /// # Errors
    /// As [`frame`](Scoring::frame); a sentence if a weight is negative, all are 0, or a number is not finite.
    pub async fn run(&self, context: &SessionContext, table: &RowTable) -> Result<Score> {
        // What is wrong with columns is said before one is read.
        let frame = self.frame(context, table)?;
        let (frame, reference) = match self.model.classes {
            Some(_) => (frame, 0.0),
            None => {
                let reference = self.reference(context, table).await?;
                (self.frame_about(context, table, reference)?, reference)
            }
        };
        let batches = frame.collect().await?;
        let mut counted = 0;
        for batch in &batches {
            let counts = cast_array(batch.column(batch.num_columns() - 1), &DataType::UInt64)?;
            counted += counts
                .as_primitive::<datafusion::arrow::datatypes::UInt64Type>()
                .values()
                .iter()
                .sum::<u64>();
        }
        if counted != table.files().rows() {
            return refuse(format!("the engine delivered {counted} rows of {}", table.files().rows()));
        }
        match &self.model.classes {
            None => self.number_score(&batches, reference),
            Some(classes) => self.class_score(&batches, classes, label_type(table, &self.target)?),
        }
    }

    fn number_score(&self, batches: &[RecordBatch], reference: f64) -> Result<Score> {
        let batch = batches.iter().find(|batch| batch.num_rows() > 0);
        let numbers: Vec<f64> = batch.map_or(vec![], |batch| (0..7).map(|k| number(batch, k, 0)).collect());
        let [weight, offset, square, squared, absolute, least, most] = numbers[..] else {
            return refuse("the engine delivered no sums");
        };
        self.check_weights(weight, least, most)?;
        if ![offset, square, squared, absolute].iter().all(|sum| sum.is_finite()) {
            return refuse(format!(
                "column {} holds a number that is not finite, or too large a number",
                self.target
            ));
        }
        let mean = offset / weight;
        Ok(Score::Numbers(NumberScore {
            mean: reference + mean,
            variance: (square / weight - mean * mean).max(0.0),
            squared_error: squared / weight,
            absolute_error: absolute / weight,
        }))
    }

    fn class_score(&self, batches: &[RecordBatch], classes: &[String], labels: DataType) -> Result<Score> {
        let of_labels = ClassNames::new(classes, &labels);
        let mut counts = Array2::zeros((classes.len(), classes.len()));
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for batch in batches {
            let [label, prediction] = [0, 1].map(|k| cast_array(batch.column(k), &DataType::Utf8));
            let (label, prediction) = (label?, prediction?);
            let (label, prediction) = (label.as_string::<i32>(), prediction.as_string::<i32>());
            for row in 0..batch.num_rows() {
                if label.is_null(row) {
                    return refuse(format!("column {} has nulls", self.target));
                }
                let column = format!("column {}", self.target);
                let own = of_labels.place(label.value(row), &column).or_else(refuse)?;
                let Some(told) = classes.iter().position(|class| class == prediction.value(row)) else {
                    return refuse("a prediction is of no class");
                };
                counts[[own, told]] += number(batch, 2, row);
                (least, most) = (least.min(number(batch, 3, row)), most.max(number(batch, 4, row)));
            }
        }
        self.check_weights(counts.sum(), least, most)?;
        Ok(Score::Classes(ClassScore { classes: classes.to_vec(), counts }))
    }

    /// Rejects weights of which one is negative or not finite, or all are 0.
    fn check_weights(&self, sum: f64, least: f64, most: f64) -> Result<()> {
        let name = || self.weight.as_ref().map(|weight| weight.to_string()).unwrap_or_default();
        match (least >= 0.0, most.is_finite(), sum > 0.0) {
            (true, true, true) => Ok(()),
            (true, true, false) => refuse(format!("all weights of {} are 0", name())),
            _ => refuse(format!("{} holds a weight that is negative or not finite", name())),
        }
    }
}

/// The type of a column of labels.
fn label_type(table: &RowTable, name: &str) -> Result<DataType> {
    Ok(table.file_schema().field_with_name(name)?.data_type().clone())
}

/// A number of a batch; NaN for a null.
fn number(batch: &RecordBatch, column: usize, row: usize) -> f64 {
    let numbers = batch.column(column).as_primitive_opt::<Float64Type>();
    numbers.filter(|numbers| numbers.is_valid(row)).map_or(f64::NAN, |numbers| numbers.value(row))
}
