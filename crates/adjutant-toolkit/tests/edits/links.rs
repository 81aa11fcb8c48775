//! What is changed is what was named.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::Desk;

/// A link may come in between what somebody allowed and its call.
#[test]
fn what_is_changed_is_what_was_named_and_no_target_of_a_link() {
    let desk = Desk::with("b", "same\n");
    desk.put("e/f", "same\n");
    ["b", "e/f"].iter().for_each(|path| desk.read(path));
    symlink("b", desk.root().join("a")).expect("a link");
    symlink("e", desk.root().join("d")).expect("a link");
    for (path, target) in [
        ("a", "b"),
        ("d/f", "e/f"),
        ("d/../a", "b"),
        ("d/new", "e/new"),
    ] {
        let parts = [("Update", "@@\n-same\n+other\n"), ("Delete", "")];
        let [update, delete] = parts.map(|(what, lines)| {
            format!("*** Begin Patch\n*** {what} File: {path}\n{lines}*** End Patch")
        });
        for (tool, args) in [
            ("write_file", json!({ "path": path, "content": "other" })),
            (
                "edit_file",
                json!({ "path": path, "old_text": "same", "new_text": "other" }),
            ),
            ("apply_patch", json!({ "patch": update })),
            ("apply_patch", json!({ "patch": delete })),
            ("delete_file", json!({ "path": path })),
            ("move_file", json!({ "from": path, "to": "other" })),
            ("move_file", json!({ "from": "b", "to": path })),
        ] {
            let why = desk.call(tool, args).expect_err(tool);
            let expect = format!(
                "`{path}` is `{target}`, by a link; what is changed is named without links"
            );
            assert_eq!(why, expect, "{tool} {path}");
        }
    }
    assert_eq!(
        (desk.text("b").as_str(), desk.text("e/f").as_str()),
        ("same\n", "same\n")
    );
    assert!(desk.changes().is_empty(), "nothing was noted");
}
