//! A long run that is compacted several times, beside the same run that is not.

use adjutant_agent::{Agent, EventKind, Limits};
use adjutant_benches::{Rows, median};
use adjutant_context::Compact;
use adjutant_tool::tool;

use crate::{
    caller::{Caller, Notes},
    measure::cpu_us,
};

/// How many turns the run has.
const TURNS: u64 = 800;
/// How often both are run, in turns.
const ROUNDS: usize = 9;
/// How many bytes a result has: about 1,000 tokens.
const PAGE: usize = 4_000;

/// Fetches a page.
#[tool(replay = "pure")]
fn page(
    /// The number of the page.
    n: u64,
) -> String {
    let mut text = format!("page {n}: ");
    text.extend(std::iter::repeat_n("word ", (PAGE - text.len()) / 5));
    text
}

pub(crate) fn compare(rows: &mut Rows) {
    let runtime = crate::runtime();
    let bare = Agent::new(Caller::new("page", TURNS))
        .tool(page)
        .limits(Limits {
            max_turns: None,
            ..Limits::default()
        });
    let compacted = bare.clone().effect(Compact {
        model: Some(std::sync::Arc::new(Notes::new())),
        ..Compact::default()
    });
    let once = |agent: &Agent| {
        let agent = agent.new_session();
        let began = cpu_us();
        runtime.block_on(agent.run("Go.")).expect("a run");
        (cpu_us() - began) / TURNS as f64
    };
    let folds = runtime.block_on(folds(&compacted.new_session()));
    assert!(folds > 2, "the window fills several times");
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(once(&bare));
        with.push(once(&compacted));
    }
    let (without, with) = (median(without), median(with));
    let what = format!("{TURNS} turns of 1,000 tokens, {folds} compactions over none");
    rows.row(
        &what,
        &format!("{with:.1} and {without:.1} us a request"),
        with / without,
        1.3,
    );
}

/// How often a run is compacted.
async fn folds(agent: &Agent) -> usize {
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut folds = 0;
    while let Some(event) = running.next().await {
        folds += usize::from(matches!(event.kind, EventKind::Report { .. }));
    }
    folds
}
