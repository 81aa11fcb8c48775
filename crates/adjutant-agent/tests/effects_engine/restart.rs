//! What was recorded of a turn counts for a program that goes on with it: the request is the one that was prepared.

use std::sync::Arc;

use adjutant_agent::{
    Action, Agent, AtLimit, Flush, Journal, Limits, LogId, MemoryJournal, Owner, Record, RunChange,
    Seq, Stamped, effects::effect_fn,
};
use adjutant_llm::{Effort, ModelInfo, Request, Script, ScriptedModel, ToolChoice};
use adjutant_tool::{Bound, Toolset};
use futures_util::StreamExt;
use serde_json::json;

use super::stage::{self, step};

/// A journal with the records of a log up to the one that is wanted, that one as `change` makes it.
async fn copy(
    from: &MemoryJournal,
    id: &LogId,
    change: impl Fn(&Record) -> Option<Record>,
) -> MemoryJournal {
    let mut cut = Vec::new();
    let mut records = from.read(id, Seq(0));
    while let Some(stamped) = records.next().await {
        let stamped = stamped.expect("memory does not fail");
        let Some(record) = change(&stamped.record) else {
            cut.push(stamped);
            continue;
        };
        cut.push(Arc::new(Stamped::new(
            stamped.seq,
            stamped.at_ms,
            stamped.thread.clone(),
            record,
        )));
        break;
    }
    let copy = MemoryJournal::default();
    let mut log = copy
        .own(
            id,
            &Owner {
                takes_over: true,
                ..Owner::default()
            },
        )
        .await
        .expect("it is free");
    log.append(&cut, Flush::Now)
        .await
        .expect("memory does not fail");
    copy
}

fn names(request: &Request) -> Vec<&str> {
    request
        .tools
        .iter()
        .map(|decl| decl.name.as_str())
        .collect()
}

#[tokio::test]
async fn request_is_the_same_when_another_program_goes_on_after_the_turn_was_prepared() {
    let (model, agent, journal) =
        stage::logged([Script::new().text("Yes."), Script::new().text("Yes.")]);
    let offered = Toolset::new([Bound::new(stage::named("more"))]);
    let effect = effect_fn("shape", move |cx| {
        let mut actions = vec![
            Action::Hide(vec!["step".into()]),
            Action::Offer(offered.clone()),
        ];
        if cx.fresh().next().is_some() {
            actions.push(Action::Remind("Mind.".into()));
        }
        Ok(actions)
    });
    let agent = agent
        .tool(step())
        .tool(stage::named("other"))
        .effect(effect);
    agent.run("Go.").await.expect("it answers");
    let id = agent.session_id().clone();
    let prepared =
        |record: &Record| matches!(record, Record::Prepared { .. }).then(|| record.clone());
    let later = agent
        .journal(copy(&journal, &id, prepared).await)
        .session(id);
    assert_eq!(
        later.resume(Vec::new()).await.expect("it answers").text(),
        "Yes."
    );
    let requests = model.requests();
    assert_eq!(requests[0], requests[1]);
    assert_eq!(names(&requests[1]), ["other", "more"]);
}

/// A log of two turns, in which the first one ends with this change; and an agent that can go on with it.
async fn changed(change: RunChange) -> (Arc<ScriptedModel>, Arc<ScriptedModel>, Agent) {
    let (_, agent, journal) = stage::logged([
        Script::new().call("step", json!({})),
        Script::new().text("Yes."),
    ]);
    let agent = agent.tool(step()).tool(stage::named("other"));
    agent.run("Go.").await.expect("it answers");
    let id = agent.session_id().clone();
    let settled = |record: &Record| match record {
        Record::Settled { turn, .. } => Some(Record::Settled {
            turn: *turn,
            stop: false,
            change: change.clone(),
        }),
        _ => None,
    };
    let own = Arc::new(ScriptedModel::new([Script::new().text("Own.")]));
    let other = Arc::new(
        ScriptedModel::new([Script::new().text("Other.")]).info(ModelInfo::new("test/other")),
    );
    let agent = agent
        .model(Arc::clone(&own))
        .alternative(Arc::clone(&other));
    (
        own,
        other,
        agent
            .journal(copy(&journal, &id, settled).await)
            .session(id),
    )
}

#[tokio::test]
async fn next_turn_is_asked_as_the_turn_before_it_chose() {
    let mut change = RunChange::default();
    change.model = Some("test/other".into());
    change.thinking = Some(Effort::High);
    change.tools = Some(vec!["other".into()]);
    let (own, other, agent) = changed(change).await;
    assert_eq!(
        agent.resume(Vec::new()).await.expect("it answers").text(),
        "Other."
    );
    let request = other.requests().pop().expect("it was asked");
    assert_eq!(
        (
            own.requests().len(),
            request.options.thinking,
            names(&request)
        ),
        (0, Some(Effort::High), vec!["other"])
    );
}

#[tokio::test]
async fn run_is_not_resumed_when_the_model_that_it_chose_is_not_known() {
    let mut change = RunChange::default();
    change.model = Some("test/gone".into());
    let (_, _, agent) = changed(change).await;
    let error = agent
        .resume(Vec::new())
        .await
        .expect_err("another model is not asked in its place");
    assert_eq!(error.kind(), adjutant_agent::ErrorKind::Model);
    let names = "test/gone, which the agent does not know (it knows scripted/model, test/other)";
    assert!(error.to_string().contains(names), "{error}");
    // Unless the application says so.
    let other = ScriptedModel::new([Script::new().text("As said.")]);
    assert_eq!(
        agent
            .resume(Vec::new())
            .model(other)
            .await
            .expect("it answers")
            .text(),
        "As said."
    );
}

#[tokio::test]
async fn last_turn_may_call_no_tools_when_a_limit_was_reached() {
    let (model, agent) = stage::agent([
        Script::new().call("step", json!({})),
        Script::new().text("So far."),
    ]);
    let limits = Limits {
        max_turns: Some(1),
        at_limit: AtLimit::LastTurn,
        ..Limits::default()
    };
    agent
        .tool(step())
        .limits(limits)
        .run("Go.")
        .await
        .expect("a limit is no failure");
    let choices: Vec<ToolChoice> = model
        .requests()
        .iter()
        .map(|request| request.options.tool_choice.clone())
        .collect();
    assert_eq!(choices, [ToolChoice::Auto, ToolChoice::None]);
    assert!(
        Arc::ptr_eq(&model.requests()[0].tools, &model.requests()[1].tools),
        "the prefix stays the same"
    );
}
