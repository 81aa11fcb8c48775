//! What is more than text over every wire: pictures and documents everywhere, and what only its own provider understands.

use std::sync::Arc;

use adjutant::llm::{
    Block, CallResult, Content, Document, Entry, Image, Options, Request, Script, ScriptedModel,
    Source, UserMessage, complete,
};
use adjutant_testing::Loopback;
use adjutant_tests::{WIRES, Wire, answered, pixel, taken, tools};
use serde_json::{Value, json};

/// An empty document, in base64.
const PDF: &str = "JVBERi0xLjQKJSVFT0YK";

fn document() -> Content {
    let source = Source::Base64 { data: PDF.into() };
    Content::Document(Document {
        media_type: "application/pdf".into(),
        name: Some("a.pdf".into()),
        source,
    })
}

fn address() -> Content {
    let url = "https://a.example/b.png".into();
    Content::Image(Image {
        media_type: "image/png".into(),
        source: Source::Url { url },
    })
}

/// The media that a provider has understood, in order: of the user, then of results.
fn media(request: &Request) -> Vec<String> {
    let mut media = Vec::new();
    let mut see = |content: &Content| match content {
        Content::Image(Image {
            source: Source::Url { url },
            ..
        }) => media.push(format!("image at {url}")),
        Content::Image(image) => media.push(format!("image {}", image.media_type)),
        Content::Document(document) => media.push(format!("document {}", document.media_type)),
        _ => {}
    };
    for stored in request.entries.iter() {
        match &stored.entry {
            Entry::User(message) => message.content.iter().for_each(&mut see),
            Entry::Turn(turn) => turn
                .results()
                .iter()
                .flat_map(|it| &it.content)
                .for_each(&mut see),
            _ => {}
        }
    }
    media
}

#[tokio::test]
async fn media_arrive_when_messages_and_results_hold_them() {
    for wire in WIRES {
        let calls = Script::new()
            .call("look", json!({"city": "Köln"}))
            .call("find", json!({"city": "Bonn"}));
        let scripted = Arc::new(ScriptedModel::new([calls, Script::new().text("Seen.")]));
        let server = Loopback::start(Arc::clone(&scripted))
            .await
            .expect("the server starts");
        let content = vec![
            Content::text("Look!"),
            pixel(),
            Content::text("And read!"),
            document(),
            address(),
        ];
        let request = Request::new()
            .tools(tools())
            .user(UserMessage::from(content));
        let reply = complete(&wire.model(&server), request.clone())
            .await
            .expect("messages with media are taken");
        let request = answered(request, &reply, |call| {
            let mut result = CallResult::ok("Both:");
            result.content = if call.name.as_str() == "look" {
                vec![pixel(), Content::text("between"), pixel()]
            } else {
                vec![document()]
            };
            result
        });
        let reply = taken(
            complete(&wire.model(&server), request).await,
            &wire.to_string(),
        );
        assert_eq!(reply.text(), "Seen.", "{wire}");
        let of_user = [
            "image image/png",
            "document application/pdf",
            "image at https://a.example/b.png",
        ];
        let of_results = [
            "image image/png",
            "image image/png",
            "document application/pdf",
        ];
        let understood = scripted.requests();
        assert_eq!(media(&understood[0]), of_user, "{wire}");
        assert_eq!(
            media(&understood[1]),
            [of_user, of_results].concat(),
            "{wire}"
        );
    }
}

/// Blocks that only this wire's provider understands.
fn peculiar(wire: Wire) -> Vec<Value> {
    let search = json!({"type": "search", "query": "rust"});
    let found = json!({"type": "web_search_result", "title": "Rust", "url": "https://a.example", "encrypted_content": "RW5j"});
    match wire {
        Wire::Messages => vec![
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rust"}}),
            json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]}),
        ],
        Wire::Responses => {
            vec![
                json!({"id": "ws_1", "type": "web_search_call", "status": "completed", "action": search}),
            ]
        }
        Wire::Gemini => vec![
            json!({"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
            json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}),
        ],
        Wire::Chat => Vec::new(),
    }
}

#[tokio::test]
async fn opaque_block_goes_back_as_it_came_when_the_provider_is_the_same() {
    for (wire, values) in WIRES
        .map(|wire| (wire, peculiar(wire)))
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
    {
        let script = values
            .iter()
            .fold(Script::new().text("I look."), |it, value| {
                it.opaque("anyone", value.clone())
            });
        let scripts = [script.text("Found."), Script::new().text("Again.")];
        let scripted = Arc::new(ScriptedModel::new(scripts));
        let setup = Loopback::setup(Arc::clone(&scripted)).strict_signatures();
        let server = setup.start().await.expect("the server starts");
        let request = Request::new().user("Search!");
        let reply = complete(&wire.model(&server), request.clone())
            .await
            .expect("it is answered");
        let opaque = |block: &Arc<Block>| match &**block {
            Block::Opaque { value, .. } => Some(value.clone()),
            _ => None,
        };
        let kept: Vec<Value> = reply.blocks.iter().filter_map(opaque).collect();
        assert_eq!(
            (&kept, reply.text().as_str()),
            (&values, "I look.Found."),
            "{wire}"
        );
        let request = answered(request, &reply, |_| CallResult::ok("")).user("Again!");
        complete(&wire.model(&server), request.clone())
            .await
            .expect("it is taken back");
        let sent = server.requests()[1].json();
        assert!(
            values.iter().all(|value| holds(&sent, value)),
            "{wire}: {sent}"
        );
        // Everyone else is told about it in words, if at all.
        for other in WIRES.into_iter().filter(|it| *it != wire) {
            scripted.push(Script::new().text("Elsewhere."));
            complete(&other.model(&server), request.clone())
                .await
                .expect("it is taken");
            let sent = server.requests().pop().expect("there is a request").json();
            assert!(
                !values.iter().any(|value| holds(&sent, value)),
                "{wire} → {other}: {sent}"
            );
            assert!(
                sent.to_string().contains("I look.") && sent.to_string().contains("Found."),
                "{wire} → {other}"
            );
        }
    }
}

/// Whether a value stands somewhere in another one; an object may have more fields there.
fn holds(whole: &Value, part: &Value) -> bool {
    let within = |whole: &Value| match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, value)| whole.get(name) == Some(value)),
        (whole, part) => whole == part,
    };
    within(whole)
        || match whole {
            Value::Object(fields) => fields.values().any(|it| holds(it, part)),
            Value::Array(items) => items.iter().any(|it| holds(it, part)),
            _ => false,
        }
}

macro_rules! recorded {
    ($path:literal) => {
        &include_bytes!(concat!(
            "../../crates/adjutant-providers/tests/fixtures/",
            $path
        ))[..]
    };
}

/// Answers with what only its provider understands, and parts of the next request that show that it went back.
fn answers() -> Vec<(Wire, &'static [u8], Vec<Value>)> {
    let char_location =
        json!({"type": "char_location", "cited_text": "The grass is green.", "document_index": 0});
    let page_location =
        json!({"type": "page_location", "cited_text": "The sky is blue.", "start_page_number": 1});
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rust"}});
    let found = json!({"type": "web_search_result", "url": "https://a.example/rust", "encrypted_content": "RW5j"});
    let web = json!({"type": "web_search_call", "status": "completed"});
    let code = json!({"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "EjQKMgEMOdbH"});
    let ran = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}});
    let asked = json!({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["rust"]}, "id": "s1"},
                       "thoughtSignature": "EjQKMgEMOdbH"});
    let called = json!({"functionCall": {"name": "read", "args": {}, "id": "k1"}, "thoughtSignature": "EpwBCpkBAQ=="});
    let grounded = json!({"text": "", "thoughtSignature": "EjQKMgEMOdbH"});
    vec![
        (
            Wire::Messages,
            recorded!("anthropic/citations.sse"),
            vec![char_location, page_location],
        ),
        (
            Wire::Messages,
            recorded!("anthropic/server_tools.sse"),
            vec![search, found],
        ),
        (
            Wire::Responses,
            recorded!("openai/opaque.sse"),
            vec![web, json!({"type": "shiny_call", "content": "sealed"})],
        ),
        (
            Wire::Gemini,
            recorded!("gemini/code_execution.sse"),
            vec![code, ran],
        ),
        (
            Wire::Gemini,
            recorded!("gemini/server_tool.sse"),
            vec![asked, called],
        ),
        (
            Wire::Gemini,
            recorded!("gemini/grounding.sse"),
            vec![grounded],
        ),
    ]
}

#[tokio::test]
async fn provider_gets_its_own_back_when_the_conversation_goes_on() {
    for (wire, body, parts) in answers() {
        let server = Loopback::from_bodies([body.into()])
            .start()
            .await
            .expect("the server starts");
        let request = Request::new().user("Search!").options(Options::default());
        let reply = taken(
            complete(&wire.model(&server), request.clone()).await,
            &wire.to_string(),
        );
        let request = answered(request, &reply, |_| CallResult::ok("read")).user("Go on.");
        complete(&wire.model(&server), request)
            .await
            .expect("it is answered");
        let sent = server.requests()[1].json();
        for part in parts {
            assert!(holds(&sent, &part), "{wire}: {part} is not in {sent}");
        }
    }
}
