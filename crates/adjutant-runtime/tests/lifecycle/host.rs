//! This program as a host: what `adjutant agent-host` does, in manners that can be chosen.

use std::{fs, future::pending, os::unix::fs::OpenOptionsExt};

use adjutant_runtime::{
    Reason, Status, Workspace,
    host::{self, HostOptions},
    http::{Server, ServerOptions},
    prompt::LocalPrompter,
};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use super::desk::{answering, answering_when_open};

/// In a run of the tests this finds that it is no host, and tells so.
#[tokio::test]
async fn acts_as_a_host_when_started_as_one() {
    let Some(folder) = std::env::var_os("LIFE_HOST_WORKSPACE") else {
        assert!(std::env::var_os("LIFE_HOST_DOES").is_none());
        return;
    };
    let workspace = Workspace::at(folder);
    let start = std::env::var("ADJUTANT_AGENT_START").expect("it is given").parse().expect("it is an id");
    match std::env::var("LIFE_HOST_DOES").expect("it is given").as_str() {
        "serve" => serve(&workspace, start, answering(&["Yes.", "Yes again."])).await,
        "serve_slowly" => serve(&workspace, start, answering_when_open(&workspace)).await,
        "serve_on" => {
            serve(&workspace, start, answering(&[])).await;
            pending().await
        }
        "engine" => {
            let options = HostOptions::new().parts(super::peers::parts(&workspace));
            host::run(workspace, options).await.expect("it ends when it is asked to");
        }
        "fail" => {
            eprintln!("no luck today");
            std::process::exit(7);
        }
        "tell" => {
            workspace.tell_end(start, Status::failed(Reason::Model, "the variable NO_KEY is not set")).expect("told");
            std::process::exit(1);
        }
        other => panic!("unknown: {other}"),
    }
    std::process::exit(0);
}

/// Serves as a host does, until it is asked to end.
async fn serve(workspace: &Workspace, start: Uuid, prompter: LocalPrompter) {
    let lock = workspace.lock_host().expect("nobody else runs it");
    let environment: Vec<String> = std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
    println!("environment: {}", environment.join(" ").replace(|c: char| c.is_control(), " "));
    let former = fs::read(workspace.file("host.json")).ok();
    let former: Option<Value> = former.and_then(|text| serde_json::from_slice(&text).ok());
    let address = former.and_then(|host| host["address"].as_str()?.parse::<std::net::SocketAddr>().ok());
    let options = ServerOptions::new("clerk").port(address.map_or(0, |address| address.port()));
    let server = Server::bind(prompter, options).await.expect("it listens");
    let mut asked = signal(SignalKind::terminate()).expect("signals can be heard");
    let host = json!({
        "pid": std::process::id(), "start": start, "address": server.address(), "token": server.token(),
    });
    let beside = workspace.file(".host.json.new");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside).expect("a file");
    std::io::Write::write_all(&mut file, host.to_string().as_bytes()).expect("it can be written");
    fs::rename(&beside, workspace.file("host.json")).expect("it can be moved");
    server.serve(async move { asked.recv().await.unwrap_or_default() }).await;
    std::mem::forget(lock);
}
