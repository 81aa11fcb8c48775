//! The offline model and the file tools together, by hand: ask, run the calls, feed the results back.

use std::{fs, path::Path, sync::Arc};

use adjutant_llm::{CallResult, Entry, Request, Status, Turn, complete};
use adjutant_providers::offline::OfflineModel;
use adjutant_tool::{CallContext, Toolset};
use adjutant_toolkit::Files;

const FILES: &[(&str, &str)] = &[
    (
        "README.md",
        "# Demo\n\n[![build](x)](y)\n\nDemo turns letters into numbers. It is small.\n\n## Use\n",
    ),
    ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
    ("LICENSE", "MIT\n"),
    (".gitignore", "/target\n"),
    ("target/debug/Cargo.toml", "[package]\nname = \"built\"\n"),
    (
        "crates/alpha/Cargo.toml",
        "[package]\nname = \"demo-alpha\"\ndescription = \"Reads letters.\"\n",
    ),
    (
        "crates/alpha/src/lib.rs",
        "//! Reads letters.\n\n/// Reads one.\npub fn read_letter() -> char {\n    'a'\n}\n",
    ),
    (
        "crates/beta/Cargo.toml",
        "[package]\nname = \"demo-beta\"\ndescription = \"Prints numbers.\"\n",
    ),
    (
        "crates/beta/src/main.rs",
        "fn main() {\n    demo_alpha::read_letter();\n}\n",
    ),
];

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in FILES {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a file stands in a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

/// Runs one call the way an agent does: finds the tool, admits the arguments, makes any failure a result.
async fn run(tools: &Toolset, name: &str, args: &str) -> CallResult {
    let Some(tool) = tools.get(name) else {
        return CallResult::new(Status::UnknownTool, "no such tool");
    };
    let args = match tool.admit(args) {
        Ok(admitted) => admitted.value,
        Err(refusal) => return CallResult::new(Status::InvalidArguments, refusal.message),
    };
    let result = tool.call(args, CallContext::detached()).await;
    result.unwrap_or_else(|error| CallResult::new(Status::Failed, error.message))
}

/// Asks until the model answers; says what it called, request by request.
async fn ask(root: &Path, question: &str) -> (String, Vec<Vec<String>>) {
    let tools = Files::new(root).expect("a folder").toolbox();
    let tools = tools.toolset();
    let mut request = Request::new()
        .tools(Arc::clone(tools.decls()))
        .user(question);
    let mut called = Vec::new();
    loop {
        let reply = complete(&OfflineModel::new(), request.clone())
            .await
            .expect("it never fails");
        if reply.calls().next().is_none() {
            return (reply.text(), called);
        }
        let mut turn = Turn::open(Arc::clone(&reply));
        for call in reply.calls() {
            let result = run(tools, call.name.as_str(), &call.args).await;
            turn.put(call.id, Arc::new(result))
                .expect("every call is answered once");
        }
        called.push(
            reply
                .calls()
                .map(|it| format!("{} {}", it.name, it.args))
                .collect(),
        );
        request
            .entries
            .push(Entry::Turn(turn.close().expect("every call is answered")));
    }
}

#[track_caller]
fn check(question: &str, expect: &str) {
    let folder = workspace();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let (answer, called) = runtime.block_on(ask(folder.path(), question));
    assert_eq!(answer, expect, "{question}: {called:#?}");
    assert!(called.len() < 4, "{question}: {called:#?}");
}

#[test]
fn answer_names_the_crates_when_asked_what_the_directory_is() {
    let expect = "`Demo` is a Cargo workspace. Demo turns letters into numbers.\n\n\
        It holds 2 crates:\n\
        - `demo-alpha` (crates/alpha): Reads letters.\n- `demo-beta` (crates/beta): Prints numbers.\n\n\
        Files by language: TOML 3, Rust 2, Markdown 1.\n\
        Notable files: `Cargo.toml`, `LICENSE`, `README.md`.\nFolders: `crates/`.";
    check("What is this directory?", expect);
    check("describe the project", expect);
}

#[test]
fn answer_names_the_places_when_asked_where_a_symbol_is() {
    let expect = "`read_letter` occurs in 2 lines of 2 files.\n\n\
        Defined at:\n- `crates/alpha/src/lib.rs:4` pub fn read_letter() -> char {\n\n\
        Also at:\n- `crates/beta/src/main.rs:2` demo_alpha::read_letter();";
    check("Where is `read_letter` used?", expect);
    check("usages of read_letter", expect);
    let absent = "`absent_word` does not occur, as far as the search goes.";
    check("find absent_word", absent);
}

#[test]
fn answer_says_what_a_file_holds_when_asked_to_read_it() {
    let expect = "`README.md` (lines 1-7 of 7, 80 B).\nIts title is “Demo”.\n\
        It begins: Demo turns letters into numbers.\n\n\
        It holds:\n- Demo\n- Use";
    check("What does README.md say?", expect);
    let expect = "`crates/alpha/src/lib.rs` (lines 1-6 of 6, 76 B).\nIt begins: Reads letters.\n\n\
        It holds:\n- `pub fn read_letter() -> char`";
    check("summarise crates/alpha/src/lib.rs", expect);
    let expect = "`crates/beta/` is a directory. It holds:\n- `crates/beta/Cargo.toml`\n- `crates/beta/src/`\n\
        - `crates/beta/src/main.rs`";
    check("what is in crates/beta", expect);
    let expect = "No file or directory called `../outside.md` is among what the tools list.\n\nNot everything worked:\n\
        - read_file `../outside.md`: `../outside.md` leads out of the folder; paths are relative to the folder and \
        stay inside";
    check("read ../outside.md", expect);
}
