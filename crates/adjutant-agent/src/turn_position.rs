//! The place in a conversation at which something happens.

use adjutant_core::{RunNo, TurnNo};

/// The run and the turn that something belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TurnPosition {
    pub(crate) run: RunNo,
    pub(crate) turn: TurnNo,
}
