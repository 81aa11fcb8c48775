//! The possible agents for tasks: the tool `list_agents`, and the section of the prompt with the same content.

use std::sync::Arc;

use adjutant_agent::sections::{Section, SectionKind, section_fn};
use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};

use crate::{Registry, registry::Profile, text::cut_chars};

/// The largest number of listed agents.
const MAX_LISTED: usize = 200;
/// The largest number of characters of a description in the list.
const MAX_DESCRIPTION_CHARS: usize = 500;
/// The largest number of bytes of the section's lines.
const MAX_SECTION_BYTES: usize = 60_000;

/// The tool `list_agents`.
pub(super) fn tool(registry: &Registry) -> impl ErasedTool + 'static {
    let about = "Lists the agents that tasks can be delegated to: their names, what they are for, what they can do.";
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let registry = registry.clone();
    tool_fn(
        ToolSpec {
            replay: Replay::Pure,
            ..ToolSpec::new("list_agents", about, schema)
        },
        move |_: Value, cx: CallContext| {
            let others = others(&registry, &cx.who.config_name);
            async move { Ok(agent_list_result(&others)) }
        },
    )
}

/// The section of the prompt that lists them.
pub(super) fn section(registry: &Registry) -> impl Section + 'static {
    let registry = registry.clone();
    section_fn(SectionKind::AvailableAgents, move |cx| {
        let others = others(&registry, &cx.who.config_name);
        async move { Ok(lines(&others)) }
    })
}

/// True if two names belong to the same entry, so that an agent cannot delegate to itself.
pub(super) fn is_self(config: &str, other: &str) -> bool {
    config.trim().to_lowercase() == other.trim().to_lowercase()
}

/// All entries but one's own.
fn others(registry: &Registry, config: &str) -> Vec<Arc<Profile>> {
    registry
        .list()
        .into_iter()
        .filter(|profile| !is_self(config, &profile.name))
        .collect()
}

fn agent_list_result(others: &[Arc<Profile>]) -> CallResult {
    let shown = |profile: &Arc<Profile>| {
        let description = cut_chars(&profile.description, MAX_DESCRIPTION_CHARS).into();
        json!(Profile {
            description,
            ..Profile::clone(profile)
        })
    };
    let agents: Value = others.iter().take(MAX_LISTED).map(shown).collect();
    let more = match others.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!("\n{more} more are not listed"),
    };
    let text = format!("{agents}{more}");
    CallResult {
        details: agents,
        ..CallResult::ok(text)
    }
}

fn lines(others: &[Arc<Profile>]) -> Option<String> {
    let mut text = String::new();
    for (at, profile) in others.iter().enumerate() {
        let line = line(profile);
        if text.len() + line.len() > MAX_SECTION_BYTES {
            text.push_str(&format!(
                "\n- and {} more; `list_agents` shows them",
                others.len() - at
            ));
            break;
        }
        if at > 0 {
            text.push('\n');
        }
        text.push_str(&line);
    }
    (!text.is_empty()).then_some(text)
}

fn line(profile: &Profile) -> String {
    let mut line = format!("- {}", profile.name);
    if !profile.description.trim().is_empty() {
        let description = cut_chars(&profile.description, MAX_DESCRIPTION_CHARS);
        line = format!(
            "{line}: {}",
            description.split_whitespace().collect::<Vec<_>>().join(" ")
        );
    }
    if !profile.skills.is_empty() {
        line = format!("{line} [skills: {}]", profile.skills.join(", "));
    }
    if !profile.estimated_cost.trim().is_empty() {
        line = format!("{line} [cost: {}]", profile.estimated_cost);
    }
    if let Some(most) = profile.max_concurrency {
        line = format!("{line} [at a time: {most}]");
    }
    line
}
