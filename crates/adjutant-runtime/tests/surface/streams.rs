//! The streams of other people's pages, as routes: a run goes on whoever follows it, and what waits is answered.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Durability, MemoryJournal};
use adjutant_llm::{Gate, Script};
use adjutant_runtime::{
    Prompter,
    prompt::{ForkRequest, Look, MessagesRequest, StoredPrompter},
};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use crate::{
    raw::{Answer, Asked, ask, ask_then},
    stage::{self, Over, Stage, stage},
};

/// A protocol: its route, and how a page attaches to what goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    AgUi,
    AiSdk,
}

impl Of {
    fn path(self) -> &'static str {
        if self == Self::AgUi {
            "/v1/ag-ui"
        } else {
            "/v1/ai-sdk"
        }
    }

    /// A request with one message, or with an answer in the form of the protocol.
    fn asks(self, session: &str, said: Result<&str, Value>) -> Asked<'static> {
        let body = match (self, said) {
            (Self::AgUi, Ok(text)) => {
                json!({"threadId": session, "runId": "r", "messages": [{"role": "user", "content": text}]})
            }
            (Self::AgUi, Err(it)) => {
                let answer = json!({"interruptId": it["id"], "status": "resolved", "payload": {"approved": true}});
                json!({"threadId": session, "runId": "r", "resume": [answer]})
            }
            (Self::AiSdk, Ok(text)) => {
                let parts = json!([{"type": "text", "text": text}]);
                json!({"id": session, "trigger": "submit-message", "messages": [{"role": "user", "parts": parts}]})
            }
            (Self::AiSdk, Err(it)) => {
                let approval = json!({"id": it["approvalId"], "approved": true});
                let part = json!({
                    "type": "tool-delete", "state": "approval-responded", "toolCallId": it["toolCallId"],
                    "approval": approval,
                });
                json!({"id": session, "messages": [{"role": "assistant", "id": "run-1", "parts": [part]}]})
            }
        };
        Asked::new("POST", self.path()).json(body)
    }

    /// A request of a page that comes back to the session `talk`.
    fn back(self) -> Asked<'static> {
        match self {
            Self::AgUi => Asked {
                path: "/v1/ag-ui/connect",
                ..self.asks("talk", Ok("Never read."))
            },
            Self::AiSdk => Asked::new("GET", "/v1/ai-sdk/talk/stream"),
        }
    }

    /// What asks for something to be answered, if the frames end in that.
    fn question(self, frames: &[Value]) -> Value {
        match self {
            Self::AgUi => frames.last().expect("an end")["outcome"]["interrupts"][0].clone(),
            Self::AiSdk => frames
                .iter()
                .find(|it| it["type"] == "tool-approval-request")
                .cloned()
                .unwrap_or_default(),
        }
    }
}

/// The same request, whose message has an id.
fn named<'a>(asked: Asked<'a>, id: &str) -> Asked<'a> {
    let mut body: Value = serde_json::from_str(&asked.body).expect("JSON");
    body["messages"][0]["id"] = id.into();
    asked.json(body)
}

/// The contents of the frames, but for a mark behind the last one.
fn told(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let data = answer
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).expect("it is JSON"))
        .collect()
}

fn text(frames: &[Value]) -> String {
    let is_text = |it: &&Value| {
        ["TEXT_MESSAGE_CONTENT", "text-delta"]
            .iter()
            .any(|name| it["type"] == *name)
    };
    frames
        .iter()
        .filter(is_text)
        .filter_map(|it| it["delta"].as_str())
        .collect()
}

async fn said(stage: &Stage, session: &str) -> Vec<String> {
    let page = stage
        .prompter
        .messages(MessagesRequest::new().session(session))
        .await
        .expect("it is there");
    page.messages.into_iter().map(|it| it.text).collect()
}

#[tokio::test]
async fn run_goes_on_when_its_page_goes_away_and_is_told_whole_to_one_that_comes_back() {
    for of in [Of::AgUi, Of::AiSdk] {
        let gate = Gate::default();
        let stage = stage(
            Over::Http,
            [Script::new()
                .text("Hello there.")
                .delta_chars(5)
                .wait_at(1, &gate)],
        )
        .await;
        assert_eq!(
            ask(&stage, of.back()).await.status,
            if of == Of::AgUi { 404 } else { 204 }
        );
        let mut page = TcpStream::connect(stage.client.address())
            .await
            .expect("it listens");
        let asked = of.asks("talk", Ok("Hi."));
        page.write_all(asked.text(stage.client.address()).as_bytes())
            .await
            .expect("it is sent");
        gate.wait_until_reached().await;
        drop(page);
        assert_eq!(
            ask(&stage, of.asks("talk", Ok("Another."))).await.status,
            409
        );
        let answer = ask_then(&stage, of.back(), || gate.open()).await;
        assert_eq!(text(&told(&answer)), "Hello there.", "{of:?}");
        assert_eq!(said(&stage, "talk").await, ["Hi.", "Hello there."]);
        stage.idle().await;
        let late = ask(&stage, of.back()).await;
        if of == Of::AgUi {
            assert_eq!(text(&told(&late)), "Hello there.");
        } else {
            assert_eq!(late.status, 204);
        }
    }
}

#[tokio::test]
async fn run_that_waits_is_answered_and_told_as_one_afterwards() {
    for of in [Of::AgUi, Of::AiSdk] {
        let gate = Gate::default();
        let asks = Script::new().call("delete", json!({"what": "it"}));
        let stage = stage(
            Over::Http,
            [asks, Script::new().text("Done.").wait_at(0, &gate)],
        )
        .await;
        let waits = told(&ask(&stage, of.asks("talk", Ok("Delete it."))).await);
        let question = of.question(&waits);
        assert!(question.is_object(), "{of:?}: {waits:?}");
        // A page that is loaded anew is asked as well.
        assert_eq!(of.question(&told(&ask(&stage, of.back()).await)), question);
        assert_eq!(
            ask(&stage, of.asks("talk", Ok("Another."))).await.status,
            409
        );
        let other = json!({"id": "0", "approvalId": "0", "toolCallId": "c1_0_0"});
        assert_eq!(ask(&stage, of.asks("talk", Err(other))).await.status, 400);
        let answered = ask(&stage, of.asks("talk", Err(question)));
        let watched = async {
            gate.wait_until_reached().await;
            told(&ask_then(&stage, of.back(), || gate.open()).await)
        };
        let (answered, whole) = tokio::join!(answered, watched);
        let answered = told(&answered);
        assert_eq!(
            (text(&answered), text(&whole)),
            ("Done.".into(), "Done.".into()),
            "{of:?}"
        );
        let calls = |frames: &[Value]| {
            let begun = ["TOOL_CALL_START", "tool-input-start"];
            frames
                .iter()
                .filter(|it| begun.iter().any(|name| it["type"] == *name))
                .count()
        };
        assert_eq!(
            (calls(&answered), calls(&whole)),
            (0, 1),
            "{of:?}: {whole:?}"
        );
        assert_eq!(
            said(&stage, "talk").await,
            ["Delete it.", "it is deleted", "Done."]
        );
    }
}

#[tokio::test]
async fn message_is_heard_once_and_what_came_of_it_is_told_to_whoever_sends_it_again() {
    for of in [Of::AgUi, Of::AiSdk] {
        let gate = Gate::default();
        let scripts = [
            Script::new().text("One.").wait_at(0, &gate),
            Script::new().text("Two."),
        ];
        let stage = stage(Over::Http, scripts).await;
        let sent = |id: &str| named(of.asks("talk", Ok("Hi.")), id);
        let first = ask(&stage, sent("u1"));
        let again = async {
            gate.wait_until_reached().await;
            ask_then(&stage, sent("u1"), || gate.open()).await
        };
        let (first, again) = tokio::join!(first, again);
        assert_eq!(
            (text(&told(&first)), text(&told(&again))),
            ("One.".into(), "One.".into()),
            "{of:?}"
        );
        stage.idle().await;
        let next = ask(&stage, sent("u2")).await;
        assert_eq!(text(&told(&next)), "Two.");
        stage.idle().await;
        let (one, two) = tokio::join!(ask(&stage, sent("u1")), ask(&stage, sent("u2")));
        assert_eq!(
            (text(&told(&one)), text(&told(&two))),
            ("One.".into(), "Two.".into()),
            "{of:?}"
        );
        assert_eq!(stage.model.requests().len(), 2, "{of:?}");
    }
}

#[tokio::test]
async fn words_beside_an_answer_are_refused_before_anything_runs() {
    for of in [Of::AgUi, Of::AiSdk] {
        let asks = Script::new().call("delete", json!({"what": "it"}));
        let stage = stage(Over::Http, [asks, Script::new().text("Done.")]).await;
        let waits = told(&ask(&stage, named(of.asks("talk", Ok("Delete it.")), "u1")).await);
        let question = of.question(&waits);
        let answers = |id: &str| {
            let mut body: Value =
                serde_json::from_str(&of.asks("talk", Err(question.clone())).body).expect("JSON");
            let parts = json!([{"type": "text", "text": "No, stop!"}]);
            body["messages"] =
                json!([{"role": "user", "id": id, "content": "No, stop!", "parts": parts}]);
            if of == Of::AiSdk {
                body["answers"] =
                    json!([{"id": question["approvalId"], "payload": {"approved": true}}]);
            }
            Asked::new("POST", of.path()).json(body)
        };
        let refused = ask(&stage, answers("u2")).await;
        assert!(
            refused.status == 400 && refused.body.contains("words beside an answer"),
            "{}",
            refused.body
        );
        assert_eq!(
            (
                stage.model.requests().len(),
                said(&stage, "talk").await.len()
            ),
            (1, 1),
            "{of:?}"
        );
        // What it holds of before is nothing new.
        assert_eq!(
            text(&told(&ask(&stage, answers("u1")).await)),
            "Done.",
            "{of:?}"
        );
    }
}

#[tokio::test]
async fn copy_of_a_run_in_its_middle_is_open_and_told_as_far_as_it_came() {
    let asks = Script::new().call("delete", json!({"what": "it"}));
    let journal = MemoryJournal::default();
    let fine = || Script::new().text("Fine.");
    let stage = stage::kept(
        Over::Http,
        [asks, fine(), fine()],
        journal.clone(),
        Durability::default(),
    )
    .await;
    let events = stage::all(stage.stream("talk", "Delete it.").await.expect("it begins")).await;
    let opened = events
        .iter()
        .find(|it| stage::name(it) == "turn_started")
        .expect("a turn")
        .seq;
    for copy in ["copy", "other"] {
        let mut fork = ForkRequest::new(copy);
        fork.at = Some(opened.0);
        stage
            .prompter
            .fork(Some("talk"), fork)
            .await
            .expect("it is made");
    }
    let stored: Arc<dyn Prompter> = Arc::new(StoredPrompter::new(Arc::new(journal)));
    for prompter in [&stage.prompter, &stored] {
        let stands = prompter
            .look(Some("copy"), Look::Run)
            .await
            .expect("it is there");
        assert_eq!(
            (&stands["state"], stands.get("due")),
            (&json!("open"), None)
        );
        let told = timeout(
            Duration::from_secs(60),
            stage::all(
                prompter
                    .attach(Some("copy"), Some(0))
                    .await
                    .expect("it is there"),
            ),
        );
        assert_eq!(
            told.await.expect("it ends").last().map(|it| it.seq),
            Some(opened)
        );
    }
    let back = Asked {
        path: "/v1/ag-ui/connect",
        ..Of::AgUi.asks("copy", Ok("Never read."))
    };
    let told = told(&ask(&stage, back).await);
    let end = told.last().expect("an end");
    assert!(
        end["type"] == "RUN_ERROR"
            && end["message"]
                .as_str()
                .is_some_and(|it| it.contains("nobody goes on")),
        "{end}"
    );
    assert_eq!(
        ask(&stage, Asked::new("GET", "/v1/ai-sdk/copy/stream"))
            .await
            .status,
        204
    );
    // A prompt ends what was cut off, and is told what comes of itself.
    for (of, copy) in [(Of::AgUi, "copy"), (Of::AiSdk, "other")] {
        let frames = self::told(&ask(&stage, of.asks(copy, Ok("Rather tell me."))).await);
        assert_eq!(text(&frames), "Fine.", "{frames:?}");
    }
}

#[tokio::test]
async fn what_a_page_cannot_ask_for_is_told_to_it() {
    let stage = stage(Over::Http, []).await;
    let picture = json!([{"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}}]);
    let file =
        json!([{"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}]);
    let of = |path: &'static str, body: Value| Asked::new("POST", path).json(body);
    for (asked, status, why) in [
        (
            of("/v1/ag-ui", json!({"threadId": "talk"})),
            400,
            "AG-UI's `RunAgentInput`",
        ),
        (
            of("/v1/ai-sdk", json!({"messages": []})),
            400,
            "what `useChat` of the AI SDK sends",
        ),
        (
            of("/v1/ag-ui", json!({"threadId": "talk", "runId": "r"})),
            400,
            "neither a message nor an answer",
        ),
        (
            of("/v1/ag-ui", json!({"threadId": "a\nb", "runId": "r"})),
            400,
            "a control character",
        ),
        (
            of(
                "/v1/ag-ui/connect",
                json!({"threadId": "talk", "runId": "r"}),
            ),
            404,
            "talk",
        ),
        (
            of(
                "/v1/ag-ui",
                json!({"threadId": "talk", "runId": "r", "messages": [{"role": "user", "content": picture}]}),
            ),
            400,
            "pictures and files are not taken",
        ),
        (
            of(
                "/v1/ai-sdk",
                json!({"id": "talk", "messages": [{"role": "user", "parts": file}]}),
            ),
            400,
            "pictures and files are not taken",
        ),
        (
            Asked {
                media: "text/plain",
                ..Of::AgUi.asks("talk", Ok("Hi."))
            },
            415,
            "application/json",
        ),
        (Of::AiSdk.asks("talk", Ok(" ")), 400, "empty"),
    ] {
        let told = ask(&stage, asked).await;
        assert!(
            told.status == status && told.body.contains(why),
            "{} {}",
            told.status,
            told.body
        );
    }
    assert_eq!(stage.model.requests().len(), 0);
}
