//! The answer, composed from the results of the tools only.

use std::fmt::Write;

use adjutant_llm::ToolDecl;

use super::{
    evidence::{Evidence, Failure, Read},
    manifest::{self, Opening, ProjectManifest},
    outline::{self, MAX_LINE},
    shapes::{ListEntry, SearchHit},
    tools::{Offered, Role},
    wish::Wish,
};

/// The maximum number of members, places, files or headings in an answer.
const MAX_ITEMS: usize = 40;
/// The largest number of lines of a file that are quoted.
const MAX_QUOTE: usize = 60;
/// The largest number of characters that an answer may have.
const MAX_ANSWER: usize = 20_000;
/// Files at the top that describe the whole directory.
const NOTABLE: &[&str] = &[
    "readme",
    "license",
    "license-mit",
    "license-apache",
    "changelog",
    "architecture",
    "contributing",
    "security",
    "cargo",
    "package",
    "pyproject",
    "go",
    "makefile",
    "dockerfile",
    "justfile",
    "docker-compose",
    "compose",
];

/// Composes the answer to the question.
pub(super) fn compose(
    wish: &Wish,
    seen: &Evidence,
    offered: &Offered<'_>,
    tools: &[ToolDecl],
) -> String {
    let has_none = offered.list.is_none() && offered.read.is_none() && offered.search.is_none();
    if has_none && offered.edit.is_none() && offered.run.is_none() {
        return helpless(tools);
    }
    let mut answer = String::new();
    match wish {
        Wish::Describe { understood } => {
            if !understood {
                answer.push_str(
                    "I am offline: a small planner, not a language model, and I did not understand the question. \
                     This is what the tools show of the directory.\n\n",
                );
            }
            describe(&mut answer, seen);
        }
        Wish::Find { words, within } => find(
            &mut answer,
            seen,
            &words.join(" "),
            within.as_deref(),
            offered,
        ),
        Wish::Read { path, whole } => read(&mut answer, seen, path, *whole),
        Wish::Edit { path, .. } if offered.edit.is_none() => {
            let _ = writeln!(
                answer,
                "I cannot change `{path}`: no tool that changes files is offered."
            );
        }
        Wish::Run { command } if offered.run.is_none() => {
            let _ = writeln!(
                answer,
                "I cannot run `{command}`: no tool that runs commands is offered."
            );
        }
        Wish::Edit { .. } | Wish::Run { .. } => done(&mut answer, wish, seen),
    }
    failures(&mut answer, seen);
    if answer.trim().is_empty() {
        answer = "The tools returned nothing that answers this.\n".to_owned();
    }
    manifest::cut(answer.trim_end().trim_start_matches('\n'), MAX_ANSWER)
}

/// Joins the answers to several tasks.
pub(super) fn join(answers: &[String]) -> String {
    manifest::cut(&answers.join("\n\n"), MAX_ANSWER)
}

/// The changed files or the command output, as the tool reported them.
fn done(answer: &mut String, wish: &Wish, seen: &Evidence) {
    if let Wish::Run { command } = wish {
        let _ = writeln!(answer, "I ran `{command}`:");
    }
    for text in &seen.done {
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines[..lines.len().min(MAX_QUOTE)].join("\n");
        let fence = if shown.contains("```") {
            "`````"
        } else {
            "```"
        };
        let _ = writeln!(answer, "\n{fence}\n{shown}\n{fence}");
    }
    if seen.done.is_empty() {
        answer.push_str("That was not done.\n");
    }
}

fn helpless(tools: &[ToolDecl]) -> String {
    let tools: Vec<&str> = tools
        .iter()
        .map(|it| it.name.as_str())
        .take(MAX_ITEMS)
        .collect();
    let offered = if tools.is_empty() {
        "no tools are offered".to_owned()
    } else {
        format!(
            "none of the offered tools ({}) lists, reads or searches files",
            tools.join(", ")
        )
    };
    format!(
        "I am offline: there is no language model behind this answer, only a small planner, and {offered}. So I cannot \
         answer this. Set the key of a provider in the environment, for example ANTHROPIC_API_KEY or OPENAI_API_KEY, \
         or start a local model server; with tools for files I can at least say what a directory holds."
    )
}

fn describe(answer: &mut String, seen: &Evidence) {
    let manifests: Vec<ProjectManifest> = seen
        .files
        .iter()
        .filter_map(ProjectManifest::from_file)
        .collect();
    let readme = seen.files.iter().find(|it| manifest::is_readme(&it.path));
    let opening = readme
        .map(|it| Opening::from_markdown(&it.text.lines))
        .unwrap_or_default();
    let (top, mut members): (Vec<&ProjectManifest>, Vec<&ProjectManifest>) =
        manifests.iter().partition(|it| it.folder().is_empty());
    members.sort_unstable_by_key(|it| it.folder());
    let entries = seen.entries();
    if entries.is_empty() && seen.files.is_empty() {
        if !seen.lists.is_empty() {
            answer.push_str("This directory holds nothing that the tools show.\n");
        }
        return;
    }
    introduce(answer, top.first().copied(), &opening);
    let crates = top.iter().any(|it| it.kind == "Rust crate");
    let noun = if crates {
        ("crate", "crates")
    } else {
        ("package", "packages")
    };
    items(
        answer,
        &format!("\nIt holds {}:\n", count(members.len(), noun.0, noun.1)),
        &members,
        |it| {
            let name = it.name.as_deref().unwrap_or(it.folder());
            let said = it
                .description
                .as_ref()
                .map(|it| format!(": {it}"))
                .unwrap_or_default();
            format!("- `{name}` ({}){said}", it.folder())
        },
    );
    surroundings(answer, seen, &entries);
}

fn introduce(answer: &mut String, top: Option<&ProjectManifest>, opening: &Opening) {
    let name = top
        .and_then(|it| it.name.as_deref())
        .or(opening.title.as_deref());
    let name = name.map_or("This directory".to_owned(), |it| {
        format!("`{}`", it.trim_matches('`'))
    });
    let kind = match top {
        Some(it) if it.is_workspace && it.kind == "Rust crate" => "a Cargo workspace",
        Some(it) if it.is_workspace => "a workspace of several packages",
        Some(it) => &format!("a {}", it.kind),
        None => "a directory without a manifest that I know",
    };
    let description = opening
        .sentence
        .as_deref()
        .or(top.and_then(|it| it.description.as_deref()));
    let said = description.map(|it| format!(". {it}")).unwrap_or_default();
    // Writing to a string does not fail, here and below.
    let _ = writeln!(
        answer,
        "{name} is {kind}{}",
        if said.is_empty() { "." } else { &said }
    );
}

fn surroundings(answer: &mut String, seen: &Evidence, entries: &[&ListEntry]) {
    let languages = outline::languages(entries);
    if !languages.is_empty() {
        let shown: Vec<_> = languages
            .iter()
            .take(8)
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let note = if seen.lists.iter().any(|it| it.partial) {
            ", at least"
        } else {
            ""
        };
        let _ = writeln!(answer, "\nFiles by language{note}: {}.", shown.join(", "));
    }
    let top = entries.iter().filter(|it| !it.path.contains('/'));
    let (folders, files): (Vec<&&ListEntry>, Vec<_>) = top.partition(|it| it.is_dir);
    let is_notable =
        |it: &str| NOTABLE.contains(&it.split('.').next().unwrap_or(it).to_lowercase().as_str());
    let code = |it: &str, slash: &str| format!("`{it}{slash}`");
    let notable: Vec<_> = files
        .iter()
        .filter(|it| is_notable(&it.path))
        .map(|it| code(&it.path, ""))
        .collect();
    let others = files
        .iter()
        .filter(|it| !is_notable(&it.path))
        .map(|it| code(&it.path, ""))
        .collect();
    let folders = folders.iter().map(|it| code(&it.path, "/")).collect();
    for (title, names) in [
        ("Notable files", notable),
        ("Other files", others),
        ("Folders", folders),
    ] {
        if !names.is_empty() {
            let more = names.len().saturating_sub(MAX_ITEMS);
            let more = if more > 0 {
                format!(", and {more} more")
            } else {
                String::new()
            };
            let _ = writeln!(
                answer,
                "{title}: {}{more}.",
                names[..names.len().min(MAX_ITEMS)].join(", ")
            );
        }
    }
}

fn find(
    answer: &mut String,
    seen: &Evidence,
    term: &str,
    within: Option<&str>,
    offered: &Offered<'_>,
) {
    let name = term.trim_end_matches("()").to_lowercase();
    let is_named = |it: &&ListEntry| manifest::name(&it.path).to_lowercase().contains(&name);
    let named: Vec<&ListEntry> = seen.entries().into_iter().filter(is_named).collect();
    let place = within.map(|it| format!(" in `{it}`")).unwrap_or_default();
    let mut places: Vec<&SearchHit> = seen.searches.iter().flat_map(|it| &it.places).collect();
    let files = places
        .iter()
        .map(|it| &it.path)
        .collect::<std::collections::BTreeSet<_>>()
        .len();
    if !places.is_empty() {
        let at_least = if seen.searches.iter().any(|it| it.partial) {
            "at least "
        } else {
            ""
        };
        let (lines, files) = (
            count(places.len(), "line", "lines"),
            count(files, "file", "files"),
        );
        let _ = writeln!(
            answer,
            "`{term}` occurs{place} in {at_least}{lines} of {files}."
        );
    } else if !seen.searches.is_empty() {
        let _ = writeln!(
            answer,
            "`{term}` does not occur{place}, as far as the search goes."
        );
    } else if offered.search.is_none() {
        let _ = writeln!(
            answer,
            "No tool that searches text is offered, so I looked at the names of files only."
        );
        if named.is_empty() && !seen.lists.is_empty() {
            let _ = writeln!(answer, "No file or folder has `{term}` in its name.");
        }
    }
    let last = name.rsplit("::").next().unwrap_or(&name);
    let defines = |it: &&SearchHit| {
        outline::definition_name(&it.text).is_some_and(|defined| defined.to_lowercase() == last)
    };
    let shown = |it: &&SearchHit| {
        format!(
            "- `{}:{}` {}",
            it.path,
            it.line,
            manifest::cut(&it.text, MAX_LINE)
        )
    };
    let defined: Vec<&SearchHit> = places.extract_if(.., |it| defines(it)).collect();
    items(answer, "\nDefined at:\n", &defined, shown);
    items(
        answer,
        if defined.is_empty() {
            "\nPlaces:\n"
        } else {
            "\nAlso at:\n"
        },
        &places,
        shown,
    );
    let with_slash =
        |it: &&ListEntry| format!("- `{}{}`", it.path, if it.is_dir { "/" } else { "" });
    items(
        answer,
        "\nFiles and folders of that name:\n",
        &named,
        with_slash,
    );
}

fn read(answer: &mut String, seen: &Evidence, path: &str, whole: bool) {
    if let Some(file) = seen.files.first() {
        if manifest::name(&file.path) != manifest::name(path) || !file.path.ends_with(path) {
            let _ = writeln!(answer, "There is no `{path}`, so I read `{}`.\n", file.path);
        }
        return show(answer, file, whole);
    }
    let folder = format!("{}/", path.trim_matches('/'));
    let entries = seen.entries();
    let below: Vec<_> = entries
        .iter()
        .filter(|it| it.path.starts_with(&folder))
        .collect();
    let shown = |it: &&&ListEntry| format!("- `{}{}`", it.path, if it.is_dir { "/" } else { "" });
    items(
        answer,
        &format!("`{folder}` is a directory. It holds:\n"),
        &below,
        shown,
    );
    if below.is_empty() && !seen.lists.is_empty() {
        let _ = writeln!(
            answer,
            "No file or directory called `{path}` is among what the tools list."
        );
    }
}

fn show(answer: &mut String, file: &Read, whole: bool) {
    let lines = &file.text.lines;
    let note = file
        .text
        .note
        .clone()
        .unwrap_or_else(|| count(lines.len(), "line", "lines"));
    let _ = writeln!(answer, "`{}` ({note}).", file.path);
    if whole {
        let shown = &lines[..lines.len().min(MAX_QUOTE)];
        let fence = if shown.iter().any(|it| it.contains("```")) {
            "`````"
        } else {
            "```"
        };
        let _ = writeln!(answer, "\n{fence}\n{}\n{fence}", shown.join("\n"));
        if shown.len() < lines.len() {
            let _ = writeln!(
                answer,
                "… and {} more.",
                count(lines.len() - shown.len(), "line", "lines")
            );
        }
        return;
    }
    if let Some(manifest) = ProjectManifest::from_file(file) {
        let name = manifest
            .name
            .map(|it| format!(" `{it}`"))
            .unwrap_or_default();
        let said = manifest
            .description
            .map(|it| format!(": {it}"))
            .unwrap_or_default();
        let _ = writeln!(
            answer,
            "It is the manifest of the {}{name}{said}",
            manifest.kind
        );
        return;
    }
    let opening = if outline::is_prose(&file.path) {
        Opening::from_markdown(lines)
    } else {
        Opening::from_code(lines)
    };
    if let Some(title) = opening.title {
        let _ = writeln!(answer, "Its title is “{title}”.");
    }
    if let Some(sentence) = opening.sentence {
        let _ = writeln!(answer, "It begins: {sentence}");
    }
    let parts = outline::outline(&file.path, lines);
    items(answer, "\nIt holds:\n", &parts, |it| format!("- {it}"));
}

fn failures(answer: &mut String, seen: &Evidence) {
    // A guessed file that does not exist is ignored if something else was found; so is a directory that was taken for
    // a file.
    let something = !seen.files.is_empty() || !seen.lists.is_empty();
    let entries = seen.entries();
    let is_dir = |path: &str| {
        entries
            .iter()
            .any(|it| it.is_dir && it.path == path.trim_matches('/'))
    };
    let matters = |it: &&Failure| {
        let path = it.path.as_deref().filter(|_| it.role == Some(Role::Read));
        !path.is_some_and(|it| is_dir(it) || (something && manifest::LIKELY.contains(&it)))
    };
    let failed: Vec<_> = seen.failures.iter().filter(matters).collect();
    items(answer, "\nNot everything worked:\n", &failed, |it| {
        let path = it
            .path
            .as_ref()
            .map(|it| format!(" `{it}`"))
            .unwrap_or_default();
        let message = it.message.lines().next().unwrap_or_default();
        format!(
            "- {}{path}: {}",
            it.tool,
            manifest::cut(message, 2 * MAX_LINE)
        )
    });
}

/// Writes a title and a line for each item; nothing for an empty list.
fn items<T>(answer: &mut String, title: &str, items: &[T], line: impl Fn(&T) -> String) {
    if items.is_empty() {
        return;
    }
    answer.push_str(title);
    for item in items.iter().take(MAX_ITEMS) {
        let _ = writeln!(answer, "{}", line(item));
    }
    if items.len() > MAX_ITEMS {
        let _ = writeln!(answer, "- … and {} more", items.len() - MAX_ITEMS);
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
