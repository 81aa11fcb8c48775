//! Every route and every step of an operator, over both backends: asked of the agent itself, and of the control plane of all.

use std::{fs, sync::Arc};

use adjutant_agent::{Answered, CancelBy, Event, EventKind, Outcome, PauseId};
use adjutant_llm::CallId;
use adjutant_runtime::{
    Backend, Error, ErrorKind, Goal, Home, Instance, Prompter, Provenance, Status, Supervisor,
    Trust,
    bundle::{ExportOptions, ImportOptions, export, import, inspect},
    control::{ControlClient, ControlPlane},
    host::HostFile,
    http::{Client, OPENAPI},
    prompt::{
        Control, EventStream, ForkRequest, Look, MessagesRequest, ObjectRequest, PausesRequest,
        PromptRequest, ResumeRequest, SessionsRequest, UndoRequest,
    },
    supervisor::Settings,
};
use adjutant_tool::Cancel;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{
    desk::{LONG, Place, until},
    peers::{self, agent, peer},
};

/// An agent that runs, and a way to ask it.
struct Way {
    name: &'static str,
    agent: Arc<dyn Instance>,
    prompter: Arc<dyn Prompter>,
}

/// A table of routes, with what they are held to.
macro_rules! routes {
    ($($($route:literal),* => $check:ident;)*) => {
        const ROUTES: &[&str] = &[$($($route),*),*];

        async fn each(way: &Way) {
            $($check(way).await;)*
        }
    };
}

routes! {
    "GET /v1/ready", "GET /v1/status" => tells_its_status;
    "POST /v1/prompt" => is_prompted;
    "POST /v1/prompt/stream" => is_streamed;
    "GET /v1/pauses", "POST /v1/resume" => waits_and_goes_on;
    "POST /v1/object" => makes_an_object;
    "POST /v1/control" => is_steered_and_stopped;
    "GET /v1/events" => is_followed;
    "POST /v1/fork", "DELETE /v1/sessions" => is_forked_and_deleted;
    "GET /v1/tree", "GET /v1/diff", "GET /v1/explain", "GET /v1/request", "GET /v1/context", "GET /v1/run", "GET /v1/fleet", "POST /v1/undo" => is_looked_into;
    "GET /v1/sessions", "GET /v1/messages", "GET /v1/sessions/{name}/messages" => is_paged;
}
const METHODS: [&str; 4] = ["get", "post", "put", "delete"];
/// What every way ends with, and what is HTTP's alone or held by `control.rs` and by `surface/streams.rs`.
const OTHERS: [&str; 12] = [
    "POST /v1/stop",
    "GET /v1/openapi.json",
    "GET /v1/agents",
    "GET /v1/agents/{agent}",
    "GET /v1/agents/{agent}/export",
    "POST /v1/session",
    "GET /",
    "GET /app/{name}",
    "POST /v1/ag-ui",
    "POST /v1/ag-ui/connect",
    "POST /v1/ai-sdk",
    "GET /v1/ai-sdk/{name}/stream",
];

impl Way {
    fn session(&self, of: &str) -> String {
        format!("{}-{of}", self.name)
    }

    async fn prompt(&self, session: &str, text: &str) -> Result<String, Error> {
        let request = PromptRequest::new(text).session(self.session(session));
        self.prompter.prompt(request).await.map(|reply| reply.text)
    }

    /// A run that holds until its call is stopped: all its events.
    async fn holding(&self, session: &str) -> tokio::task::JoinHandle<Vec<Event>> {
        let held = self.agent.workspace().work().join("held");
        let times = || {
            fs::read_to_string(&held)
                .unwrap_or_default()
                .lines()
                .count()
        };
        let before = times();
        let request = PromptRequest::new("hold").session(self.session(session));
        let running = tokio::spawn(all(self.prompter.stream(request).await.expect("it begins")));
        until("the call is at work", || times() > before).await;
        running
    }
}

async fn all(events: EventStream) -> Vec<Event> {
    events
        .map(|event| event.expect("it goes on"))
        .collect()
        .await
}

/// How the last run of these events ended, with the answer.
#[track_caller]
fn end(events: &[Event]) -> (&Outcome, String) {
    match &events.last().expect("there are some").kind {
        EventKind::RunFinished { result } | EventKind::RunPaused { result } => {
            (&result.outcome, result.text())
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, kind: ErrorKind) {
    assert_eq!(result.err().map(|error| error.kind()), Some(kind));
}

async fn tells_its_status(way: &Way) {
    assert_eq!(way.agent.status(), Status::Ready);
    way.agent
        .watch()
        .wait_for_within(LONG, Status::is_up)
        .await
        .expect("it is told at once");
    // Only a process is asked.
    let Ok(host) = HostFile::read(&way.agent.workspace()) else {
        return;
    };
    let client = Client::new(host.address, host.token).expect("a client");
    assert!(client.ready().await.expect("it answers"));
    assert_eq!(
        client.status().await.expect("it answers").status,
        Status::Ready
    );
    let wrong = Client::new(host.address, "wrong").expect("a client");
    assert!(wrong.ready().await.expect("that needs no token"));
    refused(wrong.status().await, ErrorKind::Denied);
}

async fn is_prompted(way: &Way) {
    assert_eq!(
        way.prompt("prompt", "Hello.").await.expect("it answers"),
        "You said: Hello."
    );
    refused(way.prompt("prompt", " ").await, ErrorKind::Invalid);
    refused(way.prompt("a\nb", "Hello.").await, ErrorKind::Invalid);
}

async fn is_streamed(way: &Way) {
    let ask = |session: String| {
        way.prompter
            .stream(PromptRequest::new("Hello.").session(session))
    };
    let events = all(ask(way.session("stream")).await.expect("it begins")).await;
    assert_eq!(end(&events).1, "You said: Hello.");
    refused(ask("\0".to_owned()).await, ErrorKind::Invalid);
}

async fn waits_and_goes_on(way: &Way) {
    let session = way.session("pause");
    let asked = way
        .prompter
        .prompt(PromptRequest::new("risky").session(&*session))
        .await
        .expect("it answers");
    assert!(
        matches!(asked.result.outcome, Outcome::Paused { .. }),
        "{:?}",
        asked.result.outcome
    );
    let pauses = |request: PausesRequest| way.prompter.pauses(request);
    let [waits] = &pauses(PausesRequest::new().session(&*session))
        .await
        .expect("a page")
        .pauses[..]
    else {
        panic!("one waits")
    };
    assert!(
        pauses(PausesRequest::new())
            .await
            .expect("a page")
            .pauses
            .contains(waits)
    );
    refused(
        pauses(PausesRequest::new().session("")).await,
        ErrorKind::Invalid,
    );
    refused(way.prompt("pause", "Hello.").await, ErrorKind::Conflict);
    let resume = |given: Vec<Answered>| {
        way.prompter
            .resume(ResumeRequest::new(given).session(&*session))
    };
    let nobody = Answered {
        pause: PauseId("nobody".into()),
        ..waits.pause.approve()
    };
    refused(resume(vec![nobody]).await, ErrorKind::Conflict);
    refused(
        resume(vec![waits.pause.answer(5)]).await,
        ErrorKind::Invalid,
    );
    refused(
        resume(vec![waits.pause.deny("no"), waits.pause.approve()]).await,
        ErrorKind::Invalid,
    );
    let copied = way
        .prompter
        .fork(Some(&session), ForkRequest::new(way.session("copied")))
        .await
        .expect("it is forked");
    let stands = way
        .prompter
        .look(Some(&copied.name), Look::Run)
        .await
        .expect("it is told");
    assert_eq!(stands["state"], json!(copied.state));
    way.prompter.delete(&copied.name).await.expect("it goes");
    let events = all(resume(vec![waits.pause.deny("no")])
        .await
        .expect("it goes on"))
    .await;
    assert!(matches!(end(&events).0, Outcome::Finished { .. }));
    refused(
        resume(vec![waits.pause.approve()]).await,
        ErrorKind::Conflict,
    );
}

async fn makes_an_object(way: &Way) {
    let schema =
        json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let ask = |schema: Value| {
        way.prompter
            .object(ObjectRequest::new(r#"json {"ok":true}"#, schema))
    };
    assert_eq!(ask(schema).await.expect("an object"), json!({"ok": true}));
    refused(ask(json!("none")).await, ErrorKind::Invalid);
}

async fn is_steered_and_stopped(way: &Way) {
    let (name, other) = (way.session("control"), way.session("stopped"));
    let control = |session: String, control| async move {
        way.prompter.control(Some(&session), control).await
    };
    refused(
        control("nobody".to_owned(), Control::Stop {}).await,
        ErrorKind::Missing,
    );
    let running = way.holding("control").await;
    control(
        name.clone(),
        Control::FollowUp {
            text: "second".into(),
        },
    )
    .await
    .expect("it is heard");
    control(
        name.clone(),
        Control::Steer {
            text: "first".into(),
        },
    )
    .await
    .expect("it is heard");
    refused(
        control(name.clone(), Control::Steer { text: " ".into() }).await,
        ErrorKind::Invalid,
    );
    let call = CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    };
    control(name.clone(), Control::StopCall { call })
        .await
        .expect("it is heard");
    assert_eq!(end(&running.await.expect("it ends")).1, "You said: second");
    refused(
        control(name, Control::StopCall { call }).await,
        ErrorKind::Conflict,
    );
    let running = way.holding("stopped").await;
    control(other, Control::Stop {}).await.expect("it is heard");
    let events = running.await.expect("it ends");
    assert!(
        matches!(end(&events).0, Outcome::Cancelled { by: CancelBy::User }),
        "{:?}",
        end(&events)
    );
}

async fn is_followed(way: &Way) {
    way.prompt("events", "Hello.").await.expect("it answers");
    let attach =
        |session: String, after| async move { way.prompter.attach(Some(&session), after).await };
    let events = all(attach(way.session("events"), Some(0))
        .await
        .expect("it is there"))
    .await;
    assert_eq!(end(&events).1, "You said: Hello.");
    refused(
        attach(way.session("events"), Some(1_000)).await,
        ErrorKind::Invalid,
    );
    refused(attach("nobody".to_owned(), None).await, ErrorKind::Missing);
}

async fn is_forked_and_deleted(way: &Way) {
    let (from, to) = (way.session("from"), way.session("to"));
    way.prompt("from", "Hello.").await.expect("it answers");
    let fork = |from: String, to: String| async move {
        way.prompter.fork(Some(&from), ForkRequest::new(to)).await
    };
    assert_eq!(
        *fork(from.clone(), to.clone())
            .await
            .expect("it is forked")
            .name,
        *to
    );
    refused(fork(from.clone(), to.clone()).await, ErrorKind::Exists);
    refused(
        fork("nobody".to_owned(), way.session("none")).await,
        ErrorKind::Missing,
    );
    let mut other = ForkRequest::new(way.session("other"));
    (other.model, other.prompt) = (Some("offline/planner".into()), Some("Another.".into()));
    way.prompter
        .fork(Some(&from), other.clone())
        .await
        .expect("it goes on");
    let events = way
        .prompter
        .attach(Some(&other.to), Some(0))
        .await
        .expect("it is followed");
    // The usual model would say what it was told.
    let said = end(&all(events).await).1;
    assert!(said.starts_with("I am offline"), "{said}");
    (other.model, other.to) = (Some("no/such".into()), way.session("none").into());
    refused(
        way.prompter.fork(Some(&from), other).await,
        ErrorKind::Invalid,
    );
    way.prompter.delete(&from).await.expect("it goes");
    refused(way.prompter.delete(&from).await, ErrorKind::Missing);
    assert_eq!(
        way.prompt("to", "And now?").await.expect("it is whole"),
        "You said: And now?"
    );
}

async fn is_looked_into(way: &Way) {
    way.prompt("looked", "Look.").await.expect("it answers");
    let (name, other) = (way.session("looked"), way.session("prompt"));
    let look = |session: String, look| async move { way.prompter.look(Some(&session), look).await };
    let told = look(name.clone(), Look::Tree).await.expect("it is told");
    assert_eq!(told.pointer("/branches/0/info/log"), Some(&json!(name)));
    let told = look(name.clone(), Look::Diff { with: other.into() })
        .await
        .expect("it is told");
    assert_ne!(told["beyond"], json!([0, 0]));
    let told = look(name.clone(), Look::Explain).await.expect("it is told");
    assert_eq!(told, json!({"again": [], "differs": []}));
    let told = look(
        name.clone(),
        Look::Context {
            after: 0,
            limit: None,
        },
    )
    .await
    .expect("it is told");
    let seq = told
        .pointer("/requests/0/seq")
        .and_then(Value::as_u64)
        .expect("there is one");
    let told = look(name.clone(), Look::Request { seq })
        .await
        .expect("it is told");
    assert_eq!(
        told.pointer("/entries/0/entry/content/0/text"),
        Some(&json!("Look.")),
        "{told}"
    );
    assert!(
        told["tools"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|tool| tool.get("schema").is_some()),
        "{told}"
    );
    let told = look(name.clone(), Look::Run).await.expect("it is told");
    assert!(
        told["state"] == "done" && told["began"].as_u64().is_some_and(|began| began < seq),
        "{told}"
    );
    assert!(look(name.clone(), Look::Fleet).await.expect("it is told")["due"].is_u64());
    refused(
        look(name.clone(), Look::Request { seq: 1_000 }).await,
        ErrorKind::Missing,
    );
    refused(
        look("nobody".to_owned(), Look::Tree).await,
        ErrorKind::Missing,
    );
    refused(
        way.prompter.undo(Some(&name), UndoRequest::default()).await,
        ErrorKind::Invalid,
    );
}

async fn is_paged(way: &Way) {
    let messages = |session: String| {
        way.prompter
            .messages(MessagesRequest::new().session(session).limit(1))
    };
    let page = messages(way.session("prompt")).await.expect("a page");
    assert_eq!(
        page.messages.iter().map(|it| &*it.text).collect::<Vec<_>>(),
        ["You said: Hello."]
    );
    refused(messages("nobody".to_owned()).await, ErrorKind::Missing);
    refused(
        way.prompter.messages(MessagesRequest::new().limit(0)).await,
        ErrorKind::Invalid,
    );
    let sessions = |request: SessionsRequest| way.prompter.sessions(request);
    let first = sessions(SessionsRequest::new().limit(1))
        .await
        .expect("a page");
    let rest = sessions(SessionsRequest::new().after(first.after.expect("there are more")))
        .await
        .expect("a page");
    assert!(
        first.sessions.len() == 1
            && rest
                .sessions
                .iter()
                .any(|it| *it.name == *way.session("prompt"))
    );
    refused(
        sessions(SessionsRequest::new().after("no mark")).await,
        ErrorKind::Invalid,
    );
}

#[test]
fn table_has_every_route() {
    let described: Value = serde_json::from_str(OPENAPI).expect("it is JSON");
    let paths = described["paths"].as_object().expect("a mapping");
    let routes = paths.iter().flat_map(|(path, methods)| {
        // Those of one of all agents are told by a reference to these.
        let methods = methods
            .as_object()
            .expect("a mapping")
            .keys()
            .filter(|it| METHODS.contains(&it.as_str()));
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    let mut routes: Vec<String> = routes.collect();
    let mut table: Vec<&str> = ROUTES.iter().chain(&OTHERS).copied().collect();
    routes.sort();
    table.sort_unstable();
    assert_eq!(table, routes);
}

#[tokio::test]
async fn every_route_does_what_it_says_over_both_backends() {
    for (folder, path, backend) in peers::places() {
        let home = Home::at(&path);
        let ada = backend
            .create(uuid::Uuid::new_v4(), agent("ada", peer("bob"), json!({})))
            .await
            .expect("it is created");
        refused(ada.prompter().await, ErrorKind::Conflict);
        let operator = home.operate().expect("nobody else works on it");
        let supervisor = Supervisor::new(Arc::clone(&backend), operator, Settings::new());
        let plane = ControlPlane::bind(&home, supervisor.table())
            .await
            .expect("it listens");
        let client = ControlClient::new(plane.address(), plane.token()).expect("a client");
        let end = Cancel::new();
        let work = tokio::spawn(supervisor.run(end.clone(), Cancel::new()));
        let serving = tokio::spawn(plane.serve(std::future::pending()));
        home.desire(ada.id(), Goal::Running).expect("it is written");
        ada.watch()
            .wait_for_within(LONG, |status| *status == Status::Ready)
            .await
            .expect("it begins");
        let ways: [(_, Arc<dyn Prompter>); 2] = [
            ("itself", ada.prompter().await.expect("it runs")),
            ("plane", client.agent("ada").expect("a name")),
        ];
        for (name, prompter) in ways {
            each(&Way {
                name,
                agent: Arc::clone(&ada),
                prompter,
            })
            .await;
        }
        // `POST /v1/stop`, by its operator.
        end.cancel();
        work.await.expect("it does not panic").expect("it works");
        serving.abort();
        assert_eq!(ada.status(), Status::Stopped);
        is_carried(&folder, &home, &*backend, &ada).await;
    }
}

/// It goes into a file and comes out of it elsewhere, with what was said; and tells which bytes it runs.
async fn is_carried(folder: &Place, home: &Home, backend: &dyn Backend, ada: &Arc<dyn Instance>) {
    let entry = home
        .entries()
        .expect("it can be read")
        .find("ada")
        .expect("it is there")
        .clone();
    let (file, options) = (
        folder.path().join("ada.bundle"),
        ImportOptions::new().name("eve"),
    );
    export(&entry, &file, &ExportOptions::new()).expect("it is exported");
    refused(
        export(&entry, &file, &ExportOptions::new()),
        ErrorKind::Exists,
    );
    assert!(
        !inspect(&file, &options).expect("it can be read").is_empty(),
        "it may ask bob"
    );
    // Beside the other one, so that the same backend finds it.
    refused(
        import(home, &file, &options, &Trust::Nothing),
        ErrorKind::Untrusted,
    );
    let imported = import(home, &file, &options, &Trust::All).expect("it is imported");
    refused(
        import(home, &file, &options, &Trust::All),
        ErrorKind::Exists,
    );
    let loaded = backend.load().await.expect("they are read");
    let eve = loaded
        .instances
        .iter()
        .find(|it| it.id() == imported.id)
        .expect("it is found");
    let provenance = Provenance::collect(&eve.workspace()).expect("it is made");
    assert_eq!(provenance.verify(&eve.workspace()), []);
    eve.start().await.expect("it begins");
    let prompter = eve.prompter().await.expect("it runs");
    let page = prompter
        .messages(MessagesRequest::new().session("itself-prompt"))
        .await
        .expect("it remembers");
    assert_eq!(page.messages.len(), 2);
    for agent in [eve, ada] {
        agent.remove().await.expect("it goes");
    }
}
