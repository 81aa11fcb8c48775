//! The client that the official conformance suite runs: an agent that calls every tool of a server, with a person who signs in
//! where that is wanted and answers every question: `cargo xtask mcp-conformance`.
//!
//! The suite passes the address of the server as the last argument, and the scenario in environment variables.

use std::{
    env,
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::Agent;
use adjutant_llm::{Script, ScriptedModel};
use adjutant_mcp::{
    ErrorKind, HttpConfig, Login, LoginOptions, McpServer, Revision, ServerConfig, Tokens,
};
use adjutant_tool::{Answer, AskKind, Identity, Toolbox};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

type Failure = Box<dyn Error + Send + Sync>;

/// The name of the server, which is part of the error that requests a sign-in.
const NAME: &str = "suite";
const HINT: &str = "adjutant mcp login suite";
/// The number of sign-ins before it counts as a loop.
const MAX_LOGINS: usize = 3;
/// The document that the suite takes for the description of a client.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = env::args()
        .next_back()
        .ok_or("the address of a server is missing")?;
    let context = env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok());
    let context: Value = context.unwrap_or_default();
    let folder = tempfile::tempdir()?;
    let mut config = HttpConfig::new(url);
    config.tokens = Tokens::from_directory(folder.path());
    for logins in 0.. {
        match exercise(&config, &context).await? {
            Outcome::Done => break,
            Outcome::Refused if logins == MAX_LOGINS => {
                return Err("signing in changes nothing".into());
            }
            Outcome::Refused => sign_in(&config, &context).await?,
        }
    }
    Ok(())
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
}

/// Calls every tool of the server; tools of the context get its arguments.
async fn exercise(config: &HttpConfig, context: &Value) -> Result<Outcome, Failure> {
    let mut server = ServerConfig::new(config.clone());
    server.prefix = Some("".into());
    server.revision = match env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").as_deref() {
        Ok("2026-07-28") => Revision::V2026_07_28,
        _ => Revision::V2025_11_25,
    };
    let server = McpServer::new(NAME, server)?;
    match server.ready().await {
        Err(error) if error.kind == ErrorKind::Unauthorised => return Ok(Outcome::Refused),
        ready => ready?,
    }
    let tools = server
        .resolve(&Identity::root("suite".into(), "suite", "suite"))
        .await?;
    let mut calls: Vec<(String, Value)> = Vec::new();
    for tool in tools.iter().map(|tool| tool.spec()) {
        let named = context["toolCalls"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|call| call["name"] == *tool.decl.name.as_str());
        let before = calls.len();
        calls.extend(named.map(|call| (tool.decl.name.to_string(), call["arguments"].clone())));
        if calls.len() == before {
            let mut args = fill_form(&tool.decl.schema);
            // It checks the effect on the schema of another tool.
            if let Some(seen) = tools
                .get("json_schema_2020_12_tool")
                .filter(|_| args.get("schema").is_some())
            {
                args["schema"] = Value::clone(&seen.spec().decl.schema);
            }
            calls.push((tool.decl.name.to_string(), args));
        }
    }
    let said = format!("{:?}", tools.warnings());
    if said.contains(HINT) {
        return Ok(Outcome::Refused);
    }
    let results = Arc::new(Mutex::new(String::new()));
    // Sequentially: the scenario often checks the order.
    let asked = calls
        .into_iter()
        .map(|(name, args)| Script::new().call(name, args));
    let keeps = Arc::clone(&results);
    let last = Script::from_fn(move |request| {
        *keeps.lock().expect("nobody panics with it") =
            serde_json::to_string(&request.entries).unwrap_or_default();
        Script::new().text("done")
    });
    let agent = Agent::new(ScriptedModel::new(asked.chain([last])))
        .toolbox(server)
        .responder(|_, pause| async move {
            Some(match pause.ask.kind {
                AskKind::Question => Answer::Give {
                    value: fill_form(&pause.ask.schema),
                },
                _ => Answer::Approve {
                    args: None,
                    for_run: false,
                },
            })
        });
    agent.run("Call every tool.").await?;
    let results = results.lock().expect("nobody panics with it").clone();
    Ok(if results.contains(HINT) {
        Outcome::Refused
    } else {
        Outcome::Done
    })
}

/// Fills in a form: with its defaults, or with a value of the right type for required fields.
fn fill_form(schema: &Value) -> Value {
    let is_required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|all| all.iter().any(|it| it == name))
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let value = |(name, property): (&String, &Value)| {
        let value = match (property.get("default"), property["type"].as_str()) {
            (Some(default), _) => default.clone(),
            (None, Some("boolean")) => json!(true),
            (None, _) if !is_required(name) => return None,
            (None, Some("number" | "integer")) => json!(2),
            (None, Some("array")) => json!([]),
            (None, Some("object")) => json!({}),
            (None, _) => property["enum"]
                .get(0)
                .cloned()
                .unwrap_or_else(|| json!("text")),
        };
        Some((name.clone(), value))
    };
    Value::Object(properties.filter_map(value).collect::<Map<_, _>>())
}

/// Signs in with a browser that agrees to everything.
async fn sign_in(config: &HttpConfig, context: &Value) -> Result<(), Failure> {
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let mut options = LoginOptions::default();
    (options.client_id, options.client_secret) = (text("client_id"), text("client_secret"));
    options.client_metadata = Some(DOCUMENT.to_owned());
    let login = Login::begin(NAME, config, options).await?;
    let url = login.url().to_owned();
    let browser = async {
        let page = get(&url).await?;
        let back = page.lines().find_map(|line| {
            line.strip_prefix("Location: ")
                .or(line.strip_prefix("location: "))
        });
        get(back.ok_or("nobody was sent back")?).await.map(drop)
    };
    let (signed_in, browsed) = tokio::join!(
        tokio::time::timeout(Duration::from_secs(20), login.finish()),
        browser
    );
    browsed?;
    Ok(signed_in??)
}

/// The response of a local server, including its head.
async fn get(url: &str) -> Result<String, Failure> {
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or("no address")?;
    let mut stream = TcpStream::connect(host).await?;
    let head = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}
