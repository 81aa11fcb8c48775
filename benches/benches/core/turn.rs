//! Building an agent, and a turn with and without what stands around it, early and late in a conversation.

use std::{
    hint::black_box,
    sync::{Arc, Mutex},
};

use adjutant_agent::{Agent, Limits};
use adjutant_benches::{Rows, median};
use adjutant_llm::{Script, ScriptedModel};
use serde_json::json;

use crate::{
    around::loaded,
    caller::{Caller, fetch},
    measure::cpu_us,
};

/// How often a figure is measured; the median counts.
const ROUNDS: usize = 41;
/// How many agents one measurement builds.
const AGENTS: usize = 500;
/// How many turns a short run has.
const TURNS: u64 = 100;
/// From which turns on the cost of one is measured in a long run.
const EARLY: u64 = 300;
const LATE: u64 = 3_000;
/// Over how many turns.
const SPAN: u64 = 100;
/// How often a long run is measured.
const LONG_ROUNDS: usize = 9;
/// How many calls a reply has.
const FEW_CALLS: usize = 100;
const MANY_CALLS: usize = 4_000;
/// By how much a late turn, or a call among many, may cost more.
const FLAT: f64 = 1.2;

/// An agent with one tool: made, and made and dropped.
pub(crate) fn build(rows: &mut Rows) {
    let model = Arc::new(Caller::new("fetch", 1));
    let (mut made, mut dropped) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut agents = Vec::with_capacity(AGENTS);
        let began = cpu_us();
        agents.extend((0..AGENTS).map(|_| Agent::new(Arc::clone(&model)).tool(fetch)));
        made.push((cpu_us() - began) / AGENTS as f64);
        drop(black_box(agents));
        let began = cpu_us();
        (0..AGENTS).for_each(|_| drop(black_box(Agent::new(Arc::clone(&model)).tool(fetch))));
        dropped.push((cpu_us() - began) / AGENTS as f64);
    }
    let (made, dropped) = (median(made), median(dropped));
    rows.row(
        "an agent with one tool, us",
        &format!("built and dropped in {dropped:.2}"),
        made,
        2.0,
    );
}

/// A turn of a short run.
pub(crate) fn around(rows: &mut Rows) {
    let runtime = crate::runtime();
    let bare = agent(Caller::new("fetch", TURNS));
    let loaded = loaded(bare.clone());
    let once = |agent: &Agent| {
        let agent = agent.new_session();
        let began = cpu_us();
        runtime.block_on(agent.run("Go.")).expect("a run");
        (cpu_us() - began) / TURNS as f64
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(once(&bare));
        with.push(once(&loaded));
    }
    let (without, with) = (median(without), median(with));
    let measured = format!(
        "with 5 effects, 3 hooks and 2 middlewares {:.1} more",
        with - without
    );
    rows.figure(
        &format!("one turn of {TURNS} without a socket, us"),
        &measured,
        without,
    );
}

/// A call among few and among many of one reply.
pub(crate) fn calls(rows: &mut Rows) {
    let runtime = crate::runtime();
    let once = |calls: usize| {
        let asks = (0..calls).fold(Script::new(), |script, n| {
            script.call("fetch", json!({"n": n}))
        });
        let agent = Agent::new(ScriptedModel::new([asks, Script::new().text("Done.")])).tool(fetch);
        let began = cpu_us();
        runtime.block_on(agent.run("Go.")).expect("a run");
        (cpu_us() - began) / calls as f64
    };
    let (few, many): (Vec<_>, Vec<_>) = (0..LONG_ROUNDS)
        .map(|_| (once(FEW_CALLS), once(MANY_CALLS)))
        .unzip();
    let (few, many) = (median(few), median(many));
    let what = format!("a call among {MANY_CALLS} of a reply over one among {FEW_CALLS}");
    rows.row(
        &what,
        &format!("{many:.1} and {few:.1} us"),
        many / few,
        FLAT,
    );
}

/// A turn of a long run.
pub(crate) fn flat(rows: &mut Rows) {
    for (name, wrap) in [
        ("bare", (|it| it) as fn(Agent) -> Agent),
        ("5 effects, 3 hooks, 2 middlewares", loaded),
    ] {
        let (early, late): (Vec<_>, Vec<_>) = (0..LONG_ROUNDS).map(|_| long(wrap)).unzip();
        let (early, late) = (median(early), median(late));
        let what = format!("turn {LATE} over turn {EARLY}, {name}");
        rows.row(
            &what,
            &format!("{late:.1} and {early:.1} us"),
            late / early,
            FLAT,
        );
    }
}

fn long(wrap: fn(Agent) -> Agent) -> (f64, f64) {
    let clock = Arc::new(Mutex::new(Vec::new()));
    let agent = wrap(agent(Caller::new("fetch", LATE + SPAN + 1).clock(&clock)));
    crate::runtime().block_on(agent.run("Go.")).expect("a run");
    let at = clock.lock().expect("the run is over");
    let per_turn = |from: u64| (at[(from + SPAN) as usize] - at[from as usize]) / SPAN as f64;
    (per_turn(EARLY), per_turn(LATE))
}

fn agent(model: Caller) -> Agent {
    Agent::new(model).tool(fetch).limits(Limits {
        max_turns: None,
        ..Limits::default()
    })
}
