//! [`Model`]: what was fitted, as it is stored and as it travels.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use datafusion::common::Result;
use random_features::apply::Ridge;
use random_features::apply::pca::KernelPca;
use serde::{Deserialize, Serialize};

use crate::columns::{Columns, Scalar};
use crate::fault::{external, refuse};

/// The version of the form.
const VERSION: u32 = 2;
/// Models that are kept after they were read.
const CAPACITY: usize = 8;

/// What was fitted, with the names of its columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Model {
    version: u32,
    /// The columns of the points.
    pub columns: Vec<String>,
    /// The column that is predicted, if there is one.
    pub target: Option<String>,
    /// The names of the classes, where labels are predicted.
    pub classes: Option<Vec<String>>,
    /// The number of rows that it was fitted to.
    pub rows: u64,
    /// λ, of a regression.
    pub lambda: Option<f64>,
    /// The checksum of the names and the number of rows, in what is stored.
    #[serde(default)]
    checksum: u32,
    /// The model.
    pub fitted: Fitted,
}

/// A model of the library.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fitted {
    /// A regression of `f32` points.
    RidgeSingle(Ridge<f32>),
    /// A regression of `f64` points.
    RidgeDouble(Ridge<f64>),
    /// A PCA of `f32` points.
    PcaSingle(KernelPca<f32>),
    /// A PCA of `f64` points.
    PcaDouble(KernelPca<f64>),
}

/// Predictions for some rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Predictions {
    /// n × t.
    Single(ndarray::Array2<f32>),
    /// n × t.
    Double(ndarray::Array2<f64>),
}

impl Model {
    /// A model of points in these columns.
    pub fn new(fitted: Fitted, columns: Vec<String>, rows: u64) -> Self {
        let (target, classes, lambda) = (None, None, None);
        Model { version: VERSION, columns, target, classes, rows, lambda, checksum: 0, fitted }
    }

    /// The JSON of a model, as it is stored.
    ///
    /// # Errors
    /// If its map cannot be stored, as those of user-defined maps.
    pub fn to_json(&self) -> Result<String> {
        let checksum = self.checksum_of_names()?;
        serde_json::to_string(&Model { checksum, ..self.clone() }).map_err(external)
    }

    /// The model of the library has one of its own.
    fn checksum_of_names(&self) -> Result<u32> {
        let names = (&self.columns, &self.target, &self.classes, self.rows);
        Ok(crc32fast::hash(&postcard::to_stdvec(&names).map_err(external)?))
    }

    /// Reads a model.
    ///
    /// # Errors
    /// A sentence if it is none, or has changed.
    pub fn parse(json: &str) -> Result<Self> {
        match serde_json::from_str::<Model>(json) {
            Ok(model) if model.version == VERSION => model.checked(),
            Ok(model) => refuse(format!("the model is of version {}, not {VERSION}", model.version)),
            Err(error) => refuse(format!("the model cannot be understood: {error}")),
        }
    }

    /// As [`parse`](Model::parse), once a process.
    ///
    /// # Errors
    /// As [`parse`](Model::parse).
    pub fn kept(json: &str) -> Result<Arc<Self>> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = kept.get(json) {
            return Ok(model.clone());
        }
        let model = Arc::new(Self::parse(json)?);
        if kept.len() >= CAPACITY {
            kept.clear();
        }
        kept.insert(json.to_owned(), model.clone());
        Ok(model)
    }

    fn checked(self) -> Result<Self> {
        if self.checksum != self.checksum_of_names()? {
            return refuse("the columns, classes or rows of the model have changed since it was stored");
        }
        match &self.classes {
            Some(classes) if classes.len() != self.width() => {
                refuse("the model has another number of classes than of targets")
            }
            _ => Ok(self),
        }
    }

    /// The number of targets or components.
    pub fn width(&self) -> usize {
        match &self.fitted {
            Fitted::RidgeSingle(ridge) => ridge.intercepts().len(),
            Fitted::RidgeDouble(ridge) => ridge.intercepts().len(),
            Fitted::PcaSingle(pca) => pca.explained_variance().len(),
            Fitted::PcaDouble(pca) => pca.explained_variance().len(),
        }
    }

    /// d.
    pub fn dim(&self) -> usize {
        match &self.fitted {
            Fitted::RidgeSingle(ridge) => ridge.map().dim(),
            Fitted::RidgeDouble(ridge) => ridge.map().dim(),
            Fitted::PcaSingle(pca) => pca.map().dim(),
            Fitted::PcaDouble(pca) => pca.map().dim(),
        }
    }

    /// Whether points are `f64`.
    pub fn is_double(&self) -> bool {
        matches!(self.fitted, Fitted::RidgeDouble(_) | Fitted::PcaDouble(_))
    }

    /// Predictions or components for rows of points.
    ///
    /// # Errors
    /// A sentence if there are nulls or the columns are others than the model's.
    pub fn predict(&self, rows: &Columns) -> Result<Predictions> {
        rows.check_nulls()?;
        Ok(match &self.fitted {
            Fitted::RidgeSingle(ridge) => {
                Predictions::Single(ridge.predict(rows.points()?).map_err(external)?)
            }
            Fitted::RidgeDouble(ridge) => {
                Predictions::Double(ridge.predict(rows.points()?).map_err(external)?)
            }
            Fitted::PcaSingle(pca) => Predictions::Single(pca.transform(rows.points()?).map_err(external)?),
            Fitted::PcaDouble(pca) => Predictions::Double(pca.transform(rows.points()?).map_err(external)?),
        })
    }
}

static KEPT: LazyLock<Mutex<HashMap<String, Arc<Model>>>> = LazyLock::new(Mutex::default);

/// A scalar of which there are models.
pub trait Modelled: Scalar {
    /// A regression.
    fn ridge(ridge: Ridge<Self>) -> Fitted;
    /// A PCA.
    fn pca(pca: KernelPca<Self>) -> Fitted;
}

impl Modelled for f32 {
    fn ridge(ridge: Ridge<f32>) -> Fitted {
        Fitted::RidgeSingle(ridge)
    }

    fn pca(pca: KernelPca<f32>) -> Fitted {
        Fitted::PcaSingle(pca)
    }
}

impl Modelled for f64 {
    fn ridge(ridge: Ridge<f64>) -> Fitted {
        Fitted::RidgeDouble(ridge)
    }

    fn pca(pca: KernelPca<f64>) -> Fitted {
        Fitted::PcaDouble(pca)
    }
}
