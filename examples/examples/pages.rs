//! A service for the pages of other people: one agent as AG-UI (`HttpAgent`) and as a stream of the AI SDK (`useChat`).
//!
//! It prints its address. A real server checks who can use which session, and uses TLS.

use std::convert::Infallible;

use adjutant::{
    Agent,
    agent::MemoryJournal,
    llm::{Script, ScriptedModel},
    protocols::{Error, ag_ui, ai_sdk},
    tool,
};
use axum::{
    Json, Router, body::Body, extract::State, http::StatusCode, response::IntoResponse,
    routing::post,
};
use futures_util::StreamExt;
use serde_json::json;

/// Sends money.
#[tool(approval)]
fn pay(amount: u64) -> String {
    format!("paid {amount}")
}

async fn for_ag_ui(
    State(agent): State<Agent>,
    Json(input): Json<ag_ui::RunAgentInput>,
) -> impl IntoResponse {
    let running = input
        .begin(&agent.session(input.thread_id.as_str().into()))
        .await
        .map_err(refuse)?;
    let body = Body::from_stream(ag_ui::stream(running, &input).map(Ok::<_, Infallible>));
    Ok::<_, (StatusCode, String)>((ag_ui::HEADERS, body))
}

async fn for_ai_sdk(
    State(agent): State<Agent>,
    Json(input): Json<ai_sdk::ChatRequest>,
) -> impl IntoResponse {
    let running = input
        .begin(&agent.session(input.id.as_str().into()))
        .await
        .map_err(refuse)?;
    let body = Body::from_stream(ai_sdk::stream(running, &input).map(Ok::<_, Infallible>));
    Ok::<_, (StatusCode, String)>((ai_sdk::HEADERS, body))
}

fn refuse(error: Error) -> (StatusCode, String) {
    (
        StatusCode::from_u16(error.status()).unwrap_or(StatusCode::CONFLICT),
        error.to_string(),
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = [
        Script::new().call("pay", json!({"amount": 40})),
        Script::new().text("That is done."),
    ];
    // A pause of one request is answered by the next one: both open the session by its name.
    let agent = Agent::new(ScriptedModel::new(script))
        .tool(pay)
        .journal(MemoryJournal::default());
    let routes = Router::new()
        .route("/ag-ui", post(for_ag_ui))
        .route("/api/chat", post(for_ai_sdk))
        .with_state(agent);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, routes).await?)
}
