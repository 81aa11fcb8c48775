//! The kind of failure that a provider's refusal is: decided once, from status, code and text. Pure.

use std::time::Duration;

use adjutant_llm::{Error, ErrorKind, ModelId};
use serde_json::Value;

use crate::{limits, overflow, surrogates};

/// The largest number of characters of a provider's text that stand in a message.
const MAX_TEXT: usize = 500;
/// The largest number of faults of a request that stand in a message.
const MAX_PROBLEMS: usize = 3;

/// A failure as a provider described it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status, or the one that stands in the error itself.
    pub(crate) status: Option<u16>,
    /// The provider's code: the finer of `code` and `type`.
    pub(crate) code: Option<String>,
    /// Every code that was given, for classification.
    codes: Vec<String>,
    /// The text of the refusal.
    pub(crate) text: String,
    /// The time that it asks to wait, if that stands in the error itself.
    ///
    /// Source: `google.rpc.RetryInfo` in google/rpc/error_details.proto, 2026-11.
    retry_after: Option<Duration>,
}

/// Codes whose kind does not depend on the status.
///
/// Source: Anthropic's and OpenAI's lists of error types, 2026-08.
const CODES: &[(&str, ErrorKind)] = &[
    ("authentication_error", ErrorKind::Auth),
    ("permission_error", ErrorKind::Auth),
    ("billing_error", ErrorKind::Auth),
    ("invalid_api_key", ErrorKind::Auth),
    ("insufficient_quota", ErrorKind::Auth),
    ("billing_hard_limit_reached", ErrorKind::Auth),
    ("model_not_found", ErrorKind::Config),
    ("not_found_error", ErrorKind::Config),
    ("content_filter", ErrorKind::Refused),
    ("content_policy_violation", ErrorKind::Refused),
    ("bio_policy", ErrorKind::Refused),
    ("rate_limit_error", ErrorKind::RateLimited),
    ("rate_limit_exceeded", ErrorKind::RateLimited),
    ("resource_exhausted", ErrorKind::RateLimited),
    ("overloaded_error", ErrorKind::Overloaded),
    ("api_error", ErrorKind::Overloaded),
    ("server_error", ErrorKind::Overloaded),
    ("internal_server_error", ErrorKind::Overloaded),
    ("unavailable", ErrorKind::Overloaded),
    ("timeout_error", ErrorKind::Timeout),
    ("invalid_request_error", ErrorKind::Invalid),
    ("invalid_prompt", ErrorKind::Invalid),
    ("data_residency_mismatch", ErrorKind::Config),
    // Source: OpenRouter's page on errors, 2026-11: what stands in the metadata if moderation stopped the request.
    ("flagged_input", ErrorKind::Refused),
    ("refusal", ErrorKind::Refused),
    // Source: google.rpc.Code and the reasons of google.api.ErrorReason, 2026-11. What must be true before a request is
    // billing, or a country.
    ("permission_denied", ErrorKind::Auth),
    ("unauthenticated", ErrorKind::Auth),
    ("failed_precondition", ErrorKind::Auth),
    ("api_key_invalid", ErrorKind::Auth),
    ("service_disabled", ErrorKind::Auth),
    ("billing_disabled", ErrorKind::Auth),
    ("not_found", ErrorKind::Config),
    ("deadline_exceeded", ErrorKind::Timeout),
    ("internal", ErrorKind::Overloaded),
    ("aborted", ErrorKind::Overloaded),
    ("invalid_argument", ErrorKind::Invalid),
    ("out_of_range", ErrorKind::Invalid),
];

/// What a server says in the middle of an answer that went wrong, as the error that it means.
///
/// Classified as every refusal is: by its code, its status and its words, with what is too large told apart.
pub fn refusal(model: &ModelId, data: &str) -> Error {
    let value = surrogates::read::<Value>(data).unwrap_or_default();
    let refusal = Refusal::of_value(&value).unwrap_or_else(|| Refusal::of_body(200, data));
    refusal.into_error(&format!("{model} broke off with an error"), data)
}

impl Refusal {
    /// Reads the body of a refused request; text that is no JSON is taken as it is.
    pub(crate) fn of_body(status: u16, body: &str) -> Self {
        let read = serde_json::from_str::<Value>(body)
            .ok()
            .and_then(|value| Self::of_value(&value));
        let mut refusal = read.unwrap_or_else(|| Self {
            text: body.trim().to_owned(),
            ..Self::default()
        });
        if refusal.text.is_empty() && refusal.codes.is_empty() {
            refusal.text = format!("{status} (no body)");
        }
        refusal.status = Some(status);
        refusal
    }

    /// Reads an error object out of JSON; `None` if there is none.
    ///
    /// Shape: `{"error":{"type","code","message"}}`, `{"error":"…"}`, `{"message"|"detail":"…"}`, `{"detail":[{"loc","msg"}]}`,
    /// or a list of one. A router gives what the provider behind it said in `metadata.raw`, text or JSON.
    pub(crate) fn of_value(value: &Value) -> Option<Self> {
        let value = value
            .as_array()
            .and_then(|list| list.first())
            .unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null());
        let object = error.unwrap_or(value);
        let said = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        let text = object
            .as_str()
            .map(str::to_owned)
            .or_else(|| said("message"))
            .or_else(|| said("detail"));
        let mut text = text.or_else(|| object.get("detail").and_then(problems));
        let mut codes: Vec<String> = ["code", "type", "status"]
            .into_iter()
            .filter_map(said)
            .collect();
        let details = || {
            object
                .get("details")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        codes.extend(details().filter_map(|it| Some(it.get("reason")?.as_str()?.to_owned())));
        let metadata = object.get("metadata");
        codes.extend(
            metadata
                .and_then(|it| it.get("flagged_input"))
                .map(|_| "flagged_input".to_owned()),
        );
        if let (Some(text), Some(raw)) = (
            &mut text,
            metadata.and_then(|it| it.get("raw")).and_then(raw),
        ) {
            *text = format!("{text}: {raw}");
        }
        // A number is the status, or a code of the vendor's own.
        let number = object.get("code").and_then(Value::as_u64);
        let status = number
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (100..600).contains(code));
        if let (Some(number), None) = (number, status) {
            codes.insert(0, number.to_string());
        }
        if error.is_none() && text.is_none() {
            return None;
        }
        let text = text.unwrap_or_else(|| object.to_string());
        let retry_after =
            details().find_map(|it| limits::go_duration(it.get("retryDelay")?.as_str()?));
        Some(Self {
            status,
            code: codes.first().cloned(),
            codes,
            text,
            retry_after,
        })
    }

    /// Returns the kind of the error, which tells what a caller can do about it.
    pub(crate) fn kind(&self) -> ErrorKind {
        let known = |wanted: fn(ErrorKind) -> bool| {
            self.codes.iter().find_map(|code| {
                let (_, kind) = CODES
                    .iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(code))?;
                // Many servers use the code of a failure of theirs for whatever is wrong with a request.
                let blamed = |kind| {
                    matches!(
                        kind,
                        ErrorKind::Invalid | ErrorKind::Auth | ErrorKind::Config
                    )
                };
                if *kind == ErrorKind::Overloaded
                    && self.status.and_then(of_status).is_some_and(blamed)
                {
                    return None;
                }
                wanted(*kind).then_some(*kind)
            })
        };
        let text = self.text.to_lowercase();
        let finer = known(|kind| !matches!(kind, ErrorKind::Invalid));
        if self.status == Some(429) {
            return finer
                .filter(|kind| *kind == ErrorKind::Auth)
                .unwrap_or(ErrorKind::RateLimited);
        }
        if overflow::is_overflow(self.status, &text, &self.codes) {
            return ErrorKind::Overflow;
        }
        finer
            .or_else(|| self.status.and_then(of_status))
            .or_else(|| known(|_| true))
            .unwrap_or_else(|| of_text(&text))
    }

    /// As an error of the model with this name.
    pub(crate) fn into_error(self, what: &str, body: &str) -> Error {
        let kind = self.kind();
        let code = self
            .code
            .as_ref()
            .map(|code| format!(" ({code})"))
            .unwrap_or_default();
        let text: String = self.text.chars().take(MAX_TEXT).collect();
        let mut error = Error::new(kind, format!("{what}{code}: {text}"))
            .with(|it| it.body = Some(body.into()));
        if kind == ErrorKind::Overflow {
            error = error.with(|it| it.overflow = Some(overflow::numbers(&self.text)));
        }
        if let Some(wait) = self.retry_after {
            error = error.with(|it| it.retry_after = Some(wait));
        }
        if let Some(status) = self.status {
            error = error.with(|it| it.status = Some(status));
        }
        if let Some(code) = self.code {
            error = error.with(|it| it.code = Some(code.into()));
        }
        error
    }
}

/// Returns the faults that FastAPI finds: the first few fields, and what is wrong with each.
fn problems(detail: &Value) -> Option<String> {
    let problems = detail
        .as_array()?
        .iter()
        .take(MAX_PROBLEMS)
        .filter_map(|it| {
            let text = it.get("msg")?.as_str()?;
            let place = it
                .get("loc")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let place: Vec<String> = place
                .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
                .collect();
            Some(if place.is_empty() {
                text.to_owned()
            } else {
                format!("{}: {text}", place.join("."))
            })
        });
    Some(problems.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// Returns the text that a provider behind a router said.
fn raw(raw: &Value) -> Option<String> {
    let Some(text) = raw.as_str() else {
        return Some(raw.to_string()).filter(|_| !raw.is_null());
    };
    let inner = serde_json::from_str::<Value>(text)
        .ok()
        .and_then(|value| Refusal::of_value(&value));
    Some(inner.map_or_else(|| text.to_owned(), |inner| inner.text)).filter(|text| !text.is_empty())
}

fn of_status(status: u16) -> Option<ErrorKind> {
    match status {
        401..=403 => Some(ErrorKind::Auth),
        300..=399 | 404 | 405 => Some(ErrorKind::Config),
        408 | 504 => Some(ErrorKind::Timeout),
        409 | 425 => Some(ErrorKind::Overloaded),
        413 => Some(ErrorKind::Overflow),
        429 => Some(ErrorKind::RateLimited),
        400..=499 => Some(ErrorKind::Invalid),
        500..=599 => Some(ErrorKind::Overloaded),
        _ => None,
    }
}

/// The last resort, for errors in mid-stream that carry nothing but words.
fn of_text(text: &str) -> ErrorKind {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if has(&["rate limit", "too many requests"]) {
        ErrorKind::RateLimited
    } else if has(&[
        "overloaded",
        "unavailable",
        "internal error",
        "server error",
    ]) {
        ErrorKind::Overloaded
    } else {
        ErrorKind::Protocol
    }
}

#[cfg(test)]
mod tests;
