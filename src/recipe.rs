//! Maps and draws as plain data: what is stored, compared and printed.
//!
//! A [`Recipe`](crate::Recipe) says which map it is, on which draw, for which kernel. An item stands here if it occurs
//! within a recipe and programs that only draw or read recipes do not name it.

pub use crate::map::omega::Omega;
pub use crate::map::plain::PlainRecipe;
pub use crate::map::sketch::SketchDraw;
