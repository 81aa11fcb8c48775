//! `token_budget` and `time_budget`: a word at a share of the budget, and the end at the whole, never within a turn.

#[path = "effects/stage.rs"]
mod stage;

use std::sync::Arc;

use adjutant_agent::{
    Action, Agent, AtLimit, Limit, Limits, Outcome, RunResult,
    effects::{TimeBudget, TokenBudget, effect_fn, from_spec},
};
use adjutant_llm::{Entry, FixedWorld, Script, ScriptedModel, Usage, World};
use adjutant_tool::{ToolSpec, tool_fn};
use serde_json::json;
use stage::{agent, done, say, shown};

fn used(script: Script, tokens: u64) -> Script {
    script.usage(Usage {
        input_uncached: tokens - 10,
        output: 10,
        ..Usage::default()
    })
}

/// Turns that use a hundred tokens each, and an answer that does, too.
fn turns(count: usize) -> impl Iterator<Item = Script> {
    let turn = |n: usize| used(say(json!({ "text": n.to_string() })), 100);
    (0..count).map(turn).chain([used(done(), 100)])
}

/// The requests that end in a reminder, counted from 1, and the reminder.
fn told(model: &ScriptedModel) -> Vec<(usize, String)> {
    let last = shown(model)
        .into_iter()
        .map(|lines| lines.last().cloned().unwrap_or_default());
    (1..)
        .zip(last)
        .filter(|(_, line)| line.starts_with('['))
        .collect()
}

fn notice(percent: u64, max: u64) -> String {
    format!(
        "[token_budget] {percent} % of the {max} tokens that this work may use are used up. Bring the work to an end: \
         finish with what you have."
    )
}

fn limit(result: &RunResult) -> Option<&Limit> {
    match &result.outcome {
        Outcome::Limit { limit } => Some(limit),
        _ => None,
    }
}

#[tokio::test]
async fn budget_is_told_once_after_the_results_when_four_fifths_are_spent() {
    let (model, agent) = agent(128_000, turns(9));
    let result = agent
        .effect(TokenBudget {
            max_tokens: 1_000,
            ..TokenBudget::default()
        })
        .run("Go.")
        .await
        .expect("the run ends");
    assert_eq!(told(&model), [(9, notice(80, 1_000))]);
    let ninth = &shown(&model)[8];
    assert_eq!(
        ninth[ninth.len() - 2],
        "say = 7",
        "after the results of the closed turn"
    );
    assert!(matches!(result.outcome, Outcome::Finished { .. }));
    // The answer that passes four fifths stays the last word.
    assert!(
        matches!(result.entries.last(), Some(Entry::Turn(turn)) if turn.reply().text() == "Done.")
    );
}

#[tokio::test]
async fn answer_stays_when_it_spends_the_last_of_the_budget() {
    let (model, agent) = agent(128_000, [used(done(), 5_000)]);
    let result = agent
        .effect(TokenBudget {
            max_tokens: 1_000,
            ..TokenBudget::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    assert!(matches!(result.outcome, Outcome::Finished { .. }));
    assert_eq!(
        (result.text().as_str(), result.entries.len()),
        ("Done.", 2),
        "no reminder trails it"
    );
    model.assert_done();
}

#[tokio::test]
async fn run_ends_with_a_limit_when_the_budget_is_spent() {
    let (model, agent) = agent(128_000, turns(20));
    let result = agent
        .effect(TokenBudget {
            max_tokens: 500,
            ..TokenBudget::default()
        })
        .run("Go.")
        .await
        .expect("the run ends");
    assert_eq!((limit(&result), result.turns), (Some(&Limit::Tokens), 5));
    assert_eq!(told(&model), [(5, notice(80, 500))]);
    assert_eq!(model.requests().len(), 5, "no request follows");
    assert_eq!(
        result
            .calls
            .iter()
            .map(|call| call.result.text())
            .collect::<Vec<_>>(),
        ["0", "1", "2", "3", "4"]
    );
    assert!(
        matches!(result.entries.last(), Some(Entry::Turn(_))),
        "the last turn is closed, and nothing trails it"
    );
}

#[tokio::test]
async fn budget_is_armed_again_when_the_next_run_begins() {
    let (model, agent) = agent(128_000, turns(4).chain(turns(4)).chain(turns(6)));
    let agent = agent.effect(TokenBudget {
        max_tokens: 500,
        ..TokenBudget::default()
    });
    for prompt in ["One.", "Two."] {
        let result = agent.run(prompt).await.expect("the run ends");
        assert!(
            matches!(result.outcome, Outcome::Finished { .. }),
            "only the run's own tokens count"
        );
    }
    let result = agent.run("Three.").await.expect("the run ends");
    assert_eq!(limit(&result), Some(&Limit::Tokens));
    assert_eq!(
        told(&model),
        [5, 10, 15].map(|number| (number, notice(80, 500)))
    );
}

#[tokio::test]
async fn budget_counts_helpers_when_an_effect_spends() {
    let (_, agent) = agent(128_000, turns(20));
    let charge = effect_fn("helper", |_| {
        Ok(vec![Action::Charge(Usage {
            input_uncached: 150,
            ..Usage::default()
        })])
    });
    let result = agent
        .effect(charge)
        .effect(TokenBudget {
            max_tokens: 500,
            ..TokenBudget::default()
        })
        .run("Go.")
        .await
        .expect("the run ends");
    assert_eq!((limit(&result), result.turns), (Some(&Limit::Tokens), 2));
}

#[tokio::test]
async fn last_turn_is_taken_when_the_run_has_one_beyond_its_budget() {
    let (model, agent) = agent(128_000, turns(3).take(3).chain([used(done(), 100)]));
    let agent = agent
        .limits(Limits {
            at_limit: AtLimit::LastTurn,
            ..Limits::default()
        })
        .effect(TokenBudget {
            max_tokens: 300,
            ..TokenBudget::default()
        });
    let result = agent.run("Go.").await.expect("the run ends");
    assert_eq!((limit(&result), result.turns), (Some(&Limit::Tokens), 4));
    model.assert_done();
}

/// A world whose clock a tool moves.
#[derive(Debug)]
struct Clock(Arc<FixedWorld>);

impl World for Clock {
    fn now_ms(&self) -> u64 {
        self.0.now_ms()
    }

    fn id(&self) -> u128 {
        self.0.id()
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }
}

/// A run whose calls take a second each.
async fn timed(effect: TimeBudget, calls: usize) -> (Arc<ScriptedModel>, RunResult) {
    let world = Arc::new(FixedWorld::at_ms(1_000));
    let clock = Arc::clone(&world);
    let work = tool_fn(
        ToolSpec::new("work", "Works.", json!({ "type": "object" })),
        move |_, _| {
            clock.advance_ms(1_000);
            async { Ok(adjutant_llm::CallResult::ok("done")) }
        },
    );
    let scripts = (0..calls)
        .map(|_| Script::new().call("work", json!({})))
        .chain([done()]);
    let (model, agent) = agent(128_000, scripts);
    let agent: Agent = agent.world(Clock(world)).tool(work).effect(effect);
    let result = agent.run("Go.").await.expect("the run ends");
    (model, result)
}

#[tokio::test]
async fn time_ends_a_run_when_it_is_over() {
    let (model, result) = timed(
        TimeBudget {
            max_ms: 5_000,
            ..TimeBudget::default()
        },
        9,
    )
    .await;
    assert_eq!((limit(&result), result.turns), (Some(&Limit::Time), 5));
    let text = "[time_budget] 80 % of the 5000 ms that this work may take are over. Bring the work to an end: finish \
                with what you have.";
    assert_eq!(told(&model), [(5, text.to_owned())]);
    assert_eq!(result.calls.len(), 5, "every call has its result");
    let (_, result) = timed(
        TimeBudget {
            max_ms: 5_000,
            ..TimeBudget::default()
        },
        5,
    )
    .await;
    assert_eq!(
        limit(&result),
        Some(&Limit::Time),
        "there is no time for another request"
    );
    let (_, result) = timed(
        TimeBudget {
            max_ms: 6_000,
            ..TimeBudget::default()
        },
        5,
    )
    .await;
    assert!(matches!(result.outcome, Outcome::Finished { .. }));
}

#[tokio::test]
async fn budget_is_none_when_it_is_zero() {
    let (model, agent) = agent(128_000, turns(9));
    let agent = agent
        .effect(TokenBudget::default())
        .effect(TimeBudget::default());
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(told(&model), []);
    model.assert_done();
}

#[test]
fn budget_reads_its_parameters_when_it_is_configured() {
    let read =
        |params| serde_json::from_value::<TokenBudget>(params).expect("the parameters are known");
    assert_eq!(
        read(json!({ "max_tokens": 9 })),
        TokenBudget {
            max_tokens: 9,
            ..TokenBudget::default()
        }
    );
    assert_eq!(
        read(json!({ "max_tokens": 9, "warn": 0.5 })),
        TokenBudget {
            max_tokens: 9,
            warn: 0.5
        }
    );
    assert_eq!(read(json!({})), TokenBudget::default());
    let read =
        |params| serde_json::from_value::<TimeBudget>(params).expect("the parameters are known");
    assert_eq!(
        read(json!({ "max_ms": 9_000 })),
        TimeBudget {
            max_ms: 9_000,
            ..TimeBudget::default()
        }
    );
    assert_eq!(read(json!({})), TimeBudget::default());
    for kind in ["token_budget", "time_budget"] {
        assert_eq!(
            from_spec(kind, json!({}))
                .expect("the kind is known")
                .kind(),
            kind
        );
    }
}
