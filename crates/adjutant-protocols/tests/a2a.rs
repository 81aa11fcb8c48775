//! An agent that callers ask over A2A: what each method answers, and what is done once.

#[path = "a2a/push.rs"]
mod push;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use adjutant_agent::{Agent, Continue, EventKind, Journal, MemoryJournal, Seq};
use adjutant_llm::{CallResult, Script, ScriptedModel, Status, Terminate};
use adjutant_protocols::{
    Error, ErrorKind,
    a2a::{AgentCard, AgentDesk, Desk, DeskWish, Events, Handler, Reply, Until},
};
use adjutant_tool::{Approval, CallContext, ToolSpec, tool_fn};
use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};

/// An agent that pays if it may, in the sessions of a journal; its model answers with these, one after the other.
fn handler(journal: &MemoryJournal, scripts: impl IntoIterator<Item = Script>) -> Handler {
    handler_of(
        &AgentCard::new("payer", "Pays.", "http://127.0.0.1/a2a"),
        journal,
        scripts,
    )
}

fn handler_of(
    card: &AgentCard,
    journal: &MemoryJournal,
    scripts: impl IntoIterator<Item = Script>,
) -> Handler {
    Handler::new(AgentDesk::new(agent(journal, scripts)), card)
}

fn agent(journal: &MemoryJournal, scripts: impl IntoIterator<Item = Script>) -> Agent {
    let spec = ToolSpec {
        approval: Approval::Always,
        ..ToolSpec::new("pay", "Pays.", json!({"type": "object"}))
    };
    let pay = tool_fn(spec, |args: Value, _: CallContext| async move {
        Ok(CallResult::ok(format!("paid {args}")))
    });
    let transfer = tool_fn(
        ToolSpec::new("transfer", "Hands over.", json!({"type": "object"})),
        |_: Value, _| async {
            let details = json!({"handoff": {"to": "another"}});
            Ok(CallResult {
                details,
                terminate: Terminate::Now,
                ..CallResult::ok("Go on.")
            })
        },
    );
    Agent::new(ScriptedModel::new(scripts))
        .tool(pay)
        .tool(transfer)
        .journal(journal.clone())
}

fn pays(amount: u64) -> Script {
    Script::new().call("pay", json!({"amount": amount}))
}

fn message(id: &str, part: Value, more: Value) -> Value {
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [part]});
    message
        .as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    json!({"message": message})
}

/// An answer that is no stream.
fn json_of(reply: Reply) -> Value {
    match reply {
        Reply::Json(told) => told,
        Reply::Stream(_) => Value::Null,
    }
}

/// A program is gone when it has let go of its logs.
async fn gone() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

/// The answer to a request: its result, or the code of its refusal.
async fn ask(handler: &Handler, method: &str, params: Value) -> Result<Value, i64> {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let mut told = json_of(handler.handle(Some("1.0"), body.as_bytes()).await);
    assert_eq!(told["id"], 7);
    told["error"]["code"]
        .as_i64()
        .map_or_else(|| Ok(told["result"].take()), Err)
}

async fn send(handler: &Handler, params: Value) -> Result<Value, i64> {
    ask(handler, "SendMessage", params)
        .await
        .map(|mut told| told["task"].take())
}

fn text(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// The names of what a stream tells, with its states.
async fn followed(handler: &Handler, method: &str, params: Value) -> Vec<String> {
    let body = json!({"jsonrpc": "2.0", "id": "s", "method": method, "params": params}).to_string();
    let text: String = match handler.handle(Some("1.0"), body.as_bytes()).await {
        Reply::Stream(frames) => frames.collect().await,
        Reply::Json(told) => told.to_string(),
    };
    let frames = text
        .split("\n\n")
        .filter_map(|frame| frame.strip_prefix("data: "));
    let names = frames.map(|frame| {
        let mut frame: Value = serde_json::from_str(frame).expect("JSON");
        assert_eq!(frame["id"], "s");
        let (name, told) = frame["result"]
            .as_object_mut()
            .expect("a result")
            .iter()
            .next()
            .expect("one")
            .to_owned();
        let state = told["status"]["state"].as_str().unwrap_or_default();
        format!(
            "{name} {}{}",
            state.trim_start_matches("TASK_STATE_"),
            text_of(told)
        )
    });
    names.collect()
}

fn text_of(told: &Value) -> &str {
    told["artifact"]["parts"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

#[tokio::test]
async fn request_is_refused_with_its_code_when_it_cannot_be_meant() {
    let handler = handler(&MemoryJournal::default(), [Script::new().text("Done.")]);
    let task = send(
        &handler,
        message("m1", json!({"text": "Go."}), json!({"contextId": "c"})),
    )
    .await
    .expect("a task");
    let (id, go) = (task["id"].as_str().expect("an id"), json!({"text": "Go."}));
    let of = |params: Value| {
        json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": params}).to_string()
    };
    let on = |method: &str| {
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": {"id": id}}).to_string()
    };
    let listed = |state: &str| {
        let params = json!({"contextId": "c", "status": state});
        json!({"jsonrpc": "2.0", "id": 7, "method": "ListTasks", "params": params}).to_string()
    };
    let table = [
        (Some("1.0"), "{".to_owned(), -32700),
        (
            Some("1.0"),
            r#"{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "GetTask"}"#.to_owned(),
            -32700,
        ),
        (Some("1.0"), json!([]).to_string(), -32600),
        (
            Some("1.0"),
            json!({"jsonrpc": "2.0", "method": "GetTask"}).to_string(),
            -32600,
        ),
        (Some("1.0"), on("message/send"), -32601),
        (None, on("GetTask"), -32009),
        (Some(""), on("GetTask"), -32009),
        (Some("0.3"), on("GetTask"), -32009),
        (Some("1.1"), on("GetTask"), -32009),
        (Some("1.0"), of(json!({"message": 1})), -32602),
        (Some("1.0"), of(message("", go.clone(), json!({}))), -32602),
        (
            Some("1.0"),
            of(json!({"message": {"messageId": "m", "parts": []}})),
            -32602,
        ),
        (
            Some("1.0"),
            of(message(
                "m",
                json!({"raw": "eA==", "mediaType": "video/mp4"}),
                json!({}),
            )),
            -32005,
        ),
        (Some("1.0"), of(message("m", json!({}), json!({}))), -32602),
        (
            Some("1.0"),
            of(message(
                "m",
                json!({"raw": "not base64", "mediaType": "image/png"}),
                json!({}),
            )),
            -32602,
        ),
        (
            Some("1.0"),
            of(message(
                "m",
                json!({"raw": "AAAA", "mediaType": "image/"}),
                json!({}),
            )),
            -32602,
        ),
        (
            Some("1.0"),
            of(message("m", go.clone(), json!({"taskId": "9.c"}))),
            -32001,
        ),
        (
            Some("1.0"),
            of(message("m", go.clone(), json!({"taskId": "nothing"}))),
            -32001,
        ),
        (
            Some("1.0"),
            of(message(
                "m",
                go.clone(),
                json!({"taskId": id, "contextId": "d"}),
            )),
            -32602,
        ),
        (
            Some("1.0"),
            of(message("m", go.clone(), json!({"taskId": id}))),
            -32004,
        ),
        (
            Some("1.0"),
            of(message("m", go.clone(), json!({"role": "ROLE_AGENT"}))),
            -32602,
        ),
        (
            Some("1.0"),
            of(message("m", go.clone(), json!({"role": "user"}))),
            -32602,
        ),
        (
            Some("1.0"),
            of(message(
                "m",
                json!({"text": "Go.", "url": "https://example.org"}),
                json!({}),
            )),
            -32602,
        ),
        (Some("1.0"), listed("completed"), -32602),
        (Some("1.0"), on("CancelTask"), -32002),
        (Some("1.0"), on("SubscribeToTask"), -32004),
        (Some("1.0"), on("ListTasks"), -32004),
        (Some("1.0"), on("GetExtendedAgentCard"), -32004),
        (Some("1.0"), on("CreateTaskPushNotificationConfig"), -32003),
        (Some("1.0"), on("GetTaskPushNotificationConfig"), -32003),
        (Some("1.0"), on("ListTaskPushNotificationConfigs"), -32003),
        (Some("1.0"), on("DeleteTaskPushNotificationConfig"), -32003),
        (
            Some("1.0"),
            of(push::wanting(
                message("m", go.clone(), json!({})),
                json!({"url": "https://a.example"}),
            )),
            -32003,
        ),
    ];
    for (version, body, code) in table {
        let told = json_of(handler.handle(version, body.as_bytes()).await);
        assert_eq!(told["error"]["code"], code, "{version:?} {body}: {told}");
        let is_named = told["error"]["data"][0]["reason"].is_string();
        assert_eq!(is_named, code > -32100, "{told}");
    }
    assert_eq!(handler.card()["capabilities"]["pushNotifications"], false);
}

#[tokio::test]
async fn message_is_heard_once_when_it_comes_again_and_its_task_is_found_in_the_log() {
    let journal = MemoryJournal::default();
    let go = || message("m1", json!({"text": "Go."}), json!({}));
    let first = send(&handler(&journal, [Script::new().text("Done.")]), go())
        .await
        .expect("a task");
    assert_eq!(
        (&first["status"]["state"], text(&first)),
        (&json!("TASK_STATE_COMPLETED"), "Done.")
    );
    assert_eq!(first["history"][0]["messageId"], "m1");
    // Another program: its model has nothing to say.
    let later = handler(&journal, []);
    assert_eq!(send(&later, go()).await, Ok(first.clone()));
    assert_eq!(
        ask(&later, "GetTask", json!({"id": first["id"]})).await,
        Ok(first.clone())
    );
    let listed = ask(
        &later,
        "ListTasks",
        json!({"contextId": first["contextId"], "pageSize": 1}),
    )
    .await
    .expect("a page");
    assert_eq!(
        (&listed["totalSize"], &listed["nextPageToken"]),
        (&json!(1), &json!(""))
    );
    assert_eq!(
        listed["tasks"][0]["artifacts"],
        Value::Null,
        "nobody asked for them"
    );
}

#[tokio::test]
async fn answer_counts_for_what_it_answers_when_it_comes_again_and_the_agent_began_anew() {
    let journal = MemoryJournal::default();
    let of = json!({"contextId": "c"});
    let mut task = send(
        &handler(&journal, [pays(1)]),
        message("m1", json!({"text": "Go."}), of),
    )
    .await
    .expect("a task");
    gone().await;
    let id = task["id"].clone();
    let parts = &task["status"]["message"]["parts"];
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(
        parts[1]["data"]["call"],
        json!({"name": "pay", "args": {"amount": 1}})
    );
    let (first, of) = (parts[1]["data"]["pause"].clone(), json!({"taskId": id}));

    let later = handler(&journal, [pays(2), Script::new().text("Done.")]);
    let yes = message("m2", json!({"text": " Yes\n"}), of.clone());
    for _ in 0..2 {
        // Sent again it approves nothing else, though something else waits.
        task = send(&later, yes.clone()).await.expect("a task");
        assert_eq!(
            task["status"]["message"]["parts"][1]["data"]["call"]["args"],
            json!({"amount": 2})
        );
    }
    let stale = message(
        "m3",
        json!({"data": {"pause": first, "answer": {"approved": true}}}),
        of.clone(),
    );
    assert_eq!(
        send(&later, stale).await,
        Err(-32004),
        "what is answered waits no more"
    );
    let pause = &task["status"]["message"]["parts"][1]["data"]["pause"];
    let answer = json!({"pause": pause, "answer": {"approved": true, "editedArgs": {"amount": 3}}});
    let both = json!({"taskId": id, "parts": [{"data": answer}, {"text": "No, stop."}]});
    let blank = (json!({"text": "  "}), of.clone());
    let file = json!({"taskId": id, "parts": [{"data": answer}, {"raw": "AAAA", "mediaType": "image/png"}]});
    let nameless =
        json!({"taskId": id, "parts": [{"data": answer}, {"data": {"approved": false}}]});
    let twice = json!({"taskId": id, "parts": [{"data": answer}, {"data": {"pause": pause, "answer": null}}]});
    let none = json!({"data": {"maybe": true}});
    for (part, more) in [
        (none, of.clone()),
        blank,
        (json!({}), both),
        (json!({}), file),
        (json!({}), nameless),
        (json!({}), twice),
    ] {
        assert_eq!(
            send(&later, message("m4", part.clone(), more)).await,
            Err(-32602),
            "{part}"
        );
    }
    let told = followed(
        &later,
        "SendStreamingMessage",
        message("m5", json!({"data": answer}), of),
    )
    .await;
    assert_eq!(told.first().map(String::as_str), Some("task WORKING"));
    assert_eq!(
        told.last().map(String::as_str),
        Some("statusUpdate COMPLETED")
    );
    let task = ask(&later, "GetTask", json!({"id": id}))
        .await
        .expect("it is there");
    let said: Vec<_> = task["history"]
        .as_array()
        .expect("a history")
        .iter()
        .map(|it| &it["messageId"])
        .collect();
    assert_eq!(
        [said[0], said[2], said[4]],
        [&json!("m1"), &json!("m2"), &json!("m5")]
    );
    assert_eq!(text(&task), "Done.");
    let newest = ask(&later, "GetTask", json!({"id": id, "historyLength": 1}))
        .await
        .expect("it is there");
    assert_eq!(newest["history"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn task_that_waits_is_cancelled_denied_or_followed_when_its_caller_says_so() {
    let handler = handler(
        &MemoryJournal::default(),
        [
            pays(1),
            pays(2),
            Script::new().text("No then."),
            Script::new(),
        ],
    );
    let begin = async |context: &str| {
        let go = message(
            context,
            json!({"text": "Go."}),
            json!({"contextId": context}),
        );
        send(&handler, go).await.expect("a task")["id"].take()
    };
    let (one, other) = (begin("one").await, begin("other").await);
    let told = ask(&handler, "CancelTask", json!({"id": one}))
        .await
        .expect("it waits");
    assert_eq!(told["status"]["state"], "TASK_STATE_CANCELED");
    let again = ask(&handler, "CancelTask", json!({"id": one}))
        .await
        .expect("it is cancelled already");
    assert_eq!(again["status"], told["status"]);

    let follow = followed(&handler, "SubscribeToTask", json!({"id": other}));
    let deny = async {
        let mut busy = message(
            "m2",
            json!({"text": "Rather not, it is late."}),
            json!({"taskId": other}),
        );
        busy["configuration"] = json!({"returnImmediately": true});
        send(&handler, busy).await.expect("a task")
    };
    let (told, begun) = futures_util::join!(follow, deny);
    assert_eq!(begun["id"], other);
    assert_eq!(
        (&*told[0], told.last().map(String::as_str)),
        ("task INPUT_REQUIRED", Some("statusUpdate COMPLETED"))
    );
    assert!(
        told.contains(&"artifactUpdate No then.".to_owned()),
        "{told:?}"
    );
}

#[tokio::test]
async fn text_approves_only_if_it_is_a_word_for_that_and_nothing_else() {
    let said = [
        "yes",
        " OK ",
        "Approved",
        "ok!",
        "yes.",
        "approve.",
        "yes please",
        "no",
        "No!",
    ];
    let mut paid = Vec::new();
    for said in said {
        let journal = MemoryJournal::default();
        let handler = handler(&journal, [pays(1), Script::new().text("Done.")]);
        let task = send(
            &handler,
            message("m1", json!({"text": "Go."}), json!({"contextId": "c"})),
        )
        .await
        .expect("a task");
        let answer = message("m2", json!({"text": said}), json!({"taskId": task["id"]}));
        assert_eq!(
            text(&send(&handler, answer).await.expect("a task")),
            "Done."
        );
        let events = Agent::new(ScriptedModel::new([]))
            .journal(journal)
            .session("c".into());
        let events = events
            .log()
            .events_after(Seq(0))
            .map(|event| event.expect("it is there").kind);
        let finished = events.filter_map(async |kind| match kind {
            EventKind::ToolFinished { result, .. } => Some(result.status == Status::Ok),
            _ => None,
        });
        paid.push(finished.collect::<Vec<_>>().await == [true]);
    }
    assert_eq!(
        paid,
        [true, true, true, false, false, false, false, false, false]
    );
}

#[tokio::test]
async fn task_goes_on_with_the_next_agent_when_the_conversation_is_handed_over() {
    let journal = MemoryJournal::default();
    let handler = handler(
        &journal,
        [Script::new()
            .text("Ask another.")
            .call("transfer", json!({}))],
    );
    let go = message("m1", json!({"text": "Go."}), json!({"contextId": "c"}));
    let task = send(&handler, go).await.expect("a task");
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING");
    gone().await;
    let another =
        Agent::new(ScriptedModel::new([Script::new().text("Done.")])).journal(journal.clone());
    another
        .session("c".into())
        .run(Continue)
        .await
        .expect("it answers");
    let told = ask(&handler, "GetTask", json!({"id": task["id"]}))
        .await
        .expect("it is there");
    assert_eq!(
        (&told["status"]["state"], text(&told)),
        (&json!("TASK_STATE_COMPLETED"), "Done.")
    );
    assert_eq!(told["history"][1]["parts"][0]["text"], "Ask another.");
}

/// A desk that knows how far its logs are, counts the events that are read there, and where another caller stops each task first.
struct Counted(AgentDesk, MemoryJournal, Arc<AtomicUsize>);

#[async_trait]
impl Desk for Counted {
    async fn events(&self, session: &str, after: Seq, until: Until) -> Result<Events, Error> {
        let read = Arc::clone(&self.2);
        let events = self.0.events(session, after, until).await?;
        Ok(Box::pin(events.inspect(move |_| {
            read.fetch_add(1, Relaxed);
        })))
    }

    async fn mark(&self, session: &str) -> Option<(u64, Seq)> {
        let info = self.1.info(&session.into()).await.ok()?;
        Some((info.created_ms, info.head))
    }

    async fn perform(&self, session: &str, wish: DeskWish) -> Result<(), Error> {
        let is_first = wish != DeskWish::Stop;
        self.0.perform(session, wish).await?;
        is_first
            .then_some(())
            .ok_or_else(|| Error::new(ErrorKind::Stale, "no run waits"))
    }
}

#[tokio::test]
async fn task_that_another_caller_cancels_at_the_same_time_is_told_as_it_is() {
    let journal = MemoryJournal::default();
    let desk = AgentDesk::new(agent(&journal, [pays(1)]));
    let desk = Counted(desk, journal, Arc::default());
    let handler = Handler::new(
        desk,
        &AgentCard::new("payer", "Pays.", "http://127.0.0.1/a2a"),
    );
    let go = message("m1", json!({"text": "Go."}), json!({"contextId": "c"}));
    let task = send(&handler, go).await.expect("a task");
    let told = ask(&handler, "CancelTask", json!({"id": task["id"]}))
        .await
        .expect("it is cancelled");
    assert_eq!(told["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn log_is_read_once_while_it_does_not_grow() {
    let (journal, read) = (MemoryJournal::default(), Arc::<AtomicUsize>::default());
    let scripts = [Script::new().text("One."), Script::new().text("Two.")];
    let desk = AgentDesk::new(Agent::new(ScriptedModel::new(scripts)).journal(journal.clone()));
    let desk = Counted(desk, journal.clone(), Arc::clone(&read));
    let handler = Handler::new(
        desk,
        &AgentCard::new("payer", "Pays.", "http://127.0.0.1/a2a"),
    );
    let go = |id: &str| message(id, json!({"text": "Go."}), json!({"contextId": "c"}));
    let task = send(&handler, go("m1")).await.expect("a task");
    let look = || ask(&handler, "GetTask", json!({"id": task["id"]}));
    gone().await;
    assert_eq!(text(&look().await.expect("it is there")), "One.");
    let once = read.load(Relaxed);
    for _ in 0..100 {
        assert_eq!(text(&look().await.expect("it is there")), "One.");
    }
    assert_eq!(read.load(Relaxed), once, "nothing was read once more");
    assert_eq!(
        text(&send(&handler, go("m2")).await.expect("another")),
        "Two."
    );
    let listed = ask(&handler, "ListTasks", json!({"contextId": "c"}))
        .await
        .expect("they are listed");
    assert_eq!(listed["totalSize"], 2, "it has grown");
    // Another log of that name is read anew.
    gone().await;
    journal.delete(&"c".into()).await.expect("it goes");
    assert_eq!(look().await, Err(-32001));
}
