//! Runs as the streams that other people's pages read, and what those pages send as prompts and answers.

#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "a2a")]
pub mod a2a;
#[cfg(feature = "acp")]
pub mod acp;
#[cfg(feature = "ag-ui")]
pub mod ag_ui;
#[cfg(feature = "ai-sdk")]
pub mod ai_sdk;
#[cfg(any(
    feature = "a2a",
    feature = "acp",
    feature = "ag-ui",
    feature = "ai-sdk"
))]
mod answer;
#[cfg(any(feature = "acp", feature = "ag-ui", feature = "ai-sdk"))]
mod blocks;
mod error;
#[cfg(any(
    feature = "a2a",
    feature = "acp",
    feature = "ag-ui",
    feature = "ai-sdk"
))]
mod file;
#[cfg(any(feature = "ag-ui", feature = "ai-sdk"))]
mod sse;
mod wish;

pub use error::{Error, ErrorKind};
pub use wish::PageWish;
