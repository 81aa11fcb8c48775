//! What the file tools show, and what they refuse to show.

use std::{fs, path::Path};

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, Cancel, Detached, Identity, Replay, ToolError, ToolErrorKind};
use adjutant_toolkit::{Edits, ErrorKind, Files};
use serde_json::{Value, json};
use tempfile::TempDir;

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, bytes) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a file stands in a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    folder
}

fn call_in(root: &Path, tool: &str, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
    call_of(&Files::new(root).expect("a folder"), tool, args, cx)
}

fn call_of(
    files: &Files,
    tool: &str,
    args: Value,
    cx: CallContext,
) -> Result<CallResult, ToolError> {
    let tools = files.toolbox();
    let tool = tools
        .toolset()
        .get(tool)
        .expect("the toolbox holds the tool")
        .clone();
    tool.schema()
        .expect("a schema")
        .validate(&args)
        .expect("the arguments fit");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(tool.call(args, cx))
}

fn call(folder: &TempDir, tool: &str, args: Value) -> Result<CallResult, ToolError> {
    call_in(folder.path(), tool, args, CallContext::detached())
}

#[track_caller]
fn check(folder: &TempDir, tool: &str, args: Value, expect: &str) {
    let shown = match call(folder, tool, args) {
        Ok(result) => result.text(),
        Err(error) => format!("error: {error}"),
    };
    assert_eq!(shown, expect);
}

#[test]
fn toolbox_holds_three_pure_tools_when_made() {
    let folder = folder(&[]);
    let tools = Files::new(folder.path()).expect("a folder").toolbox();
    let specs: Vec<_> = tools
        .toolset()
        .iter()
        .map(|tool| (tool.spec().name().to_string(), tool.spec().replay))
        .collect();
    let names = ["list_files", "read_file", "search_text"];
    assert_eq!(specs, names.map(|name| (name.to_owned(), Replay::Pure)));
    let mut hints = tools.toolset().iter().map(|tool| tool.spec().hints);
    assert!(hints.all(|hints| hints.reads_only == Some(true) && hints.open_world == Some(false)));
    let edits = Edits::new(&Files::new(folder.path()).expect("a folder")).toolbox();
    assert!(
        edits
            .toolset()
            .iter()
            .all(|tool| tool.spec().hints.destructive == Some(true))
    );
    let decl = &tools.toolset().decls()[1];
    assert_eq!(decl.schema["required"], json!(["path"]));
    assert_eq!(decl.schema["additionalProperties"], json!(false));
    assert!(
        decl.description.starts_with("Reads a text file;"),
        "{}",
        decl.description
    );
    assert!(
        decl.schema.get("title").is_none() && decl.schema.get("$schema").is_none(),
        "{}",
        decl.schema
    );
}

#[test]
fn files_refuses_a_root_when_it_is_no_directory() {
    let folder = folder(&[("file", b"")]);
    let error = Files::new(folder.path().join("file")).expect_err("a file is no folder");
    assert_eq!(error.kind(), ErrorKind::Root);
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn list_shows_sizes_and_slashes_when_nested() {
    let folder = folder(&[
        ("b/c/d/e.txt", b"1"),
        ("b/f.txt", &[b'x'; 2_048]),
        ("a.txt", b"abc"),
        (".hidden", b""),
    ]);
    check(
        &folder,
        "list_files",
        json!({}),
        "a.txt  3 B\nb/\nb/c/\nb/f.txt  2.0 KB\n[2 files, 2 directories]",
    );
    check(
        &folder,
        "list_files",
        json!({"path": "./b/c", "depth": 9}),
        "b/c/d/\nb/c/d/e.txt  1 B\n[1 file, 1 directory]",
    );
    check(
        &folder,
        "list_files",
        json!({"path": "a.txt"}),
        "error: `a.txt` is a file, not a directory; read_file shows it",
    );
    check(
        &folder,
        "list_files",
        json!({"path": "no"}),
        "error: there is no `no`",
    );
    check(
        &folder,
        "list_files",
        json!({"path": "a.txt/x"}),
        "error: there is no `a.txt/x`: a part of it is no directory",
    );
}

#[test]
fn list_says_so_when_the_folder_is_empty() {
    check(
        &folder(&[]),
        "list_files",
        json!({}),
        "`.` holds nothing to show\n[0 files, 0 directories]",
    );
}

#[test]
fn list_keeps_the_shallow_entries_when_there_are_too_many() {
    let folder = folder(&[("a/1", b""), ("a/2", b""), ("b/3", b""), ("c", b"")]);
    let result = call(&folder, "list_files", json!({"limit": 4})).expect("a list");
    let expect = "a/\na/1  0 B\nb/\nc  0 B\n\
        [4 files, 2 directories; 2 of them left out: list a directory below, or a smaller depth]";
    assert_eq!(result.text(), expect);
    let details = json!({"files": 4, "directories": 2, "shown": 4, "left_out": 2, "unreadable": 0, "truncated": true});
    assert_eq!(result.details, details);
}

#[test]
fn list_follows_ignore_rules_when_they_are_nested_and_negated() {
    let folder = folder(&[
        (".gitignore", b"*.log\r\n/target\n!keep.log\n[broken\n"),
        ("target/x", b""),
        ("a.log", b""),
        ("keep.log", b""),
        ("sub/.gitignore", b"!b.log\nonly.txt\n"),
        ("sub/b.log", b""),
        ("sub/c.log", b"x"),
        ("sub/target/y", b""),
        ("sub/only.txt", b""),
        ("other/.ignore", b"!d.log\nz\n"),
        ("other/d.log", b""),
        ("other/z/w", b""),
        (".git/config", b"secret"),
    ]);
    let expect = "keep.log  0 B\nother/\nother/d.log  0 B\nsub/\nsub/b.log  0 B\nsub/target/\n[3 files, 3 directories]";
    check(&folder, "list_files", json!({}), expect);
    // The rules of the directories above hold too; a directory that is named is shown all the same.
    check(
        &folder,
        "list_files",
        json!({"path": "sub", "depth": 1}),
        "sub/b.log  0 B\nsub/target/\n[1 file, 1 directory]",
    );
    check(
        &folder,
        "list_files",
        json!({"path": "target"}),
        "target/x  0 B\n[1 file, 0 directories]",
    );
    for (tool, args) in [
        ("list_files", json!({"path": ".git"})),
        (
            "search_text",
            json!({"pattern": "secret", "path": "sub/../.git"}),
        ),
    ] {
        let error = call(&folder, tool, args).expect_err("git's own files are not shown");
        assert!(
            error
                .message
                .ends_with("is not shown: it belongs to git itself"),
            "{error}"
        );
    }
    check(
        &folder,
        "search_text",
        json!({"pattern": "secret|x"}),
        "[no match for `secret|x` in 4 files]",
    );
}

#[test]
fn read_shows_numbers_when_the_file_is_text() {
    let folder = folder(&[
        ("crlf.txt", b"\xEF\xBB\xBFone\r\ntwo\r\n\r\nfour"),
        ("empty", b""),
        ("d/x", b""),
    ]);
    let read = |args| (&folder, "read_file", args);
    let case = |args, expect: &str| {
        let (folder, tool, args) = read(args);
        check(folder, tool, args, expect);
    };
    case(
        json!({"path": "crlf.txt"}),
        "     1\tone\n     2\ttwo\n     3\t\n     4\tfour\n[lines 1-4 of 4, 19 B]",
    );
    case(
        json!({"path": "crlf.txt", "start_line": 2, "end_line": 2}),
        "     2\ttwo\n[lines 2-2 of a file of 19 B; read on with start_line=3]",
    );
    case(
        json!({"path": "crlf.txt", "start_line": 4, "end_line": 9}),
        "     4\tfour\n[lines 4-4 of 4, 19 B]",
    );
    case(
        json!({"path": "crlf.txt", "start_line": 5}),
        "error: `crlf.txt` has only 4 lines",
    );
    case(
        json!({"path": "crlf.txt", "start_line": 3, "end_line": 2}),
        "error: end_line 2 stands before start_line 3",
    );
    case(json!({"path": "empty"}), "[`empty` is empty]");
    case(
        json!({"path": "d"}),
        "error: `d` is a directory; list_files shows it",
    );
    case(
        json!({"path": ""}),
        "error: `.` is a directory; list_files shows it",
    );
    case(
        json!({"path": "a\u{0}b"}),
        "error: cannot open `a\\u{0}b`: invalid input parameter",
    );
}

#[test]
fn read_names_the_size_when_the_file_is_binary() {
    let folder = folder(&[
        ("nul", b"text\0more"),
        ("latin", b"fine\ncaf\xE9\n"),
        ("late", &late_nul()),
    ]);
    check(
        &folder,
        "read_file",
        json!({"path": "nul"}),
        "error: `nul` is a binary file of 9 B, not UTF-8 text",
    );
    check(
        &folder,
        "read_file",
        json!({"path": "latin"}),
        "     1\tfine\n     2\tcafé\n[lines 1-2 of 2, 10 B, windows-1252]",
    );
    check(
        &folder,
        "read_file",
        json!({"path": "late"}),
        "error: `late` is a binary file of 29.3 KB, not UTF-8 text",
    );
}

fn late_nul() -> Vec<u8> {
    let mut bytes = vec![b'x'; 30_000];
    bytes[29_999] = 0;
    bytes
}

#[test]
fn read_cuts_a_line_when_it_is_huge() {
    let mut huge = "é".repeat(1_500_000).into_bytes();
    huge.splice(0..0, *b"x");
    huge.extend(b"\nnext\n");
    let folder = folder(&[("huge", &huge)]);
    let result = call(&folder, "read_file", json!({"path": "huge"})).expect("text");
    let expect = format!(
        "     1\tx{} [+2.9 MB of this line]\n     2\tnext\n[lines 1-2 of 2, 2.9 MB]",
        "é".repeat(999)
    );
    assert_eq!(result.text(), expect);
    assert_eq!(result.details["lines_cut"], 1);
}

#[test]
fn read_says_how_to_go_on_when_the_file_is_long() {
    let text: String = (1..=10_000).map(|n| format!("line {n}\n")).collect();
    let folder = folder(&[("long", text.as_bytes())]);
    let mut next = 1;
    let mut read = String::new();
    for _ in 0..10 {
        let result = call(
            &folder,
            "read_file",
            json!({"path": "long", "start_line": next}),
        )
        .expect("text");
        let shown = result.text();
        assert!(shown.len() < 70_000, "{}", shown.len());
        let (lines, footer) = shown.rsplit_once('\n').expect("a footer stands alone");
        read.extend(
            lines
                .lines()
                .map(|line| format!("{}\n", line.split_once('\t').expect("a number").1)),
        );
        let more = footer
            .rsplit_once("start_line=")
            .map(|(_, number)| number.trim_end_matches(']').parse());
        assert_eq!(result.details["truncated"], json!(more.is_some()));
        match more {
            Some(number) => next = number.expect("a number"),
            None => break,
        }
    }
    assert_eq!(read, text);
}

#[test]
fn search_shows_places_when_it_finds() {
    let folder = folder(&[
        ("src/a.rs", b"fn one() {}\r\nfn two() {}\n// one\n"),
        ("src/b.txt", b"ONE\none"),
        ("bin", b"one\0"),
    ]);
    let case = |args, expect: &str| check(&folder, "search_text", args, expect);
    case(
        json!({"pattern": r"\bone\b"}),
        "src/a.rs:1: fn one() {}\nsrc/a.rs:3: // one\nsrc/b.txt:2: one\n\
         [3 matching lines in 2 of 2 files; 1 binary or unreadable, not searched]",
    );
    case(
        json!({"pattern": "^one$", "ignore_case": true, "path": "src", "glob": "*.txt"}),
        "src/b.txt:1: ONE\nsrc/b.txt:2: one\n[2 matching lines in 1 of 1 file]",
    );
    case(
        json!({"pattern": "one", "path": "src/a.rs", "max_results": 1}),
        "src/a.rs:1: fn one() {}\n[1 matching line in 1 of 1 file; stopped at a limit, there may be more: \
         narrow the pattern, the path or the glob]",
    );
    case(
        json!({"pattern": "absent", "glob": "*.rs"}),
        "[no match for `absent` in 1 file]",
    );
    let error = call(&folder, "search_text", json!({"pattern": "a("})).expect_err("no expression");
    assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    assert!(
        error.message.starts_with("not a regular expression: "),
        "{error}"
    );
}

#[test]
fn search_groups_lines_when_context_is_asked_for() {
    let folder = folder(&[("f", b"a\nb\nX\nc\nX\nd\ne\nf\nX\n")]);
    let expect = "f-2- b\nf:3: X\nf-4- c\nf:5: X\nf-6- d\n--\nf-8- f\nf:9: X\n[3 matching lines in 1 of 1 file]";
    check(
        &folder,
        "search_text",
        json!({"pattern": "X", "context_lines": 1}),
        expect,
    );
}

#[test]
fn search_shows_the_match_when_it_stands_far_into_a_line() {
    let line = format!("{}needle{}", "a".repeat(1_000), "b".repeat(1_000));
    let folder = folder(&[("f", line.as_bytes())]);
    let expect = format!(
        "f:1: …{}needle{} [+786 B]\n[1 matching line in 1 of 1 file]",
        "a".repeat(80),
        "b".repeat(214)
    );
    check(
        &folder,
        "search_text",
        json!({"pattern": "needle"}),
        &expect,
    );
}

#[test]
fn search_reads_lines_as_their_file_writes_them() {
    let wide = |text: &str, ends: fn(u16) -> [u8; 2]| {
        text.encode_utf16().flat_map(ends).collect::<Vec<u8>>()
    };
    let huge = format!("one\n{}\none\n", "x".repeat(9_000_000));
    let late = [b"one\n".repeat(10_000), b"one\0\n".to_vec()].concat();
    let folder = folder(&[
        ("crlf", b"one\r\n two\r\nnone\r\n"),
        (
            "little",
            &wide("\u{feff}one\n\u{1f600}\n", u16::to_le_bytes),
        ),
        ("big", &wide("\u{feff}two\r\none", u16::to_be_bytes)),
        ("marked", b"\xEF\xBB\xBFone"),
        ("huge", huge.as_bytes()),
        ("late", &late),
    ]);
    let case = |args, expect: &str| check(&folder, "search_text", args, expect);
    let found = "big:2: one\ncrlf:1: one\nhuge:1: one\n";
    let all = json!({"pattern": "^one$", "max_results": 3});
    let more = "stopped at a limit, there may be more: narrow the pattern, the path or the glob";
    case(
        all,
        &format!(
            "{found}[3 matching lines in 3 of 4 files; {more}; 1 searched only at their beginning]"
        ),
    );
    case(
        json!({"pattern": "^one$", "path": "little"}),
        "little:1: one\n[1 matching line in 1 of 1 file]",
    );
    case(
        json!({"pattern": "^one$", "path": "marked"}),
        "marked:1: one\n[1 matching line in 1 of 1 file]",
    );
    let result = call(
        &folder,
        "search_text",
        json!({"pattern": "one", "path": "late", "max_results": 1000}),
    );
    assert_eq!(
        result.expect("matches").details["matches"],
        1000,
        "a NUL far behind hides nothing"
    );
    case(
        json!({"pattern": "one\\ntwo"}),
        "error: not a regular expression: the literal \"\\n\" is not allowed in a regex",
    );
}

#[test]
fn search_tells_the_same_however_its_threads_meet() {
    let names: Vec<String> = (0..400)
        .map(|n| format!("{}/{}/f{n:03}", n % 3, n % 7))
        .collect();
    let texts: Vec<String> = (0..400)
        .map(|n| format!("needle {n}\n").repeat(if n == 0 { 1 } else { n % 4 }))
        .collect();
    let folder = folder(
        &names
            .iter()
            .zip(&texts)
            .map(|(name, text)| (&**name, text.as_bytes()))
            .collect::<Vec<_>>(),
    );
    let lines: Vec<String> = {
        let mut files: Vec<_> = names.iter().zip(&texts).collect();
        files.sort();
        let of = |(name, text): (&String, &String)| {
            text.lines()
                .enumerate()
                .map(|(at, line)| format!("{name}:{}: {line}", at + 1))
                .collect::<Vec<_>>()
        };
        files.into_iter().flat_map(of).collect()
    };
    for limit in [1, 33, 599, 1_000] {
        for _ in 0..10 {
            let args = json!({"pattern": "^needle", "max_results": limit});
            let text = call(&folder, "search_text", args).expect("matches").text();
            let (shown, end) = text.rsplit_once("\n[").expect("a footer stands alone");
            assert_eq!(
                shown.lines().collect::<Vec<_>>(),
                lines[..limit.min(lines.len())]
            );
            assert_eq!(
                end.contains("stopped at a limit"),
                limit < lines.len(),
                "{end}"
            );
        }
    }
}

#[test]
fn search_stops_when_the_text_is_full() {
    let text = format!("{}\n", "x".repeat(250)).repeat(1_000);
    let folder = folder(&[("f", text.as_bytes())]);
    let result = call(
        &folder,
        "search_text",
        json!({"pattern": "x", "max_results": 1000}),
    )
    .expect("matches");
    assert!(result.text().len() < 70_000, "{}", result.text().len());
    assert_eq!(result.details["truncated"], true);
}

#[test]
fn tools_stop_when_they_are_cancelled() {
    let folder = folder(&[("f", b"text")]);
    for (tool, args) in [
        ("list_files", json!({})),
        ("read_file", json!({"path": "f"})),
        ("search_text", json!({"pattern": "x"})),
    ] {
        let cancel = Cancel::new();
        cancel.cancel();
        let who = Identity::root("t".into(), "a", "a");
        let cx = CallContext::new(who.into(), cancel, std::sync::Arc::new(Detached));
        let error = call_in(folder.path(), tool, args, cx).expect_err("it was cancelled");
        assert_eq!(error.kind, ToolErrorKind::Cancelled, "{tool}");
    }
}

#[cfg(unix)]
#[test]
fn agents_are_not_shown_wherever_they_are_kept() {
    let folder = folder(&[
        (".adjutant/agents/scout.md", b"You look."),
        (".adjutant/run/1/host.json", b"the token"),
        ("sub/.Adjutant/RUN/1/host.json", b"the token"),
        ("kept/1/host.json", b"the token"),
        ("keep.txt", b"x"),
    ]);
    std::os::unix::fs::symlink("kept/1/host.json", folder.path().join("door")).expect("a link");
    let files = Files::new(folder.path())
        .expect("it is there")
        .without(folder.path().join("kept"))
        .expect("it is too");
    let shown = |tool, args| call_of(&files, tool, args, CallContext::detached());
    let list = shown("list_files", json!({"depth": 9})).expect("a list");
    assert_eq!(
        list.text(),
        "door  link\nkeep.txt  1 B\nsub/\n[2 files, 1 directory]"
    );
    let paths = [
        ".adjutant/run",
        ".adjutant/run/1/host.json",
        "sub/.Adjutant/RUN/1/host.json",
        "kept",
        "door",
    ];
    for path in paths {
        for tool in ["list_files", "read_file"] {
            let error = shown(tool, json!({"path": path})).expect_err("it is closed");
            assert!(
                error
                    .message
                    .ends_with("is not shown: agents are kept there"),
                "{path}: {error}"
            );
        }
    }
    for path in ["", ".adjutant", "sub/.Adjutant"] {
        let found =
            shown("search_text", json!({"pattern": "token", "path": path})).expect("it searches");
        assert!(
            found.text().starts_with("[no match"),
            "{path}: {}",
            found.text()
        );
    }
    assert!(shown("read_file", json!({"path": ".adjutant/agents/scout.md"})).is_ok());
}

#[test]
fn nothing_is_left_out_when_the_folder_is_elsewhere_and_nothing_is_left_when_it_is_above() {
    let folder = folder(&[("a/b/c.txt", b"x"), ("d/e.txt", b"y")]);
    let files = || Files::new(folder.path().join("a")).expect("it is there");
    let beside = files()
        .without(folder.path().join("d"))
        .expect("it is elsewhere");
    assert!(
        call_of(
            &beside,
            "read_file",
            json!({"path": "b/c.txt"}),
            CallContext::detached()
        )
        .is_ok()
    );
    for above in [
        folder.path().to_owned(),
        folder.path().join("a"),
        folder.path().join("none"),
    ] {
        assert_eq!(
            files().without(above).expect_err("nothing is left").kind(),
            ErrorKind::Root
        );
    }
}
