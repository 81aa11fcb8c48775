//! Hooks between two turns, from plain functions: change the settings of the next turn, or end the run.

use adjutant_core::RunChange;

use crate::{
    hooks::{Hook, HookContext, Verdict},
    points::{AfterTurn, NextTurn},
};

/// A hook that is called after each turn and returns the changes for the next one; `None` for no change.
///
/// Its panic fails the run.
pub fn prepare_next_turn(
    prepare: impl Fn(&NextTurn) -> Option<RunChange> + Send + Sync + 'static,
) -> impl Hook<NextTurn> + 'static {
    move |_: HookContext, mut turn: NextTurn| {
        if let Some(change) = prepare(&turn) {
            turn.change = turn.change.then(change);
        }
        std::future::ready(Verdict::Pass(turn))
    }
}

/// A hook that is called after each turn and decides whether the run ends there.
///
/// Its panic fails the run.
pub fn stop_after_turn(
    stop: impl Fn(&AfterTurn) -> bool + Send + Sync + 'static,
) -> impl Hook<AfterTurn> + 'static {
    move |_: HookContext, mut turn: AfterTurn| {
        turn.stop |= stop(&turn);
        std::future::ready(Verdict::Pass(turn))
    }
}
