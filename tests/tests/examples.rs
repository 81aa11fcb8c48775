//! The examples that need no key, run as programs, and what they print.

use std::process::Command;

#[track_caller]
fn check(program: &str, argument: Option<&str>, expect: &str) {
    assert_eq!(printed(program, argument), expect);
}

#[track_caller]
fn printed(program: &str, argument: Option<&str>) -> String {
    let output = Command::new(program).args(argument).output().expect("the program starts");
    assert_eq!((String::from_utf8_lossy(&output.stderr).as_ref(), output.status.code()), ("", Some(0)));
    String::from_utf8(output.stdout).expect("the program prints text")
}

#[test]
fn stream_shows_text_and_tools_when_it_runs() {
    let expect = "Let me count.\n\
                  > count_words {\"text\":\"to be or not to be\"}\n\
                  < count_words 6\n\
                  There are six words.\n\
                  finished after 2 turns\n";
    check(env!("CARGO_BIN_EXE_example-stream"), None, expect);
}

#[test]
fn scripted_passes_its_own_assertions_when_it_runs() {
    let expect = "the calculator tells the model that it cannot divide by zero\n";
    check(env!("CARGO_BIN_EXE_example-scripted"), None, expect);
}

#[test]
fn bare_driver_leaves_a_log_when_it_runs() {
    let expect = "5 entries, outcome \"finished\"\n\
                  1 \"seeded\"\n\
                  2 \"began\"\n\
                  3 \"opened\"\n\
                  4 \"prepared\"\n\
                  5 \"replied\"\n\
                  6 \"admitted\"\n\
                  7 \"launched\"\n\
                  8 \"returned\"\n\
                  9 \"settled\"\n\
                  10 \"opened\"\n\
                  11 \"prepared\"\n\
                  12 \"replied\"\n\
                  13 \"settled\"\n\
                  14 \"ended\"\n";
    check(env!("CARGO_BIN_EXE_example-bare-driver"), None, expect);
}

#[test]
fn switch_takes_the_conversation_along_when_the_model_changes() {
    let expect = "About 2.7 million.\n\
                  That is 2,713,000, as the tool says.\n\
                  user: How many people live in Bamako?\n\
                  anthropic/claude-sonnet-5: \"\", 1 results\n\
                  anthropic/claude-sonnet-5: \"About 2.7 million.\", 0 results\n\
                  user: Say it exactly.\n";
    check(env!("CARGO_BIN_EXE_example-switch"), None, expect);
}

#[test]
fn structured_asks_again_when_the_answer_does_not_fit() {
    let expect = "Printer on fire, urgency 5, for Ada\nafter 2 attempts\n";
    check(env!("CARGO_BIN_EXE_example-structured"), None, expect);
}

#[test]
fn resilient_answers_when_two_models_fail_it() {
    let expect = "warning: anthropic/claude-sonnet-5 failed: the provider is overloaded\n\
                  attempt 2 is taken back: the connection broke\n\
                  openai/gpt-5.4: Here I am.\n\
                  requests: 2 and 2\n";
    check(env!("CARGO_BIN_EXE_example-resilient"), None, expect);
}

#[test]
fn cassette_plays_what_was_recorded_when_it_is_asked_the_same() {
    let expect = "recorded: It is 42.\n\
                  2 exchanges\n\
                  played: It is 42.\n\
                  another question: the request was not recorded; the nearest is exchange 1: at \
                  \"/entries/0/content/0/text\" recorded \"What is 17 plus 25?\", asked \"What is 17 plus 24?\"\n";
    check(env!("CARGO_BIN_EXE_example-cassette"), None, expect);
}

#[test]
fn toolbox_names_the_crates_when_it_looks_into_this_workspace() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let text = printed(env!("CARGO_BIN_EXE_example-toolbox"), Some(root));
    assert!(text.starts_with("> list_files Ok\n"), "{text}");
    for name in ["adjutant-llm", "adjutant-tool", "adjutant-agent", "adjutant-providers", "adjutant-toolkit"] {
        assert!(text.contains(name), "{name} is missing in: {text}");
    }
}
