//! Files that an editor has open: what is not saved counts, is changed there, and is not lost when the editor fails.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_tool::{
    CallContext, Cancel, ToolError, ToolErrorKind, Tools,
    serde_json::{Value, json},
};
use adjutant_toolkit::{Edits, Files, TextFiles};
use tempfile::TempDir;
use tokio::sync::Notify;

use super::log::Watched;

/// An editor: its buffers, which files it refuses, and where it hangs.
#[derive(Debug, Default)]
struct Buffers {
    texts: Mutex<BTreeMap<PathBuf, String>>,
    asked: Mutex<Vec<String>>,
    /// Heard of each time that it is about to hang.
    hangs: Notify,
}

impl Buffers {
    /// Says what it is asked; who is named so hangs or fails.
    async fn ask(&self, what: &str, path: &Path) -> Result<(), ToolError> {
        self.asked
            .lock()
            .expect("nobody panics")
            .push(format!("{what} {}", path.display()));
        match path.to_str() {
            Some(name) if name == "hangs" || name == "lost" && what == "write" => {
                self.hangs.notify_one();
                std::future::pending().await
            }
            Some("fails") => Err(ToolError::failed("the editor says no")),
            _ => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl TextFiles for Buffers {
    async fn read(&self, path: &Path) -> Result<Option<String>, ToolError> {
        self.ask("read", path).await?;
        Ok(self.texts.lock().expect("nobody panics").get(path).cloned())
    }

    async fn write(&self, path: &Path, text: &str) -> Result<bool, ToolError> {
        self.ask("write", path).await?;
        let mut texts = self.texts.lock().expect("nobody panics");
        let open = texts.get_mut(path);
        Ok(open.map(|open| text.clone_into(open)).is_some())
    }
}

struct Desk {
    place: TempDir,
    buffers: Arc<Buffers>,
    tools: [Tools; 2],
}

impl Desk {
    /// A folder with files, some of which are open.
    fn new(files: &[(&str, &[u8])], open: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        files
            .iter()
            .for_each(|(path, bytes)| fs::write(place.path().join(path), bytes).expect("a file"));
        let open = open
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
            .collect();
        let buffers = Arc::new(Buffers {
            texts: Mutex::new(open),
            ..Buffers::default()
        });
        let lent = Files::new(place.path())
            .expect("it is one")
            .lent_by(Arc::clone(&buffers) as _);
        let tools = [lent.toolbox(), Edits::new(&lent).toolbox()];
        Self {
            place,
            buffers,
            tools,
        }
    }

    async fn call(&self, tool: &str, args: Value, cancel: Cancel) -> Result<String, ToolError> {
        let tool = self
            .tools
            .iter()
            .find_map(|tools| tools.toolset().get(tool))
            .expect("it is there");
        let cx = CallContext::new(
            CallContext::detached().who,
            cancel,
            Arc::<Watched>::default() as _,
        );
        tool.call(args, cx).await.map(|it| it.text())
    }

    fn done(&self, tool: &str, args: Value) -> Result<String, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        runtime
            .block_on(self.call(tool, args, Cancel::new()))
            .map_err(|error| error.message.to_string())
    }

    /// What is open under a name, and what is on the disk.
    #[track_caller]
    fn check(&self, path: &str, open: Option<&str>, on_disk: Option<&str>) {
        assert_eq!(
            self.buffers
                .texts
                .lock()
                .expect("nobody panics")
                .get(Path::new(path))
                .map(String::as_str),
            open
        );
        assert_eq!(
            fs::read_to_string(self.place.path().join(path))
                .ok()
                .as_deref(),
            on_disk
        );
    }
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_text": old, "new_text": new})
}

#[test]
fn text_that_is_not_saved_is_read_and_changed_where_it_is_open() {
    let desk = Desk::new(&[("a", b"saved\n")], &[("a", "open\n")]);
    assert!(
        desk.done("read_file", json!({"path": "a"}))
            .expect("it is read")
            .contains("open")
    );
    desk.done("edit_file", edit("a", "open", "new"))
        .expect("it is as it was read");
    desk.check("a", Some("new\n"), Some("saved\n"));
    // Its own change is known.
    desk.done("edit_file", edit("a", "new", "newer"))
        .expect("it is as it was written");
    desk.check("a", Some("newer\n"), Some("saved\n"));
    desk.buffers
        .texts
        .lock()
        .expect("nobody panics")
        .insert("a".into(), "typed\n".into());
    let refused = desk
        .done("write_file", json!({"path": "a", "content": "mine"}))
        .expect_err("it was changed");
    assert!(
        refused.contains("was changed since it was read"),
        "{refused}"
    );
    desk.check("a", Some("typed\n"), Some("saved\n"));
    desk.done("read_file", json!({"path": "a"}))
        .expect("it is read");
    desk.done("delete_file", json!({"path": "a"}))
        .expect("it is as it was read");
    desk.check("a", Some("typed\n"), None);
}

#[test]
fn disk_counts_for_what_is_not_open_or_no_plain_text() {
    let utf16: Vec<u8> = "\u{FEFF}wide"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let marked = "\u{FEFF}marked\n".as_bytes();
    let desk = Desk::new(
        &[
            ("a", b"saved\n"),
            ("wide", &utf16),
            ("marked", marked),
            ("bytes", b"a\0"),
        ],
        &[],
    );
    for path in ["wide", "marked", "bytes"] {
        // One of them is no text.
        let _ = desk.done("read_file", json!({"path": path}));
    }
    assert!(desk.done("read_file", json!({"path": "../a"})).is_err());
    assert_eq!(*desk.buffers.asked.lock().expect("nobody panics"), [""; 0]);
    desk.done("read_file", json!({"path": "a"}))
        .expect("it is read");
    desk.done("write_file", json!({"path": "a", "content": "new\n"}))
        .expect("it is as it was read");
    assert_eq!(
        *desk.buffers.asked.lock().expect("nobody panics"),
        ["read a", "read a", "read a", "write a"]
    );
    desk.check("a", None, Some("new\n"));
}

#[test]
fn nothing_is_changed_when_one_of_several_is_refused_where_it_is_open() {
    let files: [(&str, &[u8]); 2] = [("a", b"saved\n"), ("below", b"\n")];
    let desk = Desk::new(&files, &[("a", "open\n"), ("fails", "")]);
    let patch = "*** Begin Patch\n*** Update File: a\n-open\n+new\n*** Add File: fails\n+text\n*** End Patch";
    let refused = desk
        .done("apply_patch", json!({"patch": patch}))
        .expect_err("one is refused");
    assert!(
        refused.contains("the editor says no; no file was changed"),
        "{refused}"
    );
    desk.check("a", Some("open\n"), Some("saved\n"));
    desk.check("fails", Some(""), None);
}

#[tokio::test(start_paused = true)]
async fn call_ends_when_whoever_has_the_file_open_says_nothing() {
    let desk = Desk::new(&[("hangs", b"saved\n")], &[]);
    for is_cancelled in [false, true] {
        let cancel = Cancel::new();
        let read = desk.call("read_file", json!({"path": "hangs"}), cancel.clone());
        let act = async {
            desk.buffers.hangs.notified().await;
            if is_cancelled {
                cancel.cancel();
            } else {
                tokio::time::advance(Duration::from_secs(31)).await;
            }
        };
        let (ended, ()) = tokio::join!(read, act);
        let expect = if is_cancelled {
            ToolErrorKind::Cancelled
        } else {
            ToolErrorKind::TimedOut
        };
        assert_eq!(ended.expect_err("nobody answers").kind, expect);
    }
    let write = desk.call(
        "write_file",
        json!({"path": "lost", "content": "new"}),
        Cancel::new(),
    );
    let act = async {
        desk.buffers.hangs.notified().await;
        tokio::time::advance(Duration::from_secs(31)).await;
    };
    let (ended, ()) = tokio::join!(write, act);
    let ended = ended.expect_err("nobody answers");
    assert_eq!(
        (ended.kind, &*ended.message),
        (
            ToolErrorKind::OutcomeUnknown,
            "whoever has the file open did not answer within 30 s: whether `lost` was written is not known; read it; no other \
             file was changed"
        )
    );
}
