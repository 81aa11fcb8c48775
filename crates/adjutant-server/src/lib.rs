//! A page to watch, answer, fork and compare runs: over stored sessions and over agents that run.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod page;
mod view;

pub use page::PAGE;
pub use view::{View, url};
