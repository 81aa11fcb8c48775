//! Long-term memory: facts with owners, recalled into requests and extracted by a model.

mod background;
mod decide;
mod extract;
mod fuse;
mod ids;
mod learning;
mod memories;
mod meter;
mod part;
mod recall;
mod tools;
mod words;

pub use extract::{Learned, MAX_LEARNED, MAX_LEARNED_BYTES};
pub use fuse::Remembered;
pub use learning::{Extraction, Learning};
pub use memories::{MAX_REMEMBERED, Memories};
pub use meter::Spent;
pub use recall::Recall;
