//! Streams of the older revision: one that breaks is resumed, and a question on one that is of no request is answered.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use adjutant_mcp::{HttpConfig, McpServer, Revision, ServerConfig};
use adjutant_tool::{CallContext, Identity, Toolbox};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{Notify, oneshot},
};

#[derive(Default)]
struct Desk {
    /// The call that waits for the stream to be resumed, and what was resumed.
    broken: Mutex<(Value, Vec<String>)>,
    /// The question that goes out on the stream of no request.
    asks: Notify,
    answered: Mutex<Option<oneshot::Sender<Value>>>,
}

fn event(data: &str) -> String {
    format!("id: 7\nretry: 1\ndata: {data}\n\n")
}

fn events(body: Body) -> Response {
    (
        [
            ("content-type", "text/event-stream"),
            ("mcp-session-id", "s"),
        ],
        body,
    )
        .into_response()
}

fn result(id: &Value, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

fn said(id: &Value, text: &str) -> String {
    result(id, json!({ "content": [{ "type": "text", "text": text }] }))
}

async fn serve(
    State(desk): State<Arc<Desk>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if method == Method::GET {
        if let Some(last) = headers.get("last-event-id") {
            let mut broken = desk.broken.lock().expect("no panic");
            broken.1.push(last.to_str().expect("text").to_owned());
            return events(Body::from(event(&said(&broken.0, "resumed"))));
        }
        let ask = stream::once(async move {
            desk.asks.notified().await;
            let params = json!({ "message": "Sure?", "requestedSchema": { "type": "object", "properties": {} } });
            let ask = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params });
            Ok::<_, Infallible>(event(&ask.to_string()))
        });
        return events(Body::from_stream(ask.chain(stream::pending())));
    }
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let answer = match (
        message["method"].as_str(),
        message["params"]["name"].as_str(),
    ) {
        (Some("initialize"), _) => result(
            &message["id"],
            json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "streams", "version": "1" },
            }),
        ),
        (Some("tools/list"), _) => result(
            &message["id"],
            json!({ "tools": [tool("breaks"), tool("asks")] }),
        ),
        (Some("tools/call"), Some("breaks")) => {
            desk.broken.lock().expect("no panic").0 = message["id"].clone();
            return events(Body::from(event("")));
        }
        (Some("tools/call"), _) => {
            let (answered, answer) = oneshot::channel();
            *desk.answered.lock().expect("no panic") = Some(answered);
            desk.asks.notify_one();
            said(
                &message["id"],
                &answer.await.expect("an answer").to_string(),
            )
        }
        _ => {
            let answered = desk
                .answered
                .lock()
                .expect("no panic")
                .take_if(|_| message["id"] == "q");
            answered.map(|answered| answered.send(message["result"].clone()));
            return StatusCode::ACCEPTED.into_response();
        }
    };
    (
        [
            ("content-type", "application/json"),
            ("mcp-session-id", "s"),
        ],
        answer,
    )
        .into_response()
}

#[tokio::test]
async fn stream_is_resumed_and_a_question_on_another_one_is_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let desk = Arc::new(Desk::default());
    let app = Router::new().fallback(serve).with_state(Arc::clone(&desk));
    tokio::spawn(async move { axum::serve(listener, app).await });

    let mut config = ServerConfig::new(HttpConfig::new(url));
    (config.revision, config.prefix) = (Revision::V2025_11_25, Some("".into()));
    let server = McpServer::new("streams", config).expect("it can be meant");
    let tools = server
        .resolve(&Identity::root("s".into(), "s", "s"))
        .await
        .expect("it never fails");
    for (name, text) in [("breaks", "resumed"), ("asks", r#"{"action":"cancel"}"#)] {
        let called = tools
            .get(name)
            .expect("it is listed")
            .call(json!({}), CallContext::detached())
            .await;
        assert_eq!(called.expect("a result").text(), text, "{name}");
    }
    assert_eq!(desk.broken.lock().expect("no panic").1, ["7"]);
}
