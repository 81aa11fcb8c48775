//! Input that a server needs to continue: answers of people or of a model, and the roots.

use std::{sync::Arc, time::Duration};

use adjutant_tool::{Answer, Ask, AskKind, CallContext, ToolError, ToolErrorKind};
use rmcp::model::{ElicitRequestParams, InputRequest};
use serde_json::{Map, Value, json};

use crate::{content::floor, plan::Plan, sample};

/// The number of bytes of a question that are displayed.
const MAX_QUESTION: usize = 16 << 10;
/// The largest number of bytes of an address in a sign-in question.
const MAX_URL: usize = 2_048;

/// The answer to a server's request, in the form of the protocol.
///
/// # Errors
/// Without a person to answer. Only the run then knows the key.
pub(crate) async fn answer(
    cx: &CallContext,
    key: &str,
    request: &InputRequest,
    plan: &Plan,
    within: Option<Duration>,
) -> Result<Value, ToolError> {
    match request {
        InputRequest::Elicitation(request) => {
            let (ask, defaults) = ask(&request.params, plan)?;
            let ask = if let Some(within) = within {
                ask.within(within)
            } else {
                ask
            };
            match cx.pause(key, ask).await {
                Ok(answer) => Ok(encode_answer(answer, defaults)),
                // The server may be able to continue without it.
                Err(error) if error.kind == ToolErrorKind::Unattended => {
                    Ok(json!({"action": "cancel"}))
                }
                Err(error) => Err(error),
            }
        }
        InputRequest::ListRoots(_) => Ok(roots(plan)),
        InputRequest::CreateMessage(request) => {
            sample::ask(
                cx,
                key,
                serde_json::to_value(&request.params).unwrap_or_default(),
                plan,
            )
            .await
        }
        _ => Err(plan.fault("it sends an unknown request")),
    }
}

/// The folders that a server gets as roots.
pub(crate) fn roots(plan: &Plan) -> Value {
    let root = |path: &std::path::PathBuf| {
        let uri = reqwest::Url::from_directory_path(path).ok()?;
        let name = path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy();
        Some(json!({"uri": uri.as_str(), "name": name}))
    };
    json!({"roots": plan.config.roots.iter().filter_map(root).collect::<Vec<_>>()})
}

/// The question, and for a form what its fields are that an answer leaves out.
fn ask(
    params: &ElicitRequestParams,
    plan: &Plan,
) -> Result<(Ask, Option<Map<String, Value>>), ToolError> {
    let said = |message: &str| format!("{} asks: {}", plan.name, floor(message, MAX_QUESTION));
    let data = |mode: &str| json!({"mcp": {"server": &*plan.name, "mode": mode}});
    match params {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => {
            let mut schema = serde_json::to_value(requested_schema).map_err(|error| {
                plan.fault("it asks with an invalid form")
                    .with_source(error)
            })?;
            let fields = schema["properties"].as_object().into_iter().flatten();
            let defaults: Map<_, _> = fields
                .filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())))
                .collect();
            if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
                required.retain(|name| {
                    name.as_str()
                        .is_none_or(|name| !defaults.contains_key(name))
                });
            }
            Ok((
                Ask {
                    schema,
                    data: data("form"),
                    ..Ask::question(said(message))
                },
                Some(defaults),
            ))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let is_web =
                reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "https" | "http"));
            if !is_web || url.len() > MAX_URL || url.chars().any(char::is_control) {
                return Err(plan.fault("it sends people to an address that is none of the web"));
            }
            let mut data = data("url");
            data["mcp"]["url"] = json!(url);
            let prompt: Arc<str> = format!("{}\n{url}", said(message)).into();
            Ok((
                Ask {
                    data,
                    ..Ask::new(AskKind::Authorisation, prompt)
                },
                None,
            ))
        }
        _ => Err(plan.fault("it asks in an unknown way")),
    }
}

/// An answer in the words of the protocol; only a form, which has defaults, takes a value.
fn encode_answer(answer: Answer, defaults: Option<Map<String, Value>>) -> Value {
    match (answer, defaults) {
        (
            Answer::Give {
                value: Value::Object(mut given),
            },
            Some(defaults),
        ) => {
            for (name, value) in defaults {
                given.entry(name).or_insert(value);
            }
            json!({"action": "accept", "content": given})
        }
        (Answer::Give { value }, Some(_)) => json!({"action": "accept", "content": value}),
        (Answer::Give { .. } | Answer::Approve { .. }, _) => json!({"action": "accept"}),
        (Answer::Decline { .. } | Answer::Deny { .. }, _) => json!({"action": "decline"}),
        _ => json!({"action": "cancel"}),
    }
}
