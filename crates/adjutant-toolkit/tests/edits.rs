//! Tools that change files: what they change, what they refuse, and that all of it can be put back.

#[cfg(unix)]
#[path = "edits/links.rs"]
mod links;

use std::{
    collections::BTreeMap,
    fs, hint,
    path::Path,
    sync::{Arc, Barrier},
    thread,
};

use adjutant_llm::Transcript;
use adjutant_tool::{
    CallContext, Cancel, Conversation, Tools,
    serde_json::{Value, json},
};
use adjutant_toolkit::{Edits, ErrorKind, FileChange, Files, Undo};
use proptest::prelude::*;
use tempfile::TempDir;

use super::log::Watched;

/// A folder, its tools, and the notes of their calls.
struct Desk {
    place: TempDir,
    files: Files,
    undo: Undo,
    tools: [Tools; 2],
    notes: Arc<Watched>,
}

impl Desk {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        fs::create_dir(place.path().join("root")).expect("a folder");
        let files = Files::new(place.path().join("root")).expect("it is one");
        let undo = Undo::new(place.path().join("kept"));
        let tools = [
            files.toolbox(),
            Edits::new(&files).undo(undo.clone()).toolbox(),
        ];
        Self {
            place,
            files,
            undo,
            tools,
            notes: Arc::default(),
        }
    }

    fn with(path: &str, content: impl AsRef<[u8]>) -> Self {
        let desk = Self::new();
        desk.put(path, content);
        desk
    }

    fn root(&self) -> std::path::PathBuf {
        self.place.path().join("root")
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.root().join(path)).ok()
    }

    fn text(&self, path: &str) -> String {
        String::from_utf8(self.bytes(path).expect("it is there")).expect("it is text")
    }

    fn call(&self, tool: &str, args: Value) -> Result<String, String> {
        let tool = self
            .tools
            .iter()
            .find_map(|tools| tools.toolset().get(tool))
            .expect("it is there");
        let cx = CallContext::new(
            CallContext::detached().who,
            Cancel::new(),
            Arc::clone(&self.notes) as _,
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        runtime
            .block_on(tool.call(args, cx))
            .map(|it| it.text())
            .map_err(|error| error.message.to_string())
    }

    fn read(&self, path: &str) {
        self.call("read_file", json!({ "path": path }))
            .expect("it is read");
    }

    fn changes(&self) -> Vec<FileChange> {
        self.notes
            .told()
            .iter()
            .filter_map(|(kind, data)| FileChange::from_note(kind, data))
            .collect()
    }

    /// Everything below the root, folders too.
    fn all(&self) -> BTreeMap<String, (u32, Option<Vec<u8>>)> {
        Self::all_of(&self.root())
    }

    fn all_of(root: &Path) -> BTreeMap<String, (u32, Option<Vec<u8>>)> {
        fn walk(folder: &Path, root: &Path, all: &mut BTreeMap<String, (u32, Option<Vec<u8>>)>) {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let name = path
                    .strip_prefix(root)
                    .expect("below")
                    .to_string_lossy()
                    .into_owned();
                all.insert(name, (mode(&path), fs::read(&path).ok()));
                if path.is_dir() {
                    walk(&path, root, all);
                }
            }
        }
        let mut all = BTreeMap::new();
        walk(root, root, &mut all);
        all
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).map_or(0, |it| it.permissions().mode())
}

#[cfg(not(unix))]
fn mode(_: &Path) -> u32 {
    0
}

#[test]
fn edit_replaces_what_is_meant_and_says_why_it_does_not() {
    let code = "fn a() {\n    one();\n}\n\nfn b() {\n    one();  \n}\n";
    // (the file, old, new, what it is then or a part of the error)
    let table: [(&str, &str, &str, Result<&str, &str>); 17] = [
        ("a b c", "b", "x", Ok("a x c")),
        ("a\nb\nc\n", "b\n", "", Ok("a\nc\n")),
        (
            code,
            "fn a() {\n    one();",
            "fn a() {\n    two();",
            Ok(&code.replacen("one", "two", 1)),
        ),
        // Without blanks at the ends, then without outer ones; the new text is taken as it is.
        (
            code,
            "    one();\n}\n\nfn b",
            "    two();  \n}\n\nfn b",
            Ok(&code.replacen("one();", "two();  ", 1)),
        ),
        (
            code,
            "fn b() {\n    one();\n}",
            "fn b() {}",
            Ok("fn a() {\n    one();\n}\n\nfn b() {}\n"),
        ),
        (
            code,
            "fn b() {\none();\n}\n",
            "\tx\n",
            Ok("fn a() {\n    one();\n}\n\n\tx\n"),
        ),
        ("  x\ny\n", "x\n y", "  z", Ok("  z\n")),
        (
            code,
            "one();",
            "two();",
            Err("stands 2 times, in lines 2, 6; take more lines"),
        ),
        (code, "one();\n }", "x", Err("stands 2 times")),
        ("aaa", "aa", "b", Err("stands 2 times, in lines 1, 1; take")),
        (
            code,
            "nowhere",
            "x",
            Err("not in the file, and nothing like it"),
        ),
        (
            code,
            "fn b() {\n    three();\n}",
            "x",
            Err("nearest to it is:\n     5\tfn b() {\n     6\t    one();"),
        ),
        (code, "", "x", Err("old_text is empty")),
        (code, "one", "one", Err("are the same")),
        (
            "a\r\nb\r\nc\r\n",
            "a\nb",
            "x\ny\nz",
            Ok("x\r\ny\r\nz\r\nc\r\n"),
        ),
        ("a\r\nb\nc\n", "b\n", "x\n", Ok("a\r\nx\nc\n")),
        ("\u{feff}a\n", "a", "grüße", Ok("\u{feff}grüße\n")),
    ];
    for (content, old, new, expect) in table {
        let desk = Desk::with("f", content);
        desk.read("f");
        let said = desk.call(
            "edit_file",
            json!({ "path": "f", "old_text": old, "new_text": new }),
        );
        match expect {
            Ok(expect) => assert_eq!(
                (desk.text("f").as_str(), said.is_ok()),
                (expect, true),
                "{old:?}: {said:?}"
            ),
            Err(part) => {
                let why = said.expect_err(old);
                assert!(
                    why.contains(part) && desk.text("f") == content,
                    "{old:?}: {why}"
                );
            }
        }
    }
    let desk = Desk::with("f", "a b a");
    desk.read("f");
    let said = desk.call(
        "edit_file",
        json!({ "path": "f", "old_text": "a", "new_text": "c", "all": true }),
    );
    let expect = "`f` is changed\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a b a\n\\ No newline at end of file\n+c b c\n\\ No newline at end of file\n";
    assert_eq!(said.as_deref(), Ok(expect));
    let wide = |text: &str| {
        [
            vec![0xFF, 0xFE],
            text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        ]
        .concat()
    };
    desk.put("wide", wide("a\r\nb\r\n"));
    let shown = desk.call("read_file", json!({ "path": "wide" }));
    assert_eq!(
        shown.as_deref(),
        Ok("     1\ta\n     2\tb\n[lines 1-2 of 2, 14 B, UTF-16LE]")
    );
    desk.put("binary", b"gr\0fe");
    desk.call("move_file", json!({ "from": "binary", "to": "no text" }))
        .expect("nobody can read it");
    desk.call("delete_file", json!({ "path": "no text" }))
        .expect("nobody can read it");
    desk.put("binary", b"gr\0fe");
    let refused = desk.call(
        "apply_patch",
        json!({ "patch": "*** Begin Patch\n*** Update File: binary\n@@\n-x\n+y\n*** End Patch" }),
    );
    assert!(
        refused
            .expect_err("it is no text")
            .contains("`binary` is a binary file; hint: a command")
    );
    let patch = "*** Begin Patch\n*** Update File: wide\n@@\n a\n-b\n+c\n*** End Patch";
    desk.call("apply_patch", json!({ "patch": patch }))
        .expect("it is changed");
    desk.call(
        "edit_file",
        json!({ "path": "wide", "old_text": "a\n", "new_text": "b\n" }),
    )
    .expect("it was read");
    assert_eq!(desk.bytes("wide"), Some(wide("b\r\nc\r\n")));
}

#[test]
fn file_in_an_old_encoding_is_read_and_edited_in_place() {
    let cases: [(&[u8], &str, &str, &[u8]); 3] = [
        (
            b"// \xa9 ACME\r\nint main() { return 0; }\r\n",
            "windows-1252",
            "// ©",
            b"// \xa9 ACME\r\nint main() { return 1; }\r\n",
        ),
        (
            b"/* \xd6\xd0\xce\xc4 */\nint x = 0;\n",
            "GBK",
            "中文",
            b"/* \xd6\xd0\xce\xc4 */\nint x = 1;\n",
        ),
        (
            b"\x90\xdd\x92\xe8=\x97L\nname=0\n",
            "Shift_JIS",
            "設定=有",
            b"\x90\xdd\x92\xe8=\x97L\nname=1\n",
        ),
    ];
    for (before, name, shown, after) in cases {
        let desk = Desk::with("f", before);
        let edit = |new: &str| json!({ "path": "f", "old_text": "0", "new_text": new });
        let unread = desk.call("edit_file", edit("1")).expect_err("unread");
        assert!(unread.contains("read it first"), "{unread}");
        let read = desk.call("read_file", json!({ "path": "f" }));
        let read = read.expect(name);
        assert!(
            read.contains(shown) && read.ends_with(&format!(", {name}]")),
            "{read}"
        );
        let refused = desk
            .call("edit_file", edit("\u{1f600}"))
            .expect_err("no such character");
        assert!(
            refused.contains(&format!("its encoding {name} has no character")),
            "{refused}"
        );
        desk.call("edit_file", edit("1")).expect(name);
        assert_eq!(desk.bytes("f").as_deref(), Some(after), "{name}");
        let written = json!({ "path": "f", "content": shown });
        desk.call("write_file", written)
            .expect("it has these characters");
        let label = json!({ "path": "f", "encoding": name.to_lowercase() });
        let read = desk.call("read_file", label).expect(name);
        assert!(read.contains(shown), "{read}");
    }
    // The caller knows better than the detection.
    let desk = Desk::with("f", b"\xc4\xe9\xed\n");
    let label = |label: &str| desk.call("read_file", json!({ "path": "f", "encoding": label }));
    assert!(label("iso-8859-2").is_ok_and(|read| read.contains("Äéí")));
    assert!(label("windows-1251").is_ok_and(|read| read.contains("Дйн")));
    assert!(label("klingon").is_err_and(|why| why.contains("no encoding has the label")));
    let edit = json!({ "path": "f", "old_text": "Дйн", "new_text": "Дй" });
    desk.call("edit_file", edit)
        .expect("it is edited as it was read");
    assert_eq!(desk.bytes("f").as_deref(), Some(&b"\xc4\xe9\n"[..]));
    // Both tools give the same reason.
    for (bytes, reason) in [
        (
            &b"caf\xc3\xa9s, caf\xc3\xa9\n\xff\n"[..],
            "is UTF-8 with an invalid byte in line 2",
        ),
        (b"\0\x01", "is a binary file"),
    ] {
        let desk = Desk::with("f", bytes);
        let edit = json!({ "path": "f", "old_text": "a", "new_text": "b" });
        for (tool, args) in [("read_file", json!({ "path": "f" })), ("edit_file", edit)] {
            let why = desk.call(tool, args).expect_err(reason);
            assert!(why.contains(reason), "{tool}: {why}");
        }
    }
}

#[test]
fn edit_that_cannot_apply_is_found_before_it_is_approved() {
    let conversation = Conversation {
        history: Transcript::new(),
        so_far: [].into(),
    };
    let desk = Desk::with("f", "one\n");
    let check = |tool: &str, args: Value| {
        let tools = desk.tools[1].toolset();
        let tool = tools.get(tool).expect("it is there").clone();
        tool.check(&args, &conversation)
            .map_err(|error| error.to_string())
    };
    let edit = |old: &str| json!({ "path": "f", "old_text": old, "new_text": "2" });
    let unread = check("edit_file", edit("one")).expect_err("unread");
    assert!(unread.contains("read it first"), "{unread}");
    desk.read("f");
    let missing = check("edit_file", edit("two")).expect_err("missing");
    assert!(missing.contains("old_text is not in the file"), "{missing}");
    assert_eq!(check("edit_file", edit("one")), Ok(()));
    let patch = |line: &str| json!({ "patch": format!("*** Begin Patch\n*** Update File: f\n@@\n-{line}\n+2\n*** End Patch") });
    assert!(check("apply_patch", patch("two")).is_err());
    assert_eq!(check("apply_patch", patch("one")), Ok(()));
    assert!(check("delete_file", json!({ "path": "g" })).is_err());
    assert!(check("move_file", json!({ "from": "f", "to": "f" })).is_err());
    assert_eq!(
        check("write_file", json!({ "path": "new", "content": "x" })),
        Ok(())
    );
    assert_eq!(
        (desk.text("f").as_str(), desk.bytes("new")),
        ("one\n", None)
    );
}

#[test]
fn patch_is_applied_whole_or_not_at_all() {
    let old = "one\ntwo\nthree\nfour\n  five \n“six” – 7\n";
    // (the parts of an update, what the file is then or a part of the error)
    let table: [(&str, Result<&str, &str>); 15] = [
        (
            "@@\n two\n-three\n+3\n four",
            Ok(&old.replace("three", "3")),
        ),
        ("-two\n+2", Ok(&old.replace("two", "2"))),
        ("@@ two\n-three\n+3", Ok(&old.replace("three", "3"))),
        (
            "@@\n-one\n+1\n@@\n-four\n+4",
            Ok(&old.replace("one", "1").replace("four", "4")),
        ),
        ("@@\n-five\n+5", Ok(&old.replace("  five ", "5"))),
        ("@@\n-\"six\" - 7\n+6", Ok(&old.replace("“six” – 7", "6"))),
        ("@@\n+seven", Ok(&format!("{old}seven\n"))),
        ("@@ two\n+2.5", Ok(&old.replace("two\n", "two\n2.5\n"))),
        (
            "@@\n-\"six\" - 7\n*** End of File",
            Ok(&old.replace("“six” – 7\n", "")),
        ),
        ("@@\n-nowhere\n+x", Err("these lines are not in the file")),
        (
            "@@ nowhere\n-one\n+x",
            Err("these lines are not in the file"),
        ),
        (
            "@@\n-four\n+4\n@@\n-one\n+1",
            Err("these lines stand in line 1, before or within"),
        ),
        (
            "@@\n one\n-two\n+2\n three\n@@\n two\n-three\n+3",
            Err("these lines"),
        ),
        ("@@\n one", Err("changes nothing")),
        ("@@\n*one", Err("begins with none of")),
    ];
    for (parts, expect) in table {
        let desk = Desk::with("d/f", old);
        let patch = format!(
            "*** Begin Patch\n*** Add File: n/new\n+x\n*** Update File: d/f\n{parts}\n*** End Patch\n"
        );
        let said = desk.call("apply_patch", json!({ "patch": patch }));
        match expect {
            Ok(expect) => {
                assert_eq!(
                    (desk.text("d/f").as_str(), said.is_ok()),
                    (expect, true),
                    "{parts}: {said:?}"
                );
                assert_eq!(desk.text("n/new"), "x\n");
            }
            Err(part) => {
                let why = said.expect_err(parts);
                assert!(why.contains(part), "{parts}: {why}");
                assert_eq!(
                    (desk.text("d/f").as_str(), desk.bytes("n/new")),
                    (old, None),
                    "{parts}"
                );
            }
        }
    }
    let desk = Desk::with("a", "a\n");
    desk.put("b", "b\n");
    desk.read("b");
    let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: c/a\n@@\n-a\n+A\n*** Delete File: b\n*** End Patch";
    desk.call("apply_patch", json!({ "patch": patch }))
        .expect("it is applied");
    assert_eq!(
        (desk.text("c/a").as_str(), desk.bytes("a"), desk.bytes("b")),
        ("A\n", None, None)
    );
    for wrong in [
        "",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\nx\n*** End Patch",
        "*** Begin Patch\n*** Delete File: c/a",
        "*** Begin Patch\n*** Add File: c/a\n+x\n*** End Patch",
        "*** Begin Patch\n*** Delete File: x\n*** End Patch",
        "*** Begin Patch\n*** Delete File: c/a\n*** Delete File: ./c/a\n*** End Patch",
    ] {
        desk.call("apply_patch", json!({ "patch": wrong }))
            .expect_err(wrong);
        assert_eq!(desk.text("c/a"), "A\n", "{wrong}");
    }
}

#[test]
fn file_that_was_not_read_as_it_is_is_not_written_over() {
    let desk = Desk::with("f", "one\n");
    let write = json!({ "path": "f", "content": "two\n" });
    let edit = json!({ "path": "f", "old_text": "o", "new_text": "x" });
    let (gone, moved) = (json!({ "path": "f" }), json!({ "from": "f", "to": "g" }));
    let gone_too = json!({ "patch": "*** Begin Patch\n*** Delete File: f\n*** End Patch" });
    let needs = [
        ("write_file", &write),
        ("edit_file", &edit),
        ("delete_file", &gone),
        ("move_file", &moved),
        ("apply_patch", &gone_too),
    ];
    for (tool, args) in needs {
        assert_eq!(
            desk.call(tool, args.clone()).expect_err(tool),
            "`f` is there and was not read; read it first"
        );
    }
    desk.read("f");
    desk.put("f", "three\n");
    let patch =
        json!({ "patch": "*** Begin Patch\n*** Update File: f\n@@\n-three\n+x\n*** End Patch" });
    for (tool, args) in needs.into_iter().chain([("apply_patch", &patch)]) {
        let why = desk.call(tool, args.clone()).expect_err(tool);
        assert_eq!(
            (why.as_str(), desk.text("f").as_str()),
            (
                "`f` was changed since it was read; read it again",
                "three\n"
            )
        );
    }
    desk.read("f");
    desk.call("write_file", write).expect("it was read");
    desk.call(
        "edit_file",
        json!({ "path": "f", "old_text": "two", "new_text": "2" }),
    )
    .expect("its own text is known");
    assert_eq!(desk.text("f"), "2\n");
}

#[cfg(unix)]
#[test]
fn file_keeps_its_owner_and_its_rights() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let desk = Desk::with("f", "old");
    let path = desk.place.path().join("root/f");
    // Only root may give files away; for others the owner is the same anyway.
    let given = chown(&path, Some(65_534), Some(65_534)).is_ok();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4640)).expect("it is ours");
    let check = |text: &str| {
        let now = fs::metadata(&path).expect("it is there");
        assert_eq!(
            (desk.text("f").as_str(), now.mode() & 0o7777),
            (text, 0o4640)
        );
        assert!(
            !given || (now.uid(), now.gid()) == (65_534, 65_534),
            "{} {}",
            now.uid(),
            now.gid()
        );
    };
    desk.read("f");
    desk.call("write_file", json!({ "path": "f", "content": "new" }))
        .expect("it is written");
    check("new");
    desk.undo
        .restore(&desk.files, &desk.changes())
        .expect("it is put back");
    check("old");
}

#[test]
#[cfg(unix)]
fn nothing_outside_the_folder_is_changed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let desk = Desk::with("f", "inside\n");
    fs::create_dir(desk.place.path().join("out")).expect("a folder");
    fs::write(desk.place.path().join("out/secret"), "secret\n").expect("a file");
    for (from, to) in [
        ("link", "../out/secret"),
        ("folder", "../out"),
        ("lost", "nowhere"),
        ("own", ".git"),
    ] {
        symlink(to, desk.root().join(from)).expect("a link");
    }
    fs::create_dir(desk.root().join(".git")).expect("a folder");
    let absolute = desk
        .place
        .path()
        .join("out/new")
        .to_string_lossy()
        .into_owned();
    let paths = [
        "../out/secret",
        "../out/new",
        "link",
        "folder/secret",
        "folder/new",
        "/etc/passwd",
        &absolute,
        "..",
        ".",
        "",
        "a/../../out/x",
        "lost",
        "lost/x",
        ".git/config",
        ".GIT/hooks/x",
        "own/x",
        ".adjutant/rules",
        "a/.Adjutant/rules",
        "x/../.git/x",
        "/proc/self/cwd/x",
        "f/x",
    ];
    for path in paths {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch");
        for (tool, args) in [
            ("write_file", json!({ "path": path, "content": "x" })),
            ("apply_patch", json!({ "patch": patch })),
            ("move_file", json!({ "from": "f", "to": path })),
            ("delete_file", json!({ "path": path })),
        ] {
            desk.call(tool, args).expect_err(&format!("{tool} {path}"));
        }
    }
    let outside: Vec<_> = fs::read_dir(desk.place.path().join("out"))
        .expect("a folder")
        .collect();
    assert_eq!((outside.len(), desk.text("f").as_str()), (1, "inside\n"));
    assert_eq!(
        fs::read_to_string(desk.place.path().join("out/secret")).expect("a file"),
        "secret\n"
    );
    assert!(desk.changes().is_empty(), "nothing was noted");
    // Permissions stay, a second name keeps the old text, and a name may be odd.
    fs::set_permissions(desk.root().join("f"), fs::Permissions::from_mode(0o751))
        .expect("they are set");
    fs::hard_link(desk.root().join("f"), desk.place.path().join("out/other")).expect("a name");
    desk.read("f");
    desk.call("write_file", json!({ "path": "f", "content": "new\n" }))
        .expect("it is written");
    assert_eq!(mode(&desk.root().join("f")) & 0o777, 0o751);
    assert_eq!(
        fs::read_to_string(desk.place.path().join("out/other")).expect("a file"),
        "inside\n"
    );
    desk.call(
        "write_file",
        json!({ "path": "a\nb\u{1b}", "content": "x" }),
    )
    .expect("it is written");
    fs::set_permissions(desk.root(), fs::Permissions::from_mode(0o755)).expect("they are set");
    let leftovers = desk
        .all()
        .into_keys()
        .filter(|name| name.contains(".tmp"))
        .count();
    assert_eq!(leftovers, 0);
}

#[test]
fn undo_refuses_what_was_changed_since_and_deletes_nothing_else() {
    let desk = Desk::with("f", "one\n");
    desk.read("f");
    desk.call("write_file", json!({ "path": "f", "content": "two\n" }))
        .expect("it is written");
    desk.call(
        "write_file",
        json!({ "path": "new/deep/g", "content": "g\n" }),
    )
    .expect("it is written");
    desk.put("f", "somebody's\n");
    desk.put("new/theirs", "x");
    let error = desk
        .undo
        .restore(&desk.files, &desk.changes())
        .expect_err("it was changed");
    assert_eq!(error.kind(), ErrorKind::Undo);
    assert_eq!(
        error.to_string(),
        "nothing was put back: f: it was changed by another program since"
    );
    assert_eq!(desk.text("new/deep/g"), "g\n");
    desk.put("f", "two\n");
    let restored = desk
        .undo
        .restore(&desk.files, &desk.changes())
        .expect("it is put back");
    assert_eq!(restored, [Path::new("f"), Path::new("new/deep/g")]);
    assert_eq!(
        (desk.text("f").as_str(), desk.text("new/theirs").as_str()),
        ("one\n", "x")
    );
    assert!(!desk.root().join("new/deep").exists());
    assert!(
        desk.undo
            .restore(&desk.files, &desk.changes())
            .expect("all is as it was")
            .is_empty()
    );
    // A blank is a part of a name, and takes no other file away.
    desk.call("write_file", json!({ "path": " f ", "content": "x" }))
        .expect("it is written");
    desk.undo
        .restore(&desk.files, &desk.changes())
        .expect("it is put back");
    assert!(!desk.root().join(" f ").exists() && desk.text("f") == "one\n");
    let made_up = json!({ "path": "../x", "before": "../../etc/passwd", "after": null });
    let change = FileChange::from_note("file.changed", &made_up).expect("it is one");
    desk.undo
        .restore(&desk.files, &[change])
        .expect_err("a log that was made up leads nowhere");
}

#[cfg(unix)]
#[test]
fn fork_has_the_files_as_the_agent_had_them_and_leaves_the_others_alone() {
    use std::os::unix::{fs::symlink, net::UnixListener};
    let desk = Desk::with("f", "one\n");
    for (path, text) in [
        (".git/HEAD", "ref\n"),
        (".gitignore", "out\n"),
        ("out/built", "b"),
        ("sub/.git", "gitdir: /x\n"),
    ] {
        desk.put(path, text);
    }
    desk.put(".adjutant/run/token", "secret");
    fs::set_permissions(
        desk.root().join("out"),
        std::os::unix::fs::PermissionsExt::from_mode(0o555),
    )
    .expect("they are set");
    symlink("/etc", desk.root().join("away")).expect("a link");
    let _socket = UnixListener::bind(desk.root().join("socket")).expect("a socket");
    desk.read("f");
    desk.call("write_file", json!({ "path": "f", "content": "two\n" }))
        .expect("it is written");
    desk.call("write_file", json!({ "path": "new/g", "content": "g\n" }))
        .expect("it is written");
    desk.call("write_file", json!({ "path": "f", "content": "three\n" }))
        .expect("it is written");
    desk.put("f", "somebody's\n");
    let (changes, before) = (desk.changes(), desk.all());
    let fork = |cut: usize, name: &str| {
        desk.undo.fork(
            &desk.files,
            &changes[..cut],
            &changes[cut..],
            desk.place.path().join(name),
        )
    };
    // (changes, f, whether there is g, what the agent had otherwise)
    for (cut, text, is_new, other) in [
        (0, "one\n", false, vec![]),
        (1, "two\n", false, vec![]),
        (2, "two\n", true, vec![]),
        (3, "somebody's\n", true, vec!["f"]),
    ] {
        let to = desk.place.path().join(format!("copy {cut}"));
        let mut forked = fork(cut, &format!("copy {cut}")).expect("it is copied");
        assert_eq!(fs::read_to_string(to.join("f")).expect("it is there"), text);
        assert_eq!(
            (to.join("new").exists(), &forked.other),
            (is_new, &other.iter().map(|it| (*it).into()).collect())
        );
        forked.left_out.sort();
        assert_eq!(
            forked.left_out,
            [".adjutant/run", "socket", "sub/.git"].map(Path::new)
        );
        assert_eq!(
            fs::read_link(to.join("away")).expect("a link"),
            Path::new("/etc")
        );
        for same in [".git/HEAD", ".gitignore", "out", "out/built"] {
            assert_eq!(Desk::all_of(&to).get(same), before.get(same), "{same}");
        }
        // The copy is undone by itself.
        let own = Files::new(&to).expect("it is one");
        if cut == 2 {
            desk.undo
                .restore(&own, &changes[..2])
                .expect("nobody else was there");
            assert_eq!(
                (
                    fs::read_to_string(to.join("f"))
                        .expect("it is there")
                        .as_str(),
                    to.join("new").exists()
                ),
                ("one\n", false)
            );
        }
    }
    let refused = |to: &str| {
        let error = fork(0, to).expect_err("it is refused");
        (
            error.kind(),
            error
                .to_string()
                .split(": ")
                .next()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    let part = "the copy would be part of the folder that is copied, or the other way round";
    for (to, why) in [
        ("copy 0", "the folder for the copy is not empty"),
        ("root/in", part),
        ("root", part),
        ("", part),
    ] {
        assert_eq!(refused(to), (ErrorKind::Root, why.to_owned()), "{to}");
    }
    assert_eq!(refused("not/there").0, ErrorKind::Root);
    assert_eq!(desk.all(), before);
    desk.put(&format!("{}x", "d/".repeat(70)), "");
    let (kind, why) = refused("too deep");
    assert_eq!(
        (kind, why.as_str()),
        (ErrorKind::Undo, "the files cannot be copied")
    );
    assert!(!desk.place.path().join("too deep").exists());
}

/// What may be done to few files.
/// In each round another program changes the file, by a new one moved to its place, while a tool changes what it read.
#[test]
fn changes_of_others_are_never_lost_whenever_they_come() {
    let tools: [(&str, bool, Value); 5] = [
        (
            "edit_file",
            true,
            json!({ "path": "a", "old_text": "mine", "new_text": "more" }),
        ),
        (
            "write_file",
            false,
            json!({ "path": "a", "content": "mine" }),
        ),
        ("delete_file", true, json!({ "path": "a" })),
        ("move_file", true, json!({ "from": "a", "to": "b" })),
        ("undo", true, json!({ "path": "a", "content": "more" })),
    ];
    for (tool, is_there, args) in &tools {
        for round in 0..80_u32 {
            let desk = Desk::new();
            let path = desk.root().join("a");
            if *is_there {
                desk.put("a", "mine");
                desk.read("a");
            }
            fs::write(desk.place.path().join("theirs"), "theirs").expect("a file");
            if *tool == "undo" {
                desk.call("write_file", args.clone())
                    .expect("it is written");
            }
            let start = Barrier::new(2);
            let told = thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    // Sooner and later, so that every step of the tool is met.
                    (0..round * 800).for_each(|_| hint::spin_loop());
                    fs::rename(desk.place.path().join("theirs"), &path).expect("it is moved");
                });
                start.wait();
                match *tool {
                    "undo" => {
                        let done = desk.undo.restore(&desk.files, &desk.changes());
                        done.map(|_| String::new())
                            .map_err(|error| error.message().to_owned())
                    }
                    tool => desk.call(tool, args.clone()),
                }
            });
            assert_eq!(
                desk.bytes("a").as_deref(),
                Some(&b"theirs"[..]),
                "{tool}, round {round}: {told:?}"
            );
            let left: Vec<_> = desk
                .all()
                .into_keys()
                .filter(|name| name.starts_with(".adjutant"))
                .collect();
            assert_eq!(
                left,
                Vec::<String>::new(),
                "{tool}, round {round}: {told:?}"
            );
            let known = [
                "was changed meanwhile",
                "since it was read",
                "was not read",
                "it was changed by another program",
            ];
            assert!(
                told.as_ref()
                    .err()
                    .is_none_or(|why| known.iter().any(|it| why.contains(it))),
                "{tool}: {told:?}"
            );
        }
    }
}

fn step() -> impl Strategy<Value = (u8, usize, usize, String)> {
    (0..5u8, 0..4usize, 0..4usize, "[a-c\n]{0,6}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn undo_puts_back_every_byte_whatever_was_done(steps in prop::collection::vec(step(), 1..20), keep in 0..4usize) {
        const NAMES: [&str; 4] = ["a", "b/c", "b/d/e", "f"];
        let desk = Desk::new();
        NAMES.iter().take(keep).for_each(|name| desk.put(name, format!("{name}\n")));
        let mut states = vec![(0, desk.all())];
        for (what, one, other, text) in steps {
            let (one, other) = (NAMES[one], NAMES[other]);
            let _ = desk.call("read_file", json!({ "path": one }));
            let _ = match what {
                0 | 1 => desk.call("write_file", json!({ "path": one, "content": text })),
                2 => desk.call("edit_file", json!({ "path": one, "old_text": "a", "new_text": text })),
                3 => desk.call("delete_file", json!({ "path": one })),
                _ => desk.call("move_file", json!({ "from": one, "to": other })),
            };
            states.push((desk.changes().len(), desk.all()));
        }
        let changes = desk.changes();
        let files = |all: BTreeMap<String, (u32, Option<Vec<u8>>)>| {
            all.into_iter().filter(|(_, (_, bytes))| bytes.is_some()).collect::<Vec<_>>()
        };
        // Back step by step, each time with all changes since: what was put back before is among them.
        for back in [states.len() * 3 / 4, states.len() / 2, states.len() / 4, 0] {
            let (upto, state) = states[back].clone();
            desk.undo.restore(&desk.files, &changes[upto..]).expect("nobody else was there");
            prop_assert_eq!(files(desk.all()), files(state));
        }
        // A copy is as it was at any place, also after that was taken back.
        for (at, (upto, state)) in [1, 2].map(|part| states[states.len() * part / 3].clone()).into_iter().enumerate() {
            let to = desk.place.path().join(format!("copy {at}"));
            let forked = desk.undo.fork(&desk.files, &changes[..upto], &changes[upto..], &to).expect("it is copied");
            prop_assert_eq!(forked.other.len(), 0);
            prop_assert_eq!(files(Desk::all_of(&to)), files(state));
        }
    }
}
