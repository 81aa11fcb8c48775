//! Validates tools that are programs.

use std::{path::PathBuf, sync::Arc};

use adjutant_llm::Schema;
use serde_json::Value;

use super::{Check, form, model, place, shown};
use crate::manifest::{Manifest, ProcessTool, SandboxSpec, near, node::At, path, problem::quoted};

/// The maximum size of stored output, in bytes.
const MAX_OUTPUT: u64 = 16 << 20;

pub(super) fn check(check: &mut Check<'_>, manifest: &mut Manifest, at: At<'_>) {
    let at = at.key("process_tools");
    let names: Vec<Arc<str>> = manifest
        .process_tools
        .iter()
        .map(|tool| Arc::clone(&tool.name))
        .collect();
    check.differ(
        names
            .iter()
            .enumerate()
            .map(|(n, name)| (&**name, at.item(n).key("name"))),
        "a tool",
    );
    for (n, tool) in manifest.process_tools.iter_mut().enumerate() {
        one(check, tool, at.item(n));
        if !manifest
            .agents
            .iter()
            .any(|agent| agent.tools.contains(&tool.name))
        {
            check.warn(
                at.item(n).mark,
                format!("no agent has the tool {}", quoted(&tool.name)),
            );
        }
    }
}

fn one(check: &mut Check<'_>, tool: &mut ProcessTool, at: At<'_>) {
    check.name(&tool.name, at, "name");
    check.must(
        !tool.description.trim().is_empty(),
        at.key("description"),
        "a model cannot use what has no description",
    );
    binary(check, &mut tool.binary, at.key("binary"));
    parameters(check, tool, at);
    for (n, word) in tool.args.iter().enumerate() {
        check.must(
            !word.contains('\0'),
            at.key("args").item(n),
            "a word of a command holds no zero byte",
        );
        place::secret(check, word, at.key("args").item(n));
    }
    model::time(check, tool.timeout, at, "timeout");
    let is_size = tool
        .max_output
        .is_none_or(|size| (1..=MAX_OUTPUT).contains(&size.0));
    check.must(
        is_size,
        at.key("max_output"),
        "`max_output` is over 0 and 16MiB at most",
    );
    place::environment(check, &tool.environment, at.key("environment"));
    let is_digest = tool.sha256.as_deref().is_none_or(form::is_sha256);
    check.must(
        is_digest,
        at.key("sha256"),
        "`sha256` is 64 lowercase hexadecimal digits",
    );
    sandbox(check, &mut tool.sandbox, at.key("sandbox"));
}

/// Checks a program; its path becomes absolute, unless it is a bare name.
pub(super) fn binary(check: &mut Check<'_>, binary: &mut PathBuf, at: At<'_>) {
    match path::program(&at.mark.source.folder, binary) {
        Ok(real) => {
            let is_name = !real.is_absolute();
            *binary = real;
            if let Some(folders) = check.around.path.as_deref().filter(|_| is_name)
                && !path::is_in(folders, binary)
            {
                check.warn(
                    at.mark,
                    format!("no folder of PATH has the program {}", shown(binary)),
                );
            }
        }
        Err(message) => check.tell(at, format!("{}: {message}", shown(binary))),
    }
}

/// Checks the additional permissions of a sandbox; paths become absolute.
pub(super) fn sandbox(check: &mut Check<'_>, spec: &mut SandboxSpec, at: At<'_>) {
    let SandboxSpec {
        read,
        write,
        network,
        danger_without_any,
    } = spec;
    let is_widened = !read.is_empty() || !write.is_empty() || *network;
    let message =
        "`danger_without_any` is a word that there is no sandbox: nothing else can be said of it";
    check.must(
        !(*danger_without_any && is_widened),
        at.key("danger_without_any"),
        message,
    );
    for (field, list) in [("read", read), ("write", write)] {
        for (n, path) in list.iter_mut().enumerate() {
            let at = at.key(field).item(n);
            match path::reached(&at.mark.source.folder, path) {
                Ok(real) => *path = real,
                Err(message) => check.tell(at, format!("{}: {message}", shown(path))),
            }
        }
    }
}

/// Checks the schema of the arguments, and their placeholders in `args`.
fn parameters(check: &mut Check<'_>, tool: &ProcessTool, at: At<'_>) {
    let properties = match &tool.parameters {
        None => Vec::new(),
        Some(schema) => {
            if let Err(message) = compiled(schema) {
                let at = blamed(schema, at.key("parameters"));
                return check.tell(
                    at,
                    message.unwrap_or_else(|| "this is no JSON Schema".to_owned()),
                );
            }
            if schema.get("type").and_then(Value::as_str) != Some("object") {
                return check.tell(
                    at.key("parameters"),
                    "the parameters of a tool are an object: `type: object`",
                );
            }
            let properties = schema.get("properties").and_then(Value::as_object);
            properties
                .into_iter()
                .flat_map(|it| it.keys().map(String::as_str))
                .collect()
        }
    };
    for (n, word) in tool.args.iter().enumerate() {
        for name in form::places(word).filter(|name| !properties.contains(name)) {
            let message = format!(
                "{} places an argument that `parameters` does not have: `{name}`",
                quoted(word)
            );
            check.tell_hint(
                at.key("args").item(n),
                message,
                near::hint(name, &properties),
            );
        }
    }
}

/// Checks that a schema is valid.
///
/// # Errors
/// The reason; `None` if it violates the meta-schema.
fn compiled(schema: &Value) -> Result<(), Option<String>> {
    let error = match Schema::compile(Arc::new(schema.clone())) {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    let message = error.message().lines().next().unwrap_or_default();
    Err((!message.contains("metaschema")).then(|| message.to_owned()))
}

/// Returns the innermost part of a schema that violates the meta-schema.
fn blamed<'a>(schema: &Value, at: At<'a>) -> At<'a> {
    let of_map = |key: &'static str| {
        let map = schema
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        map.map(move |(name, inner)| (inner, at.key(key).key(name)))
    };
    let of_list = |key: &'static str| {
        let list = schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        list.enumerate()
            .map(move |(n, inner)| (inner, at.key(key).item(n)))
    };
    let alone = |key: &'static str| schema.get(key).map(|inner| (inner, at.key(key)));
    let inner = ["properties", "$defs"].into_iter().flat_map(of_map);
    let inner = inner.chain(["anyOf", "oneOf", "allOf"].into_iter().flat_map(of_list));
    let mut inner = inner.chain(
        ["items", "additionalProperties", "not"]
            .into_iter()
            .filter_map(alone),
    );
    match inner.find(|(inner, _)| compiled(inner) == Err(None)) {
        Some((inner, at)) => blamed(inner, at),
        None => at,
    }
}
