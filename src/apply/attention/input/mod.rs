//! What attention reads and gives, without any computation on pairs: queries, keys and values, how they become points, and sums before
//! they are outputs.

mod element;
mod heads;
mod key_rows;
mod output;
mod reading;
mod token_scale;
mod window;

pub use self::element::Element;
pub(super) use self::element::Numbers;
pub use self::heads::Heads;
pub(super) use self::heads::{Job, KeyRun, Member, check_multiple};
pub(super) use self::key_rows::KeyRows;
#[cfg(feature = "serde")]
pub(super) use self::key_rows::stored::StoredKeyRows;
pub(super) use self::output::Undivided;
pub(super) use self::reading::Reading;
pub(crate) use self::token_scale::TokenScale;
pub(super) use self::window::Window;
