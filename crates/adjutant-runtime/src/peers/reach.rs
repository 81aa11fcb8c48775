//! The endpoint of an A2A agent: found by its card, called by JSON-RPC, with limits.

use std::{sync::Arc, time::Duration};

use adjutant_llm::{Cause, hidden::is_hidden};
use adjutant_tool::{ToolError, ToolErrorKind};
use adjutant_toolkit::reach;
use reqwest::{Client, Response, Url};
use serde_json::{Value, json};

/// The path of cards.
const CARD: &str = "/.well-known/agent-card.json";
const VERSION: &str = "1.0";
/// The id of a request; each request has its own HTTP exchange.
const ID: u64 = 1;
/// The timeout for a card, and for reading a task.
pub(super) const QUICK: Duration = Duration::from_secs(30);
/// The maximum number of bytes of a response.
const MAX_ANSWER: usize = 16 << 20;
/// The maximum number of characters of an error's reason.
const MAX_REASON: usize = 1_000;

/// A remote agent.
#[derive(Clone)]
pub(super) struct Remote {
    pub(super) name: Arc<str>,
    pub(super) endpoint: Url,
    /// Its card; `null` if it was not read.
    pub(super) card: Value,
    token: Option<Arc<str>>,
    http: Client,
}

/// A request without a response.
pub(super) enum Lost {
    /// The agent returned an error.
    Refused(ToolError),
    /// It was not sent, or not accepted.
    Unsent(ToolError),
    /// It may have been received; the reason why the response is unreadable.
    Unheard(String),
}

impl Remote {
    /// Finds the agent by its card: at the address itself if that has a path, else at the well-known path of its host.
    ///
    /// # Errors
    /// `Failed` if there is no card, or it has no supported endpoint; nothing was sent.
    pub(super) async fn find(
        name: &str,
        url: &str,
        token: Option<&str>,
    ) -> Result<Self, ToolError> {
        let mut remote = Self::at(name, url, token)?;
        let given = remote.endpoint.clone();
        let at = if given.path().ends_with(".json") {
            Ok(given.clone())
        } else {
            given.join(CARD)
        };
        let wrong = |why: String| ToolError::failed(format!("{name} was not called: {why}"));
        let asked = remote
            .http
            .get(at.map_err(|error| wrong(error.to_string()))?)
            .timeout(QUICK);
        let asked = remote
            .token
            .iter()
            .fold(asked.header("A2A-Version", VERSION), |asked, token| {
                asked.bearer_auth(token)
            });
        let answer = asked
            .send()
            .await
            .map_err(|error| wrong(format!("its card: {}", cause(error))))?;
        if !answer.status().is_success() {
            return Err(wrong(format!("its card: status {}", answer.status())));
        }
        let card = whole(answer)
            .await
            .map_err(|why| wrong(format!("its card: {why}")))?;
        let interfaces = card["supportedInterfaces"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let speaks = |it: &&Value| {
            let version = it["protocolVersion"].as_str().unwrap_or_default();
            let is_known = version == VERSION
                || version
                    .strip_prefix(VERSION)
                    .is_some_and(|it| it.starts_with('.'));
            it["protocolBinding"]
                .as_str()
                .is_some_and(|it| it.eq_ignore_ascii_case("JSONRPC"))
                && is_known
        };
        let found = interfaces
            .iter()
            .find(speaks)
            .and_then(|it| it["url"].as_str());
        let found = found.ok_or_else(|| wrong("it speaks no A2A 1.0 over JSON-RPC".to_owned()))?;
        let endpoint = given
            .join(found)
            .map_err(|error| wrong(error.to_string()))?;
        if endpoint.origin() != given.origin() {
            // The author of a card must not decide to which other host a token is sent, or which internal address is
            // called.
            return Err(wrong(format!(
                "its card names another host, {:?}",
                endpoint.host_str().unwrap_or_default()
            )));
        }
        (remote.endpoint, remote.card) = (endpoint, card);
        Ok(remote)
    }

    /// Creates an agent for an endpoint.
    pub(super) fn at(name: &str, url: &str, token: Option<&str>) -> Result<Self, ToolError> {
        let wrong = |why: String| ToolError::failed(format!("{name} cannot be called: {why}"));
        let endpoint = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        let http = reach::builder()
            .and_then(|it| reach::direct(it, &endpoint).build().map_err(Cause::from));
        let http =
            http.map_err(|cause| wrong("there is no HTTP client".to_owned()).with_source(cause))?;
        Ok(Self {
            name: name.into(),
            endpoint,
            card: Value::Null,
            token: token.map(Arc::from),
            http,
        })
    }

    /// Sends a request; an error of the agent is a refusal.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: Value,
        within: Duration,
    ) -> Result<Value, Lost> {
        let name = &self.name;
        let asked = self
            .http
            .post(self.endpoint.clone())
            .timeout(within)
            .header("A2A-Version", VERSION);
        let asked = self
            .token
            .iter()
            .fold(asked, |asked, token| asked.bearer_auth(token));
        let body = json!({"jsonrpc": "2.0", "id": ID, "method": method, "params": params});
        let answer = match asked.json(&body).send().await {
            Ok(answer) => answer,
            Err(error) if error.is_connect() => {
                return Err(Lost::Unsent(ToolError::failed(format!(
                    "{name} was not called: {}",
                    cause(error)
                ))));
            }
            Err(error) => return Err(Lost::Unheard(cause(error))),
        };
        let status = answer.status();
        let told = whole(answer).await;
        let refused =
            |why: &str| Lost::Refused(ToolError::failed(format!("{name} refuses: {why}")));
        if let Ok(told) = &told
            && !told["error"].is_null()
        {
            let said = [&told["error"]["message"], &told["error"]]
                .into_iter()
                .find_map(Value::as_str);
            let said = said
                .unwrap_or("it does not say why")
                .chars()
                .take(MAX_REASON);
            return Err(refused(
                &said
                    .map(|c| if is_hidden(c) { ' ' } else { c })
                    .collect::<String>(),
            ));
        }
        match (status.as_u16(), told) {
            (401 | 403, _) => {
                let message = format!("{name} refuses the token: status {status}");
                Err(Lost::Refused(ToolError::new(
                    ToolErrorKind::Denied,
                    message,
                )))
            }
            (429, _) => Err(Lost::Unsent(ToolError::failed(format!(
                "{name} takes no more requests: status {status}"
            )))),
            (500..=599, _) => Err(Lost::Unheard(format!("status {status}"))),
            (200..=299, Ok(told)) if told["id"] != ID => {
                Err(Lost::Unheard("it answers another request".to_owned()))
            }
            (200..=299, told) => told
                .map(|mut told| told["result"].take())
                .map_err(Lost::Unheard),
            _ => Err(refused(&format!("status {status}"))),
        }
    }
}

/// Parses the JSON of a response, and refuses duplicate keys.
async fn whole(mut answer: Response) -> Result<Value, String> {
    let mut bytes = Vec::new();
    // A body with an excessive declared size is not read.
    if answer
        .content_length()
        .is_some_and(|long| long > MAX_ANSWER as u64)
    {
        return Err(format!("it has more than {MAX_ANSWER} bytes"));
    }
    while let Some(part) = answer.chunk().await.map_err(cause)? {
        if bytes.len() + part.len() > MAX_ANSWER {
            return Err(format!("it has more than {MAX_ANSWER} bytes"));
        }
        bytes.extend_from_slice(&part);
    }
    adjutant_llm::json::from_slice(&bytes).map_err(|error| format!("no JSON: {error}"))
}

/// Returns the innermost cause of an error, because the outer ones contain addresses, which may contain secrets.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(std::error::Error::source(&error), |error| error.source());
    causes
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
