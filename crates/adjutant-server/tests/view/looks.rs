//! The routes of the page, each over a store and over an agent that runs.

use std::fs;

use adjutant::{
    Agent,
    agent::{Continue, DueWork, Journal},
    llm::{Gate, Script, ScriptedModel},
    toolkit::Edits,
};
use futures_util::StreamExt;
use reqwest::Method;
use serde_json::{Value, json};

use crate::stage::{Stage, frames, kept, stage};

const BOTH: [&str; 2] = ["live", "store"];

fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect()
}

/// The texts of the messages of a session.
async fn said(stage: &Stage, of: &str, session: &str) -> Vec<String> {
    let page = stage.get(of, &format!("/messages?session={session}")).await;
    let messages = page["messages"].as_array().expect("a list").iter();
    messages
        .map(|it| it["text"].as_str().expect("a text").to_owned())
        .collect()
}

#[tokio::test]
async fn sessions_are_listed_searched_told_and_compared() {
    let stage = stage([], []).await;
    for of in BOTH {
        let all = stage.get(of, "/sessions").await;
        let one = &all["sessions"][0];
        assert_eq!(
            (&one["name"], &one["state"], &one["usage"].is_object()),
            (&json!("talk"), &json!("done"), &true),
            "{of}"
        );
        for (query, count) in [
            ("?search=TAL", 1),
            ("?search=nothing", 0),
            ("?state=done", 1),
            ("?state=waiting", 0),
            ("?search=talk&state=done&limit=1", 1),
        ] {
            let found = stage.get(of, &format!("/sessions{query}")).await;
            assert_eq!(
                found["sessions"].as_array().map(Vec::len),
                Some(count),
                "{of} {query}"
            );
        }
        let events = stage.ended(of, "talk", 0).await;
        let names = names(&events);
        assert_eq!(
            (names.first(), names.last()),
            (Some(&"run_started"), Some(&"run_finished")),
            "{of}: {names:?}"
        );
        let head = one["records"].as_u64().expect("a number");
        assert_eq!(stage.ended(of, "talk", head).await, [json!({})], "{of}");
        let row = stage.get(of, "/context?session=talk").await;
        let turns: Vec<&Value> = row["requests"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| &it["turn"])
            .collect();
        assert_eq!(turns, [1, 2], "{of}");
        let seq = row["requests"][1]["seq"].as_u64().expect("a number");
        let request = stage
            .get(of, &format!("/request?session=talk&seq={seq}"))
            .await;
        let result = request.pointer("/entries/1/entry/results/0/content/0/text");
        assert_eq!(
            (result, request.pointer("/turn")),
            (Some(&json!("3")), Some(&json!(2))),
            "{of}: {request}"
        );
        let first = stage.get(of, "/request?session=talk&seq=1").await;
        assert_eq!(
            (
                first.pointer("/turn"),
                first["entries"].as_array().map(Vec::len)
            ),
            (Some(&json!(1)), Some(1))
        );
        let (status, made) = stage
            .post(of, "/fork?session=talk", json!({"to": "copy", "at": seq}))
            .await;
        assert_eq!(
            (status, &made["parent"]),
            (201, &json!(["talk", seq])),
            "{of}: {made}"
        );
        let tree = stage.get(of, "/tree?session=copy").await;
        assert_eq!(
            tree.pointer("/ancestors/0/log"),
            Some(&json!("talk")),
            "{of}"
        );
        let diff = stage.get(of, "/diff?session=talk&with=copy").await;
        assert_eq!(
            (&diff["shared"], &diff["beyond"]),
            (&json!(seq), &json!([head - seq, 0])),
            "{of}: {diff}"
        );
        let again = stage.get(of, "/explain?session=copy").await;
        assert_eq!(
            again.pointer("/again/0/redo/action"),
            Some(&json!("ask")),
            "{of}: {again}"
        );
        for (path, status) in [
            ("/tree?session=nobody", 404),
            ("/request?session=talk&seq=1000", 404),
            ("/request?session=talk", 400),
            ("/diff?session=talk", 400),
            ("/events?session=talk&follow=true", 400),
            ("/sessions?state=odd", 400),
            ("/export", 400),
        ] {
            let answer = stage
                .ask(Method::GET, &format!("/v1/agents/{of}{path}"), None)
                .await;
            assert_eq!(answer.status(), status, "{of}{path}");
        }
        assert_eq!(
            stage.post(of, "/undo?session=talk", json!({})).await.0,
            400,
            "{of}"
        );
    }
    let fleet = stage.get("store", "/fleet").await;
    assert_eq!(
        (
            &fleet["at_work"],
            fleet["sessions"].as_array().map(Vec::len)
        ),
        (&json!(0), Some(0)),
        "{fleet}"
    );
}

#[tokio::test]
async fn fork_goes_on_with_another_result_prompt_and_model() {
    let more = || [Script::new().text("Nine."), Script::new().text("Hello.")];
    let stage = stage(more(), more()).await;
    let nine = json!({"to": "nine", "result": {"call": "c1_0_0", "text": "9"}});
    let hello = json!({"to": "hello", "prompt": "Say hello."});
    for of in BOTH {
        let (status, made) = stage.post(of, "/fork?session=talk", nine.clone()).await;
        assert_eq!(status, 201, "{of}: {made}");
        if of == "store" {
            assert_eq!(made["state"], "open", "{made}");
            stage
                .worker
                .session("nine".into())
                .resume(Vec::new())
                .await
                .expect("it goes on");
        }
        stage.ended(of, "nine", 0).await;
        assert_eq!(
            said(&stage, of, "nine").await,
            ["Add them.", "9", "Nine."],
            "{of}"
        );
        let (status, made) = stage.post(of, "/fork?session=talk", hello.clone()).await;
        assert_eq!(status, 201, "{of}: {made}");
    }
    stage.ended("live", "hello", 0).await;
    assert_eq!(
        said(&stage, "live", "hello")
            .await
            .last()
            .map(String::as_str),
        Some("Hello.")
    );
    let posted = stage
        .stored
        .read_posts(&"hello".into(), Default::default())
        .await
        .expect("it is there");
    assert_eq!(posted.len(), 1);
    let wrong = json!({"to": "none", "result": {"call": "c9_0_0", "text": "9"}});
    for (of, fork) in [
        ("live", &wrong),
        ("store", &wrong),
        ("live", &json!({"to": "none", "model": "no/such"})),
        ("store", &json!({"to": "none", "model": "scripted"})),
        ("live", &json!({"to": "none", "prompt": " "})),
    ] {
        assert!(
            stage.post(of, "/fork?session=talk", fork.clone()).await.0 >= 400,
            "{of} {fork}"
        );
        assert_eq!(
            stage.get(of, "/sessions?search=none").await["sessions"],
            json!([]),
            "{of} {fork}"
        );
    }
}

#[tokio::test]
async fn pauses_are_answered_and_prompts_said_without_waiting_for_the_run() {
    let asks = || {
        [
            Script::new().call("delete", json!({"what": "it"})),
            Script::new().text("Done."),
        ]
    };
    let stage = stage(asks(), asks()).await;
    stage.prompt("ask", "Delete it.").await;
    stage.ended("live", "ask", 0).await;
    stage
        .worker
        .session("ask".into())
        .run("Delete it.")
        .await
        .expect("it waits");
    for of in BOTH {
        assert_eq!(
            stage
                .get(of, "/sessions?state=waiting")
                .await
                .pointer("/sessions/0/name"),
            Some(&json!("ask")),
            "{of}"
        );
        let path = format!("/v1/agents/{of}/ai-sdk/ask/stream");
        let told = stage
            .ask(Method::GET, &path, None)
            .await
            .text()
            .await
            .expect("it ends");
        assert!(
            told.contains("tool-approval-request") && told.ends_with("data: [DONE]\n\n"),
            "{of}: {told}"
        );
        let waits = stage.get(of, "/pauses?session=ask").await;
        let pause = &waits["pauses"][0];
        let (id, shown) = (&pause["id"], &pause["digest"]);
        let control = |answers: Value| json!({"control": "answer", "answers": answers});
        let with = |args: &str| json!({"pause": id, "answer": {"answer": "approve", "args": args}, "shown": shown});
        let that = || with(r#"{"what":"that"}"#);
        let other = |field: &str, value: Value| {
            let mut other = that();
            other[field] = value;
            json!([other])
        };
        for (status, wrong) in [
            (409, other("pause", json!("nobody"))),
            (409, other("shown", json!("0".repeat(64)))),
            (400, other("answer", json!({"answer": "give", "value": 5}))),
            (400, json!([with("{")])),
            (400, json!([with(r#"["that"]"#)])),
            (400, json!([that(), that()])),
        ] {
            let (told, why) = stage
                .post(of, "/control?session=ask", control(wrong.clone()))
                .await;
            assert_eq!(told, status, "{of} {wrong}: {why}");
        }
        assert_eq!(
            stage
                .post(of, "/control?session=ask", control(json!([that()])))
                .await
                .0,
            202,
            "{of}"
        );
        if of == "store" {
            // The first answer waits to be heard: it may be said again, and not otherwise.
            for (status, said) in [
                (202, json!([that()])),
                (
                    409,
                    other("answer", json!({"answer": "deny", "reason": "no"})),
                ),
            ] {
                assert_eq!(
                    stage
                        .post(of, "/control?session=ask", control(said.clone()))
                        .await
                        .0,
                    status,
                    "{said}"
                );
            }
            assert_eq!(
                stage
                    .stored
                    .read_posts(&"ask".into(), Default::default())
                    .await
                    .expect("it is there")
                    .len(),
                1
            );
        }
    }
    stage.ended("live", "ask", 0).await;
    assert_eq!(
        said(&stage, "live", "ask").await,
        ["Delete it.", "that is deleted", "Done."]
    );
    stage
        .worker
        .session("ask".into())
        .resume(Vec::new())
        .await
        .expect("the answer was posted");
    for of in BOTH {
        let stale = json!([{"pause": "main/c1_0_0", "answer": {"answer": "approve"}}]);
        let told = stage
            .post(
                of,
                "/control?session=ask",
                json!({"control": "answer", "answers": stale}),
            )
            .await;
        assert_eq!(told.0, 409, "{of}: {}", told.1);
    }
    assert_eq!(
        said(&stage, "store", "ask").await,
        ["Delete it.", "that is deleted", "Done."]
    );
    let prompt = json!({"control": "prompt", "text": "Anybody?"});
    assert_eq!(
        stage
            .post("store", "/control?session=new", prompt.clone())
            .await
            .0,
        202
    );
    let posted = stage
        .stored
        .read_posts(&"new".into(), Default::default())
        .await
        .expect("it is there");
    assert_eq!(posted.len(), 1);
    for (of, control) in [
        ("store", json!({"control": "stop"})),
        ("store", json!({"control": "stop_call", "call": "c1_0_0"})),
    ] {
        assert!(stage.post(of, "/control?session=talk", control).await.0 >= 400);
    }
}

#[tokio::test]
async fn files_are_put_back_unless_somebody_else_changed_them() {
    let stage = stage([], []).await;
    let (undo, files) = kept(stage.place.path());
    let note = stage.place.path().join("root/note.txt");
    let written = Script::new().call(
        "write_file",
        json!({"path": "note.txt", "content": "of the agent"}),
    );
    let model = ScriptedModel::new([written, Script::new().text("Written.")]);
    let editor = Agent::new(model)
        .toolbox(Edits::new(&files).undo(undo).toolbox())
        .journal(stage.stored.clone());
    let undone = async || stage.post("store", "/undo?session=edit", json!({})).await;
    assert_eq!(
        stage.post("store", "/undo?session=edit", json!([])).await.0,
        400
    );
    editor
        .session("edit".into())
        .run("Write a note.")
        .await
        .expect("it ends");
    // Nobody works in the session any more.
    drop(editor);
    fs::write(&note, "of somebody else").expect("it is written");
    assert_eq!(undone().await.0, 409);
    assert_eq!(
        stage
            .post("store", "/undo?session=edit", json!({"to": 1_000}))
            .await
            .0,
        400
    );
    fs::write(&note, "of the agent").expect("it is written");
    assert_eq!(undone().await, (200, json!({"files": ["note.txt"]})));
    assert!(!note.exists());
    assert_eq!(undone().await, (200, json!({"files": []})));
}

#[tokio::test]
async fn events_go_on_over_later_runs_when_they_are_followed() {
    let gate = Gate::default();
    let stage = stage(
        [Script::new().text("Live.").wait_at(0, &gate)],
        [Script::new().text("Stored.")],
    )
    .await;
    for of in BOTH {
        let head = stage.get(of, "/sessions").await["sessions"][0]["records"]
            .as_u64()
            .expect("a number");
        let path = format!("/v1/agents/{of}/events?session=talk&after={head}&follow=true");
        let mut events = stage.ask(Method::GET, &path, None).await.bytes_stream();
        if of == "live" {
            stage.prompt("talk", "And?").await;
        } else {
            stage
                .worker
                .session("talk".into())
                .run("And?")
                .await
                .expect("it ends");
        }
        let mut text = String::new();
        while !text.contains("event: run_finished\n") || !text.ends_with("\n\n") {
            if text.contains("event: turn_started\n") {
                gate.open();
            }
            text += std::str::from_utf8(&events.next().await.expect("it goes on").expect("bytes"))
                .expect("text");
        }
        let events = frames(&text);
        let names = names(&events);
        assert_eq!(
            (names.first(), names.last()),
            (Some(&"run_started"), Some(&"run_finished")),
            "{of}: {names:?}"
        );
        assert_eq!(
            names.contains(&"text_delta"),
            of == "live",
            "{of}: {names:?}"
        );
    }
}

#[tokio::test]
async fn streams_of_other_pages_are_told_over_a_store_by_whoever_works_in_it() {
    let stage = stage([], [Script::new().text("One."), Script::new().text("Two.")]).await;
    let said = json!([{"role": "user", "parts": [{"type": "text", "text": "And two?"}]}]);
    let asked = async {
        let body = json!({"id": "talk", "messages": said});
        let answer = stage
            .ask(Method::POST, "/v1/agents/store/ai-sdk", Some(body))
            .await;
        answer.text().await.expect("it is text")
    };
    let worked = async {
        while stage
            .stored
            .read_posts(&"talk".into(), Default::default())
            .await
            .expect("it is there")
            .is_empty()
        {
            tokio::task::yield_now().await;
        }
        stage
            .worker
            .session("talk".into())
            .run("One?")
            .await
            .expect("it ends");
    };
    let (answer, ()) = tokio::join!(asked, worked);
    let told = frames(answer.strip_suffix("data: [DONE]\n\n").expect("it ends"));
    let of = |kind: &str| {
        told.iter()
            .filter(|it| it["type"] == kind)
            .collect::<Vec<_>>()
    };
    let texts: Vec<_> = of("text-delta")
        .iter()
        .filter_map(|it| it["delta"].as_str())
        .collect();
    assert_eq!(
        (texts, of("finish").len()),
        (vec!["One.", "Two."], 1),
        "{told:?}"
    );
    assert_eq!(of("steering-message").len(), 1, "{told:?}");
}

#[tokio::test]
async fn message_of_a_page_is_heard_once_over_a_store_and_followed_before_its_run_began() {
    let stage = stage(
        [],
        ["One.", "Two.", "Three."].map(|text| Script::new().text(text)),
    )
    .await;
    let body = |session: &str, id: &str| {
        let message = json!({"id": id, "role": "user", "content": "Go."});
        json!({"threadId": session, "runId": "r", "messages": [message]})
    };
    let told = async |path: &str, session: &str, id: &str| {
        let path = format!("/v1/agents/store/ag-ui{path}");
        let answer = stage
            .ask(Method::POST, &path, Some(body(session, id)))
            .await;
        (
            answer.status().as_u16(),
            answer.text().await.expect("it is text"),
        )
    };
    let work = async |session: &str, id: &str| {
        let log = session.into();
        while !stage
            .stored
            .read_posts(&log, Default::default())
            .await
            .is_ok_and(|posted| posted.len() == 1)
        {
            tokio::task::yield_now().await;
        }
        assert_eq!(told("", session, id).await.0, 409, "it is said once");
        // A page that comes back meanwhile waits for the run too.
        let worked = async {
            tokio::task::yield_now().await;
            stage
                .worker
                .session(session.into())
                .run(Continue)
                .await
                .expect("it ends")
        };
        tokio::join!(told("/connect", session, id), worked).0
    };
    for (session, says) in [("one", "One."), ("two", "Two."), ("one", "Three.")] {
        let ((status, first), back) = tokio::join!(told("", session, says), work(session, says));
        assert!(
            status == 200 && first.contains(says) && !first.contains("heard-"),
            "{first}"
        );
        assert!(
            back.0 == 200 && back.1.contains(says) && !back.1.contains("RUN_ERROR"),
            "{back:?}"
        );
        assert_eq!(told("", session, says).await.0, 200);
        let again = told("", session, says).await.1;
        assert!(
            again.contains(says) && !again.contains("RUN_ERROR"),
            "{again}"
        );
    }
    assert_eq!(told("/connect", "nobody", "m").await.0, 404);
    stage
        .stored
        .set_aside(&"two".into(), "it breaks")
        .await
        .expect("it is there");
    let (status, aside) = told("", "two", "m").await;
    assert!(
        status == 409 && aside.contains("it breaks; hint: `adjutant fleet retry two`"),
        "{aside}"
    );
}
