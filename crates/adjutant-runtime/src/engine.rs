//! The engine: from what is resolved to a running tree of agents.

/// A running tree of agents.
#[derive(Debug)]
pub struct Engine {}
