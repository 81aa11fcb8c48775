//! Each failure as its user sees it: what was said so far, the cause, the cure, and the code.

use adjutant::llm::ScriptedModel;
use adjutant_testing::{Fault, FaultPosition, Loopback};

use crate::command::{Seen, VENDORS, Vendor, WIRES, adjutant, run, says, seen};

/// What the model would say if nothing broke.
const TEXT: &str = "So far so good. So far so good. ";

/// A run whose one answer is broken, without the summary, which is the last line of standard error.
fn broken(vendor: Vendor, fault: &Fault, args: &[&str]) -> Seen {
    let model = ScriptedModel::new([says(TEXT)]);
    let server = Loopback::setup(model)
        .fault(0, fault.clone())
        .start_blocking()
        .expect("a port");
    let mut seen = seen(run(vendor, &server, args)).normal(&server);
    let summary = seen.stderr.trim_end().rfind('\n').map_or(0, |at| at + 1);
    assert!(
        seen.stderr[summary..].starts_with("turns 1, calls 0, tokens "),
        "{seen:#?}"
    );
    seen.stderr.truncate(summary);
    seen
}

/// Checks what is seen of a broken answer on both wires; `{}` in a cause is the model.
#[track_caller]
fn check(fault: &Fault, causes: [&str; 2], rest: &str) {
    for (vendor, cause) in VENDORS.into_iter().zip(causes) {
        let cause = cause.replace("{}", vendor.model());
        let stderr = format!("error: {cause}\n{rest}");
        let mut seen = broken(vendor, fault, &["Hi"]);
        seen.stderr = without_port(&seen.stderr);
        seen.check(1, "", &stderr);
    }
}

/// The text with the port of the server on this machine replaced, which differs from run to run.
fn without_port(text: &str) -> String {
    let Some((before, after)) = text.split_once("http://127.0.0.1:") else {
        return text.to_owned();
    };
    let path = after.trim_start_matches(|it: char| it.is_ascii_digit());
    format!("{before}http://HOST{path}")
}

#[test]
fn refusal_is_told_with_a_cure_when_a_provider_answers_with_a_status() {
    let later = "hint: try again later\n";
    let causes = [
        "{} answered 500 (api_error): Internal server error",
        "{} answered 500 (server_error): Internal server error",
    ];
    check(&Fault::server_error(), causes, later);
    let causes = [
        "{} answered 529 (overloaded_error): Overloaded",
        "{} answered 503 (server_error): Overloaded",
    ];
    check(&Fault::overload_error(), causes, later);
    let limited =
        "This request would exceed your organization's rate limit. Please try again later.";
    let causes = ["rate_limit_error", "rate_limit_exceeded"]
        .map(|code| format!("{{}} answered 429 ({code}): {limited}"));
    check(
        &Fault::rate_limited(7),
        [&causes[0], &causes[1]],
        "hint: try again in 7s\n",
    );
    let missing = "The model does not exist or you do not have access to it.";
    let causes = [
        ("/v1/messages", "not_found_error"),
        ("/v1/responses", "invalid_request_error"),
    ]
    .map(|(path, code)| format!("{{}} answered 404 at http://HOST{path} ({code}): {missing}"));
    check(
        &Fault::not_found(),
        [&causes[0], &causes[1]],
        "hint: check the base URL; `adjutant models` lists the known models\n",
    );
}

#[test]
fn variable_of_the_key_is_named_when_the_key_is_wrong() {
    let cases = [
        ("authentication_error", "ANTHROPIC_API_KEY"),
        ("invalid_api_key", "OPENAI_API_KEY"),
    ];
    for (vendor, (code, variable)) in VENDORS.into_iter().zip(cases) {
        let stderr = format!(
            "error: {} answered 401 ({code}): invalid x-api-key\n\
             hint: check the key in {variable}\n",
            vendor.model()
        );
        broken(vendor, &Fault::auth_error(), &["Hi"]).check(1, "", &stderr);
    }
}

#[test]
fn page_is_told_when_something_else_than_the_provider_answers() {
    let causes = ["/v1/messages", "/v1/responses"].map(|path| {
        format!(
            "{{}} answered at http://HOST{path} with something else than an event stream: <!DOCTYPE html> \
             <html><head><title>Sign in</title></head><body><h1>Sign in to the network</h1></body></html>"
        )
    });
    check(
        &Fault::Html,
        [&causes[0], &causes[1]],
        "hint: check that the base URL is that of the API\n",
    );
}

#[test]
fn connection_is_told_when_it_breaks_or_never_stands() {
    let hint = "hint: check the connection and the base URL, and try again\n";
    for vendor in VENDORS {
        let seen = broken(vendor, &Fault::Hangup, &["Hi"]);
        assert_eq!((seen.code, seen.stdout.as_str()), (Some(1), ""));
        let start = "error: the connection to HOST broke before an answer came\n";
        assert!(
            seen.stderr.starts_with(start) && seen.stderr.ends_with(hint),
            "{seen:#?}"
        );
    }
    // Port 1 is reserved for a service that nobody runs any more.
    let mut command = adjutant(&["run", "Hi", "-q", "-m", "anthropic/claude-sonnet-5"]);
    command
        .env("ANTHROPIC_API_KEY", "k")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    let seen = seen(command);
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(1), ""));
    let start = "error: could not connect to 127.0.0.1:1: nothing listens there\n";
    assert!(
        seen.stderr.starts_with(start) && seen.stderr.ends_with(hint),
        "{seen:#?}"
    );
}

/// Checks that a part of the text is shown, and the cause.
#[track_caller]
fn check_part(fault: impl Fn(Vendor) -> Fault, part: impl Fn(&str) -> bool, cause: &str) {
    for vendor in WIRES {
        let seen = broken(vendor, &fault(vendor), &["Hi"]);
        let said = seen.stdout.strip_suffix('\n').unwrap_or_default();
        assert!(TEXT.starts_with(said) && part(said), "{seen:#?}");
        let start = format!("error: {cause}");
        assert!(
            seen.code == Some(1) && seen.stderr.starts_with(&start),
            "{seen:#?}"
        );
    }
}

#[test]
fn text_so_far_is_shown_when_the_answer_breaks_off() {
    let some = |said: &str| !said.is_empty() && said.len() < TEXT.len();
    let cut = |vendor: Vendor| Fault::CutAt(vendor.middle().0);
    check_part(
        cut,
        some,
        "the connection to HOST broke in the middle of the answer\n",
    );
    let garbage = |vendor: Vendor| Fault::Garbage {
        at: FaultPosition::Frame(vendor.middle().1),
        bytes: "data: {garbage\n\n".into(),
    };
    check_part(
        garbage,
        some,
        "the stream holds an event that cannot be read: {garbage\n",
    );
    check_part(
        |_| Fault::MissingFinish,
        |said| said == TEXT,
        "the stream ended in the middle\n",
    );
    for vendor in WIRES {
        let seen = broken(
            vendor,
            &Fault::ErrorAfter {
                frames: vendor.middle().1,
            },
            &["Hi"],
        );
        assert!(some(seen.stdout.trim_end_matches('\n')), "{seen:#?}");
        let cause = format!("error: {} broke off with an error (", vendor.model());
        assert!(
            seen.stderr.contains(&cause) && seen.stderr.ends_with("hint: try again later\n"),
            "{seen:#?}"
        );
    }
}

#[test]
fn json_ends_with_the_failure_when_the_answer_breaks_off() {
    for vendor in VENDORS {
        let seen = broken(vendor, &Fault::MissingFinish, &["Hi", "--json"]);
        let events = seen.events();
        let last = &events[events.len() - 1];
        assert_eq!(
            last["result"]["outcome"]["failure"]["error"]["message"],
            "the stream ended in the middle"
        );
        assert_eq!(last["result"]["reply"]["blocks"][0]["text"], TEXT);
        let stderr = "error: the stream ended in the middle\n";
        assert_eq!((seen.code, seen.stderr.as_str()), (Some(1), stderr));
    }
}

/// Checks what is seen when the command cannot begin.
#[track_caller]
fn check_usage(args: &[&str], stderr: &str) {
    seen(adjutant(args)).check(2, "", stderr);
}

#[test]
fn model_is_refused_when_it_cannot_be_had() {
    let others = "take a model of a server on this machine (for example ollama/<model>), or use --model offline/planner";
    for (model, variable) in [
        ("anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY"),
        ("openai/gpt-5", "OPENAI_API_KEY"),
    ] {
        let stderr =
            format!("error: no key for {model}: {variable} is not set\nhint: set it, {others}\n");
        check_usage(&["run", "Hi", "--model", model], &stderr);
    }
    for (name, start) in [
        (
            "antropic/x",
            "error: no provider is called \"antropic\"\nhint: the nearest are anthropic\n",
        ),
        (
            "gpt-5",
            "error: a model is named provider/model, which is not the form of \"gpt-5\"\nhint: the nearest are openai/gpt-5, ",
        ),
    ] {
        let seen = seen(adjutant(&["run", "Hi", "--model", name]));
        assert_eq!((seen.code, seen.stdout.as_str()), (Some(2), ""));
        assert!(seen.stderr.starts_with(start), "{seen:#?}");
    }
}

#[test]
fn root_is_refused_when_it_is_no_directory() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let file = file.path().to_str().expect("temporary paths are UTF-8");
    for (root, cause) in [
        ("/nonexistent", "No such file or directory (os error 2)"),
        (file, "Not a directory (os error 20)"),
    ] {
        let stderr = format!(
            "error: cannot open the folder for files: {root}\ncaused by: {cause}\nhint: --root names the directory to work on\n"
        );
        check_usage(
            &["run", "Hi", "--root", root, "--model", "offline/planner"],
            &stderr,
        );
    }
}

#[test]
fn options_are_refused_when_they_make_no_sense() {
    let cases: [(&[&str], &str); 14] = [
        (
            &["run", "Hi", "--max-turns", "0"],
            "a run needs at least one turn; `unlimited` sets no limit",
        ),
        (
            &["run", "Hi", "--timeout", "0"],
            "a run needs more than no time",
        ),
        (
            &["run", "Hi", "--json", "--show-thinking"],
            "cannot be used with",
        ),
        (
            &["run", "Hi", "--thinking", "hard"],
            "not one of off, minimal, low, medium, high, xhigh, max: \"hard\"",
        ),
        (&["run", "Hi", "--retries", "11"], "11 is not in 0..=10"),
        (&["run", "Hi", "--final", "--json"], "cannot be used with"),
        (
            &["run", "Hi", "--replay", "x", "--model", "y"],
            "cannot be used with",
        ),
        (
            &["run", "Hi", "--replay", "/nonexistent/x"],
            "error: cannot open the cassette: /nonexistent/x\ncaused by: ",
        ),
        (
            &["run", "Hi", "--schema", "/nonexistent/x"],
            "error: cannot read the schema: /nonexistent/x\ncaused by: ",
        ),
        (
            &["models", "--all", "--provider", "x"],
            "cannot be used with",
        ),
        (
            &["models", "--provider", "antropic"],
            "no provider is called \"antropic\"\nhint: the nearest are anthropic\n",
        ),
        (&["run", "Hi", "there"], "unexpected argument 'there'"),
        (&["walk"], "unrecognized subcommand 'walk'"),
        (&[], "a conversation needs a terminal"),
    ];
    for (args, part) in cases {
        let seen = seen(adjutant(args));
        assert_eq!((seen.code, seen.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(seen.stderr.contains(part), "{seen:#?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_is_told_when_it_cannot_be_written() {
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("the device is there")
    };
    let stderr = "error: cannot write to standard output\ncaused by: No space left on device (os error 28)\n";
    let server = crate::command::serve([says(TEXT)]);
    let mut command = run(Vendor::OpenAi, &server, &["Hi"]);
    command.stdout(full());
    seen(command).check(1, "", stderr);
    let mut command = adjutant(&["models"]);
    command.stdout(full());
    seen(command).check(1, "", stderr);
}

#[test]
fn code_is_four_when_the_last_reply_says_nothing() {
    for vendor in WIRES {
        let server = crate::command::serve([adjutant::llm::Script::new()]);
        let seen = seen(run(vendor, &server, &["Hi"]));
        assert_eq!(
            (seen.code, seen.stdout.trim()),
            (Some(4), ""),
            "{vendor:?}: {seen:#?}"
        );
        let warning = "warning: the run ended in a reply without text and calls\n";
        assert!(seen.stderr.contains(warning), "{vendor:?}: {seen:#?}");
    }
}

#[test]
fn model_is_asked_once_when_it_says_nothing_for_an_unknown_reason() {
    for vendor in WIRES {
        let known = [
            "\"max_tokens\"",
            "\"length\"",
            "\"max_output_tokens\"",
            "\"MAX_TOKENS\"",
        ];
        let model = ScriptedModel::new([
            adjutant::llm::Script::new().stop(adjutant::llm::FinishReason::Length)
        ]);
        let setup = known
            .into_iter()
            .fold(Loopback::setup(model), |setup, what| {
                setup.fault_all(Fault::Replace {
                    what: what.into(),
                    with: "\"tired\"".into(),
                })
            });
        let server = setup.start_blocking().expect("a port");
        let seen = seen(run(vendor, &server, &["Hi"]));
        let cause = format!(
            "{} said nothing and stopped for a reason that is not known: \"tired\"\n",
            vendor.model()
        );
        assert!(
            seen.code == Some(1) && seen.stderr.contains(&cause),
            "{vendor:?}: {seen:#?}"
        );
        assert_eq!(server.request_count(), 1, "{vendor:?}");
    }
}
