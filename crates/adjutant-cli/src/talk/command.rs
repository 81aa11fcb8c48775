//! The commands of a conversation: lines that begin with a slash.

use std::{collections::BTreeMap, path::PathBuf};

/// The commands with their descriptions.
pub(crate) const NAMES: [(&str, &str); 11] = [
    ("/help", "shows this"),
    (
        "/undo",
        "puts back what the agent changed in files since your last prompt; once more, since the one before it",
    ),
    (
        "/fork",
        "goes on in a copy of the session, of a name if one is said; --files DIR copies the files there too",
    ),
    (
        "/model",
        "shows the model, or goes on with another one: /model provider/name",
    ),
    (
        "/mode",
        "shows what is done without asking, or sets it: plan, ask, edits, all",
    ),
    (
        "/rules",
        "shows the rules that hold, and what the sandbox holds",
    ),
    (
        "/mcp",
        "shows the servers, and their prompts: /SERVER:PROMPT NAME=VALUE… says one",
    ),
    ("/cost", "shows what the conversation took so far"),
    (
        "/compact",
        "folds what was said into a summary before the next request",
    ),
    ("/sessions", "lists the sessions of this directory"),
    ("/quit", "leaves, like Ctrl-D; `adjutant -c` goes on"),
];

/// The text below the commands in the help.
const KEYS: &str = "\
While it works, what you type is read with its next request; Esc or Ctrl-C interrupts it.
@path of an image (png, jpg, webp, gif) sends the image. Alt-Enter begins another line.
What is asked is answered with y(es), n(o) and a reason, e(dit) or a(lways).";

/// A command of a conversation with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Undo,
    Fork {
        name: String,
        files: Option<PathBuf>,
    },
    Model(String),
    Mode(String),
    Rules,
    Mcp,
    Prompt {
        server: String,
        prompt: String,
        arguments: BTreeMap<String, String>,
    },
    Cost,
    Compact,
    Sessions,
}

impl Command {
    /// Parses a line; `None` if it is a prompt.
    ///
    /// # Errors
    /// The error, if it looks like a command but is invalid.
    pub(crate) fn read(line: &str) -> Option<Result<Self, String>> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        // A path begins with a slash too.
        if !name.starts_with('/') || name.get(1..).is_some_and(|rest| rest.contains(['/', '.'])) {
            return None;
        }
        let rest = rest.trim();
        let bare = |command: Self| {
            if rest.is_empty() {
                Ok(command)
            } else {
                Err(format!("{name} takes nothing: {rest}"))
            }
        };
        Some(match name {
            "/help" => bare(Self::Help),
            "/undo" => bare(Self::Undo),
            "/fork" => fork(rest),
            "/model" => Ok(Self::Model(rest.to_owned())),
            "/mode" => Ok(Self::Mode(rest.to_owned())),
            "/rules" => bare(Self::Rules),
            "/mcp" => bare(Self::Mcp),
            "/cost" => bare(Self::Cost),
            "/compact" => bare(Self::Compact),
            "/sessions" => bare(Self::Sessions),
            _ => match name.get(1..).and_then(|name| name.split_once(':')) {
                Some((server, prompt)) if !server.is_empty() && !prompt.is_empty() => {
                    arguments(rest).map(|arguments| Self::Prompt {
                        server: server.to_owned(),
                        prompt: prompt.to_owned(),
                        arguments,
                    })
                }
                _ => Err(format!("there is no command {name}; /help shows them")),
            },
        })
    }
}

/// Reads the arguments of a prompt: `name=value`, a value with blanks in double quotes.
fn arguments(rest: &str) -> Result<BTreeMap<String, String>, String> {
    let (mut arguments, mut rest) = (BTreeMap::new(), rest.trim());
    while !rest.is_empty() {
        let wrong = || "the arguments of a prompt are as NAME=VALUE or NAME=\"A VALUE\"".to_owned();
        let (name, behind) = rest.split_once('=').ok_or_else(wrong)?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(wrong());
        }
        let (value, behind) = match behind.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or_else(wrong)?,
            None => behind
                .split_once(char::is_whitespace)
                .unwrap_or((behind, "")),
        };
        arguments.insert(name.to_owned(), value.to_owned());
        rest = behind.trim_start();
    }
    Ok(arguments)
}

/// Reads the arguments of `/fork`.
fn fork(rest: &str) -> Result<Command, String> {
    let (name, files) = match rest.split_once("--files") {
        Some((name, folder)) => (name.trim(), Some(folder.trim())),
        None => (rest, None),
    };
    if name.starts_with('-') || files == Some("") {
        return Err("say /fork [NAME] [--files DIR]".to_owned());
    }
    Ok(Command::Fork {
        name: name.to_owned(),
        files: files.map(PathBuf::from),
    })
}

/// True if the line ends the conversation.
pub(crate) fn is_end(line: &str) -> bool {
    matches!(line.trim(), "/quit" | "/exit")
}

/// The text of `/help`.
pub(crate) fn help() -> String {
    let commands: String = NAMES
        .iter()
        .map(|(name, what)| format!("{name:10} {what}\n"))
        .collect();
    commands + KEYS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_when_they_begin_with_a_name_behind_a_slash() {
        let none = || {
            Some(Err(
                "there is no command /modle; /help shows them".to_owned()
            ))
        };
        let cases = [
            ("what is /help", None),
            ("/usr/bin is full", None),
            ("/notes.md", None),
            (
                " /model  openai/gpt-5 ",
                Some(Ok(Command::Model("openai/gpt-5".into()))),
            ),
            ("/cost", Some(Ok(Command::Cost))),
            (
                "/docs:review path=a.rs why=\"it is odd\"",
                Some(Ok(Command::Prompt {
                    server: "docs".into(),
                    prompt: "review".into(),
                    arguments: [("path", "a.rs"), ("why", "it is odd")]
                        .map(|(a, b)| (a.to_owned(), b.to_owned()))
                        .into(),
                })),
            ),
            (
                "/docs:review a.rs",
                Some(Err(
                    "the arguments of a prompt are as NAME=VALUE or NAME=\"A VALUE\"".into(),
                )),
            ),
            ("/cost now", Some(Err("/cost takes nothing: now".into()))),
            ("/modle x", none()),
        ];
        for (line, expect) in cases {
            assert_eq!(Command::read(line), expect, "{line}");
        }
    }
}
