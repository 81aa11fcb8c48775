//! One request with one JSON answer: for what is not streamed. It never retries either.

use adjutant_llm::{Error, ErrorKind, ModelInfo};
use bytes::{Bytes, BytesMut};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

use super::{Endpoint, failure};

/// How many bytes an answer may have.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// Sends a body, and reads the answer.
///
/// # Errors
/// As the stream of a model; `Protocol` if the answer is not of this shape.
pub(crate) async fn post<T: DeserializeOwned>(endpoint: &Endpoint, info: &ModelInfo, body: Bytes) -> Result<T, Error> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(Error::new(ErrorKind::Config, "a model of a provider was asked outside of a tokio runtime"));
    }
    let limit = Instant::now() + endpoint.timeouts().first_byte;
    let secret = match endpoint.key().resolving() {
        Some(resolving) => timeout_at(limit, resolving).await.map_err(|_| failure::timed_out(endpoint, false))??,
        None => None,
    };
    let secret = secret.as_deref().map(str::trim).filter(|it| !it.is_empty());
    let exchange = exchange(endpoint, info, secret, body);
    let answer = match timeout_at(limit, exchange).await {
        Ok(answer) => answer,
        Err(_) => Err(failure::timed_out(endpoint, false)),
    };
    answer.and_then(|bytes| read(info, &bytes)).map_err(|error| endpoint.scrub(error, secret))
}

async fn exchange(endpoint: &Endpoint, info: &ModelInfo, secret: Option<&str>, body: Bytes) -> Result<Bytes, Error> {
    let (client, request) = endpoint.request(&Default::default(), secret, body.into())?;
    let mut response = client.execute(request).await.map_err(|error| failure::unreachable(endpoint, error))?;
    let refused = !response.status().is_success();
    let mut answer = BytesMut::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| failure::broken(endpoint, error))? {
        answer.extend_from_slice(&bytes);
        if answer.len() > MAX_ANSWER {
            return Err(Error::new(ErrorKind::Protocol, "the answer has more than 256 MiB"));
        }
        if refused && answer.len() > failure::MAX_BODY {
            break;
        }
    }
    if !refused {
        return Ok(answer.freeze());
    }
    let (parts, ()) = http::Response::<reqwest::Body>::from(response).map(drop).into_parts();
    let mut refused = failure::Refused::new(&parts);
    refused.take(Some(&answer.freeze()));
    Err(refused.into_error(info))
}

fn read<T: DeserializeOwned>(info: &ModelInfo, answer: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(answer).map_err(|error| {
        let text = format!("{} answered with something else than was asked for", info.id);
        Error::new(ErrorKind::Protocol, text).with_body(&String::from_utf8_lossy(answer)).with_source(error)
    })
}
