//! Budgets of runs: requests, calls, money, time, and what the model is told.

use std::sync::Arc;

use adjutant_agent::{
    Agent, Answered, AtLimit, Caps, EventKind, Limit, Limits, MemoryJournal, Outcome, Record,
};
use adjutant_llm::{
    CallResult, Entry, FixedWorld, ModelInfo, NanoUsd, Origin, Price, Script, ScriptedModel,
    Status, UserMessage, World,
};
use adjutant_tool::{Answer, Replay};
use tokio::sync::Barrier;

use super::desk::{calls, events, open, parent, records, results, says, tool, usage, word, work};

fn step() -> impl adjutant_tool::ErasedTool + 'static {
    tool("work", Replay::Pure, |_| async {
        Ok(CallResult::ok("worked"))
    })
}

/// An agent that calls `work` in every turn but the last of these.
fn worker(turns: usize) -> (Arc<ScriptedModel>, Agent) {
    let scripts = (1..turns).map(|_| calls(&["work"])).chain([says("Done.")]);
    let model = Arc::new(ScriptedModel::new(scripts));
    (Arc::clone(&model), Agent::new(model).tool(step()))
}

fn limited(limit: Limit) -> Outcome {
    Outcome::Limit { limit }
}

#[tokio::test]
async fn run_ends_when_its_requests_are_used_up() {
    let (model, agent) = worker(5);
    let agent = agent.limits(Limits {
        caps: Caps {
            requests: Some(2),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let result = agent.run("Go.").await.expect("a limit is no error");
    assert_eq!(
        (result.outcome, result.turns, model.requests().len()),
        (limited(Limit::Requests), 2, 2)
    );
    assert_eq!(
        agent.log().transcript().len(),
        3,
        "the calls of the last reply were run and closed"
    );
}

#[tokio::test]
async fn run_ends_when_its_tokens_are_used_up() {
    let (model, agent) = worker(9);
    let agent = agent.limits(Limits {
        caps: Caps {
            tokens: Some(1_000),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let result = agent.run("Go.").await.expect("a limit is no error");
    assert_eq!(result.outcome, limited(Limit::Tokens));
    assert!(result.total_usage.total() <= 1_000);
    let asked = model.requests();
    assert!(
        asked.iter().all(|it| it
            .options
            .max_output_tokens
            .is_some_and(|most| most < 1_000)),
        "cut to what is left"
    );
}

#[tokio::test]
async fn run_ends_when_its_money_is_used_up() {
    let scripts = (0..9).map(|_| calls(&["work"]));
    let price = Price::dollars(1.0, 100.0, 1.0, 1.0);
    let mut info = ModelInfo::new("scripted/model");
    info.price = Some(price);
    let agent = Agent::new(ScriptedModel::new(scripts).info(info)).tool(step());
    // One reply costs 1,100 millionths of a dollar; a request of the least output 25,600 at most.
    let agent = agent.limits(Limits {
        caps: Caps {
            cost: Some(NanoUsd(28_000_000)),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let result = agent.run("Go.").await.expect("a limit is no error");
    assert_eq!(
        (result.outcome, result.total_cost),
        (limited(Limit::Money), Some(NanoUsd(3_300_000)))
    );
}

#[tokio::test]
async fn call_is_refused_when_no_more_may_run() {
    let model = ScriptedModel::new([calls(&["work", "work", "work"]), says("Done.")]);
    let agent = Agent::new(model).tool(step()).limits(Limits {
        caps: Caps {
            tool_calls: Some(2),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let result = agent.run("Go.").await.expect("a limit is no error");
    let statuses: Vec<_> = result.calls.iter().map(|it| it.result.status).collect();
    assert_eq!(
        (result.outcome, statuses),
        (
            limited(Limit::ToolCalls),
            vec![Status::Ok, Status::Ok, Status::OverLimit]
        )
    );
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_its_time_is_used_up() {
    let slow = tool("work", Replay::Once, |cx| async move {
        cx.cancel.cancelled().await;
        Ok(CallResult::ok("stopped"))
    });
    let agent = Agent::new(ScriptedModel::new([calls(&["work"])])).tool(slow);
    let agent = agent.world(FixedWorld::at_ms(1_000)).limits(Limits {
        caps: Caps {
            wall_ms: Some(30_000),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let began = tokio::time::Instant::now();
    let result = agent.run("Go.").await.expect("a limit is no error");
    assert_eq!(
        (result.outcome.clone(), results(&result)),
        (limited(Limit::Time), vec!["stopped".to_owned()])
    );
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn answer_is_kept_when_it_used_up_the_budget() {
    let (_, agent) = worker(2);
    let agent = agent.limits(Limits {
        caps: Caps {
            requests: Some(2),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (result.is_finished(), result.text()),
        (true, "Done.".to_owned())
    );
}

#[tokio::test]
async fn model_has_a_last_word_when_the_limit_says_so() {
    let model = Arc::new(ScriptedModel::new([calls(&["work"]), says("What I have.")]));
    let agent = Agent::new(Arc::clone(&model)).tool(step());
    let agent = agent.limits(Limits {
        caps: Caps {
            requests: Some(1),
            tokens: Some(500),
            ..Caps::default()
        },
        at_limit: AtLimit::LastTurn,
        ..Limits::default()
    });
    let result = agent.run("Go.").await.expect("a limit is no error");
    assert_eq!(
        (result.outcome.clone(), result.text()),
        (limited(Limit::Requests), "What I have.".to_owned())
    );
    assert_eq!(
        model.requests()[1].options.max_output_tokens,
        Some(2_048),
        "overdrawn by no more than this"
    );
}

#[tokio::test]
async fn last_word_is_silent_when_the_budget_above_is_used_up() {
    let below = || {
        let model = ScriptedModel::new([calls(&["work"]), says("Never.")]);
        Agent::new(model).tool(step()).limits(Limits {
            at_limit: AtLimit::LastTurn,
            ..Limits::default()
        })
    };
    let agent = parent(work(move |cx| {
        let agent = below();
        async move {
            Ok(CallResult::ok(format!(
                "{:?}",
                open(&cx, "a", agent).await?.run("Go.").await?.outcome
            )))
        }
    }));
    let result = agent
        .limits(Limits {
            caps: Caps {
                requests: Some(2),
                ..Caps::default()
            },
            ..Limits::default()
        })
        .run("Go.")
        .await
        .expect("a limit is no error");
    assert_eq!(results(&result), ["Limit { limit: Requests }"]);
    assert_eq!(result.outcome, limited(Limit::Requests));
}

#[tokio::test]
async fn model_is_told_once_when_four_fifths_are_used() {
    let (model, agent) = worker(10);
    let journal = MemoryJournal::default();
    let agent = agent
        .limits(Limits {
            caps: Caps {
                requests: Some(10),
                ..Caps::default()
            },
            ..Limits::default()
        })
        .journal(journal.clone());
    agent.run("Go.").await.expect("the run finishes");
    let told = |entry: &Entry| match entry {
        Entry::User(message) => {
            matches!(&message.origin, Origin::Reminder { by } if &**by == "budget")
        }
        _ => false,
    };
    let at: Vec<_> = model
        .requests()
        .iter()
        .map(|it| it.entries.iter().filter(|it| told(&it.entry)).count())
        .collect();
    assert_eq!(at, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    let ninth = &model.requests()[8];
    let Entry::User(message) = &ninth.entries[ninth.entries.len() - 1] else {
        unreachable!("after the results")
    };
    let text = "80 % of the limit of requests is used: 8 of 10. Finish what matters most and answer with what you have.";
    assert_eq!(
        UserMessage {
            origin: Origin::Person,
            ..message.clone()
        },
        adjutant_llm::UserMessage::text(text)
    );
    let log = records(&journal, agent.session_id()).await;
    let memos = log
        .iter()
        .filter(|it| matches!(&it.record, Record::Prepared { memos, .. } if !memos.is_empty()));
    assert_eq!(memos.count(), 1);
}

#[tokio::test]
async fn budget_holds_when_children_spend_together() {
    let barrier = Arc::new(Barrier::new(8));
    let agent = parent(work(move |cx| {
        let barrier = Arc::clone(&barrier);
        async move {
            let mut runs = Vec::new();
            for number in 0..8 {
                let barrier = Arc::clone(&barrier);
                let meet = tool("meet", Replay::Pure, move |_| {
                    let barrier = Arc::clone(&barrier);
                    async move {
                        barrier.wait().await;
                        Ok(CallResult::ok("met"))
                    }
                });
                // Each reply takes all the output that it may have.
                let greedy = Script::from_fn(|request| {
                    let most = request.options.max_output_tokens.unwrap_or(8_192);
                    Script::new().text("Said.").usage(usage(20, most))
                });
                let model = ScriptedModel::new([
                    Script::new()
                        .call("meet", serde_json::json!({}))
                        .usage(usage(20, 10)),
                    greedy,
                ]);
                runs.push(
                    open(&cx, &format!("k{number}"), Agent::new(model).tool(meet))
                        .await?
                        .stream("Go.")?,
                );
            }
            let mut ends = Vec::new();
            for run in runs {
                let result = run.finish().await?;
                ends.push(if result.is_finished() {
                    "finished"
                } else {
                    "limited"
                });
            }
            ends.sort_unstable();
            Ok(CallResult::ok(ends.join(" ")))
        }
    }));
    let cap = 20_000;
    let agent = agent.limits(Limits {
        caps: Caps {
            tokens: Some(cap),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let events = events(&agent).await;
    let result = super::desk::last(&events);
    assert!(
        result.total_usage.total() <= cap,
        "{} tokens",
        result.total_usage.total()
    );
    assert!(
        results(&result)[0].contains("finished") && results(&result)[0].contains("limited"),
        "{:?}",
        results(&result)
    );
    assert_eq!(result.outcome, limited(Limit::Tokens));
    assert!(
        events
            .iter()
            .any(|it| it.who.depth == 1 && matches!(it.kind, EventKind::LimitReached { .. })),
        "{}",
        word(&events[0])
    );
}

/// A clock that the test moves.
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

/// A run that has made two requests when it waits, ten seconds after it began.
async fn waiting(caps: Caps, world: &Arc<FixedWorld>) -> (Agent, Vec<Answered>) {
    let late = Arc::clone(world);
    let work = tool("work", Replay::Pure, move |_| {
        late.advance_ms(5_000);
        async { Ok(CallResult::ok("worked")) }
    });
    let model = ScriptedModel::new((0..9).map(|_| calls(&["work"])));
    let limits = Limits {
        max_turns: Some(2),
        at_limit: AtLimit::Ask,
        caps,
        ..Limits::default()
    };
    let agent = Agent::new(model)
        .tool(work)
        .world(Clock(Arc::clone(world)))
        .limits(limits);
    let paused = agent.run("Go.").await.expect("the run waits");
    let Outcome::Paused { pauses } = &paused.outcome else {
        unreachable!("not paused: {:?}", paused.outcome)
    };
    let answers = pauses
        .iter()
        .map(|it| {
            it.with_answer(Answer::Extend {
                by: 7,
                message: None,
            })
        })
        .collect();
    (agent, answers)
}

#[tokio::test]
async fn budget_is_as_before_when_a_parked_run_goes_on() {
    let world = Arc::new(FixedWorld::at_ms(1_000));
    let (agent, answers) = waiting(
        Caps {
            requests: Some(3),
            ..Caps::default()
        },
        &world,
    )
    .await;
    let result = agent.resume(answers).await.expect("a limit is no error");
    assert_eq!((result.turns, result.total_usage.total()), (3, 330));
}

#[tokio::test(start_paused = true)]
async fn parked_time_is_free_when_a_run_goes_on() {
    let world = Arc::new(FixedWorld::at_ms(1_000));
    let (agent, answers) = waiting(
        Caps {
            wall_ms: Some(60_000),
            ..Caps::default()
        },
        &world,
    )
    .await;
    world.advance_ms(3_600_000);
    let result = agent.resume(answers).await.expect("the run waits again");
    assert!(
        matches!(result.outcome, Outcome::Paused { .. }),
        "{:?}",
        result.outcome
    );
    assert_eq!(result.turns, 9);
}

#[tokio::test]
async fn limits_of_a_child_hold_when_its_parent_has_none() {
    let agent = parent(work(|cx| async move {
        let (_, child) = worker(9);
        let child = child.limits(Limits {
            caps: Caps {
                requests: Some(3),
                ..Caps::default()
            },
            ..Limits::default()
        });
        let result = open(&cx, "a", child).await?.run("Go.").await?;
        Ok(CallResult::ok(format!(
            "{:?} {}",
            result.outcome, result.turns
        )))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["Limit { limit: Requests } 3"]);
}

#[tokio::test]
async fn limits_of_one_run_win_when_options_set_them() {
    let (model, agent) = worker(4);
    let agent = agent.max_turns(1);
    let none = agent
        .run("Go.")
        .max_turns(0)
        .await
        .expect("a limit is no error");
    assert_eq!(
        (none.outcome, model.requests().len()),
        (limited(Limit::Turns), 0)
    );
    let one = agent.run("Go.").await.expect("a limit is no error");
    assert_eq!(
        (one.outcome, model.requests().len()),
        (limited(Limit::Turns), 1)
    );
    let all = agent
        .run("Go.")
        .max_turns(None)
        .await
        .expect("the run finishes");
    assert_eq!((all.is_finished(), model.requests().len()), (true, 4));
}
