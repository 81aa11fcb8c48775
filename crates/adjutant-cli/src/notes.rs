//! The notes of a project for agents: AGENTS.md and CLAUDE.md of its directory.

use std::{fs::File, io::Read, path::Path};

use crate::plain;

/// The names of the files.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The maximum number of bytes that are read from a file.
const MAX_BYTES: usize = 32 * 1_024;

/// The notes of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// The text for the model; empty without any.
    pub(crate) text: String,
    /// The messages about them, one line per file.
    pub(crate) told: Vec<String>,
}

impl Notes {
    /// Reads the notes of a directory; a file with the same content as an earlier one is skipped.
    pub(crate) fn of(root: &Path) -> Self {
        let mut notes = Self::default();
        let mut read: Vec<Vec<u8>> = Vec::new();
        for name in NAMES {
            let file = root.join(name);
            // Skips links, which may lead outside, and pipes, which may block.
            if !file.symlink_metadata().is_ok_and(|it| it.is_file()) {
                continue;
            }
            let mut bytes = Vec::new();
            let found = File::open(&file)
                .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes));
            if let Err(error) = found {
                notes.told.push(format!(
                    "warning: {name} cannot be read: {}",
                    plain::line(&error.to_string())
                ));
                continue;
            }
            if bytes.trim_ascii().is_empty() || read.contains(&bytes) {
                continue;
            }
            let is_cut = bytes.len() > MAX_BYTES;
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_BYTES)]).into_owned();
            let cut = if is_cut {
                "\n[the rest of the file is left out]"
            } else {
                ""
            };
            notes.text += &format!(
                "\n\nThe project's notes for agents, {name}:\n{}{cut}",
                text.trim_end()
            );
            let size = if is_cut {
                format!("its first {MAX_BYTES} bytes")
            } else {
                format!("{} bytes", bytes.len())
            };
            notes.told.push(format!("notes: {name} ({size})"));
            read.push(bytes);
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_bounded_and_told_when_a_project_keeps_some() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(Notes::of(folder.path()), Notes::default());
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("it can be written")
        };
        write("AGENTS.md", "Run the tests.\n");
        write("CLAUDE.md", "Run the tests.\n");
        let notes = Notes::of(folder.path());
        assert_eq!(
            notes.text,
            "\n\nThe project's notes for agents, AGENTS.md:\nRun the tests."
        );
        assert_eq!(notes.told, ["notes: AGENTS.md (15 bytes)"]);
        write("CLAUDE.md", &"é".repeat(MAX_BYTES));
        let notes = Notes::of(folder.path());
        assert_eq!(notes.told[1], "notes: CLAUDE.md (its first 32768 bytes)");
        assert!(
            notes.text.len() < 2 * MAX_BYTES
                && notes.text.ends_with("[the rest of the file is left out]")
        );
    }
}
