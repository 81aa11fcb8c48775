//! Lists sessions and their forks.

use std::iter::once;

use adjutant::{
    agent::{
        JournalErrorKind, LogId, LogInfo, LogQuery, PageMark, Pause, Sessions, sessions::OpenRun,
    },
    tools::AskKind,
};
use serde_json::{Value, json};

use super::id;
use crate::{
    amount::grouped,
    args::{List, Named},
    exit::Exit,
    named, plain,
    problem::Problem,
    repository,
    screen::{tell, write, write_or_tell},
    store::Store,
    trouble, when,
};

/// The maximum number of characters of a question in a line.
const MAX_ASKED: usize = 60;
/// The headers of the columns.
const HEADS: [&str; 4] = ["NAME", "CHANGED (UTC)", "RECORDS", "ABOUT"];

/// Lists sessions on standard output, and prints how to get the next page.
pub(crate) async fn list(args: &List) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let query = LogQuery {
        agent: args.agent.as_deref().map(Into::into),
        label: args.label.as_deref().map(Into::into),
        limit: args.limit as usize,
        after: args.after.as_deref().map(mark).transpose()?,
        ..LogQuery::default()
    };
    let page = store
        .sessions()
        .list(&query)
        .await
        .map_err(|error| trouble::journal_problem(&error))?;
    let listed = look(&store.sessions(), page.logs).await;
    let text = if args.json {
        listed.iter().map(json).collect()
    } else {
        table(&listed)
    };
    if write_or_tell(&text, "there is no such session")?
        && let Some(next) = page.next
    {
        tell(&format!(
            "more: adjutant sessions list{}{} --after {}",
            options(args),
            store.option(),
            text_of(&next)
        ));
    }
    Ok(Exit::Finished)
}

/// A session, and its unfinished run.
pub(crate) struct Listed {
    info: LogInfo,
    /// `None` if its log cannot be read.
    open: Option<Option<OpenRun>>,
}

/// Reads the state of each of these sessions.
pub(crate) async fn look(sessions: &Sessions, logs: Vec<LogInfo>) -> Vec<Listed> {
    let mut listed = Vec::with_capacity(logs.len());
    for info in logs {
        match sessions.open_run(&info).await {
            Ok(open) => listed.push(Listed {
                info,
                open: Some(open),
            }),
            // It was deleted in the meantime.
            Err(error) if error.kind == JournalErrorKind::Missing => {}
            Err(_) => listed.push(Listed { info, open: None }),
        }
    }
    listed
}

/// The options that the next page needs too.
fn options(args: &List) -> String {
    let mut options = String::new();
    for (name, value) in [("agent", &args.agent), ("label", &args.label)] {
        options += &value
            .as_ref()
            .map(|value| format!(" --{name} {}", plain::word(value)))
            .unwrap_or_default();
    }
    if args.limit != 50 {
        options += &format!(" --limit {}", args.limit);
    }
    if args.json {
        options + " --json"
    } else {
        options
    }
}

/// Formats the cursor of a page as text that is safe in a shell and a terminal; `%` and two digits encode a byte.
fn text_of(mark: &PageMark) -> String {
    let mut text = format!("{}:", mark.updated_ms);
    for byte in mark.log.0.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
                text.push(char::from(byte))
            }
            _ => text += &format!("%{byte:02x}"),
        }
    }
    text
}

fn mark(text: &str) -> Result<PageMark, Problem> {
    let parts = text
        .split_once(':')
        .and_then(|(ms, log)| Some((ms.parse().ok()?, decoded(log)?)));
    match parts {
        Some((updated_ms, log)) if !log.is_empty() => Ok(PageMark {
            updated_ms,
            log: LogId::from(log),
        }),
        _ => {
            let problem =
                Problem::new(Exit::Usage, format!("no page ended with this mark: {text}"));
            Err(problem.hint("each page ends with the command of the next one"))
        }
    }
}

/// Decodes such a text.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        bytes.push(match (first, behind) {
            (b'%', [_, _, behind @ ..]) => {
                let digits = std::str::from_utf8(&rest[..2]).ok()?;
                rest = behind;
                u8::from_str_radix(digits, 16).ok()?
            }
            _ => *first,
        });
    }
    String::from_utf8(bytes).ok()
}

fn json(Listed { info, open }: &Listed) -> String {
    let parent = info
        .about
        .parent
        .as_ref()
        .map(|(log, at)| json!({"name": log, "at": at}));
    let mut value = json!({
        "name": info.log, "title": info.about.title, "agent": info.about.agent, "labels": info.about.labels,
        "created_ms": info.created_ms, "updated_ms": info.updated_ms, "records": info.head, "bytes": info.bytes,
        "owned": info.is_owned,
        "run": match open {
            None => "unreadable",
            Some(None) => "none",
            Some(Some(open)) if open.pauses.is_empty() => "open",
            Some(Some(_)) => "waits",
        },
    });
    if let Some(Some(open)) = open.as_ref().filter(|_| value["run"] == "waits") {
        value["waits"] = open.pauses.iter().map(|pause| json_of(pause)).collect();
    }
    if let Some(parent) = parent {
        value["parent"] = parent;
    }
    plain::json_line(value)
}

/// Format: part of the object of a session.
fn json_of(pause: &Pause) -> Value {
    let tool = pause.call.as_ref().map(|call| call.name.as_str());
    json!({ "pause": pause.id, "agent": pause.agent, "kind": pause.ask.kind, "tool": tool, "prompt": pause.ask.prompt })
}

/// The sessions as a table with headers; empty without any.
pub(crate) fn table(listed: &[Listed]) -> String {
    if listed.is_empty() {
        return String::new();
    }
    let row = |it: &Listed| {
        let info = &it.info;
        [
            plain::line(&info.log.0),
            when::minute(info.updated_ms),
            grouped(info.head.0),
            about(it),
        ]
    };
    let rows: Vec<[String; 4]> = once(HEADS.map(str::to_owned))
        .chain(listed.iter().map(row))
        .collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let (name, records) = (width(0), width(2));
    let line = |row: &[String; 4]| {
        let line = format!(
            "{:name$}  {:16}  {:>records$}  {}",
            row[0], row[1], row[2], row[3]
        );
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// Describes a session in one line.
fn about(Listed { info, open }: &Listed) -> String {
    let mut parts: Vec<String> = Vec::new();
    if info.is_owned {
        parts.push("at work".to_owned());
    }
    match open {
        None => parts.push("its records cannot be read".to_owned()),
        Some(None) => {}
        Some(Some(open)) => match open.pauses.as_slice() {
            [] if info.is_owned => {}
            [] => parts.push("left in the middle of a run".to_owned()),
            [pause] => parts.push(waits(pause)),
            [pause, others @ ..] => {
                parts.push(format!("{} and {} more", waits(pause), others.len()))
            }
        },
    }
    parts.extend(info.about.title.as_ref().map(|title| format!("{title:?}")));
    parts.extend(
        info.about
            .parent
            .as_ref()
            .map(|(parent, at)| format!("fork of {parent} at {at}")),
    );
    let labels = info.about.labels.iter();
    let shown = labels.filter(|label| !repository::is_label(label));
    parts.extend(shown.map(|label| label.to_string()));
    plain::line(&parts.join(", "))
}

/// Formats the reason of a pause in a few words.
fn waits(pause: &Pause) -> String {
    let tool = pause.call.as_ref().map_or("", |call| call.name.as_str());
    let prompt = &pause.ask.prompt;
    let end = prompt
        .char_indices()
        .nth(MAX_ASKED)
        .map_or(prompt.len(), |(at, _)| at);
    let asked = format!(
        "{:?}{}",
        &prompt[..end],
        if end < prompt.len() { "…" } else { "" }
    );
    match pause.ask.kind {
        AskKind::Approval => format!("waits for a word on {tool}"),
        AskKind::External => format!("waits for the result of {tool}"),
        _ => format!("waits for an answer to {asked}"),
    }
}

/// Prints the original and all forks of a session.
pub(crate) async fn tree(args: &Named) -> Result<Exit, Problem> {
    let store = Store::find(&args.at).await?;
    let sessions = store.sessions();
    named::find(&sessions, &args.name).await?;
    let tree = sessions
        .tree(&id(&args.name))
        .await
        .map_err(|error| trouble::journal_problem(&error))?;
    let mut text = tree
        .missing
        .map(|log| format!("{} (deleted)\n", plain::line(&log.0)))
        .unwrap_or_default();
    let above = tree.ancestors.len() + usize::from(!text.is_empty());
    let first = usize::from(!text.is_empty());
    let ancestors = tree
        .ancestors
        .iter()
        .zip(first..)
        .map(|(info, depth)| (depth, info, ""));
    let branches = tree.branches.iter().map(|branch| {
        (
            above + branch.depth,
            &branch.info,
            if *branch.info.log.0 == *args.name {
                "  ← this one"
            } else {
                ""
            },
        )
    });
    for (depth, info, this) in ancestors.chain(branches) {
        let at = info
            .about
            .parent
            .as_ref()
            .map(|(_, at)| format!("  at {at}"))
            .unwrap_or_default();
        let records = grouped(info.head.0);
        text += &format!(
            "{}{}{at}  {records} records{this}\n",
            "  ".repeat(depth),
            plain::line(&info.log.0)
        );
    }
    if tree.is_cut {
        text += "…\n";
    }
    write(&text)?;
    Ok(Exit::Finished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_read_back_when_a_name_is_any_text() {
        for name in ["a:b", "100%", "é\n\u{1b}[31m' $x"] {
            let it = PageMark {
                updated_ms: 12,
                log: LogId::from(name),
            };
            assert_eq!(mark(&text_of(&it)), Ok(it));
        }
        for wrong in ["", "12", "12:", "x:a"] {
            assert!(mark(wrong).is_err(), "{wrong}");
        }
    }
}
