//! Hooks around a request: what they change is recorded, a denial fails the run, a failure can be mended.

use std::sync::Arc;

use adjutant_agent::{
    Action, Agent, CancelBy, EffectContext, EffectError, Failure, HookContext, Outcome, Record,
    Verdict,
    points::{AfterModel, BeforeModel, ModelError},
};
use adjutant_llm::{
    Block, Call, CallId, Edit, Entry, Error, ErrorKind as ModelErrorKind, FinishReason, Reply,
    Script, UserMessage,
};
use adjutant_tool::{Bound, Toolset};
use serde_json::json;

use super::{
    failure,
    stage::{self, agent, records, shown, step},
};

#[tokio::test]
async fn before_model_changes_view_and_tools_when_a_hook_says_so() {
    let (model, agent) = agent([
        Script::new().call("more", json!({})),
        Script::new().text("Yes."),
    ]);
    let agent = agent
        .tool(step())
        .on(|_: HookContext, mut point: BeforeModel| async move {
            assert!(point.tools.iter().any(|decl| decl.name.as_str() == "step"));
            if point.view.len() == 1 {
                point.edits.push(Edit::Append {
                    entry: Entry::User(UserMessage::text("Added.")),
                });
            }
            point.hidden.push("step".into());
            point
                .offered
                .push(Toolset::new([Bound::new(stage::named("more"))]));
            Verdict::Pass(point)
        });
    let result = agent.run("Go.").await.expect("it answers");
    assert_eq!(shown(&model.requests()[1]), ["Go.", "Added.", "<turn>"]);
    let names: Vec<String> = model.requests()[0]
        .tools
        .iter()
        .map(|decl| decl.name.to_string())
        .collect();
    assert_eq!(
        (names, result.calls[0].result.text()),
        (vec!["more".to_owned()], "done".to_owned())
    );
}

#[tokio::test]
async fn run_fails_when_before_model_denies_the_request() {
    let (model, agent, journal) = stage::logged([]);
    let denied = agent.clone().on(|_: HookContext, _: BeforeModel| async {
        Verdict::<BeforeModel>::Deny("not now".into())
    });
    let error = denied.run("Go.").await.expect_err("the hook denies");
    let expect = Failure::Denied {
        point: "before_model".into(),
        reason: "not now".into(),
    };
    assert_eq!((failure(&error), model.requests().len()), (expect, 0));
    let denied = Record::Denied {
        point: "before_model".into(),
        reason: "not now".into(),
        call: None,
    };
    assert!(records(&journal, &agent).await.contains(&denied));
}

fn revised(text: &str, calls: &[(u64, u32)]) -> Arc<Reply> {
    let mut reply = Reply::new(
        "scripted/model".into(),
        if calls.is_empty() {
            FinishReason::End
        } else {
            FinishReason::Calls
        },
    );
    reply.blocks.push(Arc::new(Block::text(text)));
    let call = |(turn, block): &(u64, u32)| {
        Call::new(
            CallId {
                turn: *turn,
                attempt: 0,
                block: *block,
            },
            "step",
            "{}",
        )
    };
    reply
        .blocks
        .extend(calls.iter().map(|at| Arc::new(Block::Call(call(at)))));
    Arc::new(reply)
}

#[tokio::test]
async fn after_model_changes_the_reply_when_it_says_so() {
    let (_, agent, journal) =
        stage::logged([Script::new().text("Rude."), Script::new().text("Bye.")]);
    let agent = agent
        .tool(step())
        .on(|_: HookContext, mut point: AfterModel| async move {
            if point.reply.text() == "Rude." {
                point.reply = revised("Kind.", &[(1, 7)]);
            }
            Verdict::Pass(point)
        });
    let result = agent.run("Go.").await.expect("it answers");
    assert_eq!((result.calls.len(), result.text().as_str()), (1, "Bye."));
    let originals = records(&journal, &agent)
        .await
        .into_iter()
        .filter_map(|record| match record {
            Record::Replied {
                reply, original, ..
            } => Some((reply.text(), original.map(|reply| reply.text()))),
            _ => None,
        });
    let expect = [
        ("Kind.".to_owned(), Some("Rude.".to_owned())),
        ("Bye.".to_owned(), None),
    ];
    assert_eq!(originals.collect::<Vec<_>>(), expect);
}

#[tokio::test]
async fn run_fails_when_a_revised_reply_has_ids_that_are_not_its_own() {
    let table: [(&[(u64, u32)], &str); 2] = [
        (
            &[(1, 1), (1, 1)],
            "a hook of after_model: two calls of a reply have one id",
        ),
        (
            &[(9, 1)],
            "a hook of after_model: a call has an id of another turn",
        ),
    ];
    for (calls, expect) in table {
        let (_, agent) = agent([Script::new().text("Rude.")]);
        let agent =
            agent
                .tool(step())
                .on(move |_: HookContext, mut point: AfterModel| async move {
                    point.reply = revised("Kind.", calls);
                    Verdict::Pass(point)
                });
        match failure(&agent.run("Go.").await.expect_err("the ids are wrong")) {
            Failure::Activity { message, .. } => assert_eq!(&*message, expect),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn model_error_is_mended_when_a_hook_gives_a_reply() {
    let broken = || Error::new(ModelErrorKind::Network, "the line is dead");
    let (_, agent, journal) = stage::logged([Script::new().text("Half a").fail(broken())]);
    let agent = agent.on(|_: HookContext, mut point: ModelError| async move {
        point.reply = Some(revised("Mended.", &[]));
        Verdict::Pass(point)
    });
    let result = agent.run("Go.").await.expect("it is mended");
    assert_eq!((result.text().as_str(), result.turns), ("Mended.", 1));
    let replied = records(&journal, &agent)
        .await
        .into_iter()
        .filter_map(|record| match record {
            Record::Replied { recovered, .. } => recovered,
            _ => None,
        });
    assert_eq!(replied.collect::<Vec<_>>(), [broken()]);
}

#[tokio::test]
async fn model_error_stays_when_no_hook_mends_it() {
    let broken = || Error::new(ModelErrorKind::Auth, "no key");
    for panics in [false, true] {
        let (_, agent) = agent([Script::new().fail(broken())]);
        let agent = agent.on(move |_: HookContext, point: ModelError| async move {
            assert!(!panics, "ouch");
            Verdict::Pass(point)
        });
        assert_eq!(
            failure(&agent.run("Go.").await.expect_err("it stays")),
            Failure::Model { error: broken() }
        );
    }
}

#[tokio::test]
async fn before_model_changes_one_request_when_it_edits() {
    let (model, agent) = agent([
        Script::new().call("step", json!({})),
        Script::new().call("step", json!({})),
        Script::new().text("Yes."),
    ]);
    let agent = agent
        .tool(step())
        .on(|_: HookContext, mut point: BeforeModel| async move {
            point.once.push(Edit::Append {
                entry: Entry::User(UserMessage::text("Mind.")),
            });
            if let Some(first) = point.view.get(0) {
                point.once.push(Edit::Replace {
                    at: first.id,
                    with: Entry::User(UserMessage::text("Went.")),
                });
            }
            Verdict::Pass(point)
        });
    let result = agent.run("Go.").await.expect("it answers");
    let shown: Vec<Vec<String>> = model.requests().iter().map(shown).collect();
    let expect: [&[&str]; 3] = [
        &["Went.", "Mind."],
        &["Went.", "<turn>", "Mind."],
        &["Went.", "<turn>", "<turn>", "Mind."],
    ];
    assert_eq!(shown, expect);
    assert_eq!(
        (result.entries.len(), result.text().as_str()),
        (4, "Yes."),
        "neither is in the history"
    );
}

#[tokio::test]
async fn run_ends_when_a_hook_or_an_effect_hangs_and_someone_wishes_to_stop() {
    struct Hanging;
    #[async_trait::async_trait]
    impl adjutant_agent::Effect for Hanging {
        fn kind(&self) -> &str {
            "hanging"
        }

        async fn act(&self, cx: EffectContext<'_>) -> Result<Vec<Action>, EffectError> {
            let waits = cx.turn.0 == 1;
            if waits {
                std::future::pending().await
            } else {
                Ok(Vec::new())
            }
        }
    }
    let before = |_: HookContext, _: BeforeModel| async {
        std::future::pending::<Verdict<BeforeModel>>().await
    };
    let after = |_: HookContext, _: AfterModel| async {
        std::future::pending::<Verdict<AfterModel>>().await
    };
    let error = |_: HookContext, _: ModelError| async {
        std::future::pending::<Verdict<ModelError>>().await
    };
    let broken = || Script::new().fail(Error::new(ModelErrorKind::Network, "the line is dead"));
    let table: [(Agent, usize); 4] = [
        (agent([]).1.effect(Hanging), 1),
        (agent([]).1.on::<BeforeModel>(before), 1),
        (
            agent([Script::new().text("Yes.")])
                .1
                .on::<AfterModel>(after),
            2,
        ),
        (agent([broken()]).1.on::<ModelError>(error), 2),
    ];
    for (agent, entries) in table {
        let mut running = agent.run("Go.").stream().expect("the session is free");
        let mut poll = Box::pin(async { while running.next().await.is_some() {} });
        for _ in 0..50 {
            assert!(futures_util::poll!(poll.as_mut()).is_pending(), "it hangs");
        }
        drop(poll);
        running.cancel();
        let result = running.finish().await.expect("a cancel is no failure");
        assert_eq!(result.outcome, Outcome::Cancelled { by: CancelBy::User });
        assert_eq!(result.entries.len(), entries, "what was said stays");
    }
}
