//! The offline model through its public face: which tools it calls, what it answers, that no input breaks its stream.

use std::sync::Arc;

use adjutant_llm::{
    CallResult, Chunk, Collector, Entry, FinishReason, Model, NanoUsd, Options, Origin, Reply,
    Request, Status, ToolDecl, Turn, UserMessage, WarningKind, complete,
};
use adjutant_providers::offline::OfflineModel;
use futures_util::{FutureExt, StreamExt};
use proptest::prelude::*;
use serde_json::{Value, json};

fn tool(name: &str, schema: Value) -> ToolDecl {
    ToolDecl {
        name: name.into(),
        description: "A tool.".into(),
        schema: Arc::new(schema),
    }
}

fn properties(names: &[&str], required: &[&str]) -> Value {
    let properties: serde_json::Map<_, _> = names
        .iter()
        .map(|it| ((*it).to_owned(), json!({})))
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn list() -> ToolDecl {
    tool("list_files", properties(&["path", "depth", "limit"], &[]))
}

fn read() -> ToolDecl {
    tool(
        "read_file",
        properties(&["path", "start_line", "end_line"], &["path"]),
    )
}

fn search() -> ToolDecl {
    tool(
        "search_text",
        properties(
            &["pattern", "path", "glob", "ignore_case", "max_results"],
            &["pattern"],
        ),
    )
}

fn ask(request: &Request) -> Arc<Reply> {
    complete(&OfflineModel::new(), request.clone())
        .now_or_never()
        .expect("it never waits")
        .expect("it never fails")
}

fn calls(reply: &Reply) -> Vec<(String, Value)> {
    let args = |text: &str| serde_json::from_str(text).expect("arguments are JSON");
    reply
        .calls()
        .map(|call| (call.name.to_string(), args(&call.args)))
        .collect()
}

/// Adds a reply to a request, each of its calls answered.
fn answered(
    mut request: Request,
    reply: Arc<Reply>,
    mut result: impl FnMut(&str, &Value) -> CallResult,
) -> Request {
    let mut turn = Turn::open(Arc::clone(&reply));
    for (call, (name, args)) in reply.calls().zip(calls(&reply)) {
        turn.put(call.id, Arc::new(result(&name, &args)))
            .expect("every call is answered once");
    }
    request
        .entries
        .push(Entry::Turn(turn.close().expect("every call is answered")));
    request
}

/// Asks until there is an answer; also says how many requests it took.
fn converse(
    mut request: Request,
    mut result: impl FnMut(&str, &Value) -> CallResult,
) -> (String, usize) {
    for turn in 1..10 {
        let reply = ask(&request);
        if reply.calls().next().is_none() {
            return (reply.text(), turn);
        }
        request = answered(request, reply, &mut result);
    }
    unreachable!("the planner comes to an end");
}

fn all() -> Vec<ToolDecl> {
    vec![list(), read(), search()]
}

#[test]
fn info_says_that_it_costs_nothing() {
    let model = OfflineModel::new();
    let reply = ask(&Request::new().user("hello"));
    assert_eq!(model.info().id.as_str(), "offline/planner");
    assert_eq!(model.info().cost(&reply.usage), Some(NanoUsd(0)));
    assert!(
        reply.usage.input() > 0 && reply.usage.output > 0,
        "{:?}",
        reply.usage
    );
}

#[test]
fn stream_warns_and_streams_words_when_it_answers() {
    let request = Request::new().user("hello").options(Options {
        temperature: Some(0.5),
        ..Options::default()
    });
    let chunks: Vec<Chunk> = OfflineModel::new()
        .stream(request)
        .map(|it| it.expect("it never fails"))
        .collect()
        .now_or_never()
        .expect("it never waits");
    let Chunk::Start { warnings, .. } = &chunks[0] else {
        panic!("it begins with a start: {chunks:?}")
    };
    let kinds: Vec<_> = warnings.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [WarningKind::Degraded, WarningKind::OptionDropped]);
    let message = "offline: no language model; a small planner answers from what the tools return";
    assert_eq!(&*warnings[0].message, message);
    let deltas: Vec<&str> = chunks
        .iter()
        .filter_map(|it| {
            if let Chunk::Delta { text, .. } = it {
                Some(text.as_str())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(deltas[..4], ["I ", "am ", "offline: ", "there "]);
    assert!(matches!(chunks.last(), Some(Chunk::Done(reply)) if reply.stop == FinishReason::End));
}

#[test]
fn answer_says_what_is_missing_when_no_tool_helps() {
    let (answer, turns) = converse(Request::new().user("What is this?"), |_, _| {
        unreachable!("no tools")
    });
    assert!(
        answer.starts_with("I am offline: ") && answer.contains("no tools are offered"),
        "{answer}"
    );
    assert_eq!(turns, 1);
    // A tool that needs what the planner cannot know, or has nothing to do with files, is left alone.
    let tools = [
        tool("search_web", properties(&["query"], &["query"])),
        tool("list_tasks", properties(&["board"], &[])),
        tool(
            "read_file",
            properties(&["path", "ticket"], &["path", "ticket"]),
        ),
    ];
    let (answer, _) = converse(Request::new().tools(tools).user("Where is `x`?"), |_, _| {
        unreachable!("no use")
    });
    assert!(
        answer.contains("(search_web, list_tasks, read_file)"),
        "{answer}"
    );
}

#[test]
fn plan_lists_then_reads_together_when_asked_what_it_is() {
    let request = Request::new().tools(all()).user("What is this directory?");
    let first = ask(&request);
    assert_eq!(
        calls(&first),
        [(
            "list_files".to_owned(),
            json!({"path": ".", "depth": 4, "limit": 1000})
        )]
    );
    assert_eq!(first.stop, FinishReason::Calls);
    let listing = "README.md  1 B\na/\na/package.json  1 B\na/src/\na/src/x.ts  1 B\npackage.json  1 B\n[4 files, 2 directories]";
    let request = answered(request, first, |_, _| CallResult::ok(listing));
    let second = ask(&request);
    let read = |path: &str| {
        (
            "read_file".to_owned(),
            json!({"path": path, "end_line": 300}),
        )
    };
    assert_eq!(
        calls(&second),
        [
            read("README.md"),
            read("package.json"),
            read("a/package.json")
        ]
    );
    let request = answered(request, second, |_, args| match args["path"].as_str() {
        Some("README.md") => CallResult::ok(
            "     1\t# Site\n     2\t\n     3\tShows things. And more.\n[lines 1-3 of 3, 9 B]",
        ),
        Some("package.json") => CallResult::ok(
            "     1\t{\"name\": \"site\", \"workspaces\": [\"a\"]}\n[lines 1-1 of 1, 9 B]",
        ),
        _ => CallResult::new(Status::Denied, "the owner forbids it"),
    });
    let expect = "`site` is a workspace of several packages. Shows things.\n\n\
        Files by language: JSON 2, Markdown 1, TypeScript 1.\nNotable files: `README.md`, `package.json`.\n\
        Folders: `a/`.\n\nNot everything worked:\n- read_file `a/package.json`: the owner forbids it";
    assert_eq!(ask(&request).text(), expect);
}

#[test]
fn plan_uses_other_names_when_tools_are_declared_differently() {
    let tools = [
        tool("fs__listDirectory", properties(&["dir"], &["dir"])),
        tool("fs__readFile", properties(&["file_path"], &["file_path"])),
        tool(
            "grep",
            properties(&["query", "directory"], &["query", "directory"]),
        ),
    ];
    let request = Request::new().tools(tools).user("What is this?");
    assert_eq!(
        calls(&ask(&request)),
        [("fs__listDirectory".to_owned(), json!({"dir": "."}))]
    );
    let expect = [
        (
            "grep".to_owned(),
            json!({"query": "a.b()", "directory": "."}),
        ),
        ("fs__listDirectory".to_owned(), json!({"dir": "."})),
    ];
    assert_eq!(
        calls(&ask(&request.clone().user("where is `a.b()` used"))),
        expect
    );
    let expect = ("fs__readFile".to_owned(), json!({"file_path": "src/x.py"}));
    assert_eq!(calls(&ask(&request.user("read src/x.py"))), [expect]);
}

#[test]
fn plan_searches_again_without_case_when_nothing_was_found() {
    let request = Request::new()
        .tools(vec![search()])
        .user("where is `Foo::bar()`?");
    let mut asked = Vec::new();
    let (answer, turns) = converse(request, |_, args| {
        asked.push(args.clone());
        if args["ignore_case"] == true {
            return CallResult::ok(
                "a.rs:1: let x = foo::bar();\nb.rs:9: fn BAR() {}\n\
                 [2 matching lines in 2 of 3 files; stopped at a limit]",
            );
        }
        CallResult::ok("[no match for `x` in 3 files]")
    });
    let pattern = r"Foo::bar\s*\(";
    assert_eq!(
        asked,
        [
            json!({"pattern": pattern, "max_results": 200}),
            json!({"pattern": pattern, "max_results": 200, "ignore_case": true})
        ]
    );
    let expect = "`Foo::bar()` occurs in at least 2 lines of 2 files.\n\nDefined at:\n- `b.rs:9` fn BAR() {}\n\n\
        Also at:\n- `a.rs:1` let x = foo::bar();";
    assert_eq!((answer.as_str(), turns), (expect, 3));
}

#[test]
fn plan_looks_for_the_file_when_it_is_not_where_it_was_said_to_be() {
    let request = Request::new()
        .tools(all())
        .user("What does the README say?");
    let (answer, turns) = converse(request, |tool, args| match (tool, args["path"].as_str()) {
        ("read_file", Some("README")) => CallResult::new(Status::Failed, "there is no `README`"),
        ("list_files", _) => {
            CallResult::ok("docs/\ndocs/readme.txt  1 B\nreadme.md  1 B\n[2 files, 1 directory]")
        }
        ("read_file", Some("readme.md")) => {
            CallResult::ok("     1\t# Hi\n     2\tText.\n     3\t## More\n[lines 1-3 of 3, 20 B]")
        }
        other => panic!("{other:?}"),
    });
    let expect = "There is no `README`, so I read `readme.md`.\n\n`readme.md` (lines 1-3 of 3, 20 B).\n\
        Its title is “Hi”.\nIt begins: Text.\n\nIt holds:\n- Hi\n- More\n\n\
        Not everything worked:\n- read_file `README`: there is no `README`";
    assert_eq!((answer.as_str(), turns), (expect, 4));
}

#[test]
fn plan_answers_the_newest_question_when_reminders_follow_it() {
    let reminder = UserMessage {
        origin: Origin::Reminder {
            by: "limits".into(),
        },
        ..UserMessage::text("read other.md")
    };
    let request = Request::new()
        .tools(all())
        .user("read first.md")
        .user("show a.rs")
        .user(reminder);
    assert_eq!(
        calls(&ask(&request)),
        [("read_file".to_owned(), json!({"path": "a.rs"}))]
    );
    let reply = ask(&request);
    let request = answered(request, reply, |_, _| {
        CallResult::ok("     1\tfn a() {}\n[lines 1-1 of 1, 10 B]")
    });
    assert_eq!(
        ask(&request).text(),
        "`a.rs` (lines 1-1 of 1, 10 B).\n\n```\nfn a() {}\n```"
    );
}

/// A result of a tool, well-formed or not.
fn any_result() -> impl Strategy<Value = CallResult> {
    let line = prop_oneof![
        "[a-z]{1,6}(/[a-zA-Z]{1,6}){0,3}(/|\\.md|\\.rs|/Cargo\\.toml|/package\\.json)?(  [0-9]+ B)?",
        "[a-z/]{1,9}:[0-9]{1,25}: .{0,20}",
        " {0,5}[0-9]{1,25}\t.{0,20}",
        "(#|```|name = \"|description = |\\[package\\]|\\[workspace\\]|\\{\"name\":).{0,20}",
        "\\[.{0,20}\\]?",
        ".{0,40}",
    ];
    let text = prop_oneof![
        proptest::collection::vec(line, 0..12).prop_map(|it| it.join("\n")),
        any::<String>()
    ];
    let status = prop_oneof![4 => Just(Status::Ok), 1 => Just(Status::Failed), 1 => Just(Status::UnknownTool)];
    (status, text).prop_map(|(status, text)| CallResult::new(status, text))
}

fn any_question() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "(where is|find|read|show|what does|what is|search for|usages of)( [`\"']?.{0,12}[`\"']?){0,4}",
        "(where is|find|read|show)( [`\"'a-zA-Z_:./()é日]{1,12}){0,5}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn stream_is_valid_and_ends_when_anything_is_said_and_returned(
        question in any_question(),
        results in proptest::collection::vec(any_result(), 1..8),
        offered in 0_usize..8,
    ) {
        let tools: Vec<ToolDecl> =
            all().into_iter().enumerate().filter(|(at, _)| offered & (1 << at) != 0).map(|(_, it)| it).collect();
        let mut request = Request::new().tools(tools).user(question);
        let mut results = results.into_iter().cycle();
        let mut requests = 0;
        loop {
            requests += 1;
            prop_assert!(requests <= 13, "each of four wishes takes three requests at most, and all of them one answer");
            let mut collector = Collector::default();
            let mut stream = OfflineModel::new().stream(request.clone());
            let mut done = None;
            let mut said = String::new();
            while let Some(chunk) = stream.next().now_or_never().expect("it never waits") {
                let chunk = chunk.expect("it never fails");
                if let Chunk::Delta { text, .. } = &chunk {
                    said.push_str(text);
                }
                done = collector.push(&chunk).expect("the grammar holds");
            }
            let reply = done.expect("the stream ends with a reply");
            prop_assert_eq!(&reply, &ask(&request), "the same request gives the same reply");
            let whole: String = reply.calls().map(|it| it.args.to_string()).collect();
            prop_assert_eq!(said, whole + &reply.text());
            if reply.calls().next().is_none() {
                prop_assert!(!reply.text().trim().is_empty(), "an answer says something");
                break;
            }
            request = answered(request, reply, |_, _| results.next().expect("they repeat"));
        }
    }
}
