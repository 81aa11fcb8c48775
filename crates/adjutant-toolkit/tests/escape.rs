//! Nothing leads out of the root, and nothing but regular files is opened.
#![cfg(unix)]

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink, net::UnixListener},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use adjutant_tool::{CallContext, ToolErrorKind};
use adjutant_toolkit::Files;
use serde_json::{Value, json};
use tempfile::TempDir;

const SECRET: &str = "s3cret-content";

/// A folder `root` beside a file that must never be read.
fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(place.path().join("root/sub")).expect("a folder");
    fs::create_dir_all(place.path().join("outside")).expect("a folder");
    fs::write(place.path().join("outside/secret-name.txt"), SECRET).expect("a file");
    fs::write(place.path().join("root/inside.txt"), "inside\n").expect("a file");
    place
}

fn ask(files: &Files, tool: &str, args: Value) -> Result<String, (ToolErrorKind, String)> {
    let tool = files
        .toolbox()
        .toolset()
        .get(tool)
        .expect("the toolbox holds the tool")
        .clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let result = runtime.block_on(tool.call(args, CallContext::detached()));
    result
        .map(|it| it.text())
        .map_err(|error| (error.kind, error.message.to_string()))
}

#[track_caller]
fn check_refused(place: &TempDir, path: &str) {
    let files = Files::new(place.path().join("root")).expect("a folder");
    let calls = [
        ("list_files", json!({"path": path})),
        ("read_file", json!({"path": path})),
        ("search_text", json!({"path": path, "pattern": "."})),
    ];
    for (tool, args) in calls {
        let (kind, message) = ask(&files, tool, args).expect_err("it leads out");
        assert_eq!(kind, ToolErrorKind::Denied, "{tool} {path}: {message}");
        let expect = format!(
            "`{path}` leads out of the folder; paths are relative to the folder and stay inside"
        );
        assert_eq!(message, expect, "{tool}");
    }
}

#[test]
fn tools_refuse_when_a_path_leads_out() {
    let place = place();
    for path in [
        "..",
        "../outside/secret-name.txt",
        "sub/../../outside",
        "/",
        "/etc/passwd",
    ] {
        check_refused(&place, path);
    }
    let absolute = place.path().join("outside/secret-name.txt");
    check_refused(&place, absolute.to_str().expect("a plain name"));
}

#[test]
fn tools_refuse_when_a_link_leads_out() {
    let place = place();
    let root = place.path().join("root");
    symlink(
        place.path().join("outside/secret-name.txt"),
        root.join("absolute"),
    )
    .expect("a link");
    symlink("../outside/secret-name.txt", root.join("relative")).expect("a link");
    symlink("../outside", root.join("folder")).expect("a link");
    symlink("folder", root.join("chain")).expect("a link");
    for path in [
        "absolute",
        "relative",
        "folder",
        "folder/secret-name.txt",
        "chain/secret-name.txt",
    ] {
        check_refused(&place, path);
    }
    let files = Files::new(&root).expect("a folder");
    let list = "absolute  link\nchain  link\nfolder  link\ninside.txt  7 B\nrelative  link\nsub/\n[5 files, 1 directory]";
    assert_eq!(
        ask(&files, "list_files", json!({"depth": 9})),
        Ok(list.to_owned())
    );
    let none = "[no match for `s3cret` in 1 file]";
    assert_eq!(
        ask(&files, "search_text", json!({"pattern": "s3cret"})),
        Ok(none.to_owned())
    );
}

#[test]
fn tools_follow_a_link_when_it_stays_inside() {
    let place = place();
    let root = place.path().join("root");
    symlink("../inside.txt", root.join("sub/link")).expect("a link");
    symlink("loop", root.join("loop")).expect("a link");
    let files = Files::new(&root).expect("a folder");
    let text = "     1\tinside\n[lines 1-1 of 1, 7 B]";
    assert_eq!(
        ask(&files, "read_file", json!({"path": "sub/link"})),
        Ok(text.to_owned())
    );
    let (_, message) =
        ask(&files, "read_file", json!({"path": "loop"})).expect_err("it leads nowhere");
    assert!(message.starts_with("cannot open `loop`: "), "{message}");
}

#[test]
fn tools_stay_inside_when_links_are_swapped_in() {
    let place = place();
    let root = place.path().join("root");
    let files = Files::new(&root).expect("a folder");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                swap(
                    &root,
                    &root.join("sub"),
                    |at| fs::create_dir(at),
                    "../outside",
                );
                swap(
                    &root,
                    &root.join("inside.txt"),
                    |at| fs::write(at, "inside\n"),
                    "../outside/secret-name.txt",
                );
            }
        });
        for _ in 0..100 {
            for (tool, args) in [
                ("list_files", json!({"depth": 9})),
                ("list_files", json!({"path": "sub"})),
                ("read_file", json!({"path": "inside.txt"})),
                ("read_file", json!({"path": "sub/secret-name.txt"})),
                ("search_text", json!({"pattern": ".", "path": "sub"})),
                ("search_text", json!({"pattern": "."})),
            ] {
                let (Ok(shown) | Err((_, shown))) = ask(&files, tool, args.clone());
                assert!(!shown.contains(SECRET), "{tool} {args}: {shown}");
                // A path that was asked for is repeated; nothing else may name what is outside.
                let named = shown.replace("sub/secret-name.txt`", "");
                assert!(!named.contains("secret-name"), "{tool} {args}: {shown}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Puts a link in the place of something real, and the real thing back, each by one rename.
fn swap(root: &Path, at: &Path, make: impl Fn(&Path) -> std::io::Result<()>, target: &str) {
    let (link, real) = (root.join(".link"), root.join(".real"));
    let _ = fs::rename(at, &real);
    let _ = symlink(target, &link);
    let _ = fs::rename(&link, at);
    let _ = fs::remove_file(at);
    if fs::rename(&real, at).is_err() {
        let _ = make(at);
    }
}

#[test]
fn tools_do_not_hang_when_a_file_is_a_pipe_or_a_socket() {
    let place = place();
    let root = place.path().join("root");
    let made = std::process::Command::new("mkfifo")
        .arg(root.join("pipe"))
        .status();
    assert!(made.expect("it starts").success());
    let _socket = UnixListener::bind(root.join("socket")).expect("a socket");
    let files = Files::new(&root).expect("a folder");
    for path in ["pipe", "socket"] {
        let refused = format!("`{path}` is neither a file nor a directory, so it is not opened");
        assert_eq!(
            ask(&files, "read_file", json!({"path": path})),
            Err((ToolErrorKind::Failed, refused))
        );
    }
    let found = "inside.txt:1: inside\n[1 matching line in 1 of 1 file]";
    assert_eq!(
        ask(&files, "search_text", json!({"pattern": "."})),
        Ok(found.to_owned())
    );
    let list = "inside.txt  7 B\npipe  no regular file\nsocket  no regular file\nsub/\n[3 files, 1 directory]";
    assert_eq!(ask(&files, "list_files", json!({})), Ok(list.to_owned()));
    let device = Files::new("/dev").expect("a folder");
    let (_, message) =
        ask(&device, "read_file", json!({"path": "zero"})).expect_err("a device is not read");
    assert_eq!(
        message,
        "`zero` is neither a file nor a directory, so it is not opened"
    );
}

#[test]
fn tools_show_a_name_when_it_is_no_utf8_or_has_control_characters() {
    let place = place();
    let root = place.path().join("root");
    let written = fs::write(root.join(OsStr::from_bytes(b"caf\xE9")), "odd\n");
    written
        .and_then(|()| fs::write(root.join("two\nlines"), "odd\n"))
        .expect("the file system takes any name");
    let files = Files::new(&root).expect("a folder");
    let list = "caf\u{fffd}  4 B  (the name is no UTF-8, so it cannot be read)\ninside.txt  7 B\nsub/\n\
        two\\nlines  4 B\n[3 files, 1 directory]";
    assert_eq!(ask(&files, "list_files", json!({})), Ok(list.to_owned()));
    let found = "caf\u{fffd}:1: odd\ntwo\\nlines:1: odd\n[2 matching lines in 2 of 3 files]";
    assert_eq!(
        ask(&files, "search_text", json!({"pattern": "odd"})),
        Ok(found.to_owned())
    );
}
