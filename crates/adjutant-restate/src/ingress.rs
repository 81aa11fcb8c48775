//! A client of a Restate server: has sessions driven from any process.

use std::{fmt, io, sync::Arc, time::Duration};

use adjutant_agent::{JournalError, JournalErrorKind, LogId, Post, Waker};
use async_trait::async_trait;
use bytes::Bytes;
use restate_sdk::{
    ingress::{Client, ClientError, RequestExecutor},
    prelude::Json,
};
use rustls::{ClientConfig, crypto::CryptoProvider};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::time::sleep;
use uuid::Uuid;

use crate::session::{SessionServiceIngressClient, until};

/// The longest time to wait for a connection, and for an answer.
const TIMES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));
/// The pauses before a call that was not answered is made again.
const PAUSES_MS: [u64; 5] = [100, 300, 900, 2_700, 8_100];

/// The sessions that a Restate server has driven, from outside.
///
/// A call that the server does not answer is made again for some 12 s, under one key: it counts once.
#[derive(Clone)]
pub struct Ingress {
    client: Client<Http>,
    address: Arc<str>,
}

#[derive(Clone)]
struct Http(reqwest::Client);

impl Ingress {
    /// A client for the server at this address, `http://127.0.0.1:8080` for a local one. No request is sent yet.
    ///
    /// # Errors
    /// `Invalid` if that is no address, or no client can be made.
    pub fn connect(address: &str) -> Result<Self, JournalError> {
        let invalid = |source: Box<dyn std::error::Error + Send + Sync>| {
            let message = format!("cannot speak to a Restate server at {address:?}");
            JournalError::new(JournalErrorKind::Invalid, message)
                .with_source(io::Error::other(source))
        };
        let http = http().map_err(invalid)?;
        let uri = address
            .parse::<http::Uri>()
            .map_err(|error| invalid(error.into()))?;
        let client = Client::new(uri, Http(http)).map_err(|error| invalid(error.into()))?;
        Ok(Self {
            client,
            address: address.into(),
        })
    }

    /// Sets the token that the server requires.
    ///
    /// # Errors
    /// `Invalid` if it cannot be sent.
    pub fn token(self, token: &str) -> Result<Self, JournalError> {
        let invalid = || {
            JournalError::new(
                JournalErrorKind::Invalid,
                "the token cannot be sent in a header",
            )
        };
        let client = self
            .client
            .with_restate_auth_token(token)
            .map_err(|_| invalid())?;
        Ok(Self { client, ..self })
    }

    fn session(&self, log: &LogId) -> SessionServiceIngressClient<Http> {
        SessionServiceIngressClient::from_client(self.client.clone(), &*log.0)
    }

    /// Calls until there is an answer.
    async fn call<T, F>(&self, log: &LogId, call: impl Fn(String) -> F) -> Result<T, JournalError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let key = Uuid::new_v4().to_string();
        let mut pauses = PAUSES_MS.into_iter();
        loop {
            let error = match call(key.clone()).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let status = error.response().map(|response| response.status().as_u16());
            let kind = match status {
                Some(404) => JournalErrorKind::Missing,
                Some(400) => JournalErrorKind::Invalid,
                Some(501) => JournalErrorKind::Unsupported,
                _ => JournalErrorKind::Io,
            };
            let pause = pauses
                .next()
                .filter(|_| matches!(status, None | Some(429 | 502..=504)));
            let Some(pause) = pause else {
                let said = error
                    .response()
                    .map(|response| String::from_utf8_lossy(response.body()).into_owned());
                let said = said.unwrap_or_default();
                let said: String = said.chars().take(500).collect();
                let message = format!(
                    "session {:?} at the Restate server {}: {error} {said}",
                    log.0, self.address
                );
                return Err(JournalError::new(kind, message).with_source(error));
            };
            sleep(Duration::from_millis(pause)).await;
        }
    }
}

#[async_trait]
impl Waker for Ingress {
    async fn say(&self, log: &LogId, post: Post) -> Result<(), JournalError> {
        log.check()?;
        let say = |key| {
            let request = self
                .session(log)
                .post(Json(post.clone()))
                .idempotency_key(key);
            async { request.call().await?.into_body() }
        };
        self.call(log, say).await
    }

    async fn wake(&self, log: &LogId, at_ms: u64) -> Result<(), JournalError> {
        log.check()?;
        let wake = |key| {
            self.session(log)
                .drive()
                .idempotency_key(key)
                .send_after(until(at_ms))
        };
        self.call(log, wake).await.map(drop)
    }
}

impl RequestExecutor for Http {
    type Error = io::Error;

    async fn execute(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, io::Error> {
        let mut answer = self
            .0
            .execute(request.try_into().map_err(io::Error::other)?)
            .await
            .map_err(io::Error::other)?;
        let mut response = http::Response::new(Bytes::new());
        (*response.status_mut(), *response.headers_mut()) =
            (answer.status(), std::mem::take(answer.headers_mut()));
        *response.body_mut() = answer.bytes().await.map_err(io::Error::other)?;
        Ok(response)
    }
}

fn http() -> Result<reqwest::Client, Box<dyn std::error::Error + Send + Sync>> {
    // A program may have chosen another provider for all of its TLS.
    let chosen = CryptoProvider::get_default().cloned();
    let crypto = chosen.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
    let tls = ClientConfig::builder_with_provider(crypto).with_safe_default_protocol_versions()?;
    let tls = tls.with_platform_verifier()?.with_no_client_auth();
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .tcp_nodelay(true);
    let builder = builder
        .connect_timeout(TIMES.0)
        .timeout(TIMES.1)
        .retry(reqwest::retry::never());
    Ok(builder
        .redirect(reqwest::redirect::Policy::none())
        .build()?)
}

impl fmt::Debug for Ingress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingress")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
