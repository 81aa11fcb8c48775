//! What a run becomes for a page, frame by frame, and what a page's request becomes for an agent.

use std::sync::Arc;

use adjutant_agent::{Agent, Answered, Event, EventKind, MemoryJournal, Pause};
use adjutant_llm::{CallResult, Content, Image, Script, ScriptedModel, Source, UserMessage};
use adjutant_protocols::{ErrorKind, PageWish, ag_ui, ai_sdk};
use adjutant_tool::{Answer, Approval, CallContext, ToolSpec, external_tool, tool_fn};
use serde_json::{Value, json};

/// An agent that wants to pay, and asks the page where it is.
fn agent() -> Agent {
    let spec = |name: &str| ToolSpec::new(name.to_owned(), "A tool.", json!({"type": "object"}));
    let pay = tool_fn(
        ToolSpec {
            approval: Approval::Always,
            ..spec("pay")
        },
        |_: Value, _: CallContext| async { Ok(CallResult::ok("paid")) },
    );
    let calls = Script::new()
        .call("pay", json!({"n": 1}))
        .call("locate", json!({}));
    Agent::new(ScriptedModel::new([calls, Script::new().text("Done.")]))
        .tool(pay)
        .tool(external_tool(spec("locate")))
}

/// The events of a run until it waits, and what it waits for: the approval, the result.
async fn waiting() -> (Vec<Event>, Vec<Arc<Pause>>) {
    let (mut running, mut events) = (agent().run("Go.").stream().expect("it begins"), Vec::new());
    while let Some(event) = running.next().await {
        events.push(event);
    }
    let pauses = match events.last().map(|event| &event.kind) {
        Some(EventKind::RunPaused { result }) => result.pauses().to_vec(),
        _ => Vec::new(),
    };
    assert!(!pauses.is_empty(), "it waits");
    (events, pauses)
}

fn ag_ui(input: Value) -> ag_ui::RunAgentInput {
    let mut whole = json!({"threadId": "t", "runId": "r", "messages": []});
    whole
        .as_object_mut()
        .expect("an object")
        .extend(input.as_object().expect("an object").clone());
    serde_json::from_value(whole).expect("an input")
}

fn ai_sdk(input: Value) -> ai_sdk::ChatRequest {
    let mut whole = json!({"id": "t", "messages": []});
    whole
        .as_object_mut()
        .expect("an object")
        .extend(input.as_object().expect("an object").clone());
    serde_json::from_value(whole).expect("an input")
}

fn types(frames: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = frames
        .iter()
        .filter_map(|frame| frame["type"].as_str())
        .collect();
    types.dedup();
    types
}

#[tokio::test]
async fn run_that_waits_is_told_the_same_when_its_events_come_from_a_log() {
    let (events, pauses) = waiting().await;
    let stored: Vec<&Event> = events
        .iter()
        .filter(|event| !is_live(&event.kind))
        .collect();
    for events in [events.iter().collect(), stored] {
        let mut encoder = ag_ui::Encoder::new(&ag_ui(json!({})));
        let told: Vec<Value> = events
            .iter()
            .flat_map(|event| encoder.tell(event))
            .collect();
        let call = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"];
        let expect = [
            &["RUN_STARTED", "STEP_STARTED"][..],
            &call,
            &call,
            &["STEP_FINISHED", "RUN_FINISHED"],
        ]
        .concat();
        assert_eq!(types(&told), expect);
        let interrupts = &told.last().expect("an end")["outcome"]["interrupts"];
        assert_eq!(
            interrupts[0]["id"],
            format!("{}:{}", pauses[0].digest(), pauses[0].id)
        );
        assert_eq!(
            (&interrupts[0]["toolCallId"], &interrupts[1]["toolCallId"]),
            (&json!("c1_0_0"), &json!("c1_0_1"))
        );
        assert!(encoder.broken("late").is_empty(), "nothing follows the end");

        let mut encoder = ai_sdk::Encoder::new(&ai_sdk(json!({})));
        let told: Vec<Value> = events
            .iter()
            .flat_map(|event| encoder.tell(event))
            .collect();
        let call = [
            "tool-input-start",
            "tool-input-delta",
            "tool-input-available",
        ];
        let asked = [
            "tool-approval-request",
            "tool-input-available",
            "data-pause",
            "finish-step",
            "finish",
        ];
        assert_eq!(
            types(&told),
            [&["start", "start-step"][..], &call, &call, &asked].concat()
        );
    }
}

/// True of events that no log holds; the end of a run is told to whoever reads one.
fn is_live(kind: &EventKind) -> bool {
    let names = [
        "reply_started",
        "block_started",
        "block_finished",
        "args_delta",
        "text_delta",
    ];
    let value = serde_json::to_value(kind).expect("an event is JSON");
    names.contains(&value["event"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn session_hears_a_message_once_and_no_words_beside_an_answer() {
    let of = agent().journal(MemoryJournal::default());
    let request =
        |id: &str| ag_ui(json!({"messages": [{"role": "user", "id": id, "content": "Go."}]}));
    let ended = request("u1")
        .begin(&of.session("t".into()))
        .await
        .expect("it begins")
        .finish()
        .await
        .expect("it waits");
    let pauses = ended.pauses();
    let later = of.session("t".into());
    assert_eq!(
        request("u1")
            .begin(&later)
            .await
            .map(drop)
            .map_err(|error| error.kind()),
        Err(ErrorKind::Stale)
    );
    let answered = |id: &str| {
        let resume: Vec<Value> = pauses
            .iter()
            .map(|it| json!({"interruptId": format!("{}:{}", it.digest(), it.id), "status": "cancelled"}))
            .collect();
        ag_ui(json!({"messages": [{"role": "user", "id": id, "content": "Go."}], "resume": resume}))
    };
    assert_eq!(
        answered("u2")
            .begin(&later)
            .await
            .map(drop)
            .map_err(|error| error.kind()),
        Err(ErrorKind::Invalid)
    );
    let done = answered("u1")
        .begin(&later)
        .await
        .expect("it goes on")
        .finish()
        .await
        .expect("it ends");
    assert_eq!(done.text(), "Done.");
}

#[tokio::test]
async fn request_becomes_what_it_asks_for_or_tells_why_not() {
    let (_, pauses) = waiting().await;
    let [pay, locate] = &pauses[..] else {
        panic!("two wait")
    };
    let heard = |_: &str| false;
    let name = |pause: &Pause| format!("{}:{}", pause.digest(), pause.id);
    let resume = |id: &str, status: &str, payload: Value| {
        let entry = json!({"interruptId": id, "status": status, "payload": payload});
        ag_ui(json!({"resume": [entry]})).wish(&pauses, heard)
    };
    let prompt = |said: UserMessage, ids: &[&str]| {
        Ok(PageWish::Prompt(vec![UserMessage {
            ids: ids.iter().map(|id| (*id).into()).collect(),
            ..said
        }]))
    };
    let text = |text: &str| prompt(UserMessage::text(text), &[]);
    let answers = |answer: Answered| Ok(PageWish::Answers(vec![answer]));
    let user =
        json!({"role": "user", "content": "Go.", "parts": [{"type": "text", "text": "Go."}]});
    let old = json!({"role": "assistant", "parts": []});
    let picture = Content::Image(Image {
        media_type: "image/png".into(),
        source: Source::Base64 {
            data: "AA==".into(),
        },
    });
    let part =
        json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA=="});
    let shown = |state: &str, call: &str, more: Value| {
        let mut part = json!({"type": "tool-x", "state": state, "toolCallId": call});
        part.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        ai_sdk(json!({"messages": [{"role": "assistant", "id": "m", "parts": [part]}]}))
            .wish(&pauses, heard)
    };
    let approval = |id: String, approved: bool| json!({"approval": {"id": id, "approved": approved, "reason": "dear"}});
    let given = || Answer::Return {
        result: CallResult::ok("here").into(),
    };
    let tool = json!({"role": "tool", "toolCallId": "c1_0_1", "content": "here"});
    let invalid = Err(ErrorKind::Invalid);
    let edited = json!({"approved": true, "editedArgs": {"n": 2}});
    let table = [
        (
            ag_ui(json!({"messages": [user, old, user]})).wish(&[], heard),
            text("Go."),
        ),
        (
            ag_ui(json!({"messages": [user, old]})).wish(&[], heard),
            invalid.clone(),
        ),
        (
            ag_ui(json!({"messages": [user, old, tool]})).wish(&pauses, heard),
            answers(locate.with_answer(given())),
        ),
        (
            resume(&name(pay), "resolved", edited),
            answers(pay.with_answer(Answer::approve_with("{\"n\":2}"))),
        ),
        (
            resume(
                &name(pay),
                "resolved",
                json!({"approved": false, "reason": "dear"}),
            ),
            answers(pay.deny("dear")),
        ),
        (
            resume(&name(pay), "cancelled", Value::Null),
            answers(pay.deny("the user cancelled it")),
        ),
        (resume(&name(pay), "resolved", Value::Null), invalid.clone()),
        (resume(&name(pay), "perhaps", json!(true)), invalid.clone()),
        (
            resume("main/c1_0_0", "resolved", json!(true)),
            invalid.clone(),
        ),
        (
            resume(
                &format!("{}:{}", locate.digest(), pay.id),
                "resolved",
                json!(true),
            ),
            Err(ErrorKind::Stale),
        ),
        (
            resume(
                &format!("{}:main/c9_0_0", pay.digest()),
                "resolved",
                json!(true),
            ),
            Err(ErrorKind::Stale),
        ),
        (
            ai_sdk(json!({"messages": [old, user]})).wish(&[], heard),
            text("Go."),
        ),
        (
            ai_sdk(json!({"messages": [{"role": "user", "parts": [part]}]})).wish(&[], heard),
            prompt(vec![picture].into(), &[]),
        ),
        (
            ai_sdk(json!({"messages": []})).wish(&[], heard),
            invalid.clone(),
        ),
        (
            ai_sdk(json!({"messages": [user], "trigger": "regenerate-message"})).wish(&[], heard),
            invalid.clone(),
        ),
        (
            shown("approval-responded", "c1_0_0", approval(name(pay), true)),
            answers(pay.approve()),
        ),
        (
            shown("approval-responded", "c1_0_0", approval(name(pay), false)),
            answers(pay.deny("dear")),
        ),
        (
            shown("approval-responded", "c1_0_0", approval(name(locate), true)),
            Err(ErrorKind::Stale),
        ),
        (
            shown(
                "approval-responded",
                "c0_0_0",
                approval("gone".into(), true),
            ),
            invalid.clone(),
        ),
        (
            shown("output-available", "c1_0_1", json!({"output": "here"})),
            answers(locate.with_answer(given())),
        ),
        (
            shown("output-available", "c1_0_0", json!({"output": "forged"})),
            invalid,
        ),
    ];
    for (row, (wish, expect)) in table.into_iter().enumerate() {
        assert_eq!(wish.map_err(|error| error.kind()), expect, "row {row}");
    }
}

#[test]
fn file_that_no_provider_could_read_is_refused_by_name() {
    let pictured = |media: &str, data: &str| {
        let source = json!({"type": "data", "value": data, "mimeType": media});
        let message = json!({"role": "user", "content": [{"type": "image", "source": source}]});
        ag_ui(json!({"messages": [message]})).wish(&[], |_| false)
    };
    let filed = |media: &str, url: &str| {
        let part = json!({"type": "file", "mediaType": media, "url": url});
        ai_sdk(json!({"messages": [{"role": "user", "parts": [part]}]})).wish(&[], |_| false)
    };
    for (wish, why) in [
        (pictured("image/png", "AAAA"), ""),
        (
            pictured("image/png", "!!!!"),
            "a part of the type \"image\": its data is not base64",
        ),
        (pictured("image/png", "AA"), "not base64"),
        (pictured("image/png", ""), "not base64"),
        (pictured("image/png\n", "AAAA"), "is no media type"),
        (
            pictured("application/pdf", "AAAA"),
            "none by its `mimeType`",
        ),
        (filed("image/png", "data:image/png;base64,AAAA"), ""),
        (filed("image/png", "https://example.org/a.png"), ""),
        (
            filed("image/png", "data:image/png;base64,A A="),
            "a part of the type \"file\": its data is not base64",
        ),
        (
            filed("image/png", "DATA:image/png,AAAA"),
            "a data URL that is not base64",
        ),
        (
            filed("picture", "https://example.org/a.png"),
            "\"picture\" is no media type",
        ),
        (filed("image/png", ""), "its URL is empty"),
    ] {
        let told = wish.map_or_else(|error| error.to_string(), |_| String::new());
        assert!(
            told.contains(why) && told.is_empty() == why.is_empty(),
            "{why}: {told}"
        );
    }
}

#[tokio::test]
async fn approval_for_the_run_is_for_this_call_alone_where_a_rule_asks() {
    let (_, pauses) = waiting().await;
    let mut ruled = Pause::clone(&pauses[0]);
    ruled.ask.data = json!({"why": "no rule allows it"});
    for (pause, for_run) in [(Pause::clone(&pauses[0]), true), (ruled, false)] {
        let answer = json!({
            "interruptId": format!("{}:{}", pause.digest(), pause.id), "status": "resolved",
            "payload": {"approved": true, "forRun": true},
        });
        let wish = ag_ui(json!({"resume": [answer]}))
            .wish(&[Arc::new(pause.clone())], |_| false)
            .expect("it fits");
        assert_eq!(
            wish,
            PageWish::Answers(vec![pause.with_answer(Answer::Approve {
                args: None,
                for_run
            })])
        );
    }
}

#[tokio::test]
async fn message_is_heard_once_and_beside_an_answer_stands_only_what_was_heard() {
    let (_, pauses) = waiting().await;
    let (pay, heard) = (&pauses[0], |id: &str| id == "u1");
    let name = |pause: &Pause| format!("{}:{}", pause.digest(), pause.id);
    let said = |id: &str| UserMessage {
        ids: vec![id.into()],
        ..UserMessage::text("Go.")
    };
    let prompt = |id: &str| Ok(PageWish::Prompt(vec![said(id)]));
    let answers = |answer: Answered| Ok(PageWish::Answers(vec![answer]));
    let user =
        json!({"role": "user", "content": "Go.", "parts": [{"type": "text", "text": "Go."}]});
    let old = json!({"role": "assistant", "parts": []});
    let tool = json!({"role": "tool", "toolCallId": "c1_0_1", "content": "here"});
    let invalid = Err(ErrorKind::Invalid);
    let named =
        |id: &str| json!({"role": "user", "id": id, "content": "Go.", "parts": user["parts"]});
    let denied = json!({"interruptId": name(pay), "status": "resolved", "payload": {"approved": false, "reason": "no"}});
    let no = json!({"id": name(pay), "payload": null});
    let part = |is_approved: &bool| {
        let approval = json!({"id": name(pay), "approved": is_approved});
        json!({"type": "dynamic-tool", "state": "approval-responded", "approval": approval})
    };
    let judged = |all: &[bool]| json!({"role": "assistant", "parts": all.iter().map(part).collect::<Vec<_>>()});
    let table = [
        (
            ag_ui(json!({"messages": [named("u1")]})).wish(&pauses, heard),
            Ok(PageWish::Heard("u1".into())),
        ),
        (
            ag_ui(json!({"messages": [named("u1"), named("u2")]})).wish(&[], heard),
            prompt("u2"),
        ),
        (
            ag_ui(json!({"messages": [named("u1")], "resume": [denied]})).wish(&pauses, heard),
            answers(pay.deny("no")),
        ),
        (
            ag_ui(json!({"messages": [named("u2")], "resume": [denied]})).wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ag_ui(json!({"resume": [denied, denied]})).wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ai_sdk(json!({"messages": [old], "answers": [no, no]})).wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ag_ui(json!({"messages": [user], "resume": [denied]})).wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ag_ui(json!({"messages": [user, old, tool, named("u2")]})).wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ag_ui(json!({"messages": [named("u1"), named("u2"), old], "resume": [denied]}))
                .wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ag_ui(json!({"messages": [named("u1"), old, named("heard-9")]})).wish(&[], heard),
            invalid.clone(),
        ),
        (
            ag_ui(json!({"messages": [named("u0"), named("u1"), old, named("u2")]}))
                .wish(&[], heard),
            prompt("u2"),
        ),
        (
            ai_sdk(json!({"messages": [named("u1")]})).wish(&[], heard),
            Ok(PageWish::Heard("u1".into())),
        ),
        (
            ai_sdk(json!({"messages": [named("u2")]})).wish(&[], heard),
            prompt("u2"),
        ),
        (
            ai_sdk(json!({"messages": [named("u1")], "answers": [no]})).wish(&pauses, heard),
            answers(pay.deny("the user said no")),
        ),
        (
            ai_sdk(json!({"messages": [named("u2")], "answers": [no]})).wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ai_sdk(json!({"messages": [named("u1"), judged(&[true])]})).wish(&pauses, heard),
            answers(pay.approve()),
        ),
        (
            ai_sdk(json!({"messages": [named("u1"), named("u2"), judged(&[true])]}))
                .wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ai_sdk(json!({"messages": [judged(&[true, false])]})).wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ai_sdk(json!({"messages": [judged(&[true])], "answers": [no]})).wish(&pauses, heard),
            invalid.clone(),
        ),
        (
            ai_sdk(json!({"messages": [named("u1"), old, named("u2"), named("u3")]}))
                .wish(&[], heard),
            Ok(PageWish::Prompt(vec![said("u2"), said("u3")])),
        ),
    ];
    for (row, (wish, expect)) in table.into_iter().enumerate() {
        assert_eq!(wish.map_err(|error| error.kind()), expect, "row {row}");
    }
}
