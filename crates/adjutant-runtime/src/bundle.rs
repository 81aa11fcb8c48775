//! An agent in one file, with its definition and its data, for another directory or machine. It contains no secrets,
//! processes, logs or addresses, and no original paths except required ones.
//!
//! It includes context, skills, data and the working directory, and programs of tools next to the manifest. Other
//! programs are looked up at the destination, and their digest is recorded there unless the manifest has one.
//!
//! | part | what it is |
//! |---|---|
//! | first line | `adjutant-agent 1`: the kind of the file and its version |
//! | second line | JSON: the name and id of the agent, and path and size of each file, in order |
//! | files | their bytes, one after the other, with nothing between them |
//! | last line | `sha256 ` and the digest of all bytes before it, in hexadecimal digits |

mod list;
mod read;
mod settle;
mod write;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::workspace::TOOLS;

pub use read::{Import, ImportOptions, import, inspect};
pub use write::{ExportOptions, Exported, export};

/// The version of the format that is written, and the latest that is read.
const VERSION: u32 = 1;
/// The first text of a file.
const MAGIC: &str = "adjutant-agent ";
/// The text before the digest.
const DIGEST: &str = "sha256 ";
/// The length of the last line: the prefix, 64 digits and a line feed.
const DIGEST_LINE: u64 = 7 + 64 + 1;
/// The maximum size of the list of files in bytes, and the maximum number of files in it.
const MAX_LIST: u64 = 32 << 20;
const MAX_FILES: usize = 100_000;
/// The files of an agent directly in its directory.
const OWN_FILES: [&str; 2] = ["agent.json", "prepared.json"];
/// The exported directories.
const FOLDERS: [&str; 5] = ["context", "skills", STATE, TOOLS, "work"];
/// The directory of sessions, memories, boards and notes.
const STATE: &str = "state";

/// The list of files, in the second line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// The name of the agent when it was exported.
    agent: Arc<str>,
    /// Its original id.
    id: Uuid,
    files: Vec<ListedFile>,
}

/// A file of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedFile {
    /// Its path in the directory, with `/` as the separator.
    path: String,
    /// Its size in bytes.
    size: u64,
    /// True if it is executable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    executable: bool,
}
