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
fn toolbox_names_the_crates_when_it_looks_into_this_workspace() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let text = printed(env!("CARGO_BIN_EXE_example-toolbox"), Some(root));
    assert!(text.starts_with("> list_files Ok\n"), "{text}");
    for name in ["adjutant-llm", "adjutant-tool", "adjutant-agent", "adjutant-providers", "adjutant-toolkit"] {
        assert!(text.contains(name), "{name} is missing in: {text}");
    }
}
