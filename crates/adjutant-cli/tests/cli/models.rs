//! `adjutant models`, and the providers that a file adds.

use std::fs;

use crate::command::{Vendor, adjutant, run, says, seen, serve};

#[test]
fn models_lists_names_and_keys_when_one_key_is_present() {
    let mut command = adjutant(&["models"]);
    command
        .env("OPENAI_API_KEY", "sk-1234567")
        .env("ANTHROPIC_API_KEY", "  ");
    let seen = seen(command);
    assert_eq!((seen.code, seen.stderr.as_str()), (Some(0), ""));
    let starts = [
        "MODEL ",
        "anthropic/",
        "openai/",
        "offline/planner ",
        "ANTHROPIC_API_KEY  missing, for anthropic/…",
        "OPENAI_API_KEY     present, for openai/…",
    ];
    for start in starts {
        assert!(
            seen.stdout.lines().any(|line| line.starts_with(start)),
            "{start}\n{}",
            seen.stdout
        );
    }
    assert!(!seen.stdout.contains("1234567"), "{}", seen.stdout);
}

#[test]
fn models_of_one_provider_are_listed_when_it_is_named() {
    let mut command = adjutant(&["models", "--provider", "gemini"]);
    command.env("GOOGLE_API_KEY", "secret");
    let seen = seen(command);
    assert_eq!((seen.code, seen.stderr.as_str()), (Some(0), ""));
    let (table, about) = seen.stdout.split_once("\n\n").expect("there are two parts");
    let is_listed = |line: &str| {
        ["MODEL ", "gemini/", "Window "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    assert!(
        table.lines().count() > 3 && table.lines().all(is_listed),
        "{table}"
    );
    let expect = "provider  gemini\nwire      Google Gemini\n\
                  address   https://generativelanguage.googleapis.com, or what is set as GEMINI_BASE_URL\n\
                  key       GEMINI_API_KEY (missing) or GOOGLE_API_KEY (present)\n\
                  models    those of the list; any, if the address is set\n";
    assert_eq!(about, expect);
}

#[test]
fn providers_of_a_file_are_used_when_the_variable_names_it() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let server = serve([says("Hello.")]);
    let json = serde_json::json!({
        "providers": [{"name": "acme", "base_url": server.openai_base_url(), "key_variables": ["ACME_KEY"]}],
        "models": [{"id": "acme/large", "context_window": 8_000, "max_output_tokens": 100, "price": {"input": 1, "output": 2}}],
    });
    fs::write(file.path(), json.to_string()).expect("the file can be written");
    let mut command = adjutant(&["run", "Hi", "--model", "acme/large"]);
    command
        .env("ADJUTANT_PROVIDERS", file.path())
        .env("ACME_KEY", "k");
    seen(command).check(
        0,
        "Hello.\n",
        "turns 1, calls 0, tokens 1,000 in / 50 out, cost $0.0011\n",
    );
    let mut command = adjutant(&["models", "--provider", "acme"]);
    command.env("ADJUTANT_PROVIDERS", file.path());
    let seen = seen(command);
    assert!(
        seen.code == Some(0) && seen.stdout.contains("\nacme/large  "),
        "{seen:#?}"
    );
}

#[test]
fn file_and_line_are_told_when_the_providers_cannot_be_read() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), "{\n  \"provider\": []\n}").expect("the file can be written");
    let mut command = adjutant(&["models"]);
    command.env("ADJUTANT_PROVIDERS", file.path());
    let stderr = format!(
        "error: cannot use the providers: {}\n\
         caused by: the configuration cannot be read: unknown field `provider`, expected one of `providers`, `models`, `timeouts` at line 2 column 12\n\
         hint: ADJUTANT_PROVIDERS names this file; `adjutant run --help` says what it holds\n",
        file.path().display()
    );
    seen(command).check(2, "", &stderr);
    let server = serve([]);
    let mut command = run(Vendor::OpenAi, &server, &["Hi"]);
    command.env("ADJUTANT_PROVIDERS", "/nonexistent/providers");
    let stderr = "error: cannot read the providers: /nonexistent/providers\ncaused by: No such file or directory (os error 2)\n";
    seen(command).check(2, "", stderr);
}
