//! Plans on one half of the points, judged on the other.

pub mod kinds;
pub mod regret;
