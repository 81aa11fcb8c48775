//! The server that is killed: its tools write what they do, under a number that nobody can guess.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
};

use adjutant::{
    Replay,
    llm::CallResult,
    mcp::{HttpOptions, McpHost},
    tools::{Answer, Ask, CallContext, ToolError, ToolSpec, Tools, tool_fn},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ADDRESS, LEDGER, WORK};
use crate::kill::Place;

/// Serves at an address, or on standard input and output, until it is killed; its calls are kept at `place`.
///
/// # Errors
/// Whatever keeps it from its work.
pub async fn server(
    place: &Place,
    files: &Path,
    address: Option<SocketAddr>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let ledger = Arc::new(
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(files.join(LEDGER))?,
    );
    let host = McpHost::new("bank")
        .tools(tools(&ledger))
        .journal(place.open().await?)
        .key_file(files.join("key"))?;
    let Some(address) = address else {
        return Ok(host.serve_stdio().await?);
    };
    let listener = TcpListener::bind(address)?;
    let new = files.join("address-new");
    fs::write(&new, listener.local_addr()?.to_string())?;
    fs::rename(new, files.join(ADDRESS))?;
    Ok(host
        .serve_http(listener, HttpOptions::open().host(address.ip().to_string()))
        .await?)
}

/// `pay` asks for its codes before it acts, `haul` acts at once.
fn tools(ledger: &Arc<File>) -> Tools {
    let whole = json!({"type": "integer"});
    let properties = json!({"session": {"type": "string"}, "step": whole, "codes": whole});
    let schema = json!({"type": "object", "properties": properties, "required": ["session", "step", "codes"]});
    let pay = ToolSpec {
        replay: Replay::Resumable,
        ..ToolSpec::new("pay", "Pays a step.", schema.clone())
    };
    let haul = ToolSpec {
        replay: Replay::Once,
        ..ToolSpec::new("haul", "Hauls a step.", schema)
    };
    let (paid, hauled) = (Arc::clone(ledger), Arc::clone(ledger));
    Tools::new("bank")
        .tool(tool_fn(pay, move |args: Value, cx: CallContext| {
            let ledger = Arc::clone(&paid);
            async move {
                let mut codes = Vec::new();
                for no in 0..args["codes"].as_u64().unwrap_or(0) {
                    codes.push(code(&cx, no, &args["step"]).await?);
                }
                let number: String = cx.once("pay", || act(&ledger, &args, &codes)).await?;
                Ok(CallResult::ok(format!("paid {number}")))
            }
        }))
        .tool(tool_fn(haul, move |args: Value, _| {
            let ledger = Arc::clone(&hauled);
            async move {
                Ok(CallResult::ok(format!(
                    "paid {}",
                    act(&ledger, &args, &[]).await?
                )))
            }
        }))
}

async fn code(cx: &CallContext, no: u64, step: &Value) -> Result<String, ToolError> {
    let schema =
        json!({"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]});
    let ask = Ask {
        schema,
        ..Ask::question(format!("code {no} of step {step}"))
    };
    match cx.pause(&format!("code-{no}"), ask).await? {
        Answer::Give { value } => Ok(value["code"].as_str().unwrap_or_default().to_owned()),
        other => Err(ToolError::failed(format!("that is no code: {other:?}"))),
    }
}

async fn act(ledger: &File, args: &Value, codes: &[String]) -> Result<String, ToolError> {
    let (of, number) = (
        format!(
            "{} {}",
            args["session"].as_str().unwrap_or_default(),
            args["step"]
        ),
        Uuid::new_v4(),
    );
    note(ledger, &format!("began {of}"))?;
    tokio::time::sleep(WORK).await;
    note(ledger, &format!("did {of} {number} {}", codes.join("+")))?;
    tokio::time::sleep(WORK).await;
    Ok(number.to_string())
}

/// One line, written at once: a process that is killed has written it or not.
fn note(mut ledger: &File, line: &str) -> Result<(), ToolError> {
    ledger
        .write_all(format!("{line}\n").as_bytes())
        .map_err(|error| ToolError::failed(error.to_string()))
}
