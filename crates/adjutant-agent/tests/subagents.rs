//! Agents under agents: how they are opened, what they inherit, and that they end before the call that opened them.

#[path = "subagents/delegates.rs"]
mod delegates;
#[path = "subagents/desk.rs"]
mod desk;
#[path = "subagents/ends.rs"]
mod ends;
#[path = "subagents/kept.rs"]
mod kept;
#[path = "subagents/spent.rs"]
mod spent;

use std::sync::{Arc, Mutex};

use adjutant_agent::{
    Agent, AgentFactory, Caps, HookContext, Limits, MemoryJournal, OpenedAgent, Record, Spawn,
    Verdict, points,
};
use adjutant_llm::{CallResult, Entry, Script, ScriptedModel, UserMessage};
use adjutant_tool::{CallContext, Replay, ToolError, ToolErrorKind, Toolset};
use desk::{calls, helper, open, parent, records, results, said, says, tool, work};
use tokio::sync::Barrier;

#[tokio::test]
async fn child_is_made_only_within_a_call_when_it_is_asked_for() {
    let cx = CallContext::detached();
    assert!(cx.get::<dyn Spawn>().is_none());
    let error = AgentFactory::from_context(&cx).expect_err("there is no call");
    assert_eq!(
        &*error.message,
        "agents are opened only within a call of a run"
    );
    let agent = parent(work(|cx| async move {
        Ok(said(
            &open(&cx, "a", helper(&["Yes."]))
                .await?
                .run("Well?")
                .await?,
        ))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["Yes."]);
}

#[tokio::test]
async fn spawner_is_an_error_when_its_call_has_returned() {
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let agent = parent(work(move |cx| {
        let keep = Arc::clone(&keep);
        async move {
            let child = open(&cx, "a", helper(&["Never."])).await?;
            *keep.lock().expect("nobody panics inside") =
                Some((cx.get::<dyn Spawn>().expect("a call"), child));
            Ok(CallResult::ok("Kept."))
        }
    }));
    agent.run("Go.").await.expect("the run finishes");
    let (spawn, child) = kept
        .lock()
        .expect("nobody panics inside")
        .take()
        .expect("kept");
    let late = spawn
        .open("b", helper(&["Never."]).into())
        .await
        .expect_err("the call has ended");
    assert_eq!(
        (late.kind, &*late.message),
        (
            ToolErrorKind::Cancelled,
            "too late: the call that opens agents has ended"
        )
    );
    let late = child.run("Well?").await.expect_err("the call has ended");
    assert_eq!(
        (late.kind, &*late.message),
        (
            ToolErrorKind::Cancelled,
            "too late: the call that opens agents has ended"
        )
    );
}

/// An agent that opens one under itself until it stands `levels` deep; each says its depth.
fn nested(levels: u16) -> Agent {
    let dig = work(move |cx: CallContext| async move {
        let depth = cx.who.depth;
        if depth + 1 < levels {
            let below = nested(levels);
            let below = open(&cx, "below", below).await?.run("Dig.").await?;
            return Ok(CallResult::ok(format!(
                "{depth} {}",
                results(&below).join("")
            )));
        }
        Ok(CallResult::ok(depth.to_string()))
    });
    parent(dig)
}

#[tokio::test]
async fn depth_counts_levels_when_children_nest() {
    let result = nested(3).run("Dig.").await.expect("the run finishes");
    assert_eq!(results(&result), ["0 1 2"]);
    assert_eq!(CallContext::detached().who.depth, 0);
}

#[tokio::test]
async fn depth_is_bounded_for_the_tree_when_a_limit_is_set() {
    let agent = nested(4).limits(Limits {
        caps: Caps {
            depth: Some(2),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let result = agent.run("Dig.").await.expect("the run finishes");
    assert_eq!(
        results(&result),
        ["0 1 no agent can be opened: the limit of depth is reached"]
    );
}

#[tokio::test]
async fn agents_are_bounded_for_the_tree_when_a_limit_is_set() {
    let agent = parent(work(|cx| async move {
        let (one, two) = (
            open(&cx, "a", helper(&["One."])).await?,
            open(&cx, "b", helper(&["Two."])).await?,
        );
        let first = one.stream("Well?")?;
        let refused = two.stream("Well?").expect_err("one is at work");
        assert_eq!(refused.kind, ToolErrorKind::Denied);
        let first = first.finish().await?;
        Ok(CallResult::ok(format!(
            "{} {refused} {}",
            first.text(),
            two.run("Now?").await?.text()
        )))
    }));
    let agent = agent.limits(Limits {
        caps: Caps {
            agents: Some(1),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        results(&result),
        ["One. no agent can be opened: the limit of agents at a time is reached Two."]
    );
}

#[tokio::test]
async fn child_has_the_parents_model_when_it_names_none() {
    let model = Arc::new(ScriptedModel::new([
        calls(&["work"]),
        says("Inherited."),
        says("Done."),
    ]));
    let agent = Agent::new(Arc::clone(&model))
        .instructions("Boss.")
        .tool(work(|cx| async move {
            let one = open(&cx, "a", Agent::inheriting("helper").instructions("Help."))
                .await?
                .run("Well?")
                .await?;
            let own = open(
                &cx,
                "b",
                Agent::inheriting("own").model(ScriptedModel::new([says("Own.")])),
            )
            .await?
            .run("Well?")
            .await?;
            Ok(CallResult::ok(format!("{} {}", one.text(), own.text())))
        }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["Inherited. Own."]);
    let asked: Vec<_> = model
        .requests()
        .iter()
        .map(|it| (it.system.to_string(), it.tools.len(), it.entries.len()))
        .collect();
    assert_eq!(
        asked,
        [
            ("Boss.".into(), 1, 1),
            ("Help.".into(), 0, 1),
            ("Boss.".into(), 1, 2)
        ]
    );
}

#[tokio::test]
async fn child_has_no_tools_when_none_are_handed_over() {
    let model = Arc::new(ScriptedModel::new([says("Bare."), says("Armed.")]));
    let seen = Arc::clone(&model);
    let agent = parent(work(move |cx| {
        let model = Arc::clone(&model);
        async move {
            open(&cx, "a", Agent::new(Arc::clone(&model)))
                .await?
                .run("Well?")
                .await?;
            let tools = Toolset::clone(&*cx.get::<Toolset>().expect("the tools of the turn"));
            let given = adjutant_tool::toolbox_fn("given", move |_| {
                let tools = tools.clone();
                async move { Ok(tools) }
            });
            Ok(said(
                &open(&cx, "b", Agent::new(model).toolbox(given))
                    .await?
                    .run("Well?")
                    .await?,
            ))
        }
    }));
    agent.run("Go.").await.expect("the run finishes");
    let tools: Vec<Vec<String>> = seen
        .requests()
        .iter()
        .map(|it| it.tools.iter().map(|tool| tool.name.to_string()).collect())
        .collect();
    assert_eq!(tools, [Vec::<String>::new(), vec!["work".to_owned()]]);
}

#[tokio::test]
async fn factory_makes_a_root_or_a_child_when_it_is_one() {
    async fn ask(factory: &AgentFactory) -> Result<(u16, String), ToolError> {
        let member: OpenedAgent = factory.create("a", helper(&["Yes."])).await?;
        let text = member.run("Well?").await?.text();
        Ok((member.identity().depth, text))
    }
    assert_eq!(
        ask(&AgentFactory::root()).await.expect("a first agent"),
        (0, "Yes.".to_owned())
    );
    let agent = parent(work(|cx| async move {
        let (depth, text) = ask(&AgentFactory::from_context(&cx)?).await?;
        Ok(CallResult::ok(format!("{depth} {text}")))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["1 Yes."]);
    assert_eq!(result.total_usage.total() - result.usage.total(), 110);
}

#[tokio::test]
async fn child_is_named_after_its_call_and_key_when_it_is_opened() {
    let agent = parent(work(|cx| async move {
        let child = open(&cx, "a", helper(&["Yes."])).await?;
        let who = child.identity();
        let told = format!(
            "{} {} {} {} {:?}",
            who.thread, who.path, who.depth, who.prefix, who.parent
        );
        let twice = open(&cx, "a", helper(&[])).await.expect_err("it is open");
        for bad in ["", "a/b", &"k".repeat(201)] {
            assert_eq!(
                open(&cx, bad, helper(&[])).await.expect_err("no key").kind,
                ToolErrorKind::InvalidArguments
            );
        }
        drop(child);
        let again = open(&cx, "a", helper(&["Again."])).await?;
        Ok(CallResult::ok(format!(
            "{told}; {twice}; {}",
            again.run("Well?").await?.text()
        )))
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    let told = "main/c1_0_0/a boss/helper 1 helper Some(ThreadId(\"main\")); \
        the child \"a\" of this call is open already; Again.";
    assert_eq!(results(&result), [told]);
}

#[tokio::test]
async fn children_run_together_when_a_call_makes_several() {
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
                let said = Script::from_fn(move |_| Script::new().text(format!("{number}")));
                let agent = Agent::new(ScriptedModel::new([calls(&["meet"]), said])).tool(meet);
                runs.push(
                    open(&cx, &format!("k{number}"), agent)
                        .await?
                        .stream("Meet.")?,
                );
            }
            let mut texts = Vec::new();
            for run in runs {
                texts.push(run.finish().await?.text());
            }
            Ok(CallResult::ok(texts.join(" ")))
        }
    }));
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["0 1 2 3 4 5 6 7"]);
}

#[tokio::test]
async fn child_runs_on_the_same_thread_when_it_is_prompted_twice() {
    let model = Arc::new(ScriptedModel::new([says("One."), says("Two.")]));
    let seen = Arc::clone(&model);
    let journal = MemoryJournal::default();
    let agent = parent(work(move |cx| {
        let model = Arc::clone(&model);
        async move {
            let child = open(&cx, "a", Agent::new(model)).await?;
            let first = child.stream("First.")?;
            let busy = child.run("Now?").await.expect_err("it is at work");
            first.finish().await?;
            let second = child.run("Second.").await?;
            assert_eq!(child.transcript().len(), 4);
            Ok(CallResult::ok(format!("{busy}; {}", second.text())))
        }
    }))
    .journal(journal.clone());
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        results(&result),
        ["the child \"a\" is already active; Two."]
    );
    assert_eq!(
        seen.requests()
            .iter()
            .map(|it| it.entries.len())
            .collect::<Vec<_>>(),
        [1, 3]
    );
    let log = records(&journal, agent.session_id()).await;
    assert!(
        (1..).zip(&log).all(|(seq, it)| it.seq.0 == seq),
        "one order"
    );
    let of = |name: &str| {
        log.iter()
            .filter(|it| desk::record(&it.record) == name)
            .count()
    };
    assert_eq!(
        (of("child_opened"), of("child_ended"), of("began")),
        (1, 2, 3)
    );
}

#[tokio::test]
async fn child_knows_the_conversation_when_it_is_cloned_with_history() {
    let model = Arc::new(ScriptedModel::new([
        says("Hello."),
        calls(&["work"]),
        says("Cloned."),
        says("Done."),
    ]));
    let agent = Agent::new(Arc::clone(&model))
        .instructions("Boss.")
        .tool(work(|cx| async move {
            let spawn = cx.get::<dyn Spawn>().expect("a call");
            let parent = spawn.parent();
            let child = spawn
                .open_with("clone", parent.agent, parent.history)
                .await?;
            Ok(said(&child.run("And you?").await?))
        }));
    agent.run("Hi.").await.expect("the run finishes");
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(
        (results(&result), agent.log().transcript().len()),
        (vec!["Cloned.".to_owned()], 5)
    );
    let request = &model.requests()[2];
    let user = |text: &str| Entry::User(UserMessage::text(text));
    assert_eq!(
        (&*request.system, request.tools.len(), request.entries.len()),
        ("Boss.", 1, 4)
    );
    let texts: Vec<_> = [0, 2, 3].map(|at| request.entries[at].clone()).into();
    assert_eq!(texts, [user("Hi."), user("Go."), user("And you?")]);
}

type Heard = Arc<Mutex<Vec<String>>>;

fn hooked(agent: Agent, heard: &Heard, deny: bool) -> Agent {
    let (starts, stops) = (Arc::clone(heard), Arc::clone(heard));
    agent
        .on(move |_: HookContext, point: points::SubagentStarted| {
            let starts = Arc::clone(&starts);
            async move {
                starts.lock().expect("no panic").push(format!(
                    "started {} {}",
                    point.child.path,
                    point.prompts.len()
                ));
                if deny {
                    Verdict::Deny("not today".into())
                } else {
                    Verdict::Pass(point)
                }
            }
        })
        .on(move |_: HookContext, point: points::SubagentStopped| {
            let stops = Arc::clone(&stops);
            async move {
                stops.lock().expect("no panic").push(format!(
                    "stopped {} {}",
                    point.child.path,
                    point.result.text()
                ));
                Verdict::Pass(point)
            }
        })
}

#[tokio::test]
async fn subagent_points_fire_once_when_a_child_starts_and_stops() {
    let heard = Heard::default();
    let agent = parent(work(|cx| async move {
        let good = open(&cx, "a", helper(&["Yes."]))
            .await?
            .run("Well?")
            .await?;
        open(&cx, "b", helper(&[]))
            .await?
            .run("Well?")
            .await
            .expect_err("nothing is scripted");
        Ok(said(&good))
    }));
    hooked(agent, &heard, false)
        .run("Go.")
        .await
        .expect("the run finishes");
    let all = [
        "started boss/helper 1",
        "stopped boss/helper Yes.",
        "started boss/helper 1",
        "stopped boss/helper ",
    ];
    assert_eq!(*heard.lock().expect("no panic"), all);
}

#[tokio::test]
async fn child_does_not_begin_when_a_hook_denies_it() {
    let (heard, journal) = (Heard::default(), MemoryJournal::default());
    let agent = parent(work(|cx| async move {
        Ok(said(
            &open(&cx, "a", helper(&["Never."]))
                .await?
                .run("Well?")
                .await?,
        ))
    }));
    let agent = hooked(agent.journal(journal.clone()), &heard, true);
    let result = agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), ["the agent may not begin: not today"]);
    assert_eq!(*heard.lock().expect("no panic"), ["started boss/helper 1"]);
    let log = records(&journal, agent.session_id()).await;
    assert!(
        log.iter().any(
            |it| matches!(&it.record, Record::Denied { reason, .. } if &**reason == "not today")
        )
    );
    assert!(log.iter().all(|it| it.thread.as_str() == "main"));
}

#[tokio::test]
async fn root_has_the_model_of_its_factory_when_it_has_none_of_its_own() {
    let given = ScriptedModel::new([says("Given.")]);
    let factory = AgentFactory::root().model(given);
    let own = ScriptedModel::new([says("Own.")]);
    for (agent, said) in [
        (Agent::inheriting("one"), "Given."),
        (Agent::inheriting("two").model(own), "Own."),
    ] {
        let root = factory.create("a", agent).await.expect("a first agent");
        assert_eq!(root.run("Well?").await.expect("it answers").text(), said);
    }
}
