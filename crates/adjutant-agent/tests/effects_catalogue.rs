//! `catalogue`: tools that are too many are found and loaded, and what was loaded stays, whatever happens to the program.

#[path = "effects/stage.rs"]
mod stage;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    Action, Agent, Flush, Journal, MemoryJournal, Owner, Record, Seq, Stamped,
    effects::{Catalogue, effect_fn},
};
use adjutant_llm::{CallResult, Edit, Script, ScriptedModel, Status, Summary};
use adjutant_tool::{Bound, ErasedTool, ToolSpec, Toolbox, Tools, Toolset, tool_fn, toolbox_fn};
use futures_util::StreamExt;
use serde_json::{Value, json};

use stage::{agent, done, say, shown};

/// A tool that says its name.
fn tool(name: String, about: &str) -> impl ErasedTool + 'static {
    let spec = ToolSpec::new(name.as_str(), about, json!({"type": "object"}));
    tool_fn(spec, move |_, _| {
        let name = name.clone();
        async move { Ok(CallResult::ok(format!("{name} ran"))) }
    })
}

/// Three tools that are looked for, and so many of about 100 tokens each.
fn many(fillers: usize) -> Tools {
    let tools = Tools::new("office")
        .tool(tool("mail_send".into(), "Sends a letter.\nBy post."))
        .tool(tool("mail_list".into(), "Lists letters, oldest first."))
        .tool(tool("archive".into(), "Puts LETTERS away."));
    (0..fillers).fold(tools, |tools, at| {
        tools.tool(tool(format!("filler_{at}"), &"Fills up. ".repeat(40)))
    })
}

fn find(args: Value) -> Script {
    Script::new().call("find_tools", args)
}

fn uses(name: &str) -> Script {
    Script::new().call(name, json!({}))
}

fn names(model: &ScriptedModel) -> Vec<Vec<String>> {
    let requests = model.requests();
    requests
        .iter()
        .map(|it| it.tools.iter().map(|tool| tool.name.to_string()).collect())
        .collect()
}

#[tokio::test]
async fn tools_are_listed_while_they_are_few() {
    for (fillers, share, expect) in [
        (
            2,
            0.1,
            &[
                "say",
                "mail_send",
                "mail_list",
                "archive",
                "filler_0",
                "filler_1",
            ][..],
        ),
        (200, 0.1, &["say", "find_tools"]),
        (2, 0.0, &["say", "find_tools"]),
    ] {
        let (model, agent) = agent(128_000, [uses("mail_send"), done()]);
        let result = agent
            .effect(Catalogue::default().toolbox(many(fillers)).share(share))
            .run("Go.")
            .await;
        let call = &result.expect("the run finishes").calls[0].result;
        assert_eq!(names(&model), vec![expect; 2]);
        let text = call.text();
        match expect.len() > 2 {
            true => assert_eq!(text, "mail_send ran"),
            false => {
                assert_eq!(call.status, Status::Denied);
                assert!(
                    text.contains(
                        r#"Load it first: call "find_tools" with {"names": ["mail_send"]}"#
                    ),
                    "{text}"
                );
            }
        }
    }
}

#[tokio::test]
async fn loaded_tools_stay_at_their_place_and_the_list_grows_at_its_end() {
    let scripts = [
        find(json!({"names": ["archive"]})),
        uses("archive"),
        done(),
        find(json!({"query": "send mail"}))
            .call("find_tools", json!({"names": ["archive", "filler_7"]})),
        uses("filler_7"),
        done(),
    ];
    let (model, agent) = agent(128_000, scripts);
    let agent = agent.effect(Catalogue::default().toolbox(many(200)));
    agent.run("Go.").await.expect("the run finishes");
    // Nobody sees any more what was loaded; the list stays.
    let fold = effect_fn("fold", |cx| {
        let Some(last) = cx.view.items().iter().next_back() else {
            return Ok(Vec::new());
        };
        let into = Summary {
            text: "Much.".into(),
            covers: 1,
        };
        let is_whole = cx.view.items().len() > 1 && cx.ledger.turns == 0;
        Ok(is_whole
            .then(|| {
                Action::Edit(Edit::Fold {
                    upto: last.id,
                    keep: Vec::new(),
                    into,
                })
            })
            .into_iter()
            .collect())
    });
    let result = agent
        .effect(fold)
        .run("And now?")
        .await
        .expect("the run finishes");
    assert_eq!(
        result.calls.last().expect("some").result.text(),
        "filler_7 ran"
    );
    let (first, second) = (["say", "find_tools"], ["say", "find_tools", "archive"]);
    let last = [
        "say",
        "find_tools",
        "archive",
        "mail_send",
        "mail_list",
        "filler_7",
    ];
    assert_eq!(
        names(&model),
        [&first[..], &second, &second, &second, &last, &last]
    );
    let requests = model.requests();
    assert!(
        shown(&model)[3] == ["summary: Much."],
        "{:?}",
        shown(&model)[3]
    );
    for (one, next) in [(1, 2), (4, 5)] {
        assert!(
            Arc::ptr_eq(&requests[one].tools, &requests[next].tools),
            "{one}: the same bytes"
        );
    }
    for pair in requests.windows(2) {
        assert_eq!(
            pair[1].tools[..pair[0].tools.len()],
            pair[0].tools[..],
            "a list begins with the one before"
        );
    }
}

#[tokio::test]
async fn answer_tells_what_was_found_and_loaded() {
    let table = [
        (
            json!({"query": "Mail"}),
            "Loaded; they can be called from your next message on:\n- mail_send: Sends a letter.\n- mail_list: Lists \
             letters, oldest first.",
        ),
        (
            json!({"query": "LETTERS oldest"}),
            "on:\n- mail_list: Lists letters, oldest first.\n- archive: Puts LETTERS away.",
        ),
        (
            json!({"query": "filler"}),
            "- filler_4: Fills up. Fills up.…\nAlso found; load what you need by `names`:\n- filler_5: ",
        ),
        (
            json!({"query": "submarine"}),
            "None of the 203 tools has one of these words; try others.",
        ),
        (
            json!({"names": ["archive", "nothing", "archive"], "query": "send"}),
            "on:\n- archive: Puts LETTERS away.\nLoaded before; they can be called:\n- archive: Puts LETTERS away.\nThere \
             are no such tools; look for them by `query`:\n- nothing\nAlso found; load what you need by `names`:\n- \
             mail_send: Sends a letter.",
        ),
        (
            json!({"query": " ,. "}),
            "nothing to look for: give words as `query`, or `names`",
        ),
    ];
    for (args, expect) in table {
        let (_, agent) = agent(128_000, [find(args), done()]);
        let result = agent
            .effect(Catalogue::default().toolbox(many(200)))
            .run("Go.")
            .await
            .expect("it finishes");
        let text = result.calls[0].result.text();
        assert!(
            text.replace(&"Fills up. ".repeat(19), "Fills up. ")
                .contains(expect),
            "{text}"
        );
    }
}

#[tokio::test]
async fn no_more_is_loaded_than_there_is_room_for() {
    let names_of = |from: usize| {
        (from..from + 15)
            .map(|at| format!("filler_{at}"))
            .collect::<Vec<_>>()
    };
    let load = |from| find(json!({"names": names_of(from)}));
    let (model, agent) = agent(
        8_000,
        [
            load(0).call("find_tools", json!({"names": names_of(15)})),
            load(30),
            done(),
        ],
    );
    let result = agent
        .effect(Catalogue::default().toolbox(many(200)))
        .run("Go.")
        .await
        .expect("it finishes");
    let listed = names(&model)[1].len();
    assert!(
        (17..25).contains(&listed),
        "{listed} are listed: a quarter of the window"
    );
    assert_eq!(names(&model)[2].len(), listed);
    assert!(
        result.calls[2]
            .result
            .text()
            .starts_with("Not loaded, because loaded tools may not take more room")
    );
}

#[tokio::test]
async fn what_was_called_stays_when_the_tools_become_many_and_the_list_is_short_for_good() {
    let size = Arc::new(AtomicUsize::new(2));
    let sized = Arc::clone(&size);
    let sets: Vec<(usize, Toolset)> = [2, 200, 0]
        .map(|fillers| (fillers, many(fillers).toolset().clone()))
        .into();
    let toolbox = toolbox_fn("office", move |_| {
        let size = sized.load(Ordering::Relaxed);
        let set = sets
            .iter()
            .find(|(fillers, _)| *fillers == size)
            .map(|(_, set)| set.clone());
        async move { Ok(set.unwrap_or_default()) }
    });
    let scripts = [uses("filler_1"), done(), done(), done()];
    let (model, agent) = agent(128_000, scripts);
    let agent = agent.effect(Catalogue::default().toolbox(toolbox));
    for fillers in [2, 200, 0] {
        size.store(fillers, Ordering::Relaxed);
        agent.run("Go.").await.expect("the run finishes");
    }
    assert_eq!(names(&model)[1].len(), 6);
    assert_eq!(
        names(&model)[2..],
        [
            &["say", "find_tools", "filler_1"][..],
            &["say", "find_tools"]
        ]
    );
}

/// An agent as another program would make it again.
fn again(model: &Arc<ScriptedModel>, journal: MemoryJournal) -> Agent {
    let agent = Agent::new(Arc::clone(model)).tool(tool("own".into(), "Is its own."));
    agent
        .effect(Catalogue::default().toolbox(many(200)))
        .journal(journal)
}

#[tokio::test]
async fn another_program_lists_the_same_tools_wherever_the_first_one_died() {
    let scripts = || {
        let load = find(json!({"query": "letters"})).call("own", json!({}));
        [
            load,
            uses("mail_list"),
            find(json!({"names": ["mail_send"]})),
            uses("mail_send"),
            done(),
        ]
    };
    let (model, journal) = (
        Arc::new(ScriptedModel::new(scripts())),
        MemoryJournal::default(),
    );
    let agent = again(&model, journal.clone());
    agent.run("Go.").await.expect("the run finishes");
    let (id, whole) = (agent.session_id().clone(), model.requests());
    drop(agent);
    let log: Vec<Arc<Stamped>> = journal
        .read(&id, Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await;
    let begun = log
        .iter()
        .position(|it| matches!(it.record, Record::Began { .. }))
        .expect("it began");
    for cut in begun + 1..log.len() {
        let copy = MemoryJournal::default();
        let mut kept = copy
            .own(
                &id,
                &Owner {
                    takes_over: true,
                    ..Owner::default()
                },
            )
            .await
            .expect("it is free");
        kept.append(&log[..cut], Flush::Now)
            .await
            .expect("memory does not fail");
        drop(kept);
        let said = log[..cut]
            .iter()
            .filter(|it| matches!(it.record, Record::Replied { .. }))
            .count();
        let model = Arc::new(ScriptedModel::new(scripts().into_iter().skip(said)));
        let agent = again(&model, copy).session(id.clone());
        let result = agent.resume(Vec::new()).await.expect("it goes on");
        assert!(result.is_finished(), "{cut}: {:?}", result.outcome);
        for (request, expect) in model.requests().iter().zip(&whole[said..]) {
            assert_eq!(
                request.tools,
                expect.tools,
                "after {cut} records: {:?}",
                log[cut - 1].record
            );
        }
        let is_fine = |status| matches!(status, Status::Ok | Status::OutcomeUnknown);
        let failed = result
            .calls
            .iter()
            .filter(|it| !is_fine(it.result.status))
            .count();
        assert_eq!(failed, 0, "{cut}: {:?}", result.calls);
    }
}

#[tokio::test]
async fn set_keeps_the_tools_that_are_not_listed_when_it_is_changed() {
    let more = Toolset::new([Bound::new(tool("b".into(), "B."))]);
    let set = Toolset::new([Bound::new(tool("a".into(), "A."))]).beside(&more);
    let is_unlisted = |set: &Toolset| {
        [
            set.is_unlisted("a"),
            set.is_unlisted("b"),
            set.is_unlisted("c"),
        ]
    };
    assert_eq!(is_unlisted(&set), [false, true, false]);
    assert_eq!(set.decls().len(), 1);
    let other = Toolset::new([Bound::new(tool("d".into(), "D."))]);
    for changed in [
        other.with(&set),
        set.hiding(&["a".into()]),
        Toolset::merge([&set, &set]),
        Toolset::default().with(&set),
    ] {
        assert!(changed.is_unlisted("b") && changed.get("b").is_none());
    }
    assert!(!set.with(&more).is_unlisted("b"), "it is listed now");
    let who = adjutant_tool::Identity::root("main".into(), "a", "a");
    let given = set.clone();
    let prefixed = toolbox_fn("x", move |_| std::future::ready(Ok(given.clone()))).prefix("p_");
    assert!(
        prefixed
            .resolve(&who)
            .await
            .expect("it resolves")
            .is_unlisted("p_b")
    );
}

#[tokio::test]
async fn run_fails_when_a_source_cannot_be_asked() {
    let broken = toolbox_fn("mail", |_| async {
        Err(adjutant_tool::ToolError::failed("the server is gone"))
    });
    let (_, agent) = agent(128_000, [say(json!({}))]);
    let result = agent
        .effect(Catalogue::default().toolbox(broken))
        .run("Go.")
        .await;
    let told = result.expect_err("it fails").to_string();
    assert!(
        told.contains("toolbox \"mail\" could not be opened: the server is gone"),
        "{told}"
    );
}
