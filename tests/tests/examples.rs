//! The examples that need no key, run as programs, and what they print.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

/// The program of an example.
pub(crate) fn program(example: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_all_examples"));
    command.env("EXAMPLE", example);
    command
}

#[track_caller]
fn check(example: &str, argument: Option<&str>, expect: &str) {
    assert_eq!(printed(example, argument.as_slice()), expect);
}

#[track_caller]
fn printed(example: &str, arguments: &[&str]) -> String {
    let output = program(example)
        .args(arguments)
        .output()
        .expect("the program starts");
    assert_eq!(
        (
            String::from_utf8_lossy(&output.stderr).as_ref(),
            output.status.code()
        ),
        ("", Some(0))
    );
    String::from_utf8(output.stdout).expect("the program prints text")
}

#[test]
fn stream_shows_text_and_tools_when_it_runs() {
    let expect = "Let me count.\n\
                  > count_words {\"text\":\"to be or not to be\"}\n\
                  < count_words 6\n\
                  There are six words.\n\
                  finished after 2 turns\n";
    check("stream", None, expect);
}

#[test]
fn scripted_passes_its_own_assertions_when_it_runs() {
    let expect = "the calculator tells the model that it cannot divide by zero\n";
    check("scripted", None, expect);
}

#[test]
fn bare_driver_leaves_a_log_when_it_runs() {
    let expect = "5 entries, outcome \"finished\"\n\
                  1 seeded\n\
                  2 began\n\
                  3 opened\n\
                  4 configured\n\
                  5 prepared\n\
                  6 replied\n\
                  7 admitted\n\
                  8 launched\n\
                  9 returned\n\
                  10 settled\n\
                  11 opened\n\
                  12 prepared\n\
                  13 replied\n\
                  14 settled\n\
                  15 ended\n";
    check("bare_driver", None, expect);
}

#[test]
fn another_engine_performs_a_run_when_it_has_the_public_surface_alone() {
    let expect = "finished after 13 records\nrun 2: And 84 is twice that.\n";
    check("other_engine", None, expect);
}

#[test]
fn switch_takes_the_conversation_along_when_the_model_changes() {
    let expect = "About 2.7 million.\n\
                  That is 2,713,000, as the tool says.\n\
                  user: How many people live in Bamako?\n\
                  anthropic/claude-sonnet-5: \"\", 1 results\n\
                  anthropic/claude-sonnet-5: \"About 2.7 million.\", 0 results\n\
                  user: Say it exactly.\n";
    check("switch", None, expect);
}

#[test]
fn structured_asks_again_when_the_answer_does_not_fit() {
    let expect = "Printer on fire, urgency 5, for Ada\nafter 2 attempts\n";
    check("structured", None, expect);
}

#[test]
fn resilient_answers_when_two_models_fail_it() {
    let expect = "warning: anthropic/claude-sonnet-5 failed: the provider is overloaded\n\
                  attempt 2 is taken back: the connection broke\n\
                  openai/gpt-5.4: Here I am.\n\
                  requests: 2 and 2\n";
    check("resilient", None, expect);
}

#[test]
fn cassette_plays_what_was_recorded_when_it_is_asked_the_same() {
    let expect = "recorded: It is 42.\n\
                  2 exchanges\n\
                  played: It is 42.\n\
                  another question: the request was not recorded; the nearest is exchange 1: at \
                  \"/entries/0/content/0/text\" recorded \"What is 17 plus 25?\", asked \"What is 17 plus 24?\"\n";
    check("cassette", None, expect);
}

#[test]
fn steering_reaches_the_agent_when_it_works() {
    let expect = "asked: Sum up chapter one.\n\
                  agent: \n\
                  read_chapter runs; the user steers\n\
                  withdrawn in time: true\n\
                  steered: In German, please.\n\
                  agent: Chapter one, in German: ...\n\
                  followed up: Then find a title.\n\
                  agent: And a title: Der lange Weg.\n";
    check("steering", None, expect);
}

#[test]
fn approval_goes_on_from_its_file_when_the_process_is_another_one() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("approval-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (word, expect) in [
        ("approve", "Ok: paid 40 to Ada\nThat is done.\n"),
        (
            "deny",
            "Denied: not executed: a person refused the call: not this month\nThat is done.\n",
        ),
    ] {
        let file = folder.join(word);
        let file = file.to_str().expect("a path that is text");
        assert_eq!(
            printed("approval", &[file]),
            "main/c1_0_0 waits: pay {\"amount\":40,\"to\":\"Ada\"}\n"
        );
        assert_eq!(printed("approval", &[file, word]), expect);
    }
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn days_goes_on_as_it_was_begun_when_its_process_was_killed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder
        .path()
        .join("bills.db")
        .to_string_lossy()
        .into_owned();
    let begun = program("days")
        .args([&file, "begin"])
        .output()
        .expect("the program starts");
    assert!(!begun.status.success(), "it is killed");
    assert_eq!(
        String::from_utf8_lossy(&begun.stdout),
        "clerk asks for pay {\"amount\":40,\"to\":\"Ada\"}\n"
    );
    let expect = "4000 was refused: not executed: more than 100\n\
                  paid 44 to Ada: Done. You pay the bills of Ada Ltd.\n";
    assert_eq!(printed("days", &[&file, "answer"]), expect);
}

#[test]
fn killed_forgets_nobody_when_its_process_is_killed_ten_times() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let expect = "killed 10 times. Paid: 5\n5 payments, by 5 agents\n";
    // It begins itself: the name of the example goes along in the environment.
    assert_eq!(
        printed("killed", &[&folder.path().to_string_lossy()]),
        expect
    );
}

#[test]
fn own_host_has_the_parts_that_its_manifest_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let expect =
        "without them: no provider is called \"house\"\nThere are 40 euros, and we close at 18.\n";
    assert_eq!(
        printed("own_host", &[&folder.path().to_string_lossy()]),
        expect
    );
}

#[test]
fn window_and_typed_keep_what_they_promise_when_they_run() {
    check(
        "window",
        None,
        "371 KB in 21 turns; every request fits: true\nThey are all much the same.\n",
    );
    check("typed", None, "Ada owes 1200 cents, after 4 requests\n");
}

#[test]
fn tree_stays_within_its_budget_when_children_work_together() {
    let expect = "lead/scout-ants: all about ants\n\
                  lead/scout-bees: all about bees\n\
                  lead/scout-wasps: all about wasps\n\
                  They all have six legs.\n\
                  own 75 tokens, all together 3075\n";
    check("tree", None, expect);
}

#[test]
fn handoff_goes_down_the_chain_when_it_runs() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/adjutant-tool");
    let text = printed("handoff", &[root]);
    let expect = "desk: finished, 1 turn, 100 tokens, 1 call (What is this crate?)\n\
                  librarian: finished, 3 turns, 300 tokens, 3 calls\n\
                  writer: finished, 1 turn, 100 tokens\n\
                  It has ";
    assert!(text.starts_with(expect), "{text}");
    assert!(
        text.contains("Typed tools") && text.ends_with("the conversation stays with the writer\n"),
        "{text}"
    );
}

#[test]
fn team_talks_until_its_list_has_a_title() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/adjutant-skills");
    let text = printed("team", &[folder]);
    let mut at = 0;
    for expect in [
        "lead: 2800 tokens with its team",
        "├─ to writer: Call it: What is here",
        "├─ reader",
        "name = \"adjutant-skills\"",
        "│  └─ ended with: I have told the writer.",
        "│  ├─ to lead: What title shall it have?",
        "└─ \"writer\" done: What is here",
    ] {
        let found = text[at..].find(expect);
        at += found.unwrap_or_else(|| panic!("{expect:?} is missing behind {at} in: {text}"));
    }
}

#[test]
fn lead_delegates_again_what_failed_when_it_runs() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/adjutant-tool");
    let text = printed("lead", &[root]);
    let expect = "lead: finished, 6 turns, 600 tokens, 7 calls (What is this crate?)\n\
                  ├─ counter-count-1: finished, 2 turns, 200 tokens, 2 calls (Count the Rust files)\n\
                  ├─ reader-read-1: finished, 2 turns, 200 tokens, 2 calls (Read what the crate says of itself)\n\
                  ├─ finder-find-1: finished, 2 turns, 200 tokens, 2 calls (Find where the trait Toolbox is defined)\n\
                  └─ finder-find-2: finished, 2 turns, 200 tokens, 2 calls (Find where the trait Toolbox is defined)\n\
                  [completed, attempt 1] Count the Rust files: There are ";
    assert!(text.starts_with(expect), "{text}");
    let expect = "[completed, attempt 2] Find where the trait Toolbox is defined: It is in src/toolbox.rs\n\
                  finder-find-2 was told: What happened: There is no src/traits.rs; search for \"pub trait Toolbox\" \
                  instead of guessing.\n";
    assert!(
        text.ends_with(expect) && text.contains("It says: \"Typed tools"),
        "{text}"
    );
}

#[test]
fn guardrail_rejects_what_it_should_when_it_runs() {
    let expect = "the run failed: rejected by no secrets: it asks for a password\n\
                  Denied: not executed: the system stays as it is\n\
                  I may not.\n\
                  the run failed: rejected by no names: it names a customer\n";
    check("guardrail", None, expect);
}

#[test]
fn compaction_keeps_a_long_run_in_a_small_window_when_it_runs() {
    let text = printed("compaction", &[]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("compact: {\"before\":16532,\"after\":4034,\"folded\":22,"),
        "{text}"
    );
    assert_eq!(
        lines[1..],
        [
            "That was the whole book. after 61 turns, compacted 2 times",
            "the history holds 62 entries, the next request shows 20",
        ]
    );
}

#[test]
fn memory_serves_a_later_session_when_it_runs() {
    let text = printed("memory", &[]);
    let lines: Vec<&str> = text.lines().collect();
    let known = [
        "  * The user has a dog named Rex.",
        "  * The user lives in Lisbon, and lived in Graz before.",
    ];
    let at = lines
        .iter()
        .position(|line| *line == "after the second session:")
        .expect("there was a second session");
    assert_eq!(lines[at + 1..at + 3], known);
    assert_eq!(lines[at + 3], "memory: 2 facts recalled");
    assert_eq!(
        lines[lines.len() - 2..],
        ["forgotten: true", "spent on it: something"]
    );
}

#[test]
fn toolbox_names_the_crates_when_it_looks_into_this_workspace() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let text = printed("toolbox", &[root]);
    assert!(text.starts_with("> list_files Ok\n"), "{text}");
    for name in [
        "adjutant-llm",
        "adjutant-tool",
        "adjutant-agent",
        "adjutant-providers",
        "adjutant-toolkit",
    ] {
        assert!(text.contains(name), "{name} is missing in: {text}");
    }
}

#[test]
fn fan_out_reads_every_file_when_it_looks_into_a_folder() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
    let text = printed("fan_out", &[folder]);
    let files = std::fs::read_dir(folder)
        .expect("the folder is there")
        .count();
    let of = |begin: &str| text.lines().filter(|line| line.starts_with(begin)).count();
    assert_eq!(
        (
            of("## Task "),
            of("├─ reader: finished, 2 turns, 1000 tokens, 1 call")
                + of("└─ reader: finished, 2 turns, 1000 tokens, 1 call")
        ),
        (files, files),
        "{text}"
    );
    assert_eq!(
        of("lead: finished, 2 turns, 3000 tokens, 1 call"),
        1,
        "{text}"
    );
}

#[test]
fn background_research_is_told_when_the_lead_has_gone_on() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let text = printed("background", &[folder]);
    let expect = [
        "I have read the manifest. The research is still on its way.",
        "background.ended: \"task-1\"",
        "The background task task-1 (researcher) is completed:",
        "Cargo.toml:1: [package]",
    ];
    let lines: Vec<_> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| *line == expect[0])
        .expect("it goes on");
    assert_eq!(lines[at..at + 4], expect);
    assert_eq!(
        lines[lines.len() - 2..],
        [
            "lead: finished, 4 turns, 4460 tokens, 2 calls (Look around.)",
            "└─ researcher: finished, 2 turns, 1080 tokens, 1 call (Where do packages begin?)"
        ]
    );
}

#[test]
fn manifest_is_answered_from_its_files_when_it_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("temporary paths are UTF-8").to_owned()
    };
    file("prices.txt", "apple 3\n");
    let manifest =
        "name: clerk\nmodel: offline/planner\ntoolboxes: [files]\ndata: [{ file: prices.txt }]\n";
    let printed = printed("manifest", &[&file("adjutant.yaml", manifest)]);
    assert!(printed.contains("prices.txt:1"), "{printed}");
}

#[test]
fn pages_asks_and_goes_on_when_either_page_answers() {
    let mut program = Served(
        program("pages")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts"),
    );
    let mut line = String::new();
    BufReader::new(program.0.stdout.take().expect("a pipe"))
        .read_line(&mut line)
        .expect("it prints its address");
    let address = line.trim().trim_start_matches("http://");
    let named = |text: &str, key: &str| {
        let (_, rest) = text
            .split_once(&format!("\"{key}\":\""))
            .unwrap_or_else(|| panic!("no {key}: {text}"));
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    let go = json!({"threadId": "a", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "Pay."}]});
    let asked = post(address, "/ag-ui", &go);
    let (_, interrupt) = asked.split_once("\"interrupts\"").expect("it asks");
    let resume = json!([{"interruptId": named(interrupt, "id"), "status": "resolved", "payload": {"approved": true}}]);
    let done = post(
        address,
        "/ag-ui",
        &json!({"threadId": "a", "runId": "s", "messages": [], "resume": resume}),
    );
    assert!(
        done.contains("paid 40")
            && done.contains("\"delta\":\"done.\"")
            && done.contains("RUN_FINISHED"),
        "{done}"
    );
    // The model has said all that it was going to say: the other page is told that the run failed.
    let go = json!({"id": "b", "messages": [{"role": "user", "parts": [{"type": "text", "text": "Pay."}]}]});
    let failed = post(address, "/api/chat", &go);
    assert!(
        failed.contains("\"type\":\"error\"") && failed.contains("data: [DONE]"),
        "{failed}"
    );
    let empty = post(address, "/api/chat", &json!({"id": "c", "messages": []}));
    assert!(
        empty.starts_with("HTTP/1.1 400") && empty.ends_with("no messages"),
        "{empty}"
    );
}

/// A program that ends with its test, however that ends.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The whole answer to a POST, as it came.
fn post(address: &str, path: &str, body: &Value) -> String {
    let body = body.to_string();
    let mut socket = TcpStream::connect(address).expect("it listens");
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a socket");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    );
    write!(socket, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).expect("it reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("it answers");
    answer
}
