//! The response as a whole, as the first and the last events of a stream carry it.

use adjutant_llm::{Effort, Options, ToolChoice, Usage};
use serde_json::{Value, json};

use crate::{encode::Stamp, wire::Asked};

/// The id of a response.
pub(super) fn id(stamp: &Stamp) -> String {
    format!("resp_{:048x}", stamp.number)
}

/// The response at its beginning.
pub(super) fn response(asked: &Asked, stamp: &Stamp) -> Value {
    let options = &asked.request.options;
    json!({
        "id": id(stamp),
        "object": "response",
        "created_at": stamp.now_ms / 1_000,
        "status": "in_progress",
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": if asked.request.system.is_empty() { Value::Null } else { (*asked.request.system).into() },
        "max_output_tokens": options.max_output_tokens,
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": !options.sequential_calls,
        "previous_response_id": null,
        "reasoning": {"effort": options.thinking.map(Effort::name), "summary": null},
        "service_tier": "auto",
        "store": false,
        "temperature": options.temperature.unwrap_or(1.0),
        "text": {"format": {"type": if options.format.is_some() { "json_schema" } else { "text" }}},
        "tool_choice": choice(options),
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": null,
        "metadata": {},
    })
}

/// Here the input contains what the cache served and stored, and the output the reasoning.
pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input(),
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

fn choice(options: &Options) -> Value {
    match &options.tool_choice {
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Named(name) => json!({"type": "function", "name": name}),
        _ => "auto".into(),
    }
}
