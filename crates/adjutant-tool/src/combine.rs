//! Toolboxes over toolboxes: each changes what another one resolves to, and leaves that one as it is.
//!
//! A set is made again only when what it is made of changed, so that a model is shown the same list turn after turn.

mod composite;
mod confirm;
mod filter;
mod kept;
mod limit_output;
mod prefix;
mod rename;
mod time_out;

pub use self::{
    composite::Composite, confirm::Confirm, filter::Filter, limit_output::LimitOutput, prefix::Prefix, rename::Rename,
    time_out::TimeOut,
};
use kept::SetCache;
