//! Drives a small real model through the wires that `llama-server` speaks, and prints a table.
//!
//! `local_model MODEL SERVER...`: each SERVER is a `llama-server` or a Python that can import `xllamacpp`. The first one that
//! becomes ready is used. Exit code 1 if a cell fails, 3 if no server starts.

use std::{
    fmt,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{ExitCode, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use adjutant::{
    Model,
    llm::{
        Block, Call, CallId, CallResult, Chunk, Entry, ErrorKind, FinishReason, Format, ModelInfo,
        Options, Reply, Request, Retry, Shape, Structured, ToolChoice,
    },
    providers::{Key, Provider, WireKind},
};
use adjutant_tests::{Heard, listen, pair, tools};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::{process::Child, process::Command, time::sleep};

/// The context window that the server is started with: small, so that an overflow is cheap.
const WINDOW: u64 = 2_048;
/// The longest time that a server may take until it is ready.
const START: Duration = Duration::from_secs(60);
/// The longest time that a cell may take.
const CELL: Duration = Duration::from_secs(180);
/// The longest time until a cancelled request has left the server.
const RELEASE: Duration = Duration::from_secs(20);
/// Serves like `llama-server`: model and port are its arguments.
const PYTHON_SERVER: &str = "\
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames, params.port = ['127.0.0.1'], int(sys.argv[2])
params.n_ctx, params.n_parallel, params.n_gpu_layers = int(sys.argv[3]), 1, 0
params.endpoint_slots = params.endpoint_props = params.use_jinja = True
server = xllamacpp.Server(params)
threading.Event().wait()
";

/// The outcome of a cell.
enum Outcome {
    /// The behavior was observed, with a figure.
    Passed(String),
    /// The server ignores the option.
    NotEnforced(String),
    /// The behavior is wrong.
    Failed(String),
}

/// A wire of the server, and the server's address.
#[derive(Clone)]
struct Subject {
    wire: &'static str,
    provider: Provider,
    server: SocketAddr,
}

type Verdict = Result<Outcome, String>;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, servers @ ..] = &*arguments else {
        eprintln!("usage: local_model MODEL SERVER...");
        return ExitCode::from(2);
    };
    for program in servers {
        match start(program, model).await {
            // The process ends with this function.
            Ok((_server, address)) => return drive(address).await,
            Err(why) => println!("local_model: {program}: {why}"),
        }
    }
    ExitCode::from(3)
}

/// Starts a server and waits until it is ready.
async fn start(program: &str, model: &str) -> Result<(Child, SocketAddr), String> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let address = address.map_err(|error| error.to_string())?;
    let (port, window) = (address.port().to_string(), WINDOW.to_string());
    let mut command = Command::new(program);
    if program.ends_with("llama-server") {
        command.args(["-m", model, "--host", "127.0.0.1", "--port", &port]);
        command.args([
            "-c",
            &window,
            "-np",
            "1",
            "-ngl",
            "0",
            "--offline",
            "--jinja",
        ]);
        command.env(
            "LD_LIBRARY_PATH",
            Path::new(program).parent().unwrap_or(Path::new("")),
        );
    } else {
        command.args(["-c", PYTHON_SERVER, model, &port, &window]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut server = command
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let started = Instant::now();
    while started.elapsed() < START {
        if let Ok(Some(status)) = server.try_wait() {
            return Err(format!("exited before it was ready: {status}"));
        }
        if get(address, "/health").is_ok_and(|body| body["status"] == "ok") {
            return Ok((server, address));
        }
        sleep(Duration::from_millis(200)).await;
    }
    Err(format!("not ready after {} s", START.as_secs()))
}

/// Plays every row on every wire and prints the table.
async fn drive(server: SocketAddr) -> ExitCode {
    let subjects = subjects(server);
    let header: String = subjects
        .iter()
        .map(|subject| format!("{:<14}", subject.wire))
        .collect();
    println!("{:<24}{header}", "");
    let mut notes = String::new();
    let mut failed = false;
    for (name, row) in rows() {
        print!("{name:<24}");
        for subject in &subjects {
            let outcome = play(row(subject.clone())).await;
            print!("{:<14}", outcome.to_string());
            let _ = std::io::stdout().flush();
            failed |= matches!(outcome, Outcome::Failed(_));
            notes += &format!("{name}, {}: {outcome}: {}\n", subject.wire, outcome.note());
        }
        println!();
    }
    println!("\n{notes}");
    ExitCode::from(u8::from(failed))
}

type Cell = std::pin::Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// A row by its name.
type Row = (&'static str, fn(Subject) -> Cell);

fn rows() -> [Row; 8] {
    [
        ("streaming", |subject| Box::pin(streaming(subject))),
        ("usage", |subject| Box::pin(usage(subject))),
        ("cancellation", |subject| Box::pin(cancellation(subject))),
        ("overflow", |subject| Box::pin(overflow(subject))),
        ("answer by schema", |subject| Box::pin(schema(subject))),
        ("call with its result", |subject| Box::pin(history(subject))),
        ("tool_choice: required", |subject| {
            Box::pin(choice(subject, ToolChoice::Required))
        }),
        ("tool_choice: named", |subject| {
            Box::pin(choice(subject, ToolChoice::Named("find".into())))
        }),
    ]
}

/// Plays a cell on a task of its own: a panic of the reader is a failure like any other.
async fn play(cell: Cell) -> Outcome {
    match tokio::time::timeout(CELL, tokio::spawn(cell)).await {
        Ok(Ok(Ok(outcome))) => outcome,
        Ok(Ok(Err(why))) => Outcome::Failed(why),
        Ok(Err(panic)) => Outcome::Failed(panic.to_string()),
        Err(_) => Outcome::Failed(format!("not finished after {} s", CELL.as_secs())),
    }
}

/// The wires of the server: Chat as the known provider, the others as a configuration would name them.
fn subjects(server: SocketAddr) -> Vec<Subject> {
    let subject = |wire, provider| Subject {
        wire,
        provider,
        server,
    };
    let chat = Provider::all()
        .find(|provider| provider.variables().any(|it| it == "LLAMA_SERVER_BASE_URL"));
    let other = |wire: WireKind, path: &str| {
        Provider::new("local", format!("http://{server}{path}")).wire(wire)
    };
    chat.map(|chat| subject("chat", chat))
        .into_iter()
        .chain([
            subject("responses", other(WireKind::Responses, "/v1")),
            subject("messages", other(WireKind::Messages, "")),
        ])
        .collect()
}

impl Subject {
    fn model(&self, structured: Structured) -> Result<Arc<dyn Model>, String> {
        let info = ModelInfo {
            context_window: WINDOW,
            max_output_tokens: 256,
            structured,
            ..ModelInfo::new(if self.wire == "chat" {
                "llama-server/smollm2"
            } else {
                "local/smollm2"
            })
        };
        let url = if self.wire == "chat" {
            format!("http://{}/v1", self.server)
        } else {
            String::new()
        };
        let model = self.provider.model(info, Key::none(), &url);
        // The server announces that it keeps connections, and closes each one after a stream: a request that follows at once
        // may break.
        model
            .map(|model| Arc::new(Retry::new(model)) as Arc<dyn Model>)
            .map_err(|error| error.to_string())
    }

    async fn listen(&self, request: Request) -> Result<Heard, String> {
        let model = self.model(Structured::Native)?;
        Ok(listen(&*model, request).await)
    }

    async fn reply(&self, request: Request) -> Result<Arc<Reply>, String> {
        self.listen(request)
            .await?
            .end
            .map_err(|error| error.to_string())
    }

    /// True while the server works on a request.
    fn is_busy(&self) -> Result<bool, String> {
        let slots = get(self.server, "/slots")?;
        let slots = slots.as_array().ok_or("/slots is not a list")?;
        Ok(slots.iter().any(|slot| slot["is_processing"] == true))
    }
}

/// A question that is answered with the most likely tokens.
fn ask(text: &str, max_output_tokens: u64) -> Request {
    Request::new().user(text).options(Options {
        max_output_tokens: Some(max_output_tokens),
        temperature: Some(0.0),
        ..Options::default()
    })
}

async fn streaming(subject: Subject) -> Verdict {
    let heard = subject.listen(ask("Count from one to ten.", 24)).await?;
    let reply = heard.end.map_err(|error| error.to_string())?;
    let deltas = heard
        .chunks
        .iter()
        .filter(|chunk| matches!(chunk, Chunk::Delta { .. }))
        .count();
    ensure(deltas > 2, || format!("{deltas} deltas"))?;
    ensure(!reply.text().is_empty(), || {
        "the reply has no text".to_owned()
    })?;
    let known = matches!(reply.stop, FinishReason::End | FinishReason::Length);
    ensure(known, || format!("the reply stops with {:?}", reply.stop))?;
    passed(format!("{deltas} deltas, {:?}", reply.stop))
}

async fn usage(subject: Subject) -> Verdict {
    let request = || ask("Name three rivers of Germany.", 16);
    let first = subject.reply(request()).await?.usage;
    let second = subject.reply(request()).await?.usage;
    ensure(first.input() > 5, || {
        format!("{} input tokens", first.input())
    })?;
    ensure((1..=16).contains(&first.output), || {
        format!("{} output tokens", first.output)
    })?;
    ensure(first.input() == second.input(), || {
        format!(
            "the same request has {} and {} input tokens",
            first.input(),
            second.input()
        )
    })?;
    passed(format!(
        "{} in, {} out, {} from the cache when repeated",
        first.input(),
        first.output,
        second.cache_read
    ))
}

async fn cancellation(subject: Subject) -> Verdict {
    let model = subject.model(Structured::Native)?;
    let mut stream = model.stream(ask("Tell a very long story about a dragon.", 1_500));
    let mut deltas = 0;
    while deltas < 2 {
        match stream.next().await {
            Some(Ok(chunk)) => deltas += usize::from(matches!(chunk, Chunk::Delta { .. })),
            end => return Err(format!("the stream ended after {deltas} deltas: {end:?}")),
        }
    }
    ensure(subject.is_busy()?, || {
        "the server was idle while it streamed".to_owned()
    })?;
    drop(stream);
    let dropped = Instant::now();
    while subject.is_busy()? {
        ensure(dropped.elapsed() < RELEASE, || {
            "the slot is still busy".to_owned()
        })?;
        sleep(Duration::from_millis(50)).await;
    }
    passed(format!(
        "the slot was free after {} ms",
        dropped.elapsed().as_millis()
    ))
}

async fn overflow(subject: Subject) -> Verdict {
    let long = "All work and no play. ".repeat(500);
    let heard = subject.listen(ask(&long, 8)).await?;
    let error = heard.end.err().ok_or("the request was accepted")?;
    let found = (
        error.kind(),
        error.details().overflow.and_then(|it| it.limit),
    );
    ensure(found == (ErrorKind::Overflow, Some(WINDOW)), || {
        format!("{found:?}: {error}; {:?}", error.details().body)
    })?;
    passed(error.to_string())
}

async fn schema(subject: Subject) -> Verdict {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "size": {"enum": ["small", "large"]},
        },
        "required": ["city", "size"],
        "additionalProperties": false,
    });
    let mut why = Vec::new();
    for structured in [Structured::Native, Structured::Tool] {
        let mut shape = Shape::<Value>::from_format(Format::new("city", schema.clone()))
            .map_err(|error| error.to_string())?;
        shape.repairs = 0;
        let model = subject.model(structured)?;
        match shape
            .ask(&*model, ask("Describe the city of Bonn.", 64))
            .await
        {
            Ok(answer) => return passed(format!("{structured:?}: {}", answer.value)),
            // The answer does not fit: the server did not hold the model to the schema.
            Err(error)
                if matches!(error.kind(), ErrorKind::Protocol | ErrorKind::Invalid)
                    && error.details().status.is_none() =>
            {
                why.push(format!("{structured:?}: {error}"));
            }
            Err(error) => {
                why.push(format!("{structured:?}: {error}"));
                return Err(why.join("; "));
            }
        }
    }
    Ok(Outcome::NotEnforced(why.join("; ")))
}

async fn history(subject: Subject) -> Verdict {
    let id = CallId {
        turn: 1,
        attempt: 0,
        block: 0,
    };
    let mut called = Reply::new("other/model".into(), FinishReason::Calls);
    called.blocks = vec![Arc::new(Block::Call(Call::new(
        id,
        "look",
        r#"{"city":"Bonn"}"#,
    )))];
    let question = || ask("What is the weather in Bonn?", 16).tools(tools());
    let without = subject.reply(question()).await?.usage.input();
    let mut request = question();
    request.entries.push(pair(&Arc::new(called), |_| {
        CallResult::ok("Sunny, 24 degrees, a light wind from the west.")
    }));
    request.entries.push(Entry::User("Is it warm?".into()));
    let reply = subject.reply(request).await?;
    let with = reply.usage.input();
    ensure(with > without + 10, || {
        format!("{without} input tokens without call and result, {with} with them")
    })?;
    passed(format!(
        "{without} input tokens without call and result, {with} with them"
    ))
}

async fn choice(subject: Subject, choice: ToolChoice) -> Verdict {
    let mut request = ask("Is Bonn a city? Find it.", 64).tools(tools());
    Arc::make_mut(&mut request.options).tool_choice = choice.clone();
    let heard = subject.listen(request).await?;
    let warnings: Vec<_> = heard
        .warnings
        .iter()
        .map(|warning| warning.message.to_string())
        .collect();
    let reply = heard.end.map_err(|error| error.to_string())?;
    let called: Vec<_> = reply
        .calls()
        .map(|call| format!("{}({})", call.name, call.args))
        .collect();
    let holds = match choice {
        ToolChoice::Named(name) => {
            !called.is_empty() && reply.calls().all(|call| call.name == name)
        }
        _ => !called.is_empty(),
    };
    let note = format!("calls {called:?}, warnings {warnings:?}");
    Ok(if holds {
        Outcome::Passed(note)
    } else {
        Outcome::NotEnforced(note)
    })
}

/// Sends a GET request and reads the JSON of the answer.
fn get(server: SocketAddr, path: &str) -> Result<Value, String> {
    let answer = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&server, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n"
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = answer().map_err(|error| format!("{path}: {error}"))?;
    let (_, body) = text
        .split_once("\r\n\r\n")
        .ok_or("the answer has no body")?;
    serde_json::from_str(body).map_err(|error| format!("{path}: {error}"))
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn passed(note: String) -> Verdict {
    Ok(Outcome::Passed(note))
}

impl Outcome {
    fn note(&self) -> &str {
        match self {
            Self::Passed(note) | Self::NotEnforced(note) | Self::Failed(note) => note,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed(_) => "ok",
            Self::NotEnforced(_) => "not enforced",
            Self::Failed(_) => "FAILED",
        })
    }
}
