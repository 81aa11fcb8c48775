//! Updates of tasks that are pushed: each is POSTed to the addresses that callers have named, in order, while this process lives.
//!
//! Source: A2A 1.0.1, sections 3.1.7 to 3.1.10 and 4.3. It defines no header for the token: this one is used by its
//! SDKs.

use std::{
    error::Error,
    net::IpAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use adjutant_toolkit::reach::{self, PublicOnly};
use futures_core::Stream;
use futures_util::{FutureExt, StreamExt};
use reqwest::{
    Client, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::{
    refusal::{Code, RpcRefusal},
    wire::{PushConfig, Update},
};

/// The header of the token.
const TOKEN: &str = "x-a2a-notification-token";
/// The most addresses of a task, and of all tasks.
const MAX_OF_TASK: usize = 8;
const MAX: usize = 256;
/// The longest address.
const MAX_URL: usize = 2_048;
/// The most updates that are read while one is on its way.
const MAX_AT_ONCE: usize = 256;
/// The time that an address has to answer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The times before an update is sent again; then nothing more is pushed there.
const AGAIN: [Duration; 5] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(16),
    Duration::from_secs(60),
];

/// The hosts that updates of tasks are pushed to: all with public addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PushTargets {
    /// The hosts that may have any address: `localhost`, `10.0.0.7`, or `*.intern.example` for all names below it.
    pub private_hosts: Vec<String>,
}

/// The addresses that updates are pushed to; with it, their work ends.
pub(super) struct Pushes {
    reach: PublicOnly,
    all: Mutex<Vec<Pushed>>,
}

/// An active address; dropping it ends the pushes.
struct Pushed {
    config: PushConfig,
    work: AbortHandle,
}

/// A permitted address and its credentials.
pub(super) struct Target {
    client: Client,
    url: Url,
    headers: HeaderMap,
}

impl Pushes {
    pub(super) fn new(to: &PushTargets) -> Self {
        let allowed = to
            .private_hosts
            .iter()
            .map(|host| host.to_ascii_lowercase())
            .collect();
        let hint = "the operator of the agent can allow that host";
        Self {
            reach: PublicOnly { allowed, hint },
            all: Mutex::default(),
        }
    }

    /// Prepares pushes to an address; refuses addresses that are not public, and credentials that cannot be sent.
    pub(super) fn target(&self, config: &PushConfig) -> Result<Target, RpcRefusal> {
        let refused = |why: &str| RpcRefusal::params(format!("nothing is pushed there: {why}"));
        let url = Url::parse(&config.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.filter(|url| {
            url.username().is_empty() && url.password().is_none() && config.url.len() <= MAX_URL
        });
        let url = url.ok_or_else(|| {
            refused("an address begins with https:// or http://, and holds no credentials")
        })?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        if let Ok(address) = host.parse::<IpAddr>() {
            self.reach
                .judge(host, address)
                .map_err(|error| refused(&error.to_string()))?;
        }
        let mut headers =
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let login = config
            .authentication
            .as_ref()
            .filter(|it| !it.credentials.is_empty());
        let login = login.map(|it| (AUTHORIZATION, format!("{} {}", it.scheme, it.credentials)));
        let token = Some(&config.token).filter(|token| !token.is_empty());
        let token = token.map(|token| (HeaderName::from_static(TOKEN), token.clone()));
        for (name, secret) in login.into_iter().chain(token) {
            let mut value =
                HeaderValue::from_str(&secret).map_err(|_| refused("its secrets fit no header"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // A proxy of the environment would resolve the names.
        let client = reach::builder().map(|it| {
            it.no_proxy()
                .timeout(TIMEOUT)
                .dns_resolver(Arc::new(self.reach.clone()))
        });
        let client = client.ok().and_then(|client| client.build().ok());
        let client = client
            .ok_or_else(|| RpcRefusal::new(Code::Internal, "cannot create the HTTP client"))?;
        Ok(Target {
            client,
            url,
            headers,
        })
    }

    /// Refuses an address beyond the limit.
    pub(super) fn room(&self, config: &PushConfig) -> Result<(), RpcRefusal> {
        let mut all = self.all();
        if all.len() >= MAX {
            all.retain(|it| !it.work.is_finished());
        }
        let is_other =
            |it: &&Pushed| it.config.id != id(config) || it.config.task_id != config.task_id;
        let others = || all.iter().filter(is_other);
        let of_task = others()
            .filter(|it| it.config.task_id == config.task_id)
            .count();
        if of_task >= MAX_OF_TASK || others().count() >= MAX {
            let why = format!(
                "{MAX_OF_TASK} addresses of a task, and {MAX} in all, are pushed to at most"
            );
            return Err(RpcRefusal::new(Code::UnsupportedOperation, why));
        }
        Ok(())
    }

    /// Starts pushes to an address, replacing the one with the same id; returns its public form.
    pub(super) fn keep(
        &self,
        config: PushConfig,
        to: Target,
        updates: impl Stream<Item = Result<Vec<Update>, RpcRefusal>> + Send + 'static,
    ) -> Result<Value, RpcRefusal> {
        self.room(&config)?;
        let config = PushConfig {
            id: id(&config).to_owned(),
            ..config
        };
        let (shown, task, host) = (
            config.to_public_json(),
            config.task_id.clone(),
            to.url.host_str().map(str::to_owned),
        );
        let work = tokio::spawn(async move {
            if let Err(error) = to.follow(updates).await {
                tracing::warn!(task, host, error, "updates of a task are pushed no more");
            }
        });
        self.remove(&config);
        self.all().push(Pushed {
            config,
            work: work.abort_handle(),
        });
        Ok(shown)
    }

    /// The addresses of a task, in public form.
    pub(super) fn configs(&self, task: &str) -> Vec<Value> {
        self.all()
            .iter()
            .filter(|it| it.config.task_id == task)
            .map(|it| it.config.to_public_json())
            .collect()
    }

    /// Nothing more is pushed to the address of this id.
    pub(super) fn remove(&self, config: &PushConfig) {
        self.all()
            .retain(|it| it.config.id != config.id || it.config.task_id != config.task_id);
    }

    fn all(&self) -> MutexGuard<'_, Vec<Pushed>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Target {
    /// Sends updates sequentially; updates that arrive during a request are combined.
    async fn follow(
        &self,
        updates: impl Stream<Item = Result<Vec<Update>, RpcRefusal>>,
    ) -> Result<(), String> {
        let mut updates = pin!(updates.fuse());
        while let Some(next) = updates.next().await {
            let mut all = Vec::new();
            next.map_err(|error| error.to_string())?
                .into_iter()
                .for_each(|update| join(&mut all, update));
            for _ in 0..MAX_AT_ONCE {
                let Some(Some(next)) = updates.next().now_or_never() else {
                    break;
                };
                next.map_err(|error| error.to_string())?
                    .into_iter()
                    .for_each(|update| join(&mut all, update));
            }
            for update in &all {
                self.post(json!(update).to_string()).await?;
            }
        }
        Ok(())
    }

    async fn post(&self, body: String) -> Result<(), String> {
        for wait in AGAIN.map(Some).into_iter().chain([None]) {
            let request = self
                .client
                .post(self.url.clone())
                .headers(self.headers.clone())
                .body(body.clone());
            let (why, may_do) = match request.send().await {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => (
                    format!("it answered {}", answer.status()),
                    may_do_later(answer.status()),
                ),
                Err(error) => {
                    let error = error.without_url();
                    let mut cause: &dyn Error = &error;
                    while let Some(below) = cause.source() {
                        cause = below;
                    }
                    (cause.to_string(), true)
                }
            };
            match wait.filter(|_| may_do) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(why),
            }
        }
        Ok(())
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// The id of an address in its task.
fn id(config: &PushConfig) -> &str {
    if config.id.is_empty() {
        &config.task_id
    } else {
        &config.id
    }
}

fn may_do_later(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
        )
}

/// Continuations of the same text are merged into one update.
fn join(all: &mut Vec<Update>, update: Update) {
    if let (
        Some(Update::ArtifactUpdate {
            artifact: before, ..
        }),
        Update::ArtifactUpdate {
            artifact,
            append: true,
            ..
        },
    ) = (all.last_mut(), &update)
        && before.artifact_id == artifact.artifact_id
        && let [before] = &mut *before.parts
        && let [more] = &*artifact.parts
        && let (Some(said), Some(more)) = (&mut before.text, &more.text)
    {
        said.push_str(more);
        return;
    }
    all.push(update);
}
