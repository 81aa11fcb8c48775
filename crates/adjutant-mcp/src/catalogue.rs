//! The list of a server's tools, as tools of an agent: names that providers take, schemas that are some, bounds of everything.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
};

use adjutant_llm::{Schema, Warning, WarningKind};
use adjutant_tool::{Bound, Replay, ToolHints, ToolSpec, Toolset};
use rmcp::{
    model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool},
    service::ServiceError,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::{Duration, Instant};

use crate::{
    connection::{Connect, Connection, short},
    content::floor,
    input_schema::InputSchema,
    plan::Plan,
    tool::McpTool,
};

/// The most tools of a server.
const MAX_TOOLS: usize = 1_000;
/// The most pages of its list.
const MAX_PAGES: usize = 100;
/// The largest number of bytes of the whole list.
const MAX_LIST: usize = 16 << 20;
/// The largest number of bytes of a name that providers take.
const MAX_NAME: usize = 64;
/// The number of bytes of a description that are passed to the model.
const MAX_DESCRIPTION: usize = 8 << 10;
/// The largest number of bytes of a schema.
const MAX_SCHEMA: usize = 64 << 10;
/// The largest depth of a schema, with what its references lead to.
const MAX_DEPTH: usize = 64;
/// The largest number of places that a value is checked at if every reference is followed.
const MAX_PLACES: usize = 20_000;
/// The most warnings of a list.
const MAX_WARNINGS: usize = 50;
/// The shortest and longest lifetime of a list, if the server gives one.
const TTL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));

/// A list of tools from a server.
#[derive(PartialEq)]
pub(crate) struct Listed {
    tools: Vec<Tool>,
    /// The omissions so far.
    warnings: Vec<String>,
    is_legacy: bool,
}

/// Requests the list of tools; returns when it must be requested again.
///
/// # Errors
/// The errors of the requests.
pub(crate) async fn fetch(
    connection: &Connection,
) -> Result<(Listed, Option<Instant>), ServiceError> {
    let mut listed = Listed {
        tools: Vec::new(),
        warnings: Vec::new(),
        is_legacy: connection.is_legacy,
    };
    let (mut cursor, mut seen, mut size, mut expires) =
        (None::<String>, HashSet::new(), 0, None::<Instant>);
    for _ in 0..MAX_PAGES {
        let params = cursor
            .clone()
            .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest {
            method: Default::default(),
            params,
            extensions: Default::default(),
        };
        let page = page(
            connection
                .request(ClientRequest::ListToolsRequest(request))
                .await?,
            &mut listed.warnings,
        )?;
        let until = page
            .ttl_ms
            .map(|ttl| Instant::now() + Duration::from_millis(ttl).clamp(TTL.0, TTL.1));
        expires = expires.into_iter().chain(until).min();
        for tool in page.tools {
            size += serde_json::to_string(&tool).map_or(0, |text| text.len());
            if listed.tools.len() == MAX_TOOLS || size > MAX_LIST {
                listed.warnings.push(format!(
                    "its list is too long: the first {} tools are offered",
                    listed.tools.len()
                ));
                return Ok((listed, expires));
            }
            listed.tools.push(tool);
        }
        match page.next {
            None => return Ok((listed, expires)),
            Some(next) => {
                if !seen.insert(next.clone()) {
                    listed.warnings.push(
                        "its list leads in a circle: the tools of one round are offered".to_owned(),
                    );
                    return Ok((listed, expires));
                }
                cursor = Some(next);
            }
        }
    }
    listed.warnings.push(format!(
        "its list has no end: the tools of {MAX_PAGES} pages are offered"
    ));
    Ok((listed, expires))
}

struct ListPage {
    tools: Vec<Tool>,
    next: Option<String>,
    ttl_ms: Option<u64>,
}

/// A page of a list. The SDK cannot parse a page with an invalid tool: then the tools are parsed one by one.
fn page(result: ServerResult, warnings: &mut Vec<String>) -> Result<ListPage, ServiceError> {
    let raw = match result {
        ServerResult::ListToolsResult(page) => {
            return Ok(ListPage {
                tools: page.tools,
                next: page.next_cursor,
                ttl_ms: page.ttl_ms,
            });
        }
        ServerResult::CustomResult(raw) => raw.0,
        _ => return Err(ServiceError::UnexpectedResponse),
    };
    let Some(all) = raw.get("tools").and_then(Value::as_array) else {
        return Err(ServiceError::UnexpectedResponse);
    };
    let mut tools = Vec::new();
    for tool in all {
        let mut tool = tool.clone();
        // The protocol demands a schema; servers leave it out of tools without arguments.
        if let Some(members) = tool.as_object_mut() {
            let schema = members.entry("inputSchema").or_insert(Value::Null);
            if schema.is_null() {
                *schema = json!({"type": "object"});
            }
        }
        match serde_json::from_value(tool.clone()) {
            Ok(tool) => tools.push(tool),
            Err(error) => {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or("?");
                warnings.push(format!(
                    "its tool {:?} is left out: {}",
                    floor(name, 128),
                    short(&error.to_string())
                ));
            }
        }
    }
    let next = raw
        .get("nextCursor")
        .and_then(Value::as_str)
        .map(str::to_owned);
    Ok(ListPage {
        tools,
        next,
        ttl_ms: raw.get("ttlMs").and_then(Value::as_u64),
    })
}

impl Listed {
    /// The tools of the list that can be offered, with warnings of the others.
    pub(crate) fn toolset(&self, plan: &Plan, server: &Weak<dyn Connect>) -> Toolset {
        let mut warnings = self.warnings.clone();
        let mut bound = Vec::new();
        for tool in &self.tools {
            if plan
                .config
                .tools
                .as_ref()
                .is_some_and(|tools| !tools.iter().any(|name| **name == *tool.name))
            {
                continue;
            }
            match self.bind_tool(tool, plan, server, &mut warnings) {
                Ok(tool) => bound.push(tool),
                Err(why) => warnings.push(format!(
                    "its tool {:?} is left out: {why}",
                    floor(&tool.name, 128)
                )),
            }
        }
        for wanted in plan.config.tools.iter().flatten() {
            if !self.tools.iter().any(|tool| *tool.name == **wanted) {
                warnings.push(format!("it has no tool {:?}", floor(wanted, 128)));
            }
        }
        let more = warnings.len().saturating_sub(MAX_WARNINGS);
        warnings.truncate(MAX_WARNINGS);
        if more > 0 {
            warnings.push(format!("{more} more tools are left out"));
        }
        Toolset::new(bound).warn(warnings.iter().map(|what| warning(plan, what)))
    }

    fn bind_tool(
        &self,
        tool: &Tool,
        plan: &Plan,
        server: &Weak<dyn Connect>,
        warnings: &mut Vec<String>,
    ) -> Result<Bound, String> {
        let given = Value::Object((*tool.input_schema).clone());
        is_small(&given)?;
        let input = InputSchema::new(&given)?;
        check_schema(&input.schema)?;
        warnings.extend(input.warning(floor(&tool.name, 128)));
        let schema = input.schema.into_owned();
        let output = tool
            .output_schema
            .as_ref()
            .map(|schema| Arc::new(Value::Object((**schema).clone())));
        let compiled = output.as_ref().map(|schema| {
            check_schema(schema)?;
            Schema::compile(Arc::clone(schema)).map_err(|error| short(error.message()).to_owned())
        });
        let output_schema = match compiled.transpose() {
            Ok(schema) => schema,
            Err(why) => {
                let name = floor(&tool.name, 128);
                warnings.push(format!(
                    "results of its tool {name:?} are not checked, what it declares of them: {why}"
                ));
                None
            }
        };
        let description = tool.description.as_deref().unwrap_or_default();
        let hints = tool.annotations.clone().unwrap_or_default();
        let mut spec = ToolSpec::new(
            name(&plan.prefix, &tool.name),
            floor(description, MAX_DESCRIPTION),
            schema,
        );
        spec.title = tool
            .title
            .as_deref()
            .or(hints.title.as_deref())
            .map(|title| floor(title, 256).into());
        spec.replay = match (plan.config.trusted, self.is_legacy) {
            (true, _) if hints.read_only_hint == Some(true) => Replay::Pure,
            (true, _) if hints.is_idempotent() => Replay::Idempotent,
            // A question lives in its connection: a body that is entered again has no use of the answer.
            (_, true) => Replay::Once,
            (_, false) => Replay::Resumable,
        };
        // It may change whatever later calls of the same reply read.
        spec.sequential = hints.read_only_hint != Some(true);
        spec.output_schema = output_schema
            .as_ref()
            .map(|schema| Arc::clone(schema.source()));
        spec.hints = ToolHints {
            reads_only: hints.read_only_hint,
            destructive: hints.destructive_hint,
            idempotent: hints.idempotent_hint,
            open_world: hints.open_world_hint,
        };
        let tool = McpTool {
            server: server.clone(),
            name: tool.name.to_string(),
            spec,
            output_schema,
        };
        let bound = Bound::new(tool);
        bound
            .schema()
            .map_err(|error| short(error.message()).to_owned())?;
        Ok(bound)
    }
}

/// A warning about a server.
pub(crate) fn warning(plan: &Plan, what: &str) -> Warning {
    Warning {
        kind: WarningKind::Degraded,
        message: plan.says(what).into(),
    }
}

/// A name that every provider accepts. A changed name ends in a digest of the original, so that it is stable and
/// unique, independent of the other tools in the list.
pub(crate) fn name(prefix: &str, name: &str) -> String {
    let plain = format!("{prefix}{}", plain(name));
    if plain.len() <= MAX_NAME
        && plain.len() == prefix.len() + name.len()
        && plain.ends_with(name)
        && !name.is_empty()
    {
        return plain;
    }
    let digest: String = Sha256::digest(name.as_bytes())
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let room = MAX_NAME - digest.len() - 1;
    format!("{}_{digest}", plain.get(..room).unwrap_or(&plain))
}

/// A text with nothing but letters, digits, `_` and `-` of ASCII.
pub(crate) fn plain(text: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '-' {
            letter
        } else {
            '_'
        }
    };
    text.chars().map(plain).collect()
}

/// Checks the bounds of a schema: a validator follows its references as often as they stand somewhere, and fetches none.
fn check_schema(schema: &Value) -> Result<(), String> {
    is_small(schema)?;
    let mut places = Places {
        root: schema,
        known: HashMap::new(),
    };
    match places.count_places(schema, 0)? {
        ..=MAX_PLACES => Ok(()),
        _ => Err("its schema refers to itself too often".to_owned()),
    }
}

/// Checks the number of bytes of a schema, and its depth without what references lead to.
fn is_small(schema: &Value) -> Result<(), String> {
    if schema.to_string().len() > MAX_SCHEMA {
        return Err(format!("its schema has more than {MAX_SCHEMA} bytes"));
    }
    if depth(schema) > MAX_DEPTH {
        return Err(too_deep());
    }
    Ok(())
}

fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Object(members) => members.values().map(depth).max(),
        Value::Array(items) => items.iter().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or_default()
}

fn too_deep() -> String {
    format!("its schema is nested deeper than {MAX_DEPTH} levels")
}

/// The number of locations in a schema, including the targets of references.
struct Places<'a> {
    root: &'a Value,
    /// By reference; none while it is counted, as it is when it leads back to itself.
    known: HashMap<&'a str, usize>,
}

impl<'a> Places<'a> {
    fn count_places(&mut self, value: &'a Value, depth: usize) -> Result<usize, String> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let mut count = 1_usize;
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    let led = match (key.as_str(), member.as_str()) {
                        ("$ref", Some(to)) => self.count_target(to, depth + 1)?,
                        ("$dynamicRef" | "$recursiveRef", Some(_)) => {
                            return Err(format!(
                                "its schema has {key}, which is not followed here"
                            ));
                        }
                        _ => 0,
                    };
                    count = count
                        .saturating_add(led)
                        .saturating_add(self.count_places(member, depth + 1)?);
                }
            }
            Value::Array(items) => {
                for item in items {
                    count = count.saturating_add(self.count_places(item, depth + 1)?);
                }
            }
            _ => {}
        }
        Ok(count)
    }

    fn count_target(&mut self, to: &'a str, depth: usize) -> Result<usize, String> {
        if let Some(known) = self.known.get(to) {
            return Ok(*known);
        }
        let outside = || {
            format!(
                "its schema refers to {:?}, which is not in it",
                floor(to, 128)
            )
        };
        let pointer = to
            .strip_prefix('#')
            .filter(|it| it.is_empty() || it.starts_with('/'))
            .ok_or_else(outside)?;
        self.known.insert(to, 1);
        let target = self.root.pointer(pointer).ok_or_else(outside)?;
        let count = self.count_places(target, depth)?;
        self.known.insert(to, count);
        Ok(count)
    }
}
