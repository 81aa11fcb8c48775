//! What an editor lends: its files with what is not saved, and its terminals.

use std::sync::Arc;

use adjutant_llm::Script;
use serde_json::json;

use super::{Desk, Editor, done, lines};

#[tokio::test]
async fn files_are_read_and_written_as_far_as_the_editor_lends_them() {
    let edit = json!({"path": "a", "old_text": "open", "new_text": "new"});
    let read = || Script::new().call("read_file", json!({"path": "a"}));
    let asked = r#"fs/read_text_file "/w/a" null"#;
    let wrote = r#"fs/write_text_file "/w/a" "new""#;
    // What it lends, what it answers, which calls succeed, what it is asked, what is on the disk.
    let both = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
    let reads = json!({"fs": {"readTextFile": true, "writeTextFile": false}});
    let table: [(_, &[&str], _, &[&str], _); 4] = [
        (
            both.clone(),
            &["open", "open", "open", "{}"],
            "completed completed",
            &[asked, asked, asked, wrote],
            "saved",
        ),
        (
            both.clone(),
            &["open", "typed"],
            "completed failed",
            &[asked, asked],
            "saved",
        ),
        (
            both,
            &["open", "error"],
            "completed failed",
            &[asked, asked],
            "saved",
        ),
        (
            reads,
            &["open", "open", "open"],
            "completed completed",
            &[asked, asked, asked],
            "new",
        ),
    ];
    for (row, (lends, answers, ends, expect, left)) in table.into_iter().enumerate() {
        let place = Arc::new(tempfile::tempdir().expect("a folder"));
        std::fs::write(place.path().join("a"), "saved").expect("a file");
        let desk = Desk::new([
            read(),
            Script::new().call("edit_file", edit.clone()),
            done(),
        ]);
        let desk = Desk {
            place: Some(Arc::clone(&place)),
            ..desk
        };
        let (mut editor, _) = Editor::open(&desk, "session/new", lends).await;
        let heard = editor.prompt("Go.", answers).await;
        let told: Vec<_> = heard
            .iter()
            .filter(|line| line.starts_with("fs/"))
            .collect();
        assert_eq!(told, expect, "row {row}");
        let is_end = |word: &&str| matches!(*word, "completed" | "failed");
        let ended: Vec<_> = heard
            .iter()
            .filter_map(|line| line.split(' ').nth(2).filter(is_end))
            .collect();
        assert_eq!(ended.join(" "), ends, "row {row}: {heard:?}");
        assert_eq!(
            std::fs::read_to_string(place.path().join("a")).expect("it is there"),
            left,
            "row {row}"
        );
        editor.leave().await;
    }
}

#[tokio::test(start_paused = true)]
async fn command_runs_in_the_editors_terminal_after_it_was_asked_about() {
    let call = || Script::new().call("run_in_terminal", json!({"command": "make", "cwd": "b"}));
    let asked = |text: &str| {
        format!(
            "tool_call c1_0_0 pending
            tool_call_update c1_0_0
            ? \"c1_0_0\" Run this in the editor's terminal, where no sandbox holds it? make [\"allow\",\"always\",\"reject\"]
            {text}"
        )
    };
    let begun = r#"terminal/create null "/w/b" ["-c","make"]
        tool_call_update c1_0_0 in_progress
        tool_call_update c1_0_0 in "t"
        terminal/wait_for_exit "t""#;
    let ended = |end: &str| {
        format!(
            "{begun}\nterminal/output \"t\"\nterminal/release \"t\"\n{end}\nagent_message_chunk Done.\nend_turn"
        )
    };
    let made = r#"{"terminalId":"t"}"#;
    let said = r#"{"output":"made","truncated":true}"#;
    let told = "[its beginning is left out]\nmade\n";
    let table: [(&[&str], String); 6] = [
        (&["reject"], "tool_call_update c1_0_0 in_progress\ntool_call_update c1_0_0 failed not executed: a person refused the call: the user said no\nagent_message_chunk Done.\nend_turn".into()),
        (&["allow", made, r#"{"exitCode":0}"#, said, "{}"], ended(&format!("tool_call_update c1_0_0 completed {told}[exit code 0]"))),
        (&["allow", made, r#"{"signal":"KILL"}"#, said, "{}"], ended(&format!("tool_call_update c1_0_0 failed {told}[ended by signal KILL]"))),
        (&["allow", made, "silent", said, "{}"], ended(&format!("tool_call_update c1_0_0 failed {told}[killed: it took longer than 120 s]"))),
        (&["allow", "error"], "terminal/create null \"/w/b\" [\"-c\",\"make\"]\ntool_call_update c1_0_0 in_progress\ntool_call_update c1_0_0 failed the editor refuses: no such method\nagent_message_chunk Done.\nend_turn".into()),
        (&["allow", made, "cancel", "{}"], format!("{begun}\nterminal/release \"t\"\ntool_call_update c1_0_0 failed stopped\ncancelled")),
    ];
    for (row, (answers, expect)) in table.into_iter().enumerate() {
        let place = Some(Arc::new(tempfile::tempdir().expect("a folder")));
        let desk = Desk {
            place,
            ..Desk::new([call(), done()])
        };
        let (mut editor, _) = Editor::open(&desk, "session/new", json!({"terminal": true})).await;
        assert_eq!(
            editor.prompt("Go.", answers).await.join("\n"),
            lines(&asked(&expect)).join("\n"),
            "row {row}"
        );
        editor.leave().await;
    }
}
