//! The list of sessions, and which of them was forked from which.

use adjutant::agent::{LogId, LogInfo, LogQuery, PageMark};
use serde_json::json;

use super::id;
use crate::{
    amount::grouped,
    args::{List, Named},
    exit::Exit,
    named, plain,
    problem::Problem,
    screen::{tell, write},
    store::Store,
    trouble, when,
};

/// The heads of the columns.
const HEADS: [&str; 4] = ["NAME", "CHANGED (UTC)", "RECORDS", "ABOUT"];

/// Lists sessions on standard output, and tells how to go on.
pub(crate) async fn list(args: &List) -> Result<Exit, Problem> {
    let store = Store::open(&args.at).await?;
    let query = LogQuery {
        agent: args.agent.as_deref().map(Into::into),
        label: args.label.as_deref().map(Into::into),
        limit: args.limit as usize,
        after: args.after.as_deref().map(mark).transpose()?,
        ..LogQuery::default()
    };
    let page = store.sessions().list(&query).await.map_err(|error| trouble::of_journal(&error))?;
    let text = if args.json { page.logs.iter().map(json).collect() } else { table(&page.logs) };
    if page.logs.is_empty() {
        tell("there is no such session");
    }
    if write(&text)?
        && let Some(next) = page.next
    {
        tell(&format!("more: adjutant sessions list{}{} --after {}", options(args), store.option(), text_of(&next)));
    }
    Ok(Exit::Finished)
}

/// The options that the next page is asked for with too.
fn options(args: &List) -> String {
    let mut options = String::new();
    for (name, value) in [("agent", &args.agent), ("label", &args.label)] {
        options += &value.as_ref().map(|value| format!(" --{name} {}", plain::word(value))).unwrap_or_default();
    }
    if args.limit != 50 {
        options += &format!(" --limit {}", args.limit);
    }
    if args.json { options + " --json" } else { options }
}

/// The mark of a page, as text that no shell and no terminal reads otherwise; `%` and two digits are a byte.
fn text_of(mark: &PageMark) -> String {
    let mut text = format!("{}:", mark.updated_ms);
    for byte in mark.log.0.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => text.push(char::from(byte)),
            _ => text += &format!("%{byte:02x}"),
        }
    }
    text
}

fn mark(text: &str) -> Result<PageMark, Problem> {
    let parts = text.split_once(':').and_then(|(ms, log)| Some((ms.parse().ok()?, decoded(log)?)));
    match parts {
        Some((updated_ms, log)) if !log.is_empty() => Ok(PageMark { updated_ms, log: LogId::from(log) }),
        _ => {
            let problem = Problem::new(Exit::Usage, format!("no page ended with this mark: {text}"));
            Err(problem.hint("a page tells the command of the next one"))
        }
    }
}

/// The text whose bytes are written so.
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

fn json(info: &LogInfo) -> String {
    let parent = info.about.parent.as_ref().map(|(log, at)| json!({"name": log, "at": at}));
    let mut value = json!({
        "name": info.log, "title": info.about.title, "agent": info.about.agent, "labels": info.about.labels,
        "created_ms": info.created_ms, "updated_ms": info.updated_ms, "records": info.head, "bytes": info.bytes,
        "owned": info.is_owned,
    });
    if let Some(parent) = parent {
        value["parent"] = parent;
    }
    plain::json_line(value)
}

/// The sessions as a table with heads; empty if there are none.
pub(crate) fn table(logs: &[LogInfo]) -> String {
    if logs.is_empty() {
        return String::new();
    }
    let row =
        |info: &LogInfo| [plain::line(&info.log.0), when::minute(info.updated_ms), grouped(info.head.0), about(info)];
    let rows: Vec<[String; 4]> = [HEADS.map(str::to_owned)].into_iter().chain(logs.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (name, records) = (width(0), width(2));
    let line = |row: &[String; 4]| {
        let line = format!("{:name$}  {:16}  {:>records$}  {}", row[0], row[1], row[2], row[3]);
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// Describes a session in one line.
fn about(info: &LogInfo) -> String {
    let mut parts: Vec<String> = Vec::new();
    if info.is_owned {
        parts.push("at work".to_owned());
    }
    parts.extend(info.about.title.as_ref().map(|title| format!("{title:?}")));
    parts.extend(info.about.parent.as_ref().map(|(parent, at)| format!("fork of {parent} at {at}")));
    parts.extend(info.about.labels.iter().map(|label| label.to_string()));
    plain::line(&parts.join(", "))
}

/// Shows what a session was forked from, and all that was forked from it.
pub(crate) async fn tree(args: &Named) -> Result<Exit, Problem> {
    let store = Store::open(&args.at).await?;
    let sessions = store.sessions();
    named::find(&sessions, &args.name).await?;
    let tree = sessions.tree(&id(&args.name)).await.map_err(|error| trouble::of_journal(&error))?;
    let mut text = tree.missing.map(|log| format!("{} (deleted)\n", plain::line(&log.0))).unwrap_or_default();
    let above = tree.ancestors.len() + usize::from(!text.is_empty());
    let first = usize::from(!text.is_empty());
    let ancestors = tree.ancestors.iter().zip(first..).map(|(info, depth)| (depth, info, ""));
    let branches = tree.branches.iter().map(|branch| {
        (above + branch.depth, &branch.info, if *branch.info.log.0 == *args.name { "  ← this one" } else { "" })
    });
    for (depth, info, this) in ancestors.chain(branches) {
        let at = info.about.parent.as_ref().map(|(_, at)| format!("  at {at}")).unwrap_or_default();
        let records = grouped(info.head.0);
        text += &format!("{}{}{at}  {records} records{this}\n", "  ".repeat(depth), plain::line(&info.log.0));
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
            let it = PageMark { updated_ms: 12, log: LogId::from(name) };
            assert_eq!(mark(&text_of(&it)), Ok(it));
        }
        for wrong in ["", "12", "12:", "x:a"] {
            assert!(mark(wrong).is_err(), "{wrong}");
        }
    }
}
