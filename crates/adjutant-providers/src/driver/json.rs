//! One request with one JSON answer, for everything that is not streamed. It is never retried.

use std::sync::Arc;

use adjutant_llm::{Error, ErrorKind, ModelInfo};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, header};
use serde::de::DeserializeOwned;
use tokio::time::timeout_at;

use super::{
    Endpoint, after,
    failure::{self, Limit},
};
use crate::{credentials::Secrets, limits};

/// The largest number of bytes that an answer may have.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// Sends a body, and reads the answer.
///
/// # Errors
/// As the stream of a model; `Protocol` if the answer is not of this shape.
pub(crate) async fn post<T: DeserializeOwned>(
    endpoint: &Endpoint,
    info: &ModelInfo,
    body: Bytes,
) -> Result<T, Error> {
    let question = Question {
        body: Some(body),
        max_bytes: MAX_ANSWER,
    };
    send(endpoint, info, question).await
}

/// Reads the resource at the endpoint, at most this many bytes.
///
/// # Errors
/// As [`post`].
pub(crate) async fn get<T: DeserializeOwned>(
    endpoint: &Endpoint,
    info: &ModelInfo,
    max_bytes: usize,
) -> Result<T, Error> {
    let question = Question {
        body: None,
        max_bytes,
    };
    send(endpoint, info, question).await
}

/// A request for one JSON answer: with a body a `POST`, without one a `GET`.
struct Question {
    body: Option<Bytes>,
    max_bytes: usize,
}

async fn send<T: DeserializeOwned>(
    endpoint: &Endpoint,
    info: &ModelInfo,
    question: Question,
) -> Result<T, Error> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(Error::new(
            ErrorKind::Config,
            "a model of a provider was asked outside of a tokio runtime",
        ));
    }
    let limit = after(failure::key_wait(endpoint));
    let mut secrets = endpoint.secrets();
    let mut refused = None;
    loop {
        let secret = match endpoint.key().resolving(refused.clone()) {
            Some(resolving) => {
                let resolved = timeout_at(limit, resolving)
                    .await
                    .unwrap_or_else(|_| Err(failure::keyless(endpoint)));
                resolved.map_err(|error| secrets.scrub(error))?
            }
            None => None,
        };
        let secret: Option<Arc<str>> = secret
            .map(|it| it.trim().into())
            .filter(|it: &Arc<str>| !it.is_empty());
        secrets.add(secret.as_deref().unwrap_or_default());
        let answer = exchange(endpoint, info, secret.as_deref(), &secrets, &question).await;
        let is_again = refused.is_none() && endpoint.key().is_token();
        if is_again
            && answer
                .as_ref()
                .is_err_and(|it| it.details().status == Some(401))
        {
            refused = secret;
            continue;
        }
        return answer
            .and_then(|answer| read(info, &answer))
            .map_err(|error| secrets.scrub(error));
    }
}

/// An answer that was no refusal.
struct JsonAnswer {
    request_id: Option<Arc<str>>,
    bytes: Bytes,
}

async fn exchange(
    endpoint: &Endpoint,
    info: &ModelInfo,
    secret: Option<&str>,
    secrets: &Secrets,
    question: &Question,
) -> Result<JsonAnswer, Error> {
    let body = question.body.clone().unwrap_or_default();
    let (client, mut request) = endpoint.request(&[], &Default::default(), secret, body.into())?;
    if question.body.is_none() {
        *request.method_mut() = Method::GET;
        *request.body_mut() = None;
        let headers = request.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    }
    let timeouts = endpoint.timeouts();
    let late = |limit| move |_| failure::timeout_error(endpoint, limit);
    // No part of the answer can be used before its end, so the silence deadline covers the whole answer.
    let end = after(
        timeouts
            .total
            .map_or(timeouts.silence, |total| total.min(timeouts.silence)),
    );
    let mut response = timeout_at(end.min(after(timeouts.first_byte)), client.execute(request))
        .await
        .map_err(late(Limit::FirstByte))?
        .map_err(|error| failure::unreachable(endpoint, error))?;
    let refused = !response.status().is_success();
    let request_id = limits::request_id(response.headers());
    let mut answer = BytesMut::new();
    loop {
        let chunk = timeout_at(end.min(after(timeouts.idle)), response.chunk());
        match chunk.await.map_err(late(Limit::Idle))? {
            Ok(Some(bytes)) => answer.extend_from_slice(&bytes),
            Ok(None) => break,
            // The received part of a refusal is sufficient.
            Err(_) if refused => break,
            Err(error) => {
                let error = failure::broken(endpoint, error);
                return Err(add_request_id(error, request_id));
            }
        }
        if answer.len() > question.max_bytes {
            let text = format!("the answer has more than {} bytes", question.max_bytes);
            let error = Error::new(ErrorKind::Protocol, text);
            return Err(add_request_id(error, request_id));
        }
        if refused && answer.len() > failure::MAX_BODY {
            break;
        }
    }
    if !refused {
        return Ok(JsonAnswer {
            request_id,
            bytes: answer.freeze(),
        });
    }
    let (parts, ()) = http::Response::<reqwest::Body>::from(response)
        .map(drop)
        .into_parts();
    let mut refused = failure::Refused::new(&parts);
    refused.take(Some(&answer.freeze()));
    Err(refused.into_error(info, endpoint, secrets))
}

/// Returns the answer, or the error in it: some servers send an error with a success status.
fn read<T: DeserializeOwned>(info: &ModelInfo, answer: &JsonAnswer) -> Result<T, Error> {
    serde_json::from_slice(&answer.bytes).map_err(|source| {
        let body = String::from_utf8_lossy(&answer.bytes);
        let error = failure::find_body_error(info, &body).unwrap_or_else(|| {
            let text = format!(
                "{} answered with something else than was asked for",
                info.id
            );
            Error::new(ErrorKind::Protocol, text)
                .with(|it| it.body = Some((*body).into()))
                .with_source(source)
        });
        add_request_id(error, answer.request_id.clone())
    })
}

fn add_request_id(error: Error, id: Option<Arc<str>>) -> Error {
    match id {
        Some(id) => error.with(|it| it.request_id = Some(id)),
        None => error,
    }
}
