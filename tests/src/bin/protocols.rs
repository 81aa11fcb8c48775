//! Runs of every sequence over the streams of other people's pages, for those pages' own clients.
//!
//! It serves on a free port of loopback, whose address and whose cases it prints: `POST /ag-ui/{case}`, `POST /ai-sdk/{case}`.
//! A session is named by the request; a case's agent begins anew in each. Beside them are agents that stay, one for each
//! protocol and case, at routes of their own. Over A2A, each case is an agent:
//! `/a2a/{case}`, and its card below. It ends when its standard input does.
//!
//! With `acp CASE FOLDER` it is the agent of that case for an editor, on standard input and output, with its sessions there.

use std::{
    collections::HashMap,
    convert::Infallible,
    error::Error,
    io::Read,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant::{
    Agent, Event, Running,
    agent::MemoryJournal,
    llm::{Script, ScriptedModel},
    protocols::{
        self, a2a,
        acp::{OpenSession, SessionPage, SessionWish, serve},
        ag_ui, ai_sdk,
    },
    runtime::{Prompter, control::ControlPlane},
    store::JsonlJournal,
    toolkit::{Edits, Files},
};
use adjutant_tests::sequences::{self, DRAWN, MORE};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// The cases in which something is done while the run goes on, which nobody sees over A2A.
const HEEDED: [&str; 2] = ["parallel tools finishing in reverse", "cancel in mid-batch"];

/// The agents of sessions, each with what its model is going to say.
type Agents = Arc<Mutex<HashMap<String, Agent>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    sequences::hush_panics_of_tools();
    if let [_, mode, case, folder] = &std::env::args().collect::<Vec<_>>()[..]
        && mode == "acp"
    {
        return acp(case, folder).await;
    }
    let routes = Router::new()
        .route("/ag-ui/{case}", post(ag_ui))
        .route("/ai-sdk/{case}", post(ai_sdk));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let cases: Vec<_> = DRAWN.into_iter().chain(MORE).collect();
    let (plane, kept) = staying(&cases).await?;
    let staying = json!({"url": format!("http://{}", plane.address()), "token": plane.token(), "cases": kept});
    let url = format!("http://{}", listener.local_addr()?);
    let of_a2a: Vec<_> = cases.iter().filter(|case| !HEEDED.contains(case)).collect();
    let routes = routes.merge(
        of_a2a
            .iter()
            .fold(Router::new(), |routes, case| over_a2a(routes, &url, case)),
    );
    println!(
        "{}",
        json!({"url": url, "cases": cases, "staying": staying, "a2a": of_a2a})
    );
    tokio::spawn(plane.serve(std::future::pending()));
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let served = axum::serve(listener, routes.with_state(Agents::default()));
    tokio::select! { _ = ended => std::process::exit(0), end = served => Ok(end?) }
}

/// The agents that stay, and of which cases there are some.
async fn staying<'a>(cases: &[&'a str]) -> Result<(ControlPlane, Vec<&'a str>), Box<dyn Error>> {
    let (mut agents, mut kept) = (Vec::new(), Vec::new());
    for case in cases {
        for protocol in ["ag-ui", "ai-sdk"] {
            let Some(agent) = sequences::staying(case) else {
                continue;
            };
            agents.push((
                format!("{protocol} {case}").into(),
                Arc::new(agent) as Arc<dyn Prompter>,
            ));
            kept.push(*case);
        }
    }
    kept.dedup();
    Ok((ControlPlane::bind_agents(agents, 0).await?, kept))
}

async fn acp(case: &str, folder: &str) -> Result<(), Box<dyn Error>> {
    let journal = JsonlJournal::open(folder)?;
    let open = |wish: SessionWish| {
        let name = wish
            .session
            .clone()
            .unwrap_or_else(|| uuid::Uuid::new_v4().to_string().as_str().into());
        let agent = sequences::agent(case).or_else(|| lent(&wish, case));
        let agent = agent.map(|agent| agent.journal(journal.clone()).session(name));
        if let Some(agent) = &agent {
            let case = case.to_owned();
            agent
                .log()
                .on_event(move |event| sequences::release(&case, &event.kind));
        }
        std::future::ready(
            agent
                .map(|agent| Some(OpenSession::new(agent)))
                .ok_or("no case is called so"),
        )
    };
    // Standard input may be held open by whoever looks on.
    let list = |_| std::future::ready(Ok(Some(SessionPage::default())));
    serve(tokio::io::stdin(), tokio::io::stdout(), open, list).await?;
    std::process::exit(0)
}

/// The agent of the case `lent by the editor`: it reads, changes and runs what is there.
fn lent(wish: &SessionWish, case: &str) -> Option<Agent> {
    let files = Files::new(&wish.cwd)
        .ok()
        .filter(|_| case == "lent by the editor")?
        .lent_by(wish.files.clone()?);
    let model = ScriptedModel::new([
        Script::new().call("read_file", json!({"path": "a.txt"})),
        Script::new().call(
            "edit_file",
            json!({"path": "a.txt", "old_text": "old", "new_text": "new"}),
        ),
        Script::new().call("run_in_terminal", json!({"command": "cat a.txt; exit 3"})),
        Script::new().text("All done."),
    ]);
    let agent = Agent::new(model)
        .toolbox(files.toolbox())
        .toolbox(Edits::new(&files).toolbox());
    Some(agent.toolbox(wish.terminal.clone()?))
}

/// An agent for callers that speak A2A.
fn over_a2a(routes: Router<Agents>, url: &str, case: &str) -> Router<Agents> {
    let Some(agent) = sequences::agent(case) else {
        return routes;
    };
    let below = format!("/a2a/{}", case.replace(' ', "%20"));
    let desk = a2a::AgentDesk::new(agent.journal(MemoryJournal::default()));
    let mut card = a2a::AgentCard::new(case, "Does as its case says.", format!("{url}{below}"));
    let mut targets = a2a::PushTargets::default();
    targets.private_hosts = vec!["127.0.0.1".to_owned()];
    card.pushes = Some(targets);
    let handler = a2a::Handler::new(desk, &card);
    let card = handler.card().clone();
    let asked = async move |headers: HeaderMap, body: Bytes| {
        let version = headers
            .get("a2a-version")
            .and_then(|version| version.to_str().ok());
        match handler.handle(version, &body).await {
            a2a::Reply::Json(told) => Json(told).into_response(),
            a2a::Reply::Stream(frames) => (
                a2a::HEADERS,
                Body::from_stream(frames.map(Ok::<_, Infallible>)),
            )
                .into_response(),
        }
    };
    routes.route(&below, post(asked)).route(
        &format!("{below}/agent-card.json"),
        get(async move || Json(card)),
    )
}

async fn ag_ui(
    Path(case): Path<String>,
    State(agents): State<Agents>,
    Json(input): Json<ag_ui::RunAgentInput>,
) -> Response {
    let Some(agent) = agent(&agents, &case, &input.thread_id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut encoder = ag_ui::Encoder::new(&input);
    let running = input.begin(&agent).await;
    answer(running, case, "", move |event| encoder.tell(event))
}

async fn ai_sdk(
    Path(case): Path<String>,
    State(agents): State<Agents>,
    Json(input): Json<ai_sdk::ChatRequest>,
) -> Response {
    let Some(agent) = agent(&agents, &case, &input.id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut encoder = ai_sdk::Encoder::new(&input);
    let running = input.begin(&agent).await;
    answer(running, case, "data: [DONE]\n\n", move |event| {
        encoder.tell(event)
    })
}

fn agent(agents: &Agents, case: &str, session: &str) -> Option<Agent> {
    let mut agents = agents.lock().unwrap_or_else(PoisonError::into_inner);
    if !agents.contains_key(session) {
        agents.insert(session.to_owned(), sequences::agent(case)?);
    }
    agents.get(session).cloned()
}

/// As the library's `stream`, with what belongs to the case done at its events.
fn answer(
    running: Result<Running, protocols::Error>,
    case: String,
    end: &'static str,
    tell: impl FnMut(&Event) -> Vec<Value> + Send + 'static,
) -> Response {
    let running = match running {
        Ok(running) => running,
        Err(error) => {
            let status =
                StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return (status, error.to_string()).into_response();
        }
    };
    let texts = stream::unfold(
        (Some(running), tell, case),
        async move |(running, mut tell, case)| {
            let mut running = running?;
            let Some(event) = running.next().await else {
                return Some((end.to_owned(), (None, tell, case)));
            };
            sequences::heed(&case, &event.kind, &running.stopper());
            let text = tell(&event)
                .iter()
                .map(|frame| format!("data: {frame}\n\n"))
                .collect();
            Some((text, (Some(running), tell, case)))
        },
    );
    (
        [("content-type", "text/event-stream")],
        Body::from_stream(texts.map(Ok::<String, Infallible>)),
    )
        .into_response()
}
