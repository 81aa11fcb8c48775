//! Caps that are nothing, and what is told of them.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{
    Action, Agent, AtLimit, Caps, EventKind, Limit, Limits, Outcome, effects::effect_fn,
};
use adjutant_llm::{
    CallResult, Entry, ModelInfo, NanoUsd, Origin, Price, Script, ScriptedModel, Usage,
};
use adjutant_tool::{Answer, Replay, ToolSpec, tool_fn};
use serde_json::json;

fn work() -> impl adjutant_tool::ErasedTool + 'static {
    let spec = ToolSpec {
        replay: Replay::Pure,
        ..ToolSpec::new("work", "Works.", json!({"type": "object"}))
    };
    tool_fn(spec, |_, _| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(CallResult::ok("worked"))
    })
}

fn worker(turns: usize, info: ModelInfo) -> (Arc<ScriptedModel>, Agent) {
    let usage = Usage {
        input_uncached: 100,
        output: 10,
        ..Usage::default()
    };
    let scripts = (1..turns).map(|_| Script::new().call("work", json!({})).usage(usage));
    let model =
        ScriptedModel::new(scripts.chain([Script::new().text("Done.").usage(usage)])).info(info);
    let model = Arc::new(model);
    (Arc::clone(&model), Agent::new(model).tool(work()))
}

fn priced() -> ModelInfo {
    let mut info = ModelInfo {
        max_output_tokens: 10,
        ..ModelInfo::new("scripted/model")
    };
    info.price = Some(Price::dollars(1.0, 1.0, 1.0, 1.0));
    info
}

/// How many reminders of the budget each request shows.
fn told(model: &ScriptedModel) -> Vec<usize> {
    let is = |entry: &Entry| match entry {
        Entry::User(message) => {
            matches!(&message.origin, Origin::Reminder { by } if &**by == "budget")
        }
        _ => false,
    };
    model
        .requests()
        .iter()
        .map(|it| it.entries.iter().filter(|it| is(&it.entry)).count())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_when_a_cap_is_nothing() {
    let table = [
        (
            Caps {
                tokens: Some(0),
                ..Caps::default()
            },
            Limit::Tokens,
        ),
        (
            Caps {
                requests: Some(0),
                ..Caps::default()
            },
            Limit::Requests,
        ),
        (
            Caps {
                cost: Some(NanoUsd(0)),
                ..Caps::default()
            },
            Limit::Money,
        ),
        (
            Caps {
                wall_ms: Some(0),
                ..Caps::default()
            },
            Limit::Time,
        ),
    ];
    for (caps, limit) in table {
        for at in [AtLimit::End, AtLimit::LastTurn, AtLimit::Ask] {
            let (model, agent) = worker(3, priced());
            let limits = Limits {
                caps,
                at_limit: at,
                unattended: true,
                ..Limits::default()
            };
            let ran =
                tokio::time::timeout(Duration::from_secs(600), agent.limits(limits).run("Go."))
                    .await;
            let result = ran.expect("it ends").expect("a limit is no error");
            assert_eq!(
                result.outcome,
                Outcome::Limit {
                    limit: limit.clone()
                }
            );
            assert!(
                model.requests().len() <= usize::from(at != AtLimit::End),
                "{limit:?} {at:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn model_is_told_once_of_tokens_money_and_time() {
    let table = [
        Caps {
            tokens: Some(4_000),
            ..Caps::default()
        },
        Caps {
            cost: Some(NanoUsd(110_000 * 40)),
            ..Caps::default()
        },
        Caps {
            wall_ms: Some(39_500),
            ..Caps::default()
        },
    ];
    for caps in table {
        let (model, agent) = worker(40, priced());
        agent
            .limits(Limits {
                caps,
                ..Limits::default()
            })
            .run("Go.")
            .await
            .expect("a limit is no error");
        let told = told(&model);
        assert_eq!(told.last(), Some(&1), "{caps:?}: {told:?}");
        assert!(told.windows(2).all(|pair| pair[0] <= pair[1]), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn model_is_told_once_when_an_effect_is_called_budget() {
    let (model, agent) = worker(20, priced());
    let counts = effect_fn("budget", |cx| {
        Ok(vec![Action::Remember(json!({"seen": cx.turn.0}))])
    });
    let agent = agent.effect(counts).limits(Limits {
        caps: Caps {
            requests: Some(20),
            ..Caps::default()
        },
        ..Limits::default()
    });
    agent.run("Go.").await.expect("it answers");
    assert_eq!(told(&model).last(), Some(&1), "{:?}", told(&model));
}

#[tokio::test(start_paused = true)]
async fn warning_tells_when_money_is_capped_and_the_model_has_no_price() {
    let (_, agent) = worker(3, ModelInfo::new("scripted/model"));
    let agent = agent.limits(Limits {
        caps: Caps {
            cost: Some(NanoUsd(1)),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut warned = 0;
    while let Some(event) = running.next().await {
        warned += usize::from(
            matches!(&event.kind, EventKind::Warning { warning } if warning.message.contains("price")),
        );
    }
    assert_eq!(warned, 1);
}

#[tokio::test(start_paused = true)]
async fn limit_may_be_extended_again_and_again() {
    let (model, agent) = worker(8, priced());
    let limits = Limits {
        caps: Caps {
            requests: Some(2),
            tool_calls: Some(3),
            ..Caps::default()
        },
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    };
    let agent = agent.limits(limits).responder(|_, _| async {
        Some(Answer::Extend {
            by: u64::MAX,
            message: None,
        })
    });
    let ran = tokio::time::timeout(Duration::from_secs(60), agent.run("Go.")).await;
    let result = ran.expect("it ends").expect("it answers");
    assert!(result.is_finished(), "{:?}", result.outcome);
    assert_eq!(model.requests().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn run_ends_in_time_when_the_model_is_slow_to_answer() {
    let gate = adjutant_llm::Gate::default();
    let model = ScriptedModel::new([Script::new()
        .text("Long answer.")
        .delta_chars(4)
        .wait_at(1, &gate)]);
    let limits = Limits {
        caps: Caps {
            wall_ms: Some(5_000),
            ..Caps::default()
        },
        at_limit: AtLimit::Ask,
        ..Limits::default()
    };
    let agent = Agent::new(model).limits(limits);
    let ran = tokio::time::timeout(Duration::from_secs(60), agent.run("Go.")).await;
    let result = ran.expect("it ends").expect("a limit is no error");
    assert_eq!(result.outcome, Outcome::Limit { limit: Limit::Time });
    assert_eq!(agent.log().transcript().len(), 2, "what was said is kept");
}

#[tokio::test(start_paused = true)]
async fn summary_is_not_asked_for_when_the_budget_leaves_no_room() {
    let (worker_model, agent) = worker(12, priced());
    let writer = ScriptedModel::new((0..9).map(|_| {
        Script::new().text("Notes.").usage(Usage {
            input_uncached: 5_000,
            output: 10,
            ..Usage::default()
        })
    }));
    let writer = Arc::new(writer);
    let fat = adjutant_context::Compact {
        threshold: 0.0,
        min_gain: 0.0,
        keep_recent_tokens: 0,
        ..adjutant_context::Compact::default()
    };
    let agent = agent.effect(adjutant_context::Compact {
        max_summary_tokens: 10,
        model: Some(writer.clone()),
        ..fat
    });
    let prompt = "words ".repeat(2_000);
    agent.run(prompt.as_str()).await.expect("it answers");
    let asked = writer.requests().len();
    assert!(asked > 0 && worker_model.requests().len() == 12);
    // The same with little to spend: the run may end, but no helper spends what is not there.
    let (_, agent) = worker(12, priced());
    let fat = adjutant_context::Compact {
        threshold: 0.0,
        min_gain: 0.0,
        keep_recent_tokens: 0,
        ..adjutant_context::Compact::default()
    };
    let agent = agent.effect(adjutant_context::Compact {
        max_summary_tokens: 10,
        model: Some(writer.clone()),
        ..fat
    });
    let result = agent
        .limits(Limits {
            caps: Caps {
                tokens: Some(600),
                ..Caps::default()
            },
            ..Limits::default()
        })
        .run("Go.")
        .await
        .expect("a limit is no error");
    assert!(
        result.total_usage.total() <= 600,
        "{}",
        result.total_usage.total()
    );
    assert_eq!(
        writer.requests().len(),
        asked,
        "the summaries alone would pass the cap"
    );
}
