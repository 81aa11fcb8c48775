//! What happens when a request fails and another one follows: of the same model, or of the next one.

use std::process::Command;

use adjutant::llm::{Script, ScriptedModel};
use adjutant_testing::{Fault, Loopback};
use serde_json::{Value, json};

use crate::command::{Vendor, WIRES, adjutant, run, run_again, says, seen, serve};

/// What the model would say if nothing broke.
const TEXT: &str = "So far so good. So far so good. ";
const SUMMARY: &str = "turns 1, calls 0, tokens 1,000 in / 50 out, cost";
/// What follows a reply on standard output that is taken back.
const VOID: &str = "[taken back: the reply so far is void and begins again]\n";

/// A server that breaks its first answer.
fn broken(scripts: impl IntoIterator<Item = Script>, fault: Fault) -> Loopback {
    Loopback::setup(ScriptedModel::new(scripts))
        .fault(0, fault)
        .start_blocking()
        .expect("a port")
}

/// A run with a model of Anthropic, and one of OpenAI behind it.
fn fallback(first: &Loopback, second: &Loopback, args: &[&str]) -> Command {
    let models = [Vendor::Anthropic.model(), Vendor::OpenAi.model()].join(", ");
    let mut command = adjutant(&["run", "Hi", "--model", &models]);
    command
        .envs(Vendor::Anthropic.variables(first))
        .envs(Vendor::OpenAi.variables(second))
        .args(args);
    command
}

#[test]
fn request_is_sent_again_when_it_was_refused_for_a_time() {
    for vendor in WIRES {
        let headers = vec![("retry-after-ms".into(), "1".into())];
        let body = Some(r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow down","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.001s"}]}}"#.into());
        let fault = Fault::Status {
            code: 429,
            headers,
            body: body.filter(|_| vendor == Vendor::Gemini),
        };
        let server = broken([says("Hello.")], fault);
        let seen = seen(run_again(vendor, &server, &["Hi"]));
        assert_eq!(
            (seen.code, seen.stdout.as_str()),
            (Some(0), "Hello.\n"),
            "{vendor:?} {seen:#?}"
        );
        assert!(seen.stderr.starts_with(SUMMARY), "{vendor:?} {seen:#?}");
        assert_eq!(server.request_count(), 2);
    }
}

#[test]
fn answer_is_taken_back_when_it_breaks_off_and_is_given_again() {
    let cut = || Fault::CutAt(Vendor::Anthropic.middle().0);
    let server = broken([says(TEXT), says("Whole.")], cut());
    let seen_lines = seen(run_again(Vendor::Anthropic, &server, &["Hi"])).normal(&server);
    let (void, whole) = seen_lines
        .stdout
        .split_once(VOID)
        .expect("the part is marked");
    let said = void.strip_suffix('\n').expect("its line is ended");
    assert!(
        TEXT.starts_with(said) && !said.is_empty() && said.len() < TEXT.len(),
        "{void:?}"
    );
    assert_eq!((seen_lines.code, whole), (Some(0), "Whole.\n"));
    let told = "the answer so far is void, another attempt follows: the connection to HOST broke in the middle of the \
                answer\nturns 1, calls 0, tokens ";
    assert!(seen_lines.stderr.starts_with(told), "{seen_lines:#?}");
    let server = broken([says(TEXT), says("Whole.")], cut());
    seen(run_again(
        Vendor::Anthropic,
        &server,
        &["Hi", "-q", "--final"],
    ))
    .check(0, "Whole.\n", "");
}

#[test]
fn next_model_answers_when_the_first_one_is_down() {
    let first = Loopback::setup(ScriptedModel::new([])).fault_all(Fault::overload_error());
    let (first, second) = (
        first.start_blocking().expect("a port"),
        serve([says("Here.")]),
    );
    let told = "warning: anthropic/claude-sonnet-5 failed: anthropic/claude-sonnet-5 answered 529 (overloaded_error): \
                Overloaded; another model is asked\n";
    let seen = seen(fallback(&first, &second, &["--retries", "0"]));
    seen.check(0, "Here.\n", &format!("{told}{SUMMARY} $0.0017\n"));
    assert_eq!((first.request_count(), second.request_count()), (1, 1));
}

#[test]
fn next_model_begins_again_when_the_first_one_breaks_off() {
    let (first, second) = (
        broken([says(TEXT)], Fault::CutAt(700)),
        serve([says("Here.")]),
    );
    let seen = seen(fallback(&first, &second, &["--retries", "0", "--json"]));
    assert_eq!(seen.code, Some(0), "{seen:#?}");
    let events = seen.events();
    let of = |name: &str| -> Vec<Value> {
        events
            .iter()
            .filter(|it| it["event"] == name)
            .cloned()
            .collect()
    };
    let models: Vec<Value> = of("reply_started")
        .iter()
        .map(|it| it["model"].clone())
        .collect();
    assert_eq!(
        models,
        [json!("anthropic/claude-sonnet-5"), json!("openai/gpt-5")]
    );
    assert_eq!(of("reply_retracted").len(), 1);
    let reply = &of("run_finished")[0]["result"]["reply"];
    assert_eq!(
        (&reply["model"], &reply["blocks"][0]["text"]),
        (&json!("openai/gpt-5"), &json!("Here."))
    );
}

#[test]
fn hint_names_the_key_of_the_model_that_was_asked_last() {
    let down = || Loopback::setup(ScriptedModel::new([])).fault_all(Fault::auth_error());
    let (first, second) = (
        down().start_blocking().expect("a port"),
        down().start_blocking().expect("a port"),
    );
    let seen = seen(fallback(&first, &second, &["-q"]));
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(1), ""));
    assert!(
        seen.stderr
            .ends_with("hint: check the key in OPENAI_API_KEY\n"),
        "{seen:#?}"
    );
}

#[test]
fn every_model_is_looked_for_when_the_run_begins() {
    let server = serve([]);
    for (names, part) in [
        (
            "openai/gpt-5,antropic/x",
            "error: no provider is called \"antropic\"\n",
        ),
        (
            "openai/gpt-5,anthropic/claude-sonnet-5",
            "error: no key for anthropic/claude-sonnet-5: ",
        ),
        (
            "openai/gpt-5,",
            "error: a model is named provider/model, which is not the form of \"\"\n",
        ),
    ] {
        let mut command = adjutant(&["run", "Hi", "--model", names]);
        command.envs(Vendor::OpenAi.variables(&server));
        let seen = seen(command);
        assert_eq!(
            (seen.code, seen.stdout.as_str()),
            (Some(2), ""),
            "{seen:#?}"
        );
        assert!(seen.stderr.starts_with(part), "{seen:#?}");
    }
    assert_eq!(server.request_count(), 0);
}

#[test]
fn thinking_is_on_the_wire_when_it_is_wished() {
    let expect = [
        (Vendor::Anthropic, "/output_config/effort", json!("high")),
        (Vendor::OpenAi, "/reasoning/effort", json!("high")),
        (
            Vendor::Gemini,
            "/generationConfig/thinkingConfig/thinkingLevel",
            json!("high"),
        ),
        (Vendor::Chat, "/reasoning_effort", json!("high")),
    ];
    for (vendor, pointer, value) in expect {
        let server = serve([says("Hello."), says("Hello.")]);
        let wished = seen(run(vendor, &server, &["Hi", "--thinking", "high"]));
        assert_eq!(wished.code, Some(0), "{wished:#?}");
        seen(run(vendor, &server, &["Hi"]));
        let [with, without] = [0, 1].map(|at| server.requests()[at].json());
        assert_eq!(with.pointer(pointer), Some(&value), "{vendor:?} {with:#}");
        assert_eq!(without.pointer(pointer), None, "{vendor:?}");
    }
}
