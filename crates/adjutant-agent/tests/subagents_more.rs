//! Agents under agents: what reaches them of the hooks and of the responder above, and what stays their own.

#[expect(dead_code, reason = "several targets share it, each uses its part")]
#[path = "subagents/desk.rs"]
mod desk;

use std::sync::{Arc, Mutex};

use adjutant_agent::{
    Agent, EventKind, HookContext, Hooks, Pause, Verdict, agent_tool,
    points::{BeforeTool, SubagentStarted, SubagentStopped},
};
use adjutant_llm::{CallResult, Options, Script, ScriptedModel};
use adjutant_tool::{Answer, Approval, ErasedTool, Replay, ToolSpec, tool_fn};
use desk::{calls, events, helper, last, open, parent, results, said, says, tool, work};
use serde_json::{Value, json};

type Lines = Arc<Mutex<Vec<String>>>;

fn told(lines: &Lines) -> Vec<String> {
    std::mem::take(&mut *lines.lock().expect("no panic inside"))
}

/// Hooks that note who begins, and which tools are called, under whoever has them.
fn noting(mark: &'static str, lines: &Lines) -> Hooks {
    let (starts, tools) = (Arc::clone(lines), Arc::clone(lines));
    Hooks::default()
        .on(move |_: HookContext, point: SubagentStarted| {
            starts
                .lock()
                .expect("no panic inside")
                .push(format!("{mark} {}", point.child.path));
            async { Verdict::Pass(point) }
        })
        .on(move |cx: HookContext, point: BeforeTool| {
            tools
                .lock()
                .expect("no panic inside")
                .push(format!("{mark} {}: {}", cx.who.path, point.call.name));
            async { Verdict::Pass(point) }
        })
}

/// A tool that opens an agent `middle`, which calls a tool `step`.
fn opening(middle: Hooks) -> impl ErasedTool + 'static {
    work(move |cx| {
        let step = tool("step", Replay::Pure, |_| async {
            Ok(CallResult::ok("stepped"))
        });
        let model = ScriptedModel::new([calls(&["step"]), says("Deep.")]);
        let middle = Agent::new(model)
            .name("middle")
            .tool(step)
            .hooks(middle.clone());
        async move { Ok(said(&open(&cx, "a", middle).await?.run("Go.").await?)) }
    })
}

#[tokio::test]
async fn parents_hooks_stand_outside_when_a_child_has_its_own() {
    let lines = Lines::default();
    parent(opening(Hooks::default()))
        .hooks(noting("outer", &lines))
        .run("Go.")
        .await
        .expect("the run finishes");
    let outer = [
        "outer boss: work",
        "outer boss/middle",
        "outer boss/middle: step",
    ];
    assert_eq!(told(&lines), outer, "a child without hooks has them too");

    let agent = parent(opening(noting("inner", &lines))).hooks(noting("outer", &lines));
    agent.run("Go.").await.expect("the run finishes");
    let both = [outer[0], outer[1], outer[2], "inner boss/middle: step"];
    assert_eq!(told(&lines), both, "both hear of it, the parent's first");
}

#[tokio::test]
async fn call_of_a_child_is_denied_when_a_hook_of_its_parent_says_so() {
    let deny = |_: HookContext, point: BeforeTool| async move {
        if point.call.name.as_str() == "step" {
            Verdict::Deny("not below me".into())
        } else {
            Verdict::Pass(point)
        }
    };
    let lines = Lines::default();
    let agent = parent(opening(noting("inner", &lines))).hooks(Hooks::default().on(deny));
    assert_eq!(
        results(&agent.run("Go.").await.expect("the run finishes")),
        ["Deep."]
    );
    assert_eq!(told(&lines), [""; 0], "the chain ends outside");
}

#[tokio::test]
async fn stop_of_a_child_is_a_warning_when_its_hook_fails() {
    let agent = parent(work(|cx| async move {
        Ok(said(
            &open(&cx, "a", helper(&["Yes."]))
                .await?
                .run("Well?")
                .await?,
        ))
    }));
    let fails = |_: HookContext, _: SubagentStopped| async {
        Err::<Verdict<SubagentStopped>, _>("it failed")
    };
    let events = events(&agent.on(fails)).await;
    let warnings = events.iter().filter_map(|event| match &event.kind {
        EventKind::Warning { warning } => Some(warning.message.to_string()),
        _ => None,
    });
    let expect = ["a hook of subagent_stopped failed and is passed over: it failed"];
    assert_eq!(
        (warnings.collect::<Vec<_>>(), results(&last(&events))),
        (expect.map(str::to_owned).into(), vec!["Yes.".to_owned()])
    );
}

#[tokio::test]
async fn child_runs_alone_when_it_opts_out_of_the_parents_hooks() {
    let lines = Lines::default();
    let agent =
        parent(opening(noting("inner", &lines).without_inherited())).hooks(noting("outer", &lines));
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        told(&lines),
        [
            "outer boss: work",
            "outer boss/middle",
            "inner boss/middle: step"
        ]
    );
}

#[tokio::test]
async fn child_is_unchanged_when_two_parents_share_it() {
    let lines = Lines::default();
    let step = tool("step", Replay::Pure, |_| async {
        Ok(CallResult::ok("stepped"))
    });
    let model = Arc::new(ScriptedModel::new(
        (0..3).flat_map(|_| [calls(&["step"]), says("Shared.")]),
    ));
    let shared = Agent::new(Arc::clone(&model))
        .name("shared")
        .tool(step)
        .hooks(noting("own", &lines));
    let boss = |name: &'static str, outer: Hooks| {
        let model = ScriptedModel::new([
            Script::new().call("shared", json!({"task": "Go."})),
            says("Done."),
        ]);
        Agent::new(model)
            .name(name)
            .tool(agent_tool("shared", "Helps.", shared.clone()))
            .hooks(outer)
    };
    for name in ["one", "two"] {
        let result = boss(name, noting(name, &lines))
            .run("Go.")
            .await
            .expect("the run finishes");
        assert_eq!(results(&result), ["Shared."]);
        let expect = [
            format!("{name} {name}: shared"),
            format!("{name} {name}/shared"),
            format!("{name} {name}/shared: step"),
            format!("own {name}/shared: step"),
        ];
        assert_eq!(told(&lines), expect);
    }
    shared.run("Go.").await.expect("it runs by itself");
    assert_eq!(
        told(&lines),
        ["own shared: step"],
        "nothing of its parents is left"
    );
    let known = (
        shared.log().transcript().len(),
        model.requests()[4].entries.len(),
    );
    assert_eq!(known, (3, 1), "and nothing that it did for them");
}

#[tokio::test]
async fn child_options_join_when_several_are_given() {
    let model = Arc::new(ScriptedModel::new([says("Yes.")]));
    let (seen, unused) = (Arc::clone(&model), Arc::new(ScriptedModel::new([])));
    let agent = parent(work(move |cx| {
        let (first, last) = (Arc::clone(&unused), Arc::clone(&model));
        async move {
            let warm = Options {
                temperature: Some(0.9),
                ..Options::default()
            };
            let child = Agent::inheriting("one")
                .instructions("First.")
                .model(first)
                .options(warm);
            let child = child.name("two").instructions("Last.").model(last);
            let child = open(&cx, "a", child).await?;
            child.run("Well?").await?;
            Ok(CallResult::ok(child.identity().name.to_string()))
        }
    }));
    let result = agent
        .instructions("Boss.")
        .run("Go.")
        .await
        .expect("the run finishes");
    assert_eq!(results(&result), ["two"]);
    let request = seen.requests().remove(0);
    assert_eq!(
        (&*request.system, request.options.temperature),
        ("Last.", Some(0.9))
    );
}

/// An agent whose child calls a tool that needs a word.
fn asking() -> Agent {
    parent(tool("work", Replay::Resumable, |cx| async move {
        let spec = ToolSpec {
            approval: Approval::Always,
            ..ToolSpec::new("write", "A tool.", json!({"type": "object"}))
        };
        let write = tool_fn(spec, |_: Value, _| async { Ok(CallResult::ok("written")) });
        let child = Agent::new(ScriptedModel::new([calls(&["write"]), says("Yes.")]))
            .name("child")
            .tool(write);
        let result = open(&cx, "a", child).await?.run("Well?").await?;
        Ok(CallResult::ok(format!(
            "{} {}",
            results(&result).join(" "),
            result.text()
        )))
    }))
}

#[tokio::test]
async fn approval_of_a_child_reaches_the_parents_responder_when_it_has_none() {
    let asked = Lines::default();
    let told_of = Arc::clone(&asked);
    let agent = asking().responder(move |who, pause: Pause| {
        let tool = pause
            .call
            .as_ref()
            .map(|call| call.name.to_string())
            .unwrap_or_default();
        told_of.lock().expect("no panic inside").push(format!(
            "{} {} {tool}",
            who.path,
            pause.thread.as_str()
        ));
        async { Some(Answer::approve()) }
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["written Yes."]);
    assert_eq!(told(&asked), ["boss/child main/c1_0_0/a write"]);
}
