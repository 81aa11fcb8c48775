//! How requests with signed thinking are sent again when a server refuses them.

use std::sync::Arc;

use adjutant_llm::{
    Block, Chunk, Entry, ErrorKind, FinishReason, Model, ModelInfo, Reply, Request, Thinking, Turn,
};
use adjutant_providers::Anthropic;

use crate::server::{Answer, Server, all, events, fixture, serve, status};

const ID: &str = "anthropic/claude-fable-5-1";
const BOUND: &str = "messages.3.content.0: Invalid `signature` in `thinking` block";

fn answer() -> Answer {
    events(&fixture("anthropic", "thinking"))
}

fn refusal(message: &str) -> Answer {
    let body = format!(
        r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}"#
    );
    status(
        "400 Bad Request",
        "content-type: application/json\r\n",
        &body,
    )
}

fn model(server: &Server) -> Anthropic {
    let info = ModelInfo {
        thinking_binding: true,
        ..ModelInfo::new(ID)
    };
    Anthropic::new(info, "sk-secret").base_url(&server.base_url)
}

/// A reply whose thinking has this signature.
fn signed(signature: &str) -> Entry {
    let mut reply = Reply::new(ID.into(), FinishReason::End);
    let mut thinking = Thinking::new("hm");
    thinking.signature = Some(signature.into());
    reply.blocks = [Block::Thinking(thinking), Block::text("x")]
        .map(Arc::new)
        .into();
    Entry::Turn(
        Turn::open(Arc::new(reply))
            .close()
            .expect("it has no calls"),
    )
}

/// A request with two signed replies.
fn request() -> Request {
    let mut request = Request::new().user("a");
    request.entries.push(signed("sig-1"));
    request = request.user("b");
    request.entries.push(signed("sig-2"));
    request.user("c")
}

/// The reply and the warnings of a request, or the kind of its error.
async fn ask(model: &Anthropic, request: &Request) -> Result<(Arc<Reply>, Vec<String>), ErrorKind> {
    let (mut told, mut reply) = (Vec::new(), None);
    for item in all(model.stream(request.clone())).await {
        match item.map_err(|error| error.kind())? {
            Chunk::Start { warnings, .. } => told.extend(warnings.iter().map(ToString::to_string)),
            Chunk::Done(done) => reply = Some(done),
            _ => {}
        }
    }
    Ok((reply.expect("a reply"), told))
}

#[tokio::test]
async fn settings_are_left_out_when_the_server_does_not_know_them() {
    let unknown = "thinking.adaptive.block_binding: Extra inputs are not permitted";
    let mut server = serve(vec![refusal(unknown), answer(), answer()]).await;
    let model = model(&server);
    let (reply, warnings) = ask(&model, &request()).await.expect("a reply");
    let warning =
        "requests to anthropic/claude-fable-5-1 leave out `block_binding`: the server refuses it";
    assert_eq!(warnings, [warning]);
    assert_eq!(reply.prefix_digest.as_ref().map(|it| it.len()), Some(32));
    assert_eq!(ask(&model, &request()).await.expect("a reply").1, [""; 0]);
    let first = server.next().await;
    assert!(first.body.contains("drop_block"));
    assert_eq!(
        first.header("anthropic-beta"),
        Some("thinking-binding-controls-2026-08-01,inline-tools-2026-09-15")
    );
    for _ in 0..2 {
        let later = server.next().await;
        assert!(!later.body.contains("block_binding"), "{}", later.body);
        assert!(later.body.contains("sig-1") && later.body.contains("sig-2"));
        assert_eq!(later.header("anthropic-beta"), None);
    }
}

#[tokio::test]
async fn thinking_is_left_out_once_when_its_signature_is_refused() {
    let mut server = serve(vec![refusal(BOUND), answer(), answer()]).await;
    let model = model(&server);
    let mut request = request();
    let (reply, warnings) = ask(&model, &request).await.expect("a reply");
    assert_eq!(
        warnings,
        [
            "thinking of earlier replies is left out: the conversation before it has changed, or the API refused it",
            "thinking of earlier replies is left out from messages.3 on: the API refused its signature",
        ]
    );
    let turn = Turn::open(reply).close().expect("it has no calls");
    request.entries.push(Entry::Turn(turn));
    assert_eq!(ask(&model, &request).await.expect("a reply").1, [""; 0]);
    assert!(server.next().await.body.contains("sig-2"));
    for has_new in [false, true] {
        let body = server.next().await.body;
        assert!(body.contains("sig-1") && !body.contains("sig-2"), "{body}");
        assert_eq!(body.contains(r#""signature":"c2ln""#), has_new, "{body}");
    }
}

#[tokio::test]
async fn request_fails_when_remedies_do_not_help() {
    let mut server = serve(vec![refusal(BOUND); 9]).await;
    let model = model(&server);
    assert_eq!(
        ask(&model, &request()).await.map(|_| ()),
        Err(ErrorKind::Invalid)
    );
    for _ in 0..3 {
        server.next().await;
    }
    assert!(server.seen.try_recv().is_err(), "it is sent three times");
    let other = refusal("max_tokens: too large");
    let mut server = serve(vec![other; 9]).await;
    let model = self::model(&server);
    assert_eq!(
        ask(&model, &request()).await.map(|_| ()),
        Err(ErrorKind::Invalid)
    );
    server.next().await;
    assert!(server.seen.try_recv().is_err(), "it is sent once");
}
