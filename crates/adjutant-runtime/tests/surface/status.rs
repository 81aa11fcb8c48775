//! Whether an agent is ready, where it stands, and how it is stopped: over HTTP.

use std::{future, sync::Arc, time::Duration};

use adjutant_agent::{Agent, MemoryJournal};
use adjutant_llm::{Gate, Script, ScriptedModel};
use adjutant_runtime::{
    ErrorKind, Status,
    http::{AgentReport, Client, Server, ServerOptions},
    prompt::LocalPrompter,
};
use futures_util::StreamExt;
use tokio::net::TcpListener;

use crate::stage::{Over, kind, stage};

fn told(report: &AgentReport) -> (Status, u64) {
    (report.status.clone(), report.runs)
}

#[tokio::test]
async fn status_is_told_at_once_and_at_each_change_until_the_end() {
    let gate = Gate::default();
    let stage = stage(Over::Http, [Script::new().text("Hello.").wait_at(0, &gate)]).await;
    let mut news = stage.client.watch().await.expect("the status is told");
    let mut next = async || {
        told(
            &news
                .next()
                .await
                .expect("more is told")
                .expect("the status is told"),
        )
    };
    assert_eq!(next().await, (Status::Ready, 0));
    let prompt = tokio::spawn({
        let client = stage.client.clone();
        async move {
            adjutant_runtime::Prompter::prompt(
                &client,
                adjutant_runtime::prompt::PromptRequest::new("Hi."),
            )
            .await
        }
    });
    assert_eq!(next().await, (Status::Working, 1));
    gate.open();
    prompt.await.expect("it ends").expect("an answer");
    assert_eq!(next().await, (Status::Ready, 0));
    let report = stage.client.status().await.expect("a status");
    assert_eq!(
        (told(&report), &*report.agent, &*report.session),
        ((Status::Ready, 0), "tester", "main")
    );
    assert!(stage.client.ready().await.expect("it answers"));
    stage.client.stop().await.expect("it hears");
    assert_eq!(next().await, (Status::Stopped, 0));
    assert!(
        news.next().await.is_none(),
        "the end is told, and nothing after it"
    );
    stage.server.await.expect("it ends");
    assert_eq!(kind(stage.client.ready().await), ErrorKind::Connection);
    assert_eq!(kind(stage.client.status().await), ErrorKind::Connection);
}

#[tokio::test]
async fn agent_that_stops_tells_it_is_not_ready_while_runs_end() {
    let model = Arc::new(ScriptedModel::new([Script::new()
        .text("x".repeat(16 << 20))
        .delta_chars(64 << 10)]));
    let local = LocalPrompter::new(
        Agent::new(Arc::clone(&model)),
        model,
        Arc::new(MemoryJournal::default()),
    );
    let options = ServerOptions::new("tester").grace(Duration::from_secs(600));
    let server = Server::bind(local.clone(), options)
        .await
        .expect("it listens");
    let client = Client::new(server.address(), server.token()).expect("a client");
    let server = tokio::spawn(server.serve(future::pending()));
    let request = adjutant_runtime::prompt::PromptRequest::new("Much.");
    // Nobody reads it: the run stands still.
    let held = adjutant_runtime::Prompter::stream(&local, request)
        .await
        .expect("it begins");
    client.stop().await.expect("it hears");
    assert!(!client.ready().await.expect("it answers"));
    assert_eq!(
        told(&client.status().await.expect("a status")),
        (Status::Working, 1)
    );
    client.stop().await.expect("it hears again");
    drop(held);
    server.await.expect("it ends");
}

#[tokio::test]
async fn server_takes_its_port_again_and_another_one_if_that_is_taken() {
    let model = Arc::new(ScriptedModel::new([]));
    let local = LocalPrompter::new(
        Agent::new(Arc::clone(&model)),
        model,
        Arc::new(MemoryJournal::default()),
    );
    let options = ServerOptions::new("tester");
    let first = Server::bind(local.clone(), options.clone())
        .await
        .expect("it listens");
    let port = first.address().port();
    assert_eq!(first.token().len(), 64);
    assert!(!format!("{first:?}").contains(first.token()));
    drop(first);
    let again = Server::bind(local.clone(), options.clone().port(port))
        .await
        .expect("it listens");
    assert_eq!(again.address().port(), port);
    drop(again);
    let taken = TcpListener::bind(("127.0.0.1", port))
        .await
        .expect("the port is free");
    let other = Server::bind(local, options.port(port))
        .await
        .expect("it listens");
    assert_ne!(
        other.address().port(),
        taken.local_addr().expect("an address").port()
    );
}

#[tokio::test]
async fn wrong_token_is_denied_whatever_is_asked() {
    let stage = stage(Over::Http, []).await;
    let client = Client::new(stage.client.address(), "wrong").expect("a client");
    assert_eq!(kind(client.status().await), ErrorKind::Denied);
    assert_eq!(
        client.watch().await.err().map(|error| error.kind()),
        Some(ErrorKind::Denied)
    );
    assert_eq!(kind(client.stop().await), ErrorKind::Denied);
    let asked = adjutant_runtime::prompt::PromptRequest::new("Hi.");
    assert_eq!(
        kind(adjutant_runtime::Prompter::prompt(&client, asked).await),
        ErrorKind::Denied
    );
    assert!(client.ready().await.expect("it needs no token"));
    assert!(!stage.server.is_finished());
}
