//! Calls: their steps, what a server asks meanwhile, and what is said of results.

use std::{
    any::{Any, TypeId},
    sync::{Arc, Mutex},
};

use adjutant_llm::{CallResult, Content, FinishReason, ModelId, Reply, Request, Status, Usage};
use adjutant_mcp::McpServer;
use adjutant_tool::{
    Answer, Ask, AskKind, CallBackend, CallContext, Cancel, Cut, Entered, Identity, Noted,
    Progress, Reentry, Replay, Sampler, ToolError, ToolErrorKind, ToolHints,
};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use super::script::{
    Act, AnyScript, Heard, Speaks, answer, call, configured, notify, resolve, server, stream, text,
    tool, usual, who,
};

/// What a server saw, and whatever processes there are of it.
pub(crate) type Seen = Arc<Mutex<Vec<String>>>;

fn saw(seen: &Seen, what: impl Into<String>) {
    seen.lock().expect("nobody panicked").push(what.into());
}

fn form(message: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

/// A server whose state is all in its answers: two questions at once, another one, then the effect.
pub(crate) fn order(seen: Seen) -> impl Fn(usize, &Value) -> Vec<Act> + Send + Sync {
    move |_, message| {
        let params = &message["params"];
        if message["method"] != "tools/call" {
            return usual(Speaks::New, message, &[tool("order")]);
        }
        let given = |key: &str| params["inputResponses"][key].to_string();
        let result = match params["requestState"].as_str() {
            None => {
                saw(&seen, "begins");
                json!({"resultType": "input_required", "inputRequests": {"a": form("Who?"), "b": form("For whom?")}, "requestState": "one"})
            }
            Some("one") => {
                saw(&seen, format!("hears {} {}", given("a"), given("b")));
                json!({"resultType": "input_required", "inputRequests": {"c": form("Sure?")}, "requestState": "two"})
            }
            Some(_) => {
                saw(&seen, format!("orders {}", given("c")));
                text("ordered")
            }
        };
        vec![answer(message, result)]
    }
}

/// A server that makes a task of a call; the task asks once.
pub(crate) fn job(seen: Seen) -> impl Fn(usize, &Value) -> Vec<Act> + Send + Sync {
    let looks = Mutex::new(0);
    move |_, message| {
        let task = |status: &str| json!({"resultType": "complete", "taskId": "t", "status": status, "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null, "pollIntervalMs": 1_000});
        let is_told = || {
            seen.lock()
                .expect("nobody panicked")
                .iter()
                .any(|it| it.starts_with("told"))
        };
        match message["method"].as_str() {
            Some("tools/call") => {
                saw(&seen, "makes");
                let mut made = task("working");
                made["resultType"] = json!("task");
                vec![answer(message, made)]
            }
            Some("tasks/get") => {
                let mut looks = looks.lock().expect("nobody panicked");
                *looks += 1;
                let mut task = task(if *looks < 3 {
                    "working"
                } else if is_told() {
                    "completed"
                } else {
                    "input_required"
                });
                task["inputRequests"] = json!({"q": form("Which?")});
                task["result"] = json!({"content": [{"type": "text", "text": "done"}]});
                vec![answer(message, task)]
            }
            Some("tasks/update") => {
                if !is_told() {
                    saw(
                        &seen,
                        format!("told {}", message["params"]["inputResponses"]["q"]),
                    );
                }
                vec![answer(message, json!({"resultType": "complete"}))]
            }
            Some("tasks/cancel") => {
                saw(&seen, "cancelled");
                vec![answer(message, json!({"resultType": "complete"}))]
            }
            _ => usual(Speaks::New, message, &[tool("job")]),
        }
    }
}

/// Calls the first tool of a server, which is another process's at each entry, and answers whatever is asked; dropped once at
/// the cut, if there is one.
async fn through(
    script: impl Fn(Seen) -> AnyScript,
    mut cut: Option<Cut>,
) -> Option<(Entered<String>, Vec<String>, bool)> {
    let (call, seen, mut is_cut) = (Reentry::default(), Seen::default(), false);
    for _ in 0..20 {
        let server = server(script(Arc::clone(&seen)));
        let tool = resolve(&server)
            .await
            .iter()
            .next()
            .expect("a tool")
            .clone();
        let body = |cx| async { Ok(tool.call(json!({}), cx).await?.text()) };
        let entered = match cut {
            Some(cut) => call.enter_until(cut, body).await,
            None => call.enter(body).await,
        };
        match entered {
            Entered::Dropped => (cut, is_cut) = (None, true),
            Entered::Waiting(asks) => {
                for (key, _) in asks {
                    call.answer(&key, Answer::give(json!({"name": &*key})))
                        .expect("it waits");
                }
            }
            ended => {
                let seen = seen.lock().expect("nobody panicked").clone();
                return Some((ended, seen, is_cut));
            }
        }
    }
    None
}

/// The property over all cuts: what is sent once is seen once at most, and only what was sent and not answered is unknown.
async fn nothing_twice_nothing_lost(
    script: impl Fn(Seen) -> AnyScript + Copy,
    sends: &[usize],
    result: &str,
    expect: &[&str],
) {
    let mut reached = 0;
    for at in 1..20 {
        for cut in [Cut::Before(at), Cut::Within(at), Cut::After(at)] {
            let (ended, seen, is_cut) = through(script, Some(cut))
                .await
                .expect("it comes to an end");
            if !is_cut {
                continue;
            }
            reached = at;
            let is_lost = matches!(cut, Cut::Within(at) if sends.contains(&at));
            let is_right = match &ended {
                Entered::Failed(error) => is_lost && error.kind == ToolErrorKind::OutcomeUnknown,
                Entered::Ended(text) => !is_lost && text == result && seen == expect,
                _ => false,
            };
            assert!(is_right, "{cut:?}: {ended:?} {seen:?}");
            assert!(
                seen.iter()
                    .all(|one| seen.iter().filter(|other| *other == one).count() == 1),
                "{cut:?}: {seen:?}"
            );
        }
    }
    assert!(reached > sends.len(), "the cuts reach all steps: {reached}");
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_by_another_process_and_nothing_is_done_twice() {
    // The steps: send, ask, ask, send, ask, send.
    let said = |key: &str| format!("{{\"action\":\"accept\",\"content\":{{\"name\":\"{key}\"}}}}");
    let hears = format!("hears {} {}", said("ask-0-0"), said("ask-0-1"));
    let orders = format!("orders {}", said("ask-1-0"));
    let script = |seen| -> AnyScript { Box::new(order(seen)) };
    nothing_twice_nothing_lost(script, &[1, 4, 6], "ordered", &["begins", &hears, &orders]).await;
}

#[tokio::test(start_paused = true)]
async fn task_is_followed_by_another_process_and_nothing_is_done_twice() {
    // The steps: send, look, ask, tell, look.
    let script = |seen| -> AnyScript { Box::new(job(seen)) };
    let told = "told {\"action\":\"accept\",\"content\":{\"name\":\"task-ask-0-0\"}}";
    nothing_twice_nothing_lost(script, &[1], "done", &["makes", told]).await;
}

#[tokio::test(start_paused = true)]
async fn task_is_stopped_when_its_call_is() {
    let seen = Seen::default();
    let server = server(job(Arc::clone(&seen)));
    let tool = resolve(&server)
        .await
        .get("s_job")
        .expect("it is there")
        .clone();
    let (cancel, call) = (Cancel::new(), Reentry::default());
    let cx = CallContext::new(
        Arc::new(who()),
        cancel.clone(),
        Arc::new(adjutant_tool::Detached),
    );
    let call_it = tool.call(json!({}), cx);
    let stop = async {
        sleep(Duration::from_millis(1_500)).await;
        cancel.cancel();
    };
    let (came, ()) = tokio::join!(call_it, stop);
    let error = came.expect_err("it was stopped");
    assert_eq!(
        (error.kind, &*error.message),
        (ToolErrorKind::Cancelled, "the task was stopped")
    );
    assert_eq!(
        *seen.lock().expect("nobody panicked"),
        ["makes", "cancelled"]
    );
    drop(call);
}

#[tokio::test(start_paused = true)]
async fn answers_are_told_in_the_words_of_the_protocol() {
    let url = json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in", "url": "https://x.example/in"}});
    let mut defaults = form("Who?");
    defaults["params"]["requestedSchema"]["properties"] = json!({
        "name": {"type": "string", "default": "Bo"}, "count": {"type": "integer", "default": 2},
        "size": {"type": "string", "enum": ["m", "l"], "default": "m"}, "sure": {"type": "boolean"},
    });
    let table = [
        (
            form("Who?"),
            Answer::give(json!({"name": "x"})),
            r#"{"action":"accept","content":{"name":"x"}}"#,
        ),
        (
            defaults.clone(),
            Answer::give(json!({"size": "l"})),
            r#"{"action":"accept","content":{"size":"l","name":"Bo","count":2}}"#,
        ),
        (
            defaults.clone(),
            Answer::give(json!({})),
            r#"{"action":"accept","content":{"name":"Bo","count":2,"size":"m"}}"#,
        ),
        (defaults, Answer::Expired, r#"{"action":"cancel"}"#),
        (
            form("Who?"),
            Answer::Decline { message: None },
            r#"{"action":"decline"}"#,
        ),
        (form("Who?"), Answer::Expired, r#"{"action":"cancel"}"#),
        (url.clone(), Answer::approve(), r#"{"action":"accept"}"#),
        (
            url.clone(),
            Answer::give(json!({"code": 1})),
            r#"{"action":"accept"}"#,
        ),
        (url.clone(), Answer::deny("no"), r#"{"action":"decline"}"#),
        (url, Answer::Expired, r#"{"action":"cancel"}"#),
    ];
    for (request, given, expect) in table {
        let is_form = request["params"]["mode"] == "form";
        let server = server(move |_, message: &Value| {
            match (
                message["method"].as_str(),
                &message["params"]["inputResponses"]["q"],
            ) {
                (Some("tools/call"), Value::Null) => {
                    vec![answer(
                        message,
                        json!({"resultType": "input_required", "inputRequests": {"q": request}}),
                    )]
                }
                (Some("tools/call"), given) => vec![answer(message, text(&given.to_string()))],
                _ => usual(Speaks::New, message, &[tool("a")]),
            }
        });
        let tool = resolve(&server)
            .await
            .get("s_a")
            .expect("it is there")
            .clone();
        let call = Reentry::default();
        let Entered::Waiting(asks) = call.enter(|cx| tool.call(json!({}), cx)).await else {
            panic!("it waits")
        };
        let ask = &asks[0].1;
        let (kind, prompt) = if is_form {
            (AskKind::Question, "s asks: Who?")
        } else {
            (
                AskKind::Authorisation,
                "s asks: Sign in\nhttps://x.example/in",
            )
        };
        assert_eq!(
            (ask.kind, &*ask.prompt, ask.schema.is_null()),
            (kind, prompt, !is_form)
        );
        call.answer("ask-0-0", given).expect("it waits");
        let Entered::Ended(result) = call.enter(|cx| tool.call(json!({}), cx)).await else {
            panic!("it goes on")
        };
        assert_eq!(result.text(), expect);
    }
}

/// A model that says what it was asked.
struct Echo;

#[async_trait]
impl Sampler for Echo {
    async fn sample(&self, request: Request) -> Result<Arc<Reply>, ToolError> {
        let mut reply = Reply::new(ModelId::from("test/echo"), FinishReason::End);
        let said = format!(
            "{} {} {:?}",
            request.system,
            request.entries.len(),
            request.options.max_output_tokens
        );
        reply.blocks = vec![Arc::new(adjutant_llm::Block::text(said))];
        Ok(Arc::new(reply))
    }
}

#[tokio::test(start_paused = true)]
async fn model_is_asked_once_somebody_allowed_it() {
    let message = |role: &str| json!({"role": role, "content": {"type": "text", "text": "hi"}});
    let params = json!({"messages": [message("user"), message("assistant"), message("user")], "systemPrompt": "Be short.", "maxTokens": 7});
    let script = move |_, message: &Value| match (
        message["method"].as_str(),
        &message["params"]["inputResponses"]["m"],
    ) {
        (Some("tools/call"), Value::Null) => {
            let request = json!({"method": "sampling/createMessage", "params": params});
            vec![answer(
                message,
                json!({"resultType": "input_required", "inputRequests": {"m": request}}),
            )]
        }
        (Some("tools/call"), given) => vec![answer(message, text(&given.to_string()))],
        _ => usual(Speaks::New, message, &[tool("a")]),
    };
    let expect = r#"{"content":{"text":"Be short. 3 Some(7)","type":"text"},"model":"test/echo","role":"assistant","stopReason":"endTurn"}"#;
    let within = || Reentry::within(CallContext::detached().put::<dyn Sampler>(Arc::new(Echo)));
    for is_trusted in [false, true] {
        let server = configured(script.clone(), |config| config.trusted = is_trusted);
        let tool = resolve(&server)
            .await
            .get("s_a")
            .expect("it is there")
            .clone();
        let call = within();
        if !is_trusted {
            let Entered::Waiting(asks) = call.enter(|cx| tool.call(json!({}), cx)).await else {
                panic!("it waits")
            };
            assert_eq!(
                (&*asks[0].0, asks[0].1.kind),
                ("ask-0-0-allowed", AskKind::Approval)
            );
            assert!(
                asks[0]
                    .1
                    .prompt
                    .ends_with("system: Be short.\nuser: hi\nmodel: hi\nuser: hi\n"),
                "{}",
                asks[0].1.prompt
            );
            call.answer("ask-0-0-allowed", Answer::approve())
                .expect("it waits");
        }
        let Entered::Ended(result) = call.enter(|cx| tool.call(json!({}), cx)).await else {
            panic!("it goes on")
        };
        let said: Value = serde_json::from_str(&result.text()).expect("JSON");
        assert_eq!(said, serde_json::from_str::<Value>(expect).expect("JSON"));
        assert_eq!(call.ran("ask-0-0"), 1);
    }
    let server = configured(script, |_| {});
    let tool = resolve(&server)
        .await
        .get("s_a")
        .expect("it is there")
        .clone();
    let call = within();
    let _ = call.enter(|cx| tool.call(json!({}), cx)).await;
    call.answer("ask-0-0-allowed", Answer::deny("no"))
        .expect("it waits");
    let Entered::Failed(error) = call.enter(|cx| tool.call(json!({}), cx)).await else {
        panic!("it is denied")
    };
    assert_eq!(
        (error.kind, &*error.message),
        (ToolErrorKind::Denied, "the server may not ask the model")
    );
}

/// A run that answers in place, and keeps what it is shown.
#[derive(Default)]
struct InPlace {
    asked: Mutex<Vec<Ask>>,
    shown: Mutex<Vec<Progress>>,
}

#[async_trait]
impl CallBackend for InPlace {
    fn emit(&self, progress: Progress) {
        self.shown.lock().expect("nobody panicked").push(progress);
    }

    fn charge(&self, _: Usage) {}

    async fn begin(&self, _: &str) -> Result<Noted, ToolError> {
        Err(ToolError::new(ToolErrorKind::NotResumable, "no steps"))
    }

    async fn finish(&self, _: &str, _: Value) -> Result<(), ToolError> {
        Err(ToolError::new(ToolErrorKind::NotResumable, "no steps"))
    }

    async fn pause(&self, _: &str, ask: Ask) -> Result<Answer, ToolError> {
        self.asked.lock().expect("nobody panicked").push(ask);
        Ok(Answer::give(json!({"name": "in place"})))
    }

    fn handle(&self, _: TypeId) -> Option<Box<dyn Any + Send + Sync>> {
        None
    }
}

/// A server of the older revision that asks while a call is open, and says what it heard.
fn asks_in_place() -> impl Fn(usize, &Value) -> Vec<Act> + Send + Sync + 'static {
    let open: Mutex<Vec<Value>> = Mutex::default();
    move |_, message| match message["method"].as_str() {
        Some("tools/call") => {
            let mut open = open.lock().expect("nobody panicked");
            open.push(message.clone());
            if message["params"]["arguments"]["waits"] == true {
                return Vec::new();
            }
            let mut ask = form("Who?");
            (ask["jsonrpc"], ask["id"]) = (json!("2.0"), json!("q"));
            vec![Act::Say(ask)]
        }
        None => {
            let heard = if message["error"].is_null() {
                &message["result"]
            } else {
                &message["error"]["message"]
            };
            let all = std::mem::take(&mut *open.lock().expect("nobody panicked"));
            all.iter()
                .map(|call| {
                    answer(
                        call,
                        json!({"content": [{"type": "text", "text": heard.to_string()}]}),
                    )
                })
                .collect()
        }
        _ => usual(Speaks::Old, message, &[tool("a")]),
    }
}

fn of(thread: &str, backend: Arc<InPlace>) -> CallContext {
    CallContext::new(
        Arc::new(Identity::root(thread.into(), "id", "agent")),
        Cancel::new(),
        backend,
    )
}

#[tokio::test(start_paused = true)]
async fn older_server_is_answered_in_place_or_told_that_nobody_is_there() {
    let server = server(asks_in_place());
    let tool = resolve(&server)
        .await
        .get("s_a")
        .expect("it is there")
        .clone();
    let run = Arc::new(InPlace::default());
    let result = tool
        .call(json!({}), of("one", Arc::clone(&run)))
        .await
        .expect("it answers");
    assert_eq!(
        result.text(),
        r#"{"action":"accept","content":{"name":"in place"}}"#
    );
    let asked = run.asked.lock().expect("nobody panicked").clone();
    assert_eq!(
        (&*asked[0].prompt, asked[0].within_ms),
        ("s asks: Who?", Some(300_000))
    );
    let result = tool
        .call(json!({}), CallContext::detached())
        .await
        .expect("it answers");
    assert_eq!(result.text(), r#"{"action":"cancel"}"#);
}

#[tokio::test(start_paused = true)]
async fn question_of_an_older_server_is_asked_of_nobody_else() {
    let server = server(asks_in_place());
    let tool = resolve(&server)
        .await
        .get("s_a")
        .expect("it is there")
        .clone();
    let (one, other) = (Arc::new(InPlace::default()), Arc::new(InPlace::default()));
    let waits = tool.call(json!({"waits": true}), of("one", Arc::clone(&one)));
    let asks = async {
        sleep(Duration::from_secs(1)).await;
        tool.call(json!({}), of("other", Arc::clone(&other))).await
    };
    let (_, refused) = tokio::join!(waits, asks);
    assert_eq!(
        refused.expect("it answers").text(),
        "\"no open call is known to be what this is about\""
    );
    assert!(
        one.asked.lock().expect("nobody panicked").is_empty()
            && other.asked.lock().expect("nobody panicked").is_empty()
    );
    // From now on its calls run one by one, and each question is about the one that runs.
    let both = tokio::join!(
        tool.call(json!({}), of("one", one)),
        tool.call(json!({}), of("other", other))
    );
    for result in [both.0, both.1] {
        assert_eq!(
            result.expect("it answers").text(),
            r#"{"action":"accept","content":{"name":"in place"}}"#
        );
    }
}

#[tokio::test(start_paused = true)]
async fn call_shows_progress_and_is_taken_back_when_it_is_dropped() {
    for speaks in [Speaks::Old, Speaks::New] {
        let heard = Heard::default();
        let server = {
            let heard = heard.clone();
            server(move |_, message: &Value| {
                heard.note(message);
                match message["method"].as_str() {
                    Some("tools/call") => {
                        let token = &message["params"]["_meta"]["progressToken"];
                        let params = json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"});
                        vec![notify("notifications/progress", params)]
                    }
                    _ => usual(speaks, message, &[tool("a")]),
                }
            })
        };
        let tool = resolve(&server)
            .await
            .get("s_a")
            .expect("it is there")
            .clone();
        let run = Arc::new(InPlace::default());
        let call = tool.call(json!({}), of("one", Arc::clone(&run)));
        assert!(
            tokio::time::timeout(Duration::from_secs(5), call)
                .await
                .is_err(),
            "it does not answer"
        );
        sleep(Duration::from_secs(1)).await;
        assert_eq!(
            *run.shown.lock().expect("nobody panicked"),
            [Progress::text("half (1 of 2)")],
            "{speaks:?}"
        );
        assert_eq!(heard.of("notifications/cancelled"), 1, "{speaks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hints_are_shown_and_believed_only_of_a_trusted_server() {
    let hinted = json!({
        "name": "a", "title": "An A", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true, "openWorldHint": false}
    });
    let again = json!({"name": "b", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": true, "title": "B"}});
    let table = [
        (Speaks::New, false, [Replay::Resumable, Replay::Resumable]),
        (Speaks::Old, false, [Replay::Once, Replay::Once]),
        (Speaks::New, true, [Replay::Pure, Replay::Idempotent]),
        (Speaks::Old, true, [Replay::Pure, Replay::Idempotent]),
    ];
    for (speaks, is_trusted, expect) in table {
        let tools = [hinted.clone(), again.clone()];
        let script = move |_, message: &Value| usual(speaks, message, &tools);
        let server = configured(script, |config| config.trusted = is_trusted);
        let set = resolve(&server).await;
        let [a, b] = ["s_a", "s_b"].map(|name| set.get(name).expect("it is there").spec());
        assert_eq!([a.replay, b.replay], expect, "{speaks:?} {is_trusted}");
        let hints = ToolHints {
            reads_only: Some(true),
            open_world: Some(false),
            ..ToolHints::default()
        };
        assert_eq!(
            (a.hints, a.title.as_deref(), b.title.as_deref()),
            (hints, Some("An A"), Some("B"))
        );
        assert_eq!(a.output_schema.as_deref(), Some(&json!({"type": "object"})));
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_shown_with_all_that_a_model_can_take() {
    let parts = json!([
        {"type": "text", "text": "one"},
        {"type": "image", "mimeType": "image/PNG", "data": "AAAA"},
        {"type": "audio", "mimeType": "audio/wav", "data": "AAA="},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/pdf", "blob": "AAAA"}},
        {"type": "resource_link", "uri": "file:///c", "name": "c", "description": "a file"}
    ]);
    let server = server(move |_, message: &Value| match message["method"].as_str() {
        Some("tools/call") => {
            vec![answer(
                message,
                json!({"resultType": "complete", "content": parts, "structuredContent": {"n": 1}}),
            )]
        }
        _ => usual(Speaks::New, message, &[tool("a")]),
    });
    let set = resolve(&server).await;
    let result: CallResult = call(&set, "s_a", json!({})).await.expect("it answers");
    let kinds: Vec<String> = result
        .content
        .iter()
        .map(|part| match part {
            Content::Text { text } => text.to_string(),
            Content::Image(image) => image.media_type.to_string(),
            Content::Audio(audio) => audio.media_type.to_string(),
            Content::Document(document) => document.media_type.to_string(),
            _ => "?".to_owned(),
        })
        .collect();
    let expect = [
        "one",
        "image/png",
        "audio/wav",
        "[resource file:///a]\ninside",
        "application/pdf",
        "[resource file:///c (c): a file]",
    ];
    assert_eq!(
        (result.status, kinds, result.details),
        (
            Status::Ok,
            expect.map(str::to_owned).into(),
            json!({"n": 1})
        )
    );
}

#[test]
fn configuration_that_cannot_be_meant_is_refused() {
    let script = |_: usize, _: &Value| Vec::new();
    let config = |prefix: Option<&str>| {
        let mut config = adjutant_mcp::ServerConfig::new(stream(script));
        config.prefix = prefix.map(Arc::from);
        config
    };
    let refused = |name: &str, prefix| {
        McpServer::new(name, config(prefix))
            .expect_err("it is refused")
            .to_string()
    };
    assert_eq!(
        refused("", None),
        "a server cannot be called \"\": hint: a name has 1 to 32 bytes"
    );
    assert!(refused(&"n".repeat(33), None).ends_with("hint: a name has 1 to 32 bytes"));
    assert!(refused("a", Some("b.")).contains("cannot begin with \"b.\""));
    assert!(
        McpServer::new("with blanks and ü", config(None)).is_ok()
            && McpServer::new("a", config(Some(""))).is_ok()
    );
}
