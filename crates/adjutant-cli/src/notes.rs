//! Notes for agents: AGENTS.md and CLAUDE.md of the user, of the project, and of the directories that an agent works in.
//!
//! Sources: agents.md; code.claude.com/docs/en/memory (imports); developers.openai.com/codex/guides/agents-md (order and
//! budget); November 2026.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use adjutant::{
    Agent,
    agent::{HookContext, Verdict, points::AfterTool},
    llm::Content,
    toolkit::decode_text,
};

use crate::{
    plain,
    project::{Project, home},
    settings,
};

/// The names of the files.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The files of the user below the home.
const OF_HOME: [&str; 3] = [".agents/AGENTS.md", ".claude/CLAUDE.md", ".codex/AGENTS.md"];
/// The maximum number of bytes of all notes. The nearest files come first.
const MAX_BYTES: usize = 64 * 1_024;
/// The maximum number of bytes that are read from a file.
const MAX_FILE: u64 = 1 << 20;
/// The maximum depth of imports.
const MAX_DEPTH: usize = 5;
/// The maximum number of files.
const MAX_FILES: usize = 100;

/// The notes for the agents of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// The working directory.
    pub(crate) root: PathBuf,
    /// The text of the user's files; empty without any.
    pub(crate) user: String,
    /// The text of the project's files; empty without any.
    pub(crate) text: String,
    /// The messages about them, one line per file.
    pub(crate) told: Vec<String>,
}

/// A file of notes.
#[derive(Debug)]
struct Note {
    name: String,
    text: String,
    is_user: bool,
}

/// A reader of notes, which reads each file once.
struct Reader {
    project: PathBuf,
    /// The directories of the user's files.
    user: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    notes: Vec<Note>,
    told: Vec<String>,
}

impl Notes {
    /// Reads the notes of the user, and of a project from its root down to this directory.
    pub(crate) fn of(root: &Path) -> Self {
        let project = Project::find(root);
        let of_home = home().map(|home| OF_HOME.map(|path| home.join(path)));
        let own = settings::folder().map(|folder| folder.join(NAMES[0]));
        let user: Vec<PathBuf> = own
            .into_iter()
            .chain(of_home.into_iter().flatten())
            .collect();
        let mut reader = Reader::new(&project.root, &user);
        for file in &user {
            reader.read(file, true, &mut Vec::new());
        }
        for directory in project.directories.iter().rev() {
            for name in NAMES {
                reader.read(&directory.join(name), false, &mut Vec::new());
            }
        }
        Self {
            root: root.to_owned(),
            ..reader.finish()
        }
    }

    /// Reads the notes of one directory below a project's root.
    fn of_directory(project: &Path, directory: &Path) -> Self {
        let mut reader = Reader::new(project, &[]);
        for name in NAMES {
            reader.read(&directory.join(name), false, &mut Vec::new());
        }
        reader.finish()
    }
}

impl Reader {
    fn new(project: &Path, user: &[PathBuf]) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let user = user.iter().filter_map(|file| file.parent());
        Self {
            project: real(project),
            user: user.map(real).collect(),
            seen: BTreeSet::new(),
            notes: Vec::new(),
            told: Vec::new(),
        }
    }

    /// Reads a file and the files that it imports. `above` are the files that import it.
    fn read(&mut self, file: &Path, is_user: bool, above: &mut Vec<PathBuf>) {
        let Ok(real) = file.canonicalize() else {
            return;
        };
        if !real.metadata().is_ok_and(|found| found.is_file()) {
            return;
        }
        let name = self.name(file, &real);
        if above.contains(&real) {
            return self
                .told
                .push(format!("notes: warning: {name} imports itself"));
        }
        if !self.may_read(&real, is_user, !above.is_empty()) {
            let why = "is outside of the project and of the user's notes, so it is not read";
            return self.told.push(format!("notes: warning: {name} {why}"));
        }
        if self.notes.len() == MAX_FILES || above.len() > MAX_DEPTH {
            let why = format!("more than {MAX_FILES} files, or imports deeper than {MAX_DEPTH}");
            return self
                .told
                .push(format!("notes: warning: {name} is left out: {why}"));
        }
        if !self.seen.insert(real.clone()) {
            return;
        }
        let mut bytes = Vec::new();
        let read = File::open(&real).and_then(|file| file.take(MAX_FILE).read_to_end(&mut bytes));
        if let Err(error) = read {
            let why = plain::line(&error.to_string());
            return self
                .told
                .push(format!("notes: warning: {name} cannot be read: {why}"));
        }
        let Some(text) = decode_text(&bytes) else {
            return self
                .told
                .push(format!("notes: warning: {name} is not a text"));
        };
        let text = text.trim().to_owned();
        if text.is_empty() || self.notes.iter().any(|note| note.text == text) {
            return;
        }
        let folder = real.parent().unwrap_or(&real).to_owned();
        let imports = imports(&text);
        self.notes.push(Note {
            name,
            text,
            is_user,
        });
        above.push(real);
        for path in imports {
            let file = match path.strip_prefix("~/").zip(home()) {
                Some((below, home)) => home.join(below),
                None => folder.join(&path),
            };
            if file.exists() {
                self.read(&file, is_user, above);
            } else if path.ends_with(".md") {
                let path = plain::line(&path);
                self.told
                    .push(format!("notes: warning: the import @{path} does not exist"));
            }
        }
        above.pop();
    }

    /// True if a file may be read: a project's notes must not send other files of the user.
    fn may_read(&self, real: &Path, is_user: bool, is_import: bool) -> bool {
        let is_markdown = real.extension().is_some_and(|end| end == "md");
        let is_of_user = self.user.iter().any(|folder| real.starts_with(folder)) && is_markdown;
        let name = real.file_name().unwrap_or_default().to_string_lossy();
        let is_of_project = real.starts_with(&self.project) && !name.starts_with(".env");
        match is_user {
            // The user may link a file from anywhere.
            true => is_of_user || !is_import,
            false => is_of_project || (is_import && is_of_user),
        }
    }

    fn name(&self, file: &Path, real: &Path) -> String {
        let shown = real.strip_prefix(&self.project).ok();
        // The name of a link, not of its target.
        let below = file.canonicalize().ok().and_then(|_| {
            let folder = file.parent()?.canonicalize().ok()?;
            let below = folder.strip_prefix(&self.project).ok()?;
            Some(below.join(file.file_name()?))
        });
        let shown = below.as_deref().or(shown).unwrap_or(real);
        plain::line(&shown.to_string_lossy())
    }

    /// Joins the notes in order. Within the budget, the last file counts first.
    fn finish(mut self) -> Notes {
        let mut left = MAX_BYTES;
        let mut lines = Vec::new();
        for note in self.notes.iter_mut().rev() {
            let size = note.text.len();
            let mut end = size.min(left);
            while !note.text.is_char_boundary(end) {
                end -= 1;
            }
            left -= end;
            note.text.truncate(end);
            let name = &note.name;
            lines.push(match end {
                0 => format!(
                    "notes: warning: {name} is left out: the notes exceed {MAX_BYTES} bytes"
                ),
                _ if end < size => {
                    note.text += "\n[the rest of the file is left out]";
                    format!("notes: {name} (its first {end} bytes of {size})")
                }
                _ => format!("notes: {name} ({size} bytes)"),
            });
        }
        lines.reverse();
        lines.append(&mut self.told);
        let mut notes = Notes {
            told: lines,
            ..Notes::default()
        };
        for Note {
            name,
            text,
            is_user,
        } in self.notes.iter().filter(|note| !note.text.is_empty())
        {
            match is_user {
                true => notes.user += &format!("\n\nThe user's notes for agents, {name}:\n{text}"),
                false => {
                    notes.text += &format!("\n\nThe project's notes for agents, {name}:\n{text}")
                }
            }
        }
        notes
    }
}

/// Returns the paths of the imports in a text: `@path` outside of code.
fn imports(text: &str) -> Vec<String> {
    let (mut paths, mut is_code) = (Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code {
            continue;
        }
        // Every second part is between back-ticks.
        for word in line.split('`').step_by(2).flat_map(str::split_whitespace) {
            let Some(path) = word.strip_prefix('@') else {
                continue;
            };
            let path = path.trim_end_matches(['.', ',', ';', ':', ')', '!', '?']);
            if path.contains(['/', '.']) && !paths.iter().any(|known| known == path) {
                paths.push(path.to_owned());
            }
        }
    }
    paths
}

/// Appends the notes of a subdirectory to the result of the first call that touches a file in it, so that the beginning
/// of requests never changes.
pub(crate) fn append_below(agent: Agent, root: &Path) -> Agent {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let project = Project::find(&root).root;
    let seen = Arc::new(Mutex::new(BTreeSet::<PathBuf>::new()));
    agent.on(move |_: HookContext, mut point: AfterTool| {
        let touched = point.result.details["digests"].as_object();
        let mut directories: BTreeSet<PathBuf> = BTreeSet::new();
        for path in touched.into_iter().flat_map(|files| files.keys()) {
            let above = Path::new(path).ancestors().skip(1);
            directories.extend(
                above
                    .filter(|path| !path.as_os_str().is_empty())
                    .map(Path::to_owned),
            );
        }
        for directory in directories {
            let is_new = seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(directory.clone());
            if is_new {
                let notes = Notes::of_directory(&project, &root.join(directory));
                if !notes.text.is_empty() {
                    point.result.content.push(Content::text(notes.text));
                }
            }
        }
        async move { Verdict::Pass(point) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project with these files.
    fn project(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary directory");
        for (path, bytes) in [(".git/HEAD", &b""[..])].iter().chain(files) {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, bytes).expect("a file");
        }
        folder
    }

    fn read(folder: &tempfile::TempDir, below: &str) -> Notes {
        let project = Project::find(&folder.path().join(below));
        let mut reader = Reader::new(&project.root, &[]);
        for directory in project.directories.iter().rev() {
            for name in NAMES {
                reader.read(&directory.join(name), false, &mut Vec::new());
            }
        }
        reader.finish()
    }

    #[test]
    fn notes_are_read_from_the_root_down_in_any_encoding() {
        let wide = "\u{feff}Be brief.\r\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes);
        let folder = project(&[
            ("AGENTS.md", b"Run the tests.\n"),
            ("CLAUDE.md", b"Run the tests."),
            ("a/AGENTS.md", &wide.collect::<Vec<u8>>()),
            ("a/b/CLAUDE.md", b"caf\xe9"),
            ("a/b/c/AGENTS.md", b"Below."),
        ]);
        let notes = read(&folder, "a/b");
        let part =
            |name: &str, text: &str| format!("\n\nThe project's notes for agents, {name}:\n{text}");
        let expect = part("AGENTS.md", "Run the tests.")
            + &part("a/AGENTS.md", "Be brief.")
            + &part("a/b/CLAUDE.md", "café");
        assert_eq!(notes.text, expect);
        assert_eq!(notes.told.len(), 3, "{:?}", notes.told);
        assert_eq!(notes.told[0], "notes: AGENTS.md (14 bytes)");
        assert_eq!(read(&project(&[]), ""), Notes::default());
    }

    #[test]
    fn imports_stay_inside_and_end() {
        let outside = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(outside.path().join("secret.md"), "secret").expect("a file");
        let secret = outside.path().join("secret.md").display().to_string();
        let text = format!(
            "See @docs/style.md, and @{secret}.\nMail ada@example.org, use @angular/core and `@code.md`.\n\
             ```\n@docs/no.md\n```\n@missing.md @.env"
        );
        let folder = project(&[
            ("AGENTS.md", text.as_bytes()),
            ("docs/style.md", b"Short lines. @../AGENTS.md @deep/1.md"),
            ("docs/deep/1.md", b"1 @2.md"),
            ("docs/deep/2.md", b"2 @3.md"),
            ("docs/deep/3.md", b"3 @4.md"),
            ("docs/deep/4.md", b"4 @5.md"),
            ("docs/deep/5.md", b"5"),
            ("docs/no.md", b"no"),
            (".env", b"KEY=1"),
        ]);
        let notes = read(&folder, "");
        for part in ["Short lines.", "docs/deep/4.md:\n4 @5.md"] {
            assert!(notes.text.contains(part), "{part}: {}", notes.text);
        }
        for part in ["secret\n", "KEY=1", "docs/no.md:", "docs/deep/5.md:"] {
            assert!(!notes.text.contains(part), "{part}: {}", notes.text);
        }
        let told = notes.told.join("\n");
        for part in [
            "AGENTS.md imports itself",
            "secret.md is outside",
            "docs/deep/5.md is left out",
            "@missing.md does not exist",
            ".env is outside",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("angular"), "{told}");
    }

    #[test]
    fn notes_share_one_budget_and_the_nearest_come_first() {
        let folder = project(&[
            ("AGENTS.md", &b"a".repeat(MAX_BYTES)),
            ("CLAUDE.md", "é".repeat(MAX_BYTES / 4).as_bytes()),
            ("a/AGENTS.md", b"Near."),
        ]);
        let notes = read(&folder, "a");
        let left = MAX_BYTES - MAX_BYTES / 2 - 5;
        assert_eq!(
            notes.told,
            [
                format!("notes: AGENTS.md (its first {left} bytes of {MAX_BYTES})"),
                format!("notes: CLAUDE.md ({} bytes)", MAX_BYTES / 2),
                "notes: a/AGENTS.md (5 bytes)".to_owned(),
            ]
        );
        assert!(notes.text.ends_with("a/AGENTS.md:\nNear."));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_inside_the_repository_only() {
        use std::os::unix::fs::symlink;
        let folder = project(&[("docs/rules.md", b"Rules."), ("a/x", b"")]);
        symlink("docs/rules.md", folder.path().join("CLAUDE.md")).expect("a link");
        symlink("/etc/hostname", folder.path().join("a/AGENTS.md")).expect("a link");
        let notes = read(&folder, "a");
        assert_eq!(
            notes.text,
            "\n\nThe project's notes for agents, CLAUDE.md:\nRules."
        );
        assert!(
            notes.told.iter().any(|line| line.contains("is outside")),
            "{:?}",
            notes.told
        );
    }
}
