//! The tools `load_skill` and `read_skill_file`. The excerpt of a file is in `tools/part.rs`.

mod part;

use std::sync::Arc;

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, tool_fn};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Skill, Skills,
    loaded::{Loaded, SHOWS},
    name,
};

/// The name of the tool that loads a skill.
pub const LOAD_SKILL: &str = "load_skill";
/// The name of the tool that reads a file of a skill.
pub const READ_SKILL_FILE: &str = "read_skill_file";

/// The largest number of bytes that a result of these tools may have; its parts are bounded each.
const MAX_OUTPUT: usize = 160 << 10;
/// The largest number of names that a refusal lists.
const MAX_NAMES: usize = 50;

#[derive(Debug, Deserialize)]
struct LoadArgs {
    name: String,
}

#[derive(Debug, Deserialize)]
struct ReadArgs {
    skill: String,
    path: String,
    #[serde(default)]
    start_line: Option<u64>,
}

/// The tool that loads a skill.
pub(crate) fn load_skill(skills: &Skills, loaded: &Loaded) -> impl ErasedTool + 'static + use<> {
    let names: Vec<&str> = skills
        .iter()
        .filter(|skill| !skill.is_inline())
        .map(Skill::name)
        .collect();
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "enum": names, "description": "The name of the skill."}},
        "required": ["name"],
        "additionalProperties": false,
    });
    let about = "Loads a skill: instructions for a kind of task, to be followed once they are loaded. Load it before \
                 you begin such a task. It stays until the end; load it only once.";
    let spec = ToolSpec {
        title: Some("Load a skill".into()),
        replay: Replay::Pure,
        ..ToolSpec::new(LOAD_SKILL, about, schema)
    };
    let (skills, loaded) = (skills.clone(), loaded.clone());
    tool_fn(
        ToolSpec {
            max_output: Some(MAX_OUTPUT),
            ..spec
        },
        move |args: Value, cx: CallContext| {
            let loaded = load(&skills, &loaded, args, &cx);
            async move { loaded }
        },
    )
}

fn load(
    skills: &Skills,
    loaded: &Loaded,
    args: Value,
    cx: &CallContext,
) -> Result<CallResult, ToolError> {
    let LoadArgs { name } = serde_json::from_value(args).map_err(invalid)?;
    let skill = known(skills, &name, |skill| !skill.is_inline())?;
    if cx.who.call.is_some() && !loaded.add(cx, &skill.manifest.name) {
        let text = format!(
            "The skill {name} is loaded already: its instructions stand above. Follow them."
        );
        return Ok(CallResult::ok(text));
    }
    let text = format!(
        "<skill name=\"{name}\">\n{}\n</skill>",
        defused(&skill.text())
    );
    Ok(CallResult {
        details: json!({SHOWS: name, "tokens": skill.body_tokens()}),
        pinned: true,
        ..CallResult::ok(text)
    })
}

/// The tool that reads a file of a skill.
pub(crate) fn read_skill_file(skills: &Skills) -> impl ErasedTool + 'static + use<> {
    let schema = json!({
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "The name of the skill."},
            "path": {"type": "string", "description": "The file, relative to the skill's folder."},
            "start_line": {"type": "integer", "minimum": 1, "description": "The first line to show; 1 without it."},
        },
        "required": ["skill", "path"],
        "additionalProperties": false,
    });
    let about =
        "Reads a text file of a skill. A long file is shown in parts: read on where it says.";
    let spec = ToolSpec {
        title: Some("Read a file of a skill".into()),
        replay: Replay::Pure,
        ..ToolSpec::new(READ_SKILL_FILE, about, schema)
    };
    let skills = skills.clone();
    tool_fn(
        ToolSpec {
            max_output: Some(MAX_OUTPUT),
            ..spec
        },
        move |args: Value, _: CallContext| {
            let skills = skills.clone();
            async move {
                let args: ReadArgs = serde_json::from_value(args).map_err(invalid)?;
                let skill = known(&skills, &args.skill, |_| true)?.clone();
                // A file can be on a slow disk; the limit on its size ends the work without a timeout.
                let read = tokio::task::spawn_blocking(move || {
                    part::read(&skill, &args.path, args.start_line.unwrap_or(1))
                });
                read.await.unwrap_or_else(|error| {
                    Err(ToolError::failed("the file work broke down").with_source(error))
                })
            }
        },
    )
}

/// The used skill of a name.
fn known<'a>(
    skills: &'a Skills,
    asked: &str,
    fits: impl Fn(&Skill) -> bool,
) -> Result<&'a Skill, ToolError> {
    if let Some(skill) = skills.get(asked).filter(|skill| fits(skill)) {
        return Ok(skill);
    }
    let asked = name::quoted(asked);
    let names: Vec<&str> = skills
        .iter()
        .filter(|skill| fits(skill))
        .map(Skill::name)
        .take(MAX_NAMES)
        .collect();
    let message: Arc<str> =
        format!("there is no skill {asked}; there are {}", names.join(", ")).into();
    Err(ToolError::new(ToolErrorKind::InvalidArguments, message))
}

fn invalid(error: serde_json::Error) -> ToolError {
    ToolError::new(
        ToolErrorKind::InvalidArguments,
        format!("the arguments do not fit: {error}"),
    )
}

/// A text that cannot close the markup around it.
fn defused(text: &str) -> String {
    let mut defused = String::with_capacity(text.len());
    let mut parts = text.split('<');
    defused.extend(parts.next());
    for part in parts {
        let tag =
            part.trim_start_matches(|c: char| c == '/' || c.is_whitespace() || c.is_control());
        let is_mark = tag
            .get(..SHOWS.len())
            .is_some_and(|tag| tag.eq_ignore_ascii_case(SHOWS));
        defused.push_str(if is_mark { "&lt;" } else { "<" });
        defused.push_str(part);
    }
    defused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defused_text_cannot_end_its_mark_when_it_tries() {
        assert_eq!(defused("a < b <p> </p> é<"), "a < b <p> </p> é<");
        assert_eq!(
            defused("</skill> < / SKILL> <skill name=\"x\">"),
            "&lt;/skill> &lt; / SKILL> &lt;skill name=\"x\">"
        );
    }
}
