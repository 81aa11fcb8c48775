//! The part of a request before its contents: system prompt, tools and settings. Pure.

use adjutant_llm::{
    Cache, Effort, Format, ModelInfo, Options, Request, ThinkingControl, ToolChoice, ToolDecl,
    Warning, WarningKind,
};
use serde_json::{Map, Value, json};

use super::{
    encode::{generation, text},
    schema,
    wire::{Declaration, Instruction, Tool},
};
use crate::{
    options::{self, Effective},
    segments::{self, member},
    strict,
    tool_names::wire_name,
};

/// Extra fields that would contradict the request.
const RESERVED: [&str; 3] = ["contents", "systemInstruction", "tools"];
/// Extra fields that are objects made of options too.
const CONFIGS: [&str; 2] = ["toolConfig", "generationConfig"];
/// The largest number of stop sequences that a request may have. Source: `GenerationConfig` in the API reference of
/// v1beta, 2026-11.
const MAX_STOPS: usize = 5;
/// The first generation that accepts a schema for the text together with tools. Source: discussions of python-genai,
/// 2025-12.
const FORMAT_WITH_TOOLS: u32 = 3;

/// Writes the request up to the opening bracket of its contents.
pub(super) fn write(
    info: &ModelInfo,
    request: &Request,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Warning>,
) {
    let options = options::effective(info, &request.options, warnings);
    let extra = options::extra(&request.options, &RESERVED, warnings);
    let mut members = Vec::new();
    if !request.system.trim().is_empty() {
        member(
            &mut members,
            "systemInstruction",
            &Instruction {
                parts: [text(&request.system)],
            },
        );
    }
    let tools = tools(request);
    if !tools.is_empty() {
        member(&mut members, "tools", &tools);
    }
    let configs = [
        tool_config(&options, request, warnings),
        generation_config(info, &options, request, warnings),
    ];
    for (name, ours) in CONFIGS.into_iter().zip(configs) {
        let config = merge_settings(ours, request.options.extra.get(name));
        if config != json!({}) {
            member(&mut members, name, &config);
        }
    }
    for (name, value) in extra
        .into_iter()
        .filter(|(name, _)| !CONFIGS.contains(&name.as_str()))
    {
        member(&mut members, name, value);
    }
    out.push(b'{');
    // The first member is written without its comma.
    if let Some(members) = members.get(1..) {
        out.extend_from_slice(members);
        out.push(b',');
    }
    segments::write(out, "contents");
    out.extend_from_slice(b":[");
    warn_unsupported(&options, &request.options, warnings);
}

/// Merges our settings with the caller's; the caller's take precedence.
fn merge_settings(mut ours: Map<String, Value>, given: Option<&Value>) -> Value {
    match given {
        None => {}
        Some(Value::Object(given)) => ours.extend(given.clone()),
        Some(other) => return other.clone(),
    }
    Value::Object(ours)
}

fn tools(request: &Request) -> Vec<Tool<'_>> {
    let mut tools = Vec::with_capacity(1 + request.options.server_tools.len());
    if !request.tools.is_empty() {
        tools.push(Tool::Functions {
            function_declarations: request.tools.iter().map(declaration).collect(),
        });
    }
    tools.extend(request.options.server_tools.iter().map(Tool::Server));
    tools
}

/// Source: how the pi and goose projects use `parametersJsonSchema`, 2026-11: any JSON schema of an object, as it is.
fn declaration(tool: &ToolDecl) -> Declaration<'_> {
    let parameters_json_schema =
        schema::has_members(&tool.schema).then(|| strict::for_tool(&tool.schema));
    Declaration {
        name: wire_name(tool.name.as_str()),
        description: &tool.description,
        parameters_json_schema,
    }
}

fn tool_config(
    options: &Effective<'_>,
    request: &Request,
    warnings: &mut Vec<Warning>,
) -> Map<String, Value> {
    let mut config = Map::new();
    let calling = match options.tool_choice {
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Named(name) => {
            Some(json!({"mode": "ANY", "allowedFunctionNames": [wire_name(name.as_str())]}))
        }
        _ => None,
    };
    match calling {
        Some(calling) if !request.tools.is_empty() => {
            config.insert("functionCallingConfig".to_owned(), calling);
        }
        Some(_) if *options.tool_choice == ToolChoice::Required => {
            warn_dropped(
                warnings,
                "tool_choice was dropped: calls of tools that the provider runs cannot be demanded",
            );
        }
        _ => {}
    }
    // Without it, both kinds of tools in one request are refused. Source: that refusal, 2026-08.
    if !request.tools.is_empty() && !request.options.server_tools.is_empty() {
        config.insert("includeServerSideToolInvocations".to_owned(), json!(true));
    }
    config
}

fn generation_config(
    info: &ModelInfo,
    options: &Effective<'_>,
    request: &Request,
    warnings: &mut Vec<Warning>,
) -> Map<String, Value> {
    let mut config = Map::new();
    let mut set = |name: &str, value: Value| config.insert(name.to_owned(), value);
    if let Some(tokens) = options.max_output_tokens {
        set("maxOutputTokens", json!(tokens));
    }
    if let Some(temperature) = options.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(part) = options.top_p {
        set("topP", json!(part));
    }
    if let Some(seed) = options.seed {
        // It is a number of 32 bits there. Source: `GenerationConfig`, v1beta, 2026-11.
        set("seed", json!(seed % (1 << 31)));
    }
    if !options.stop.is_empty() {
        set(
            "stopSequences",
            json!(options.stop.iter().take(MAX_STOPS).collect::<Vec<_>>()),
        );
    }
    if let Some(format) = &request.options.format {
        let has_tools = !request.tools.is_empty() || !request.options.server_tools.is_empty();
        if has_tools && generation(info.name()) < FORMAT_WITH_TOOLS {
            warn_dropped(
                warnings,
                &format!(
                    "format was dropped: {} takes no schema beside tools",
                    info.id
                ),
            );
        } else {
            set("responseMimeType", json!("application/json"));
            set("responseJsonSchema", response_schema(format, warnings));
        }
    }
    if let Some(effort) = options.thinking {
        set("thinkingConfig", thinking(info, effort, warnings));
    }
    config
}

/// The schema of the text, named by its title.
fn response_schema(format: &Format, warnings: &mut Vec<Warning>) -> Value {
    let supported = schema::supported(&format.schema);
    if supported.lossy {
        warn_dropped(
            warnings,
            "the schema of the format was simplified: it holds rules that this wire does not know",
        );
    }
    let mut schema = supported.schema;
    if let Value::Object(members) = &mut schema
        && !members.contains_key("$ref")
    {
        members.entry("title").or_insert_with(|| json!(format.name));
    }
    schema
}

/// Returns the settings for thinking. A level and a budget exclude each other; thoughts are requested, if the model
/// has any.
///
/// Source: thinking guide, 2026-11.
fn thinking(info: &ModelInfo, effort: Effort, warnings: &mut Vec<Warning>) -> Value {
    match (info.thinking, effort) {
        (ThinkingControl::Budget, effort) => match budget(info.name(), effort) {
            0 => json!({"thinkingBudget": 0}),
            budget => json!({"includeThoughts": true, "thinkingBudget": budget}),
        },
        (_, Effort::Off) => {
            warn_dropped(
                warnings,
                "thinking was changed from off to minimal: there is no level below that",
            );
            json!({"thinkingLevel": "minimal"})
        }
        (_, effort) => {
            let level = match effort {
                Effort::Minimal => "minimal",
                Effort::Low => "low",
                Effort::Medium => "medium",
                Effort::Xhigh => "xhigh",
                _ => "high",
            };
            json!({"includeThoughts": true, "thinkingLevel": level})
        }
    }
}

/// The thinking budget: 128 to 32,768 for Pro, 512 to 24,576 for Flash-Lite, up to 24,576 for Flash. For the last
/// two, thinking can be turned off.
///
/// Source: thinking guide, "thinking budgets", 2026-11; the intermediate steps are from the pi project, 2026-08.
fn budget(name: &str, effort: Effort) -> u32 {
    let is_pro = name.contains("pro");
    match effort {
        Effort::Off if !is_pro => 0,
        Effort::Off | Effort::Minimal if is_pro => 128,
        Effort::Off | Effort::Minimal => 512,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        _ if is_pro => 32_768,
        _ => 24_576,
    }
}

/// Warns of options that this wire does not support.
fn warn_unsupported(sent: &Effective<'_>, options: &Options, warnings: &mut Vec<Warning>) {
    if sent.sequential_calls {
        warn_dropped(
            warnings,
            "sequential_calls was dropped: this wire has no such option",
        );
    }
    if options.cache == Cache::Long {
        warn_dropped(
            warnings,
            "cache was changed from long to short: this wire caches by itself, for minutes",
        );
    }
    if sent.stop.len() > MAX_STOPS {
        let (all, most) = (sent.stop.len(), MAX_STOPS);
        warn_dropped(
            warnings,
            &format!("stop was shortened from {all} texts to {most}: this wire takes no more"),
        );
    }
}

fn warn_dropped(warnings: &mut Vec<Warning>, text: &str) {
    warnings.push(Warning {
        kind: WarningKind::OptionDropped,
        message: text.into(),
    });
}
