//! A reflection as a markdown file: a front part with agent, task and counters, and sections that people can read.

use std::{fmt::Write, sync::Arc};

use super::{Reflection, ReflectionId, Tally};
use crate::text;

/// The largest number of bytes of the task in the front part.
const MAX_TITLE_BYTES: usize = 200;
/// The line around the front part.
const FENCE: &str = "---";
/// The prefix of the first line of a section.
const HEADING: &str = "## ";
const TASK: &str = "Task";
const SUMMARY: &str = "Summary";
const CAVEATS: &str = "Caveats";
const FILES: &str = "Files Modified";

/// The text of the file. Lines that look like a heading are escaped by a backslash.
pub(super) fn write(it: &Reflection) -> String {
    let Tally {
        helped,
        useless,
        unknown,
    } = it.tally;
    let state = if it.is_dropped() { "dropped" } else { "active" };
    let title = text::line(&it.task, MAX_TITLE_BYTES);
    let mut file = format!(
        "{FENCE}\nagent: {}\ntask: {}\ncreated_ms: {}\nhelped: {helped}\nuseless: {useless}\nunknown: {unknown}\n\
         state: {state}\n{FENCE}\n",
        quote_text(&it.agent),
        quote_text(&title),
        it.created_ms,
    );
    let mut section = |title: &str, body: &str| {
        let _ = write!(file, "\n{HEADING}{title}\n\n{}\n", escape_headings(body));
    };
    section(TASK, &it.task);
    section(SUMMARY, &it.summary);
    section(CAVEATS, it.caveats.as_deref().unwrap_or_default());
    let files: Vec<String> = it
        .files_modified
        .iter()
        .map(|name| format!("- {}", text::line(name, name.len())))
        .collect();
    section(FILES, &files.join("\n"));
    file
}

/// The reflection in a file; `None` if it is invalid.
pub(super) fn read(id: ReflectionId, file: &str) -> Option<Reflection> {
    // People edit these files, on any system.
    let file = file
        .strip_prefix('\u{feff}')
        .unwrap_or(file)
        .replace("\r\n", "\n");
    let rest = file.strip_prefix(FENCE)?.strip_prefix('\n')?;
    let (front, body) = rest.split_once("\n---\n")?;
    let field = |name: &str| {
        let mut fields = front.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim())
    };
    let counter = |name: &str| field(name).map_or(Some(0), |value| value.parse().ok());
    let mut read = Reflection {
        id,
        agent: unquote_text(field("agent")?).into(),
        task: Arc::default(),
        summary: Arc::default(),
        caveats: None,
        files_modified: Vec::new(),
        created_ms: field("created_ms")?.parse().ok()?,
        tally: Tally {
            helped: counter("helped")?,
            useless: counter("useless")?,
            unknown: counter("unknown")?,
        },
    };
    for (title, body) in sections(body) {
        match title {
            TASK => read.task = body.into(),
            SUMMARY => read.summary = body.into(),
            CAVEATS => read.caveats = Some(body.into()).filter(|body: &Arc<str>| !body.is_empty()),
            FILES => {
                let names = body.lines().filter_map(|line| line.strip_prefix("- "));
                read.files_modified = names.map(Arc::from).collect();
            }
            // Notes of people.
            _ => {}
        }
    }
    (!read.task.is_empty()).then_some(read)
}

/// A text as one line that is JSON, and YAML too.
fn quote_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn unquote_text(value: &str) -> String {
    serde_json::from_str(value).unwrap_or_else(|_| value.to_owned())
}

fn escape_headings(body: &str) -> String {
    let lines = body.trim().split('\n').map(|line| {
        if is_heading(line) {
            format!("\\{line}")
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// True if a line is a heading of a section, or was one before it was escaped.
fn is_heading(line: &str) -> bool {
    line.trim_start_matches('\\').starts_with(HEADING)
}

/// The titles of the sections, and their content.
fn sections(body: &str) -> Vec<(&str, String)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in body.split('\n') {
        match line.strip_prefix(HEADING) {
            Some(title) => sections.push((title.trim(), Vec::new())),
            None if is_heading(line) => {
                push(&mut sections, line.strip_prefix('\\').unwrap_or(line))
            }
            None => push(&mut sections, line),
        }
    }
    sections
        .into_iter()
        .map(|(title, lines)| (title, lines.join("\n").trim().to_owned()))
        .collect()
}

fn push<'a>(sections: &mut [(&'a str, Vec<&'a str>)], line: &'a str) {
    if let Some((_, lines)) = sections.last_mut() {
        lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflection::Failed;

    #[test]
    fn file_reads_back_when_texts_look_like_its_own_parts() {
        let failed = Failed {
            agent: "a\"\n---\nhelped: 9".into(),
            task: "Do it\n## Summary\n\\## Caveats\n---\nagent: x".into(),
            summary: "# Title\n\n```\n## Files Modified\n- a\n```".into(),
            caveats: Some("## Task".into()),
            files_modified: vec!["src/a b.rs".into(), "- x".into()],
        };
        let mut it = Reflection::new("a-20000229-000000".into(), failed, 951_782_400_999);
        it.tally = Tally {
            helped: 1,
            useless: 2,
            unknown: 3,
        };
        assert_eq!(read(it.id.clone(), &write(&it)), Some(it.clone()));
        assert_eq!(
            read(it.id.clone(), &write(&it).replace('\n', "\r\n")),
            Some(it)
        );
    }

    #[test]
    fn file_is_as_people_expect_it() {
        let failed = Failed {
            agent: "coder".into(),
            task: "Build".into(),
            summary: "No.".into(),
            ..Failed::default()
        };
        let it = Reflection::new("coder-19700101-000000".into(), failed, 5);
        let expect = "---\nagent: \"coder\"\ntask: \"Build\"\ncreated_ms: 5\nhelped: 0\nuseless: 0\nunknown: 0\n\
                      state: active\n---\n\n## Task\n\nBuild\n\n## Summary\n\nNo.\n\n## Caveats\n\n\n\n\
                      ## Files Modified\n\n\n";
        assert_eq!(write(&it), expect);
    }

    #[test]
    fn foreign_text_is_no_reflection() {
        for file in [
            "",
            "# A readme",
            "---\n",
            "---\nagent: x\n---\n",
            "---\nagent: x\ncreated_ms: 1\n---\n\n## Summary\n\nx",
        ] {
            assert_eq!(read("a-20000229-000000".into(), file), None, "{file:?}");
        }
    }
}
