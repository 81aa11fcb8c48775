//! Effects, hooks and closures that do nonsense.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{
    Action, Agent, AtLimit, BoxDrive, CancelBy, DriveContext, Effect, EffectContext, EffectError,
    EventKind, Failure, HookContext, Limits, NextDrive, Outcome, Verdict,
    effects::{ProgressNotes, ToolScope, effect_fn},
    middleware_fn,
    points::{AfterAgent, BeforeAgent, BeforeModel},
};
use adjutant_llm::{
    Block, CallResult, Custom, Edit, Entry, EntryId, FinishReason, Reply, Script, Status, Summary,
};
use adjutant_tool::{Answer, Bound, ToolSpec, Toolset, tool_fn};
use async_trait::async_trait;
use serde_json::json;

use super::stage::{agent, done, say, shown};

fn tool(name: &str, said: &'static str) -> impl adjutant_tool::ErasedTool + 'static {
    let spec = ToolSpec::new(name, "A tool.", json!({"type": "object"}));
    tool_fn(spec, move |_, _| async move { Ok(CallResult::ok(said)) })
}

/// An effect that panics where only its name is asked, or never ends.
struct Odd {
    hangs: bool,
}

#[async_trait]
impl Effect for Odd {
    fn kind(&self) -> &str {
        if self.hangs {
            "odd"
        } else {
            unreachable!("it has no name")
        }
    }

    async fn act(&self, _: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn run_fails_when_an_effect_panics_at_its_name() {
    let (_, agent) = agent(9_000, [done()]);
    let agent = agent.effect(Odd { hangs: false });
    agent.run("Go.").await.expect_err("it fails");
    agent.log().preview("Go.").await.expect_err("it fails");
}

#[tokio::test]
async fn run_fails_when_an_entry_cannot_be_converted() {
    let (_, agent) = agent(9_000, [done()]);
    let agent = agent.convert(|_| panic!("no way"));
    let custom = || {
        vec![
            Entry::Custom(Custom {
                kind: "note".into(),
                value: json!({}),
            }),
            Entry::User("Go.".into()),
        ]
    };
    agent.log().preview(custom()).await.expect_err("it fails");
    agent.run(custom()).await.expect_err("it fails");
}

#[tokio::test(start_paused = true)]
async fn run_is_cancelled_when_an_effect_hangs() {
    let (_, agent) = agent(9_000, [done()]);
    let running = agent
        .effect(Odd { hangs: true })
        .run("Go.")
        .stream()
        .expect("the session is free");
    let stopper = running.stopper();
    let finished = tokio::spawn(running.finish());
    tokio::time::sleep(Duration::from_secs(1)).await;
    stopper.stop(CancelBy::User);
    let result = finished
        .await
        .expect("no panic")
        .expect("a cancel is no error");
    assert!(matches!(result.outcome, Outcome::Cancelled { .. }));
}

#[tokio::test]
async fn run_fails_when_an_effect_edits_what_is_not_there() {
    let summary = || Summary {
        text: "".into(),
        covers: u64::MAX,
    };
    let edits: [fn() -> Edit; 3] = [
        || Edit::Replace {
            at: EntryId(77),
            with: Entry::User("x".into()),
        },
        || Edit::Fold {
            upto: EntryId(u64::MAX),
            keep: Vec::new(),
            into: Summary {
                text: "".into(),
                covers: 1,
            },
        },
        || Edit::Fold {
            upto: EntryId(0),
            keep: vec![EntryId(0), EntryId(5)],
            into: Summary {
                text: "".into(),
                covers: 1,
            },
        },
    ];
    for edit in edits {
        let (_, agent) = agent(9_000, [done()]);
        let agent = agent.effect(effect_fn("bad", move |_| Ok(vec![Action::Edit(edit())])));
        agent.run("Go.").await.expect_err("it fails");
        assert_eq!(agent.log().transcript().len(), 1);
    }
    // Everything may go, and everything that is said comes after it.
    let (model, agent) = agent(9_000, [say(json!({"text": "a"})), done()]);
    let fold = move |cx: EffectContext<'_>| {
        let upto = cx.view.items().last().expect("something").id;
        Ok(vec![Action::Edit(Edit::Fold {
            upto,
            keep: Vec::new(),
            into: summary(),
        })])
    };
    agent
        .effect(effect_fn("all", fold))
        .run("Go.")
        .await
        .expect("it answers");
    assert_eq!(shown(&model), [vec!["summary: "], vec!["summary: "]]);
}

#[tokio::test]
async fn last_offer_wins_or_loses_by_one_rule_when_a_tool_is_shadowed() {
    let (model, agent) = agent(9_000, [say(json!({"text": "a"})), done()]);
    let offered = Toolset::new([Bound::new(tool("say", "shadow"))]);
    let effect = effect_fn("shadow", move |_| Ok(vec![Action::Offer(offered.clone())]));
    let result = agent.effect(effect).run("Go.").await.expect("it answers");
    assert_eq!(model.requests()[0].tools.len(), 1);
    assert_eq!(
        result.calls[0].result.text(),
        "a",
        "the agent's own tool stays"
    );
}

#[tokio::test]
async fn call_is_refused_when_all_tools_are_hidden() {
    let (model, agent) = agent(9_000, [say(json!({"text": "a"})), done()]);
    let result = agent
        .effect(ToolScope {
            allow: Some(Vec::new()),
            ..ToolScope::default()
        })
        .run("Go.")
        .await
        .expect("it answers");
    assert_eq!(model.requests()[0].tools.len(), 0);
    assert!(result.calls[0].result.is_error());
}

#[tokio::test]
async fn note_is_not_asked_for_when_its_tool_is_hidden() {
    let (model, agent) = agent(
        9_000,
        (0..3).map(|_| say(json!({"text": "a"}))).chain([done()]),
    );
    let agent = agent.tool(tool("write_note", "noted")).effect(ToolScope {
        exclude: vec!["write_note".into()],
        ..ToolScope::default()
    });
    agent
        .effect(ProgressNotes {
            every: 1,
            ..ProgressNotes::default()
        })
        .run("Go.")
        .await
        .expect("it answers");
    let last = shown(&model).pop().expect("there are requests");
    assert!(
        last.iter().all(|line| !line.starts_with("[progress]")),
        "{last:?}"
    );
}

#[tokio::test]
async fn note_is_not_asked_for_when_no_tool_may_be_called() {
    let (model, agent) = agent(
        9_000,
        (0..2).map(|_| say(json!({"text": "a"}))).chain([done()]),
    );
    let agent = agent
        .tool(tool("write_note", "noted"))
        .effect(ProgressNotes {
            every: 2,
            ..ProgressNotes::default()
        });
    let agent = agent.limits(Limits {
        max_turns: Some(2),
        at_limit: AtLimit::LastTurn,
        ..Limits::default()
    });
    agent.run("Go.").await.expect("a limit is no error");
    let last = shown(&model).pop().expect("there are requests");
    assert!(
        last.iter().all(|line| !line.starts_with("[progress]")),
        "{last:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_someone_extends_a_limit_by_nothing_for_ever() {
    let (_, agent) = agent(9_000, (0..3).map(|_| say(json!({"text": "a"}))));
    let limits = Limits {
        max_turns: Some(1),
        at_limit: AtLimit::Ask,
        ..Limits::default()
    };
    let agent = agent.limits(limits).responder(|_, _| async {
        Some(Answer::Extend {
            by: 0,
            message: None,
        })
    });
    let ran = tokio::time::timeout(Duration::from_secs(5), agent.run("Go.")).await;
    let result = ran
        .expect("it does not go on for ever")
        .expect("a limit is no error");
    assert!(!result.is_finished(), "{:?}", result.outcome);
}

fn replying(text: &str) -> Reply {
    let mut reply = Reply::new("scripted/model".into(), FinishReason::End);
    reply.blocks.push(Arc::new(Block::text(text)));
    reply
}

fn answering(agent: Agent, reply: Reply) -> Agent {
    agent.on(move |_: HookContext, mut point: BeforeAgent| {
        point.answer = Some(Arc::new(reply.clone()));
        async move { Verdict::Pass(point) }
    })
}

#[tokio::test]
async fn queued_messages_are_answered_when_a_hook_answers_the_prompt() {
    let (model, agent) = agent(
        9_000,
        [
            Script::new().text("Steered."),
            Script::new().text("Followed."),
        ],
    );
    let agent = answering(agent, replying("At once."));
    agent.queue().follow_up("And then?").expect("there is room");
    agent.queue().steer("Also this.").expect("there is room");
    let result = agent.run("Go.").await.expect("it answers");
    assert!(result.is_finished());
    assert!(agent.queue().is_empty(), "nothing is lost");
    let texts: Vec<_> = shown(&model).pop().unwrap_or_default();
    assert!(
        texts.contains(&"user: And then?".to_owned())
            && texts.contains(&"user: Also this.".to_owned()),
        "{texts:?}"
    );
}

#[tokio::test]
async fn log_event_and_result_agree_when_a_hook_changes_the_answer() {
    let (_, agent) = agent(9_000, [done()]);
    let agent = agent.on(|_: HookContext, mut point: AfterAgent| async move {
        point.reply = Some(Arc::new(replying("Better.")));
        Verdict::Pass(point)
    });
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut told = Vec::new();
    while let Some(event) = running.next().await {
        if let EventKind::RunFinished { result } = event.kind {
            told.push(result.text());
        }
    }
    let result = running
        .result()
        .expect("it has ended")
        .expect("it answers")
        .clone();
    assert_eq!(
        (told, result.text().as_str()),
        (vec!["Better.".to_owned()], "Better.")
    );
    let Outcome::Finished { reply, .. } = &result.outcome else {
        unreachable!("{:?}", result.outcome)
    };
    assert_eq!(reply.text(), "Better.");
}

#[tokio::test]
async fn run_fails_when_a_hook_before_the_model_edits_what_is_not_there() {
    let (_, agent) = agent(9_000, [done()]);
    let agent = agent.on(|_: HookContext, mut point: BeforeModel| async move {
        point.once.push(Edit::Replace {
            at: EntryId(9),
            with: Entry::User("x".into()),
        });
        Verdict::Pass(point)
    });
    let error = agent.run("Go.").await.expect_err("it fails");
    assert!(
        error.to_string().contains("before_model") || format!("{error:?}").contains("before_model"),
        "{error:?}"
    );
}

#[tokio::test]
async fn drive_may_go_on_when_a_middleware_calls_it_after_a_cancel() {
    let (model, agent) = agent(9_000, [done()]);
    let late = middleware_fn(
        "late",
        |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
            Box::pin(async move {
                cx.stopper.stop(CancelBy::User);
                let result = next.run(cx).await?;
                assert!(
                    matches!(result.outcome, Outcome::Cancelled { .. }),
                    "{:?}",
                    result.outcome
                );
                Err(Failure::Middleware {
                    message: "late".into(),
                })
            })
        },
    );
    let result = agent.middleware(late).run("Go.").await;
    let error = result.expect_err("the middleware has the last word");
    assert!(format!("{error:?}").contains("late"), "{error:?}");
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn calls_of_an_answer_are_closed_when_a_hook_answers_with_calls() {
    let (_, agent) = agent(9_000, [done()]);
    let reply = Reply {
        stop: FinishReason::Length,
        ..replying("x")
    };
    let agent = answering(agent, reply);
    let result = agent.run("Go.").await.expect("it answers");
    assert!(result.is_finished());
    assert!(
        result
            .calls
            .iter()
            .all(|call| call.result.status != Status::Ok)
    );
}
