//! Media: the admission of images, documents and recordings before they are recorded.
//!
//! A provider that cannot read one block refuses every later request of its session. [`admit`] therefore checks the bytes
//! themselves, whatever their declared type, and replaces unusable content by a text.

mod admit;
mod format;
#[cfg_attr(feature = "images", path = "media/picture.rs")]
#[cfg_attr(not(feature = "images"), path = "media/unread.rs")]
mod picture;
mod size;
mod visit;

pub use admit::{MAX_EDGE, MAX_IMAGE_BYTES, Unfit, admit, check};
pub use size::dimensions;
pub use visit::{has_media, is_held, map_media, media_of};
