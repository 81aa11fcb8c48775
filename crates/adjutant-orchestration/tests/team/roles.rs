//! Roles: the lead's is not inherited, and a coordinator has only the tools of its team.

use std::sync::Arc;

use adjutant_agent::{Agent, LogId, Spawn};
use adjutant_llm::{CallResult, Entry, Request, Script, ScriptedModel};
use adjutant_tool::{CallContext, ErasedTool, ToolSpec, Tools, tool_fn};
use serde_json::{Value, json};

use super::desk::{agent, call, led, results, says, spawn, team, wait, wait_team};

const LEADS: [&str; 9] = [
    "spawn_teammate",
    "assign_task",
    "stop_teammate",
    "team_status",
    "wait_for_team",
    "send_message",
    "read_messages",
    "wait_for_message",
    "list_teammates",
];
const MEMBERS: [&str; 4] = [
    "send_message",
    "read_messages",
    "wait_for_message",
    "list_teammates",
];

fn own(name: &'static str) -> impl ErasedTool + 'static {
    let spec = ToolSpec::new(name, "A tool.", json!({"type": "object"}));
    tool_fn(spec, |_: Value, _: CallContext| async {
        Ok(CallResult::ok("It ran."))
    })
}

fn names(request: &Request) -> Vec<String> {
    request
        .tools
        .iter()
        .map(|tool| tool.name.to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn members_have_only_the_tools_for_talking() {
    let model = Arc::new(ScriptedModel::new([spawn("b"), says("Refused.")]));
    let crew = team().template("a", Agent::new(Arc::clone(&model)));
    let boss = Arc::new(ScriptedModel::new([spawn("a"), wait(), says("Done.")]));
    crew.install(Agent::new(Arc::clone(&boss)).tool(own("hammer")))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(names(&model.requests()[0]), MEMBERS);
    assert!(
        format!("{:?}", model.requests()[1].entries).contains("spawn_teammate"),
        "the call was answered"
    );
    assert_eq!(
        names(&boss.requests()[0]),
        ["hammer"].into_iter().chain(LEADS).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn agent_under_the_lead_is_no_lead_when_it_has_its_configuration() {
    let model = Arc::new(ScriptedModel::new([
        call("clone_me", json!({})),
        spawn("b"),
        says("I am a clone."),
        spawn("a"),
        wait(),
        says("Done."),
    ]));
    let spec = ToolSpec::new("clone_me", "A tool.", json!({"type": "object"}));
    let clone_me = tool_fn(spec, |_: Value, cx: CallContext| async move {
        let spawn = cx.get::<dyn Spawn>().expect("a call of a run");
        let child = spawn.open("clone", spawn.parent().agent).await?;
        Ok(CallResult::ok(child.run("Go.").await?.text()))
    });
    let crew = team()
        .template("a", agent([says("Yes.")]))
        .template("b", agent([says("Never.")]));
    let lead = crew.install(Agent::new(Arc::clone(&model)).tool(clone_me));
    let result = lead.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result)[0], "I am a clone.");
    let asked: Vec<usize> = model
        .requests()
        .iter()
        .map(|request| request.tools.len())
        .collect();
    assert_eq!(
        asked,
        [10, 1, 1, 10, 10, 10],
        "the clone has none of the team's"
    );
    assert_eq!(
        results(&result)[1],
        r#"{"member_id":"teammate-1","name":"a","status":"active"}"#
    );
}

#[tokio::test(start_paused = true)]
async fn coordinator_has_only_the_tools_of_the_team() {
    let model = Arc::new(ScriptedModel::new([
        call("hammer", json!({})),
        spawn("a"),
        wait(),
        says("Done."),
    ]));
    let board = Tools::new("board").tool(own("list_board"));
    let crew = team()
        .coordinator()
        .board_tools(board)
        .template("a", agent([call("list_board", json!({})), says("Yes.")]));
    let lead = crew.install(Agent::new(Arc::clone(&model)).tool(own("hammer")));
    let result = lead.run("Go.").await.expect("the run finishes");
    assert!(result.calls[0].result.is_error(), "{:?}", results(&result));
    assert!(!results(&result)[0].contains("It ran."));
    let expected: Vec<&str> = LEADS.into_iter().chain(["list_board"]).collect();
    assert!(
        model
            .requests()
            .iter()
            .all(|request| names(request) == expected),
        "{:?}",
        names(&model.requests()[0])
    );
}

#[tokio::test(start_paused = true)]
async fn board_tools_are_given_to_everyone() {
    let model = Arc::new(ScriptedModel::new([
        call("list_board", json!({})),
        says("Yes."),
    ]));
    let crew = team()
        .board_tools(Tools::new("board").tool(own("list_board")))
        .template("a", Agent::new(Arc::clone(&model)));
    led(&crew, [spawn("a"), wait(), says("Done.")]).await;
    assert_eq!(
        names(&model.requests()[0]),
        MEMBERS
            .into_iter()
            .chain(["list_board"])
            .collect::<Vec<_>>()
    );
    assert!(format!("{:?}", model.requests()[1].entries).contains("It ran."));
}

#[tokio::test(start_paused = true)]
async fn sessions_know_nothing_of_each_other_when_one_agent_leads_in_both() {
    let step = || {
        Script::from_fn(|request| {
            match request
                .entries
                .iter()
                .filter(|it| matches!(it.entry, Entry::Turn(_)))
                .count()
            {
                0 => spawn("a"),
                1 => wait_team(),
                2 => call("list_teammates", json!({})),
                _ => says("Done."),
            }
        })
    };
    let crew = team().template("a", agent([says("One."), says("Two.")]));
    let lead = crew.install(agent((0..12).map(|_| step())));
    let (lead, other) = (
        lead.session(LogId("one".into())),
        lead.session(LogId("two".into())),
    );
    assert_eq!(lead.identity(), other.identity());
    let (one, two) = tokio::join!(lead.run("Go."), other.run("Go."));
    for result in [
        one.expect("the run finishes"),
        two.expect("the run finishes"),
    ] {
        assert_eq!(
            results(&result)[0],
            r#"{"member_id":"teammate-1","name":"a","status":"active"}"#
        );
        assert_eq!(
            results(&result)[2].matches("\"name\"").count(),
            2,
            "the lead and its member"
        );
    }
}
