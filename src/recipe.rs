//! Maps and draws as plain data: what is stored, compared and printed.
//!
//! A [`Recipe`](crate::Recipe) says which map it is, on which draw, for which kernel. This module
//! has the types of the fields of recipes, which programs that only draw or store recipes need not name.

pub use crate::map::omega::Omega;
pub use crate::map::plain::PlainRecipe;
pub use crate::map::sketch::SketchDraw;

pub use crate::frequency::any_coupling::AnyCoupling;
pub use crate::frequency::counts::{CountLaw, Rates};
pub use crate::frequency::draw::Draw;
pub use crate::frequency::draw_counts::DrawCounts;
