//! Handoffs: one conversation, several agents, one at a time.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    Agent, EventKind, Flush, HookContext, Journal, Limit, MemoryJournal, Outcome, Owner, Record,
    Seq, Verdict, points,
};
use adjutant_llm::{Edit, Entry, Script, ScriptedModel, Status, Summary, Usage};
use adjutant_orchestration::{ErrorKind, HandoffChain, HandoffChainResult, HandoffTarget};
use adjutant_tool::{Replay, ToolSpec, tool_fn};
use futures_util::StreamExt;
use serde_json::json;

/// A reply of 10 tokens that says this.
fn says(text: &'static str) -> Script {
    Script::new().text(text).usage(Usage {
        output: 10,
        ..Usage::default()
    })
}

/// A reply of 10 tokens that hands the conversation to each of these.
fn hands_to(names: &[&'static str]) -> Script {
    let script = Script::new().usage(Usage {
        output: 10,
        ..Usage::default()
    });
    names.iter().fold(script, |script, name| {
        script.call(format!("transfer_to_{name}"), json!({"reason": "for you"}))
    })
}

fn model(scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(scripts))
}

/// A target with instructions of its name.
fn target(name: &'static str, model: &Arc<ScriptedModel>) -> HandoffTarget {
    let agent = Agent::new(Arc::clone(model)).instructions(format!("You are {name}."));
    HandoffTarget::new(name, format!("For {name}."), agent)
}

fn relay_of(targets: impl IntoIterator<Item = HandoffTarget>) -> HandoffChain {
    HandoffChain::new(targets).expect("the names are good")
}

/// The results of all calls, in order, as status and text.
fn results(result: &HandoffChainResult) -> Vec<(Status, String)> {
    let runs = result.handed_over.iter().chain([&result.last]);
    runs.flat_map(|run| &run.calls)
        .map(|call| (call.result.status, call.result.text()))
        .collect()
}

/// The systems, the numbers of entries and the tools that a model was asked with.
fn asked(model: &ScriptedModel) -> Vec<(String, usize, Vec<String>)> {
    let tools =
        |it: &adjutant_llm::Request| it.tools.iter().map(|tool| tool.name.to_string()).collect();
    model
        .requests()
        .iter()
        .map(|it| (it.system.to_string(), it.entries.len(), tools(it)))
        .collect()
}

#[tokio::test]
async fn target_answers_with_its_own_prompt_and_tools_when_it_gets_the_conversation() {
    let (desk, billing) = (
        model([hands_to(&["billing"])]),
        model([says("Paid back."), says("Still I.")]),
    );
    let relay = relay_of([target("desk", &desk), target("billing", &billing)]);
    let result = relay.run("My money!").await.expect("one answers");
    assert_eq!(
        (result.text().as_str(), &*result.last.agent.name),
        ("Paid back.", "billing")
    );
    assert_eq!(
        results(&result),
        [(
            Status::Ok,
            "billing has the conversation now: for you".to_owned()
        )]
    );
    assert_eq!(
        asked(&desk),
        [(
            "You are desk.".into(),
            1,
            vec!["transfer_to_billing".to_owned()]
        )]
    );
    assert_eq!(
        asked(&billing),
        [(
            "You are billing.".into(),
            2,
            vec!["transfer_to_desk".to_owned()]
        )]
    );
    assert_eq!((result.turns(), result.total_usage().output), (2, 20));
    let again = relay.run("Who are you?").await.expect("one answers");
    assert_eq!(
        (again.text().as_str(), again.handed_over.len()),
        ("Still I.", 0),
        "who has it keeps it"
    );
    assert_eq!(&*relay.active().await.expect("it is known"), "billing");
    assert_eq!(relay.transcript().iter().count(), 5);
}

#[tokio::test]
async fn conversation_goes_through_a_chain_when_targets_hand_on() {
    let (one, two, three) = (
        model([hands_to(&["b"])]),
        model([hands_to(&["c"])]),
        model([says("Here.")]),
    );
    let relay = relay_of([target("a", &one), target("b", &two), target("c", &three)]);
    let result = relay.run("Go.").await.expect("one answers");
    let names: Vec<&str> = result
        .handed_over
        .iter()
        .map(|run| &*run.agent.name)
        .collect();
    assert_eq!((names, &*result.last.agent.name), (vec!["a", "b"], "c"));
    assert_eq!(three.requests()[0].entries.len(), 3);
}

#[tokio::test]
async fn handoff_is_refused_when_the_conversation_goes_back_and_forth() {
    let one = model([hands_to(&["b"]), hands_to(&["b"]), says("I answer.")]);
    let two = model([hands_to(&["a"])]);
    let relay = relay_of([target("a", &one), target("b", &two)]).max_handoffs(2);
    let result = relay.run("Go.").await.expect("one answers");
    assert_eq!(
        (result.text().as_str(), result.handed_over.len()),
        ("I answer.", 2)
    );
    let refused =
        "the conversation was handed over too often without an answer: answer it yourself"
            .to_owned();
    assert_eq!(results(&result)[2], (Status::Denied, refused));
    let one = model([hands_to(&["b"]), says("I.")]);
    let never = relay_of([target("a", &one), target("b", &model([]))]).max_handoffs(0);
    assert_eq!(never.run("Go.").await.expect("one answers").text(), "I.");
}

#[tokio::test]
async fn count_begins_anew_when_a_prompt_comes() {
    let one = model([hands_to(&["b"]), hands_to(&["b"])]);
    let two = model([says("B."), hands_to(&["a"]), says("Never.")]);
    let relay = relay_of([target("a", &one), target("b", &two)]).max_handoffs(1);
    assert_eq!(relay.run("Go.").await.expect("one answers").text(), "B.");
    let one_more = relay.run("Again.").await;
    let result = one_more.expect_err("a's script asks for more than it has");
    assert_eq!(result.kind(), ErrorKind::Agent);
    assert_eq!(
        one.requests().len(),
        3,
        "a may not hand on, so it is asked again"
    );
}

#[tokio::test]
async fn conversation_stays_when_a_hook_denies_the_handoff() {
    let (one, two) = (model([hands_to(&["b"]), says("Then I answer.")]), model([]));
    let agent = Agent::new(Arc::clone(&one)).on(|_: HookContext, _: points::Handoff| async {
        Verdict::<points::Handoff>::Deny("not now".into())
    });
    let relay = relay_of([HandoffTarget::new("a", "", agent), target("b", &two)]);
    let result = relay.run("Go.").await.expect("one answers");
    assert_eq!(
        (result.text().as_str(), &*result.last.agent.name),
        ("Then I answer.", "a")
    );
    assert_eq!(
        results(&result),
        [(
            Status::Denied,
            "the conversation stays here: not now".to_owned()
        )]
    );
    assert_eq!(&*relay.active().await.expect("it is known"), "a");
}

#[tokio::test]
async fn conversation_stays_when_the_call_itself_is_denied() {
    let one = model([hands_to(&["b"]), says("Then I answer.")]);
    let agent = Agent::new(Arc::clone(&one)).on(|_: HookContext, _: points::BeforeTool| async {
        Verdict::<points::BeforeTool>::Deny("no tools".into())
    });
    let result = relay_of([HandoffTarget::new("a", "", agent), target("b", &model([]))])
        .run("Go.")
        .await
        .expect("one answers");
    assert_eq!(&*result.last.agent.name, "a");
}

#[tokio::test]
async fn first_handoff_counts_when_a_turn_has_several() {
    let (one, two) = (model([hands_to(&["c", "b"])]), model([]));
    let three = model([says("C.")]);
    let relay = relay_of([target("a", &one), target("b", &two), target("c", &three)]);
    let result = relay.run("Go.").await.expect("one answers");
    assert_eq!(&*result.last.agent.name, "c");
    let ignored = (
        Status::Failed,
        "ignored: the conversation goes to c already".to_owned(),
    );
    assert_eq!(results(&result)[1], ignored);
}

#[tokio::test]
async fn other_calls_run_when_their_turn_hands_over() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let look = tool_fn(
        ToolSpec {
            replay: Replay::Pure,
            ..ToolSpec::new("look", "Looks.", json!({"type": "object"}))
        },
        move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(adjutant_llm::CallResult::ok("seen")) }
        },
    );
    let one = model([Script::new()
        .call("transfer_to_b", json!({}))
        .call("look", json!({}))]);
    let agent = Agent::new(Arc::clone(&one)).tool(look);
    let result = relay_of([
        HandoffTarget::new("a", "", agent),
        target("b", &model([says("B.")])),
    ])
    .run("Go.")
    .await
    .expect("one answers");
    let expect = [
        (Status::Ok, "b has the conversation now".to_owned()),
        (Status::Ok, "seen".to_owned()),
    ];
    assert_eq!(
        (results(&result), ran.load(Ordering::Relaxed)),
        (expect.to_vec(), 1)
    );
}

#[tokio::test]
async fn target_keeps_to_its_own_rules_when_it_takes_over() {
    let (one, two) = (
        model([hands_to(&["b"])]),
        model([hands_to(&["a"]), says("Never.")]),
    );
    let agent =
        Agent::new(Arc::clone(&two))
            .max_turns(1)
            .on(|_: HookContext, _: points::Handoff| async {
                Verdict::<points::Handoff>::Deny("b hands nothing on".into())
            });
    let result = relay_of([target("a", &one), HandoffTarget::new("b", "", agent)])
        .run("Go.")
        .await
        .expect("it ends");
    assert_eq!(
        result.last.outcome,
        Outcome::Limit {
            limit: Limit::Turns
        }
    );
    assert_eq!(one.requests().len(), 1);
}

#[tokio::test]
async fn target_sees_what_its_filter_leaves_when_it_takes_over() {
    let (one, two) = (
        model([hands_to(&["b"])]),
        model([says("B."), says("B again.")]),
    );
    let filtered = target("b", &two).filter(|view| {
        let newest = view.items().iter().next_back().map(|stored| stored.id);
        newest
            .into_iter()
            .map(|upto| Edit::Fold {
                upto,
                keep: Vec::new(),
                into: Summary {
                    text: "A customer.".into(),
                    covers: 2,
                },
            })
            .collect()
    });
    let relay = relay_of([target("a", &one), filtered]);
    relay.run("My secret is 42.").await.expect("one answers");
    relay.run("And?").await.expect("one answers");
    let shown: Vec<usize> = two.requests().iter().map(|it| it.entries.len()).collect();
    assert_eq!(shown, [1, 3], "folded once, and recorded");
    assert!(matches!(
        two.requests()[0]
            .entries
            .iter()
            .next()
            .map(|it| it.entry.clone()),
        Some(Entry::Summary(_))
    ));
    assert_eq!(
        relay.transcript().iter().count(),
        4 + 1,
        "the history keeps everything"
    );
}

#[tokio::test]
async fn events_of_all_follow_each_other_when_a_conversation_is_handed_over() {
    let relay = relay_of([
        target("a", &model([hands_to(&["b"])])),
        target("b", &model([says("B.")])),
    ]);
    let mut run = relay.stream("Go.");
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::RunStarted => seen.push(format!("{} starts", event.who.name)),
            EventKind::RunFinished { .. } => seen.push(format!("{} ends", event.who.name)),
            EventKind::App { kind, data, .. } => seen.push(format!("{kind} {data}")),
            _ => {}
        }
    }
    let handoff = r#"handoff {"from":"a","to":"b","reason":"for you"}"#;
    assert_eq!(seen, ["a starts", handoff, "a ends", "b starts", "b ends"]);
}

/// The handoff chain of one program, with these scripts, on a journal.
fn program(journal: &MemoryJournal, one: Vec<Script>, two: Vec<Script>) -> HandoffChain {
    let first = Agent::new(model(one)).journal(journal.clone());
    relay_of([HandoffTarget::new("a", "", first), target("b", &model(two))])
}

#[tokio::test]
async fn target_keeps_the_conversation_when_another_program_opens_it() {
    let journal = MemoryJournal::default();
    let id = {
        let relay = program(&journal, vec![hands_to(&["b"])], vec![says("B.")]);
        relay.run("Go.").await.expect("one answers");
        relay.session_id().clone()
    };
    let later = program(&journal, vec![], vec![says("Still B.")]).session(id);
    assert_eq!(&*later.active().await.expect("the log is read"), "b");
    assert_eq!(
        later.run("Who?").await.expect("one answers").text(),
        "Still B."
    );
}

#[tokio::test]
async fn handoff_goes_on_wherever_a_crash_cut_it() {
    let whole = MemoryJournal::default();
    let relay = program(&whole, vec![hands_to(&["b"])], vec![says("B.")]);
    relay.run("Go.").await.expect("one answers");
    let id = relay.session_id().clone();
    let log: Vec<_> = whole
        .read(&id, Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await;
    let replied = log
        .iter()
        .position(|it| matches!(it.record, Record::Replied { .. }))
        .expect("it replies");
    for cut in replied + 1..log.len() {
        let journal = MemoryJournal::default();
        let mut own = journal
            .own(&id, &Owner::default())
            .await
            .expect("nobody has it");
        own.append(&log[..cut], Flush::Now)
            .await
            .expect("there is room");
        drop(own);
        let again = program(&journal, vec![], vec![says("B.")]).session(id.clone());
        let result = again
            .resume(Vec::new())
            .await
            .unwrap_or_else(|error| panic!("cut at {cut}: {error:?}"));
        assert_eq!(
            (result.text().as_str(), &*result.last.agent.name),
            ("B.", "b"),
            "cut at {cut}"
        );
    }
}

#[test]
fn relay_is_refused_when_its_names_cannot_be() {
    let made = |names: &[&'static str]| {
        HandoffChain::new(names.iter().map(|name| target(name, &model([]))))
    };
    let error = |names| made(names).expect_err("it cannot be").to_string();
    assert_eq!(error(&[]), "a handoff chain needs an agent that begins");
    assert_eq!(
        error(&["a", "A"]),
        "two agents of a handoff chain have the name \"A\""
    );
    assert_eq!(
        error(&["a b"]),
        "a name has 1 to 52 letters, digits, `_` and `-`: \"a b\""
    );
    let unknown =
        HandoffChain::new([target("a", &model([])).to(["b"])]).expect_err("b is not there");
    assert_eq!(
        unknown.to_string(),
        "\"a\" hands over to \"b\", which is not in the handoff chain"
    );
    assert_eq!(unknown.kind(), ErrorKind::Invalid);
}
