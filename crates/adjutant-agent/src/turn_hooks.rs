//! Hooks between two turns, from plain functions: what is different from the next one on, and whether the run ends there.

use adjutant_core::RunChange;

use crate::{
    hooks::{Hook, HookContext, Verdict},
    points::{AfterTurn, NextTurn},
};

/// A hook that is asked after each turn what is different from the next one on; `None` for nothing.
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

/// A hook that is asked after each turn whether the run ends there.
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
