//! The agent for A2A clients: its card, and one route for all requests.

use std::{convert::Infallible, sync::Arc};

use adjutant_protocols::a2a::{HEADERS, Reply};
use axum::{
    Json, Router,
    body::{self, Body},
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    MAX_REQUEST_BYTES,
    error::{Problem, too_long},
    guard::CARD,
    routes::{self, BODY_TIMEOUT, Plane as _, Site},
};
use crate::ErrorKind;

/// The route of requests.
pub(super) const PATH: &str = "/a2a";
/// The header, or the query parameter, with the protocol version of a client.
const VERSION: &str = "a2a-version";

pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new().route(CARD, get(card)).route(PATH, post(ask))
}

async fn card(State(site): State<Arc<Site>>) -> Json<Value> {
    Json(site.a2a.card().clone())
}

async fn ask(
    State(site): State<Arc<Site>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    routes::check_media(&headers)?;
    let place = routes::place(site.prompts())?;
    let body = match timeout(BODY_TIMEOUT, body::to_bytes(body, MAX_REQUEST_BYTES)).await {
        Ok(body) => body.map_err(|_| too_long())?,
        Err(_) => {
            let message = "the request took too long to arrive";
            return Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                ErrorKind::TimedOut,
                message,
            ));
        }
    };
    let asked = query
        .iter()
        .flat_map(|query| query.split('&'))
        .filter_map(|field| field.split_once('='));
    let asked = asked
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(VERSION))
        .map(|(_, version)| version);
    let version = headers
        .get(VERSION)
        .and_then(|version| version.to_str().ok())
        .or(asked);
    Ok(match site.a2a.handle(version, &body).await {
        Reply::Json(told) => Json(told).into_response(),
        Reply::Stream(frames) => {
            let frames = frames.map(move |frame| {
                let _ = &place;
                Ok::<_, Infallible>(frame)
            });
            (HEADERS, Body::from_stream(frames)).into_response()
        }
    })
}
