//! Servers on this machine that speak the Chat Completions wire, and which model each lists first.

use std::time::Duration;

use futures_util::future::join_all;
use http_body::Body;
use serde::Deserialize;

use crate::driver::{Route, client};

/// The longest time that a server is waited for.
const LIMIT: Duration = Duration::from_millis(300);
/// The largest number of bytes of a list of models that are read.
const MAX_LIST: usize = 1024 * 1024;

/// A server that may run on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) port: u16,
}

/// Source: the default ports in the documentation of Ollama, llama.cpp's server and LM Studio, 2026-08.
pub(super) const SERVERS: [Server; 3] = [
    Server {
        name: "ollama",
        port: 11_434,
    },
    Server {
        name: "llama-server",
        port: 8_080,
    },
    Server {
        name: "lmstudio",
        port: 1_234,
    },
];

impl Server {
    pub(super) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

/// Returns the first server that reports a model in time, and that model. All servers are queried at once.
pub(super) async fn find(servers: &[Server; 3]) -> Option<(Server, String)> {
    let asked = servers
        .iter()
        .map(|server| tokio::time::timeout(LIMIT, first_model(*server)));
    let answers = join_all(asked).await;
    servers
        .iter()
        .zip(answers)
        .find_map(|(server, answer)| Some((*server, answer.ok()??)))
}

async fn first_model(server: Server) -> Option<String> {
    #[derive(Deserialize)]
    struct List {
        data: Vec<ListedModel>,
    }
    #[derive(Deserialize)]
    struct ListedModel {
        id: String,
    }
    let client = client(LIMIT, Route::Loopback).ok()?;
    let response = client
        .get(format!("{}/models", server.base_url()))
        .send()
        .await
        .ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = http::Response::<reqwest::Body>::from(response).into_body();
    let mut list = Vec::new();
    while let Some(frame) =
        std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await
    {
        if let Ok(bytes) = frame.ok()?.into_data() {
            list.extend_from_slice(&bytes);
        }
        if list.len() > MAX_LIST {
            return None;
        }
    }
    let list: List = serde_json::from_slice(&list).ok()?;
    list.data
        .into_iter()
        .map(|it| it.id)
        .find(|id| !id.trim().is_empty())
}
