//! The part of a request before its messages: its options, the system prompt and the tools. Pure.

use std::sync::Arc;

use adjutant_llm::{
    Effort, Format, ModelInfo, Options, Request, Structured, ThinkingControl, ToolChoice, ToolDecl,
    Warning, WarningKind,
};
use serde_json::{Map, Value, json};

use super::{
    encode::Encoder,
    wire::{Choice, DROP_BLOCK, Thinking, Tool},
};
use crate::{
    host::Site,
    options::{self, Effective},
    segments::{Encode, member, write},
    strict,
    tool_names::wire_name,
};

/// Extra fields that would contradict the request.
const RESERVED: [&str; 5] = ["model", "messages", "stream", "system", "tools"];
/// The beginning of a body at Vertex. Source: "Claude on Vertex AI", platform.claude.com, 2026-11.
const VERTEX: &[u8] = br#"{"anthropic_version":"vertex-2023-10-16""#;
/// The field that holds the effort and the format; extra members of it are added to ours.
const CONFIG: &str = "output_config";
/// The minimum thinking budget that can be requested. Source: extended thinking guide, 2026-11.
const MIN_BUDGET: u64 = 1_024;
/// The smallest number of tokens for the answer in addition to thinking.
const MIN_ANSWER: u64 = 1_024;
/// The most randomness. Source: Messages API reference, 2026-11: 0.0 to 1.0.
const MAX_TEMPERATURE: f64 = 1.0;

/// The minimum `top_p` while a model thinks.
const MIN_TOP_P: f64 = 0.95;

/// The settings for thinking, and the limit of the reply that they need.
struct ThinkingPlan {
    thinking: Option<Thinking>,
    effort: Option<&'static str>,
    max_tokens: u64,
}

/// Writes everything up to the opening bracket of the messages. The mark is put at the end of the tools and of the system
/// prompt.
pub(super) fn head(
    wire: &Encoder,
    request: &Request,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Warning>,
) {
    let info = &*wire.info;
    let mark = wire.mark(&request.options);
    let options = options::effective(info, &request.options, warnings);
    let extra = options::extra(&request.options, &RESERVED, warnings);
    let own = |name: &str| !request.options.extra.contains_key(name);
    let mut plan = plan(info, &options, &request.options, warnings);
    if wire.asks_to_drop() && own("thinking") {
        plan.bind();
    }
    match wire.site {
        // The path names the model.
        Site::Vertex => out.extend_from_slice(VERTEX),
        Site::Own | Site::Bedrock => {
            out.extend_from_slice(b"{\"model\":");
            write(out, info.name());
        }
    }
    if own("max_tokens") {
        // The API demands the field, so a model cannot refuse it.
        member(out, "max_tokens", &plan.max_tokens);
    }
    member(out, "stream", &true);
    if let Some(temperature) =
        temperature(info, &options, &plan, warnings).filter(|_| own("temperature"))
    {
        member(out, "temperature", &temperature);
    }
    if let Some(part) = top_p(info, &options, &plan, warnings).filter(|_| own("top_p")) {
        member(out, "top_p", &part);
    }
    if options.seed.is_some() {
        warn_dropped(
            warnings,
            "seed was dropped: the Messages API has no such option".to_owned(),
        );
    }
    let stop = stop(&options, warnings);
    if !stop.is_empty() && own("stop_sequences") {
        member(out, "stop_sequences", &stop);
    }
    if let Some(thinking) = &plan.thinking {
        member(out, "thinking", thinking);
    }
    let config = config(info, &plan, &request.options, warnings);
    if !config.is_empty() {
        member(out, CONFIG, &config);
    }
    let has_tools = !request.tools.is_empty() || !request.options.server_tools.is_empty();
    if let Some(choice) =
        choice(info, &options, &plan, warnings).filter(|_| has_tools && own("tool_choice"))
    {
        member(out, "tool_choice", &choice);
    }
    let bound = with_binding(&request.options).filter(|_| wire.asks_to_drop());
    for (name, value) in extra
        .into_iter()
        .filter(|(name, value)| *name != CONFIG || !value.is_object())
    {
        let bound = bound.as_ref().filter(|_| *name == "thinking");
        member(out, name, bound.unwrap_or(value));
    }
    system(request, mark, out);
    tools(wire, request, mark, out);
    out.extend_from_slice(b",\"messages\":[");
}

/// Plans the thinking settings. An unset option is not sent.
///
/// Source: thinking and effort guides, 2026-11: `adaptive` with a level since Claude 4.6, `enabled` with a budget
/// before; since Opus 4.7 the thinking is omitted unless a summary is requested. A loop of calls that another model
/// started contains no thinking of this one: adaptive models accept that; with a budget, the API turns thinking off
/// for that request ("graceful thinking degradation").
fn plan(
    info: &ModelInfo,
    options: &Effective<'_>,
    asked: &Options,
    warnings: &mut Vec<Warning>,
) -> ThinkingPlan {
    let given = asked.extra.get("max_tokens").and_then(Value::as_u64);
    let max_tokens = given
        .or(options.max_output_tokens)
        .unwrap_or(info.max_output_tokens);
    let plan = |thinking, effort| ThinkingPlan {
        thinking,
        effort,
        max_tokens,
    };
    let effort = match options.thinking {
        // The form of the vendor's own, chosen by the caller.
        Some(effort) if !asked.extra.contains_key("thinking") => effort,
        _ => return plan(None, None),
    };
    match (effort, info.thinking) {
        (Effort::Off, _) => plan(Some(Thinking::Disabled), None),
        (effort, ThinkingControl::Budget) => {
            let most = given.unwrap_or(info.max_output_tokens);
            budget(info, budget_of(effort), max_tokens, most, warnings)
        }
        (effort, _) => plan(
            Some(Thinking::Adaptive {
                display: Some("summarized"),
                block_binding: None,
            }),
            Some(level_of(effort)),
        ),
    }
}

/// Returns the caller's settings for thinking, with ours for blocks that no longer match; the caller's take
/// precedence.
fn with_binding(options: &Options) -> Option<Value> {
    let thinking = options.extra.get("thinking");
    let mut bound = thinking.filter(|it| it["type"] != "disabled")?.clone();
    let binding = bound.as_object_mut()?.entry("block_binding");
    binding.or_insert_with(|| json!(DROP_BLOCK));
    Some(bound)
}

/// Returns a budget that leaves room for an answer; the output limit grows by it up to the limit of the model.
fn budget(
    info: &ModelInfo,
    wanted: u64,
    limit: u64,
    most: u64,
    warnings: &mut Vec<Warning>,
) -> ThinkingPlan {
    let room = (wanted + MIN_ANSWER).min(most).max(limit);
    let budget_tokens = wanted.min(room.saturating_sub(MIN_ANSWER));
    if budget_tokens < MIN_BUDGET {
        let text = format!(
            "thinking was dropped: {} takes {MIN_BUDGET} tokens for it at least, of the {limit} that its reply may have",
            info.id
        );
        warn_dropped(warnings, text);
        return ThinkingPlan {
            thinking: None,
            effort: None,
            max_tokens: limit,
        };
    }
    if room > limit {
        let text = format!(
            "max_output_tokens was raised from {limit} to {room}: thinking takes up to {budget_tokens}"
        );
        warn_dropped(warnings, text);
    }
    ThinkingPlan {
        thinking: Some(Thinking::Enabled {
            budget_tokens,
            block_binding: None,
        }),
        effort: None,
        max_tokens: room,
    }
}

fn budget_of(effort: Effort) -> u64 {
    match effort {
        Effort::Off | Effort::Minimal => MIN_BUDGET,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Xhigh => 24_576,
        _ => 32_768,
    }
}

/// The name of a level. Source: "Effort", platform.claude.com, 2026-11: low, medium, high, xhigh, max.
fn level_of(effort: Effort) -> &'static str {
    match effort {
        Effort::Off | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Xhigh => "xhigh",
        _ => "max",
    }
}

/// Source: extended thinking guide, "feature compatibility", 2026-11: thinking takes no temperature.
fn temperature(
    info: &ModelInfo,
    options: &Effective<'_>,
    plan: &ThinkingPlan,
    warnings: &mut Vec<Warning>,
) -> Option<f64> {
    let temperature = options.temperature?;
    if plan.thinks() {
        warn_dropped(
            warnings,
            format!(
                "temperature was dropped: {} takes none while it thinks",
                info.id
            ),
        );
        return None;
    }
    if temperature > MAX_TEMPERATURE {
        let text = format!(
            "temperature was lowered from {temperature} to {MAX_TEMPERATURE}: {} takes no more",
            info.id
        );
        warn_dropped(warnings, text);
    }
    Some(temperature.min(MAX_TEMPERATURE))
}

/// Source: extended thinking guide, "feature compatibility", 2026-11: while it thinks, from 0.95.
fn top_p(
    info: &ModelInfo,
    options: &Effective<'_>,
    plan: &ThinkingPlan,
    warnings: &mut Vec<Warning>,
) -> Option<f64> {
    let part = options.top_p?;
    if plan.thinks() && part < MIN_TOP_P {
        warn_dropped(
            warnings,
            format!(
                "top_p was dropped: {} takes none below {MIN_TOP_P} while it thinks",
                info.id
            ),
        );
        return None;
    }
    Some(part)
}

/// The stop sequences that can be sent. Source: the error of the API, 2026-11: "each stop sequence must contain
/// non-whitespace".
fn stop<'a>(options: &Effective<'a>, warnings: &mut Vec<Warning>) -> Vec<&'a Arc<str>> {
    let (sent, blank): (Vec<_>, Vec<_>) = options.stop.iter().partition(|it| !it.trim().is_empty());
    for text in blank {
        warn_dropped(
            warnings,
            format!("stop sequence {text:?} was dropped: this wire takes none that is blank"),
        );
    }
    sent
}

/// Returns the tools that may or must be called; nothing if that is the API's default.
///
/// Source: thinking guide, "thinking with tool use", 2026-11: a call can be forced with adaptive thinking, not with a
/// budget. The info of a model records that it refuses forced calls.
fn choice<'a>(
    info: &ModelInfo,
    options: &Effective<'a>,
    plan: &ThinkingPlan,
    warnings: &mut Vec<Warning>,
) -> Option<Choice<'a>> {
    let manual = matches!(plan.thinking, Some(Thinking::Enabled { .. }));
    let (kind, name) = match options.tool_choice {
        ToolChoice::None => ("none", None),
        ToolChoice::Required | ToolChoice::Named(_) if manual => {
            let text = format!(
                "tool_choice was dropped: {} cannot be made to call while it thinks",
                info.id
            );
            warn_dropped(warnings, text);
            ("auto", None)
        }
        ToolChoice::Required => ("any", None),
        ToolChoice::Named(name) => ("tool", Some(wire_name(name.as_str()))),
        _ => ("auto", None),
    };
    let disable_parallel_tool_use = options.sequential_calls && kind != "none";
    (kind != "auto" || disable_parallel_tool_use).then_some(Choice {
        kind,
        name,
        disable_parallel_tool_use,
    })
}

/// The effort and the format, and what the caller adds to them.
fn config(
    info: &ModelInfo,
    plan: &ThinkingPlan,
    options: &Options,
    warnings: &mut Vec<Warning>,
) -> Map<String, Value> {
    let mut config = Map::new();
    config.extend(
        plan.effort
            .map(|effort| ("effort".to_owned(), effort.into())),
    );
    let format = options
        .format
        .as_ref()
        .and_then(|it| format(info, it, warnings));
    config.extend(format.map(|format| ("format".to_owned(), format)));
    if let Some(Value::Object(theirs)) = options.extra.get(CONFIG) {
        config.extend(theirs.clone());
    }
    config
}

/// Source: structured outputs guide, 2026-11: `output_config.format`, without a beta header.
fn format(info: &ModelInfo, format: &Format, warnings: &mut Vec<Warning>) -> Option<Value> {
    if info.structured != Structured::Native {
        warn_dropped(
            warnings,
            format!(
                "format was dropped: {} takes no schema for its text",
                info.id
            ),
        );
        return None;
    }
    let Some(schema) = strict::closed(&format.schema) else {
        warn_dropped(
            warnings,
            format!(
                "format was dropped: {} cannot be held to the schema {}",
                info.id, format.name
            ),
        );
        return None;
    };
    Some(json!({"type": "json_schema", "schema": schema}))
}

fn system(request: &Request, mark: Option<&[u8]>, out: &mut Vec<u8>) {
    if request.system.trim().is_empty() {
        return;
    }
    // The declared tools of the caller may hold marks of their own; four are allowed, two are the messages'.
    let Some(mark) = mark.filter(|_| marks_of(request) < 2) else {
        member(out, "system", &request.system);
        return;
    };
    out.extend_from_slice(b",\"system\":[{\"type\":\"text\",\"text\":");
    write(out, &request.system);
    out.extend_from_slice(mark);
    out.extend_from_slice(b"}]");
}

fn tools(wire: &Encoder, request: &Request, mark: Option<&[u8]>, out: &mut Vec<u8>) {
    let server_tools = &request.options.server_tools;
    // Messages define the tools that were added, or refer to them where they can hold no definitions: see
    // `Encoder::change_tools`.
    let defer_loading = wire.asks_to_drop();
    let added = match wire.site {
        Site::Own if defer_loading => &[],
        _ => &*request.added,
    };
    if request.tools.is_empty() && server_tools.is_empty() && added.is_empty() {
        return;
    }
    out.extend_from_slice(b",\"tools\":[");
    // First, because a tool that is loaded later takes no mark. Source: tool search guide, 2026-11.
    let is_new = |tool: &&ToolDecl| request.tools.iter().all(|known| known.name != tool.name);
    for tool in added.iter().filter(is_new) {
        let schema = strict::for_tool(&tool.schema);
        write(
            out,
            &Tool {
                defer_loading,
                ..Tool::new(tool, &schema)
            },
        );
        out.push(b',');
    }
    for tool in &*request.tools {
        write(out, &Tool::new(tool, &strict::for_tool(&tool.schema)));
        out.push(b',');
    }
    for tool in server_tools {
        write(out, tool);
        out.push(b',');
    }
    out.pop();
    let takes = |it: &Value| {
        it.get("type").is_some() && it.get("defer_loading") != Some(&Value::Bool(true))
    };
    let is_marked = match server_tools.last() {
        Some(last) => takes(last),
        None => !request.tools.is_empty(),
    };
    if let Some(mark) = mark.filter(|_| marks_of(request) == 0 && is_marked) {
        out.pop();
        out.extend_from_slice(mark);
        out.push(b'}');
    }
    out.push(b']');
}

/// Counts the marks that the caller has set at the tools that it declares.
fn marks_of(request: &Request) -> usize {
    request
        .options
        .server_tools
        .iter()
        .filter(|it| it.get("cache_control").is_some())
        .count()
}

fn warn_dropped(warnings: &mut Vec<Warning>, text: String) {
    warnings.push(Warning {
        kind: WarningKind::OptionDropped,
        message: text.into(),
    });
}

impl ThinkingPlan {
    /// Lets the API drop thinking that no longer matches the conversation before it. Models that check think
    /// adaptively by default, so an absent setting can be written explicitly.
    ///
    /// Source: "Fix a thinking block bound to a different conversation", platform.claude.com, 2026-11: the field is not
    /// valid with `disabled`.
    fn bind(&mut self) {
        let absent = Thinking::Adaptive {
            display: None,
            block_binding: None,
        };
        match self.thinking.get_or_insert(absent) {
            Thinking::Adaptive { block_binding, .. } | Thinking::Enabled { block_binding, .. } => {
                *block_binding = Some(DROP_BLOCK);
            }
            Thinking::Disabled => {}
        }
    }

    fn thinks(&self) -> bool {
        matches!(
            self.thinking,
            Some(Thinking::Adaptive { .. } | Thinking::Enabled { .. })
        )
    }
}
