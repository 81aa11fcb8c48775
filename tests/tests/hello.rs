//! The program of the README: short, the same as the example, and it runs.

use adjutant::llm::{Script, ScriptedModel};
use adjutant_testing::Loopback;
use serde_json::json;

const README: &str = include_str!("../../README.md");
const EXAMPLE: &str = include_str!("../../examples/examples/hello.rs");
const MOST_LINES: usize = 15;

/// The first Rust program of the README.
fn program() -> &'static str {
    let block = README
        .split("```rust,no_run\n")
        .nth(1)
        .expect("the README has a program");
    block.split("```").next().expect("a split has a first part")
}

#[test]
fn program_is_the_example_when_its_header_is_left_out() {
    let (header, example) = EXAMPLE
        .split_once("\n\n")
        .expect("the example has a header");
    assert!(
        header.lines().all(|line| line.starts_with("//! ")),
        "the header of the example: {header}"
    );
    assert_eq!(program(), example);
}

#[test]
fn program_is_short_when_it_is_counted() {
    let lines = program().lines().count();
    assert!(
        lines <= MOST_LINES,
        "the program of the README has {lines} lines (limit {MOST_LINES})"
    );
}

#[test]
fn program_calls_its_tool_when_a_model_asks_for_it() {
    let model = ScriptedModel::new([
        Script::new().call("add", json!({"a": 17, "b": 25})),
        Script::from_fn(|request| {
            let last = serde_json::to_value(request.entries.last()).expect("an entry is JSON");
            let result = last
                .pointer("/results/0/content/0/text")
                .and_then(|it| it.as_str())
                .unwrap_or("nothing");
            Script::new().text(format!("It is {result}."))
        }),
    ]);
    let server = Loopback::start_blocking(model).expect("the server starts");
    let output = crate::examples::program("hello")
        .env("ANTHROPIC_BASE_URL", server.anthropic_base_url())
        .env("ANTHROPIC_API_KEY", "not-a-real-key")
        .output()
        .expect("the program starts");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "It is 42.\n");
    assert_eq!((output.status.code(), server.request_count()), (Some(0), 2));
}

#[test]
fn program_says_what_is_missing_when_there_is_no_key() {
    let output = crate::examples::program("hello")
        .env_remove("ANTHROPIC_BASE_URL")
        .env_remove("ANTHROPIC_API_KEY")
        .output()
        .expect("the program starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("ANTHROPIC_API_KEY is not set"), "{told}");
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
}
