//! The tools of a lead: spawn, assign, stop, look, and wait for the team.

use std::{sync::Arc, time::Duration};

use adjutant_agent::RunLine;
use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Replay, ToolError, ToolSpec, Tools};
use serde::Deserialize;
use serde_json::json;

use super::{
    LEAD, MemberStatus, TeamPlan,
    drive::OpenRosters,
    recipe::NewMember,
    roster::Roster,
    talk_tools::{self, MAX_WAIT, Speaker, seconds, spec, text, tool, waiting},
    texts,
    wait::{Until, Watched},
};

/// The default time in seconds that the lead waits for its team.
const WAIT_S: u64 = 600;

#[derive(Debug, Deserialize)]
struct Spawned {
    name: Arc<str>,
    task: Arc<str>,
    template: Option<Arc<str>>,
    system_prompt: Option<Arc<str>>,
    max_turns: Option<u32>,
    timeout_s: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Assigned {
    name: Arc<str>,
    task: Arc<str>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: Arc<str>,
}

#[derive(Debug, Deserialize)]
struct Nothing {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Waited {
    timeout_s: Option<u64>,
    until: Until,
}

/// The tools of a lead, those for talking included.
pub(super) fn tools(plan: &TeamPlan, open: &Arc<OpenRosters>) -> Tools {
    let lead = Speaker::Lead(Arc::clone(open));
    let tools = Tools::new("team")
        .tool(tool(&lead, spawn_spec(plan), spawn))
        .tool(tool(&lead, assign_spec(), assign))
        .tool(tool(&lead, stop_spec(), stop))
        .tool(tool(&lead, status_spec(), status))
        .tool(tool(&lead, wait_spec(), wait));
    talk_tools::add(tools, &lead)
}

impl Roster {
    /// Keeps the newest line to the run of the lead.
    pub(super) fn hear_line(&self, cx: &CallContext) -> Result<(), ToolError> {
        let line = RunLine::from_context(cx)?;
        self.state().line = Some(line);
        Ok(())
    }
}

async fn spawn(
    roster: Arc<Roster>,
    _: Arc<str>,
    args: Spawned,
    cx: CallContext,
) -> Result<CallResult, ToolError> {
    let new = NewMember {
        name: Arc::clone(&args.name),
        task: args.task,
        template: args.template,
        system_prompt: args.system_prompt,
        max_turns: args.max_turns,
        timeout: args.timeout_s.map(Duration::from_secs),
    };
    let id = roster.spawn(&cx, new).await?;
    let said = json!({"member_id": id, "name": args.name, "status": MemberStatus::Active});
    let text = said.to_string();
    Ok(CallResult {
        details: said,
        ..CallResult::ok(text)
    })
}

async fn assign(
    roster: Arc<Roster>,
    _: Arc<str>,
    args: Assigned,
    cx: CallContext,
) -> Result<CallResult, ToolError> {
    roster.assign(&cx, &args.name, args.task).await?;
    Ok(CallResult::ok(format!(
        "{:?} is at work on it.",
        &*args.name
    )))
}

async fn stop(
    roster: Arc<Roster>,
    _: Arc<str>,
    args: Named,
    _: CallContext,
) -> Result<CallResult, ToolError> {
    Ok(CallResult::ok(match roster.stop(&args.name).await? {
        MemberStatus::Active => format!("{:?} was told to stop, and has not yet.", &*args.name),
        status => format!("{:?} does not work: {}.", &*args.name, status.words()),
    }))
}

async fn status(
    roster: Arc<Roster>,
    _: Arc<str>,
    _: Nothing,
    _: CallContext,
) -> Result<CallResult, ToolError> {
    let (report, now_ms) = (roster.report(), roster.now_ms());
    let of = |member: &super::MemberReport| {
        json!({
            "id": member.id, "name": member.name, "status": member.status, "task": member.task,
            "for_s": now_ms.saturating_sub(member.since_ms) / 1_000, "unread": member.unread.len(),
            "waiting": member.waiting, "result": member.result,
        })
    };
    let members: Vec<_> = report.members.iter().map(of).collect();
    let said = json!({"team": report.team, "members": members, "unread": report.unread.len()});
    Ok(CallResult {
        details: json!(report),
        ..CallResult::ok(said.to_string())
    })
}

async fn wait(
    roster: Arc<Roster>,
    _: Arc<str>,
    args: Waited,
    cx: CallContext,
) -> Result<CallResult, ToolError> {
    let time = Duration::from_secs(args.timeout_s.unwrap_or(WAIT_S)).min(MAX_WAIT);
    let watched = roster.watch(args.until, time, &cx.cancel).await;
    let report = roster.report_of_run();
    let words =
        |member: &super::MemberReport| format!("{}: {}", member.name, member.status.words());
    let all: Vec<Arc<str>> = report
        .members
        .iter()
        .map(|member| words(member).into())
        .collect();
    let all = if all.is_empty() {
        "nobody is in the team".to_owned()
    } else {
        texts::names(&all)
    };
    let why = match watched {
        Watched::Done => String::new(),
        Watched::Mail => " A message came first.".to_owned(),
        Watched::InVain(why) => format!(" No need to wait: {why}."),
        Watched::Late => format!(" They were not done within {time:?}."),
    };
    let unread = texts::unread(&roster.state(), LEAD)
        .map(|unread| format!(" You have {unread}."))
        .unwrap_or_default();
    Ok(CallResult {
        details: json!(report),
        ..CallResult::ok(format!("{all}.{why}{unread}"))
    })
}

fn spawn_spec(plan: &TeamPlan) -> ToolSpec {
    let mut about =
        String::from("Adds a member to your team and sets it to work; it works while you go on.");
    if !plan.templates.is_empty() {
        about.push_str(&format!(
            " Templates: {}.",
            texts::names(plan.templates.keys())
        ));
    }
    let mut fields = json!({
        "name": text("What it is called in the team: letters, digits, - and _."),
        "task": text("What to do, with everything that it must know; it knows nothing else."),
        "template": text("The template that it is made from; without it, the one of its name, if there is one."),
        "max_turns": { "type": "integer", "minimum": 1, "description": "How many requests it may make at most." },
        "timeout_s": seconds("How many seconds it may work at most."),
    });
    if let Some(fields) = fields.as_object_mut().filter(|_| plan.invents) {
        fields.insert(
            "system_prompt".to_owned(),
            text("Its instructions, if it is made without a template."),
        );
    }
    idempotent(spec("spawn_teammate", &about, fields, &["name", "task"]))
}

fn assign_spec() -> ToolSpec {
    let fields = json!({ "name": text("The member."), "task": text("What to do next.") });
    let about = "Gives a new task to a member that has ended, in an earlier run too; it remembers what it did.";
    idempotent(spec("assign_task", about, fields, &["name", "task"]))
}

fn stop_spec() -> ToolSpec {
    idempotent(spec(
        "stop_teammate",
        "Stops a member.",
        json!({ "name": text("The member.") }),
        &["name"],
    ))
}

/// A tool that may be called again when its result was lost: the roster knows for which calls it did something.
fn idempotent(spec: ToolSpec) -> ToolSpec {
    ToolSpec {
        replay: Replay::Idempotent,
        ..spec
    }
}

fn status_spec() -> ToolSpec {
    let about =
        "Shows who works on what and for how long, what came of it, and how much is unread.";
    ToolSpec {
        replay: Replay::Pure,
        ..spec("team_status", about, json!({}), &[])
    }
}

fn wait_spec() -> ToolSpec {
    let until = json!({ "type": "string", "enum": ["any", "all"], "description": "How many must have ended; all without it." });
    let fields = json!({ "timeout_s": seconds("How many seconds to wait at most; 600 without it."), "until": until });
    let about = "Waits until members that work now have ended, or a member has written to you.";
    waiting(spec("wait_for_team", about, fields, &[]))
}
