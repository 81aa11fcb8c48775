//! Answers of the agent's own model, for tools: under the budget of the run, and counted as the call's.

#[expect(dead_code, reason = "several targets share it, each uses its part")]
#[path = "subagents/desk.rs"]
mod desk;

use std::sync::Arc;

use adjutant_agent::{Agent, Caps, Limits, MemoryJournal, Outcome, Record};
use adjutant_llm::{
    CallResult, Error, ErrorKind, Gate, ModelInfo, NanoUsd, Options, Price, Request, Script,
    ScriptedModel, ToolDecl,
};
use adjutant_tool::{CallContext, ErasedTool, Replay, Sampler, ToolError};
use serde_json::json;

use desk::{calls, open, parent, records, results, says, tool, usage, work};

/// Asks for one answer.
async fn sample(cx: &CallContext, request: Request) -> Result<CallResult, ToolError> {
    let reply = cx
        .get::<dyn Sampler>()
        .expect("a call of a run")
        .sample(request)
        .await?;
    Ok(CallResult::ok(format!(
        "{} said {:?}",
        reply.model,
        reply.text()
    )))
}

fn asking(request: Request) -> impl ErasedTool + 'static {
    work(move |cx| {
        let request = request.clone();
        async move { sample(&cx, request).await }
    })
}

/// The model of an agent that calls a tool, gives the tool this answer, and is done; and the agent.
fn stage(
    answer: Script,
    work: impl ErasedTool + 'static,
) -> (Arc<ScriptedModel>, Agent, MemoryJournal) {
    let mut info = ModelInfo::new("scripted/model");
    info.price = Some(Price::dollars(1.0, 100.0, 1.0, 1.0));
    let model = Arc::new(ScriptedModel::new([calls(&["work"]), answer, says("Done.")]).info(info));
    let journal = MemoryJournal::default();
    let agent = Agent::new(Arc::clone(&model))
        .instructions("Work.")
        .tool(work)
        .journal(journal.clone());
    (model, agent, journal)
}

/// What the log tells that calls have spent.
async fn spent(agent: &Agent, journal: &MemoryJournal) -> Vec<(u64, Option<u64>, u64)> {
    let log = records(journal, agent.session_id()).await;
    let spent = log.iter().filter_map(|it| match &it.record {
        Record::Spent {
            usage,
            cost,
            requests,
            ..
        } => Some((usage.total(), cost.map(|it| it.0), *requests)),
        _ => None,
    });
    spent.collect()
}

#[tokio::test]
async fn tool_gets_an_answer_when_it_asks_the_model_of_its_agent() {
    let options = Options {
        temperature: Some(0.5),
        stop: vec!["END".into()],
        server_tools: vec![json!({"type": "search"})],
        ..Options::default()
    };
    let decl = ToolDecl {
        name: "evil".into(),
        description: "x".into(),
        schema: Arc::new(json!({})),
    };
    let asked = Request {
        tools: [decl].into(),
        ..Request::new()
            .system("Be short.")
            .options(options)
            .user("Why?")
    };
    let void = says("Void.");
    let answer = says("So.").after_retracted(void, Error::new(ErrorKind::Protocol, "down"));
    let (model, agent, journal) = stage(answer, asking(asked));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), [r#"scripted/model said "So.""#]);
    assert_eq!(
        (result.usage, result.total_usage),
        (usage(200, 20), usage(400, 40))
    );
    assert_eq!(result.total_cost, Some(NanoUsd(4 * 1_100_000)));
    assert_eq!(spent(&agent, &journal).await, [(220, Some(2_200_000), 1)]);
    let sent = &model.requests()[1];
    assert_eq!(
        (&*sent.system, sent.tools.len(), sent.entries.len()),
        ("Be short.", 0, 1)
    );
    let options = &sent.options;
    assert_eq!(
        (
            options.max_output_tokens,
            options.temperature,
            options.stop.len()
        ),
        (Some(1_024), Some(0.5), 1)
    );
    assert!(options.server_tools.is_empty());
    assert_eq!(
        agent.log().transcript().len(),
        3,
        "it stands in no conversation"
    );
}

#[tokio::test]
async fn model_is_not_asked_when_the_request_or_a_limit_forbids_it() {
    let caps = |tokens, requests| Caps {
        tokens,
        requests,
        ..Caps::default()
    };
    let table = [
        (
            Request::new(),
            caps(None, None),
            "there is no message for it",
        ),
        (
            Request::new().user("x".repeat(700_000)),
            caps(None, None),
            "tokens do not fit its window of 128000",
        ),
        (
            Request::new().user("Why?"),
            caps(None, Some(1)),
            "the limit of requests leaves no room for it",
        ),
        (
            Request::new().user("x".repeat(40_000)),
            caps(Some(9_000), None),
            "the limit of tokens leaves no room for it",
        ),
    ];
    for (request, caps, expect) in table {
        let (model, agent, journal) = stage(says("Done."), asking(request));
        let agent = agent.limits(Limits {
            caps,
            ..Limits::default()
        });
        let result = agent.run("Go.").await.expect("a limit is no error");
        assert!(
            results(&result)[0].contains(expect),
            "{expect}: {:?}",
            results(&result)
        );
        assert_eq!(spent(&agent, &journal).await, [], "{expect}");
        assert!(
            model.requests().iter().all(|it| !it.system.is_empty()),
            "{expect}"
        );
    }
}

#[tokio::test]
async fn answer_is_cut_to_what_is_left_and_counts_in_every_budget_above() {
    let asked = || {
        Request::new()
            .options(Options {
                max_output_tokens: Some(8_000),
                ..Options::default()
            })
            .user("Why?")
    };
    let agent = parent(work(move |cx| async move {
        let (model, agent, _) = stage(says("So."), asking(asked()));
        let child = open(&cx, "a", agent).await?.run("Go.").await?;
        let cut = model.requests()[1]
            .options
            .max_output_tokens
            .is_some_and(|most| most < 2_000);
        Ok(CallResult::ok(format!(
            "{} {cut} {:?}",
            results(&child)[0],
            child.total_usage.total()
        )))
    }));
    let caps = Caps {
        tokens: Some(2_000),
        requests: Some(4),
        depth: Some(3),
        ..Caps::default()
    };
    let result = agent
        .limits(Limits {
            caps,
            ..Limits::default()
        })
        .run("Go.")
        .await
        .expect("a limit is no error");
    assert_eq!(results(&result), [r#"scripted/model said "So." true 330"#]);
    // Two of its own and two of the child's were let through, the answer took the fourth.
    assert_eq!(
        (result.outcome, result.total_usage.total()),
        (
            Outcome::Limit {
                limit: adjutant_agent::Limit::Requests
            },
            440
        )
    );
}

#[tokio::test]
async fn what_was_used_counts_when_the_answer_fails() {
    let broken = says("Half").fail(Error::new(ErrorKind::Protocol, "down"));
    let (_, agent, journal) = stage(broken, asking(Request::new().user("Why?")));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert!(
        results(&result)[0].starts_with("the model gave no answer: down"),
        "{:?}",
        results(&result)
    );
    assert_eq!(
        spent(&agent, &journal)
            .await
            .iter()
            .map(|it| it.2)
            .collect::<Vec<_>>(),
        [1]
    );
}

#[tokio::test(start_paused = true)]
async fn request_ends_when_the_call_is_stopped_or_its_time_is_over() {
    let gate = Gate::default();
    let slow = || says("Slow.").wait_at(0, &gate);
    for caps in [
        Caps::default(),
        Caps {
            tokens: Some(50_000),
            ..Caps::default()
        },
    ] {
        let (_, agent, journal) = stage(slow(), asking(Request::new().user("Why?")));
        let agent = agent.limits(Limits {
            caps: Caps {
                wall_ms: Some(5_000),
                ..caps
            },
            ..Limits::default()
        });
        let result = agent.run("Go.").await.expect("a limit is no error");
        assert!(
            results(&result)[0].contains("was stopped or has ended"),
            "{:?}",
            results(&result)
        );
        assert_eq!(spent(&agent, &journal).await.len(), 1);
    }
}

#[tokio::test]
async fn nobody_is_asked_when_there_is_no_run_or_the_call_has_ended() {
    assert!(CallContext::detached().get::<dyn Sampler>().is_none());
    let (sender, late) = std::sync::mpsc::channel();
    let keeps = tool("work", Replay::Once, move |cx| {
        sender
            .send(cx.get::<dyn Sampler>().expect("a call of a run"))
            .expect("the test waits");
        async { Ok(CallResult::ok("kept")) }
    });
    let (model, agent, _) = stage(says("Done."), keeps);
    agent.run("Go.").await.expect("the run finishes");
    let late = late
        .recv()
        .expect("it was sent")
        .sample(Request::new().user("Why?"))
        .await;
    assert!(
        late.expect_err("too late")
            .message
            .contains("was stopped or has ended")
    );
    assert_eq!(model.requests().len(), 2);
}
