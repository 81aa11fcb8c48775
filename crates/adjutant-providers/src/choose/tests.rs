//! Tests of the choice, with variables and ports of their own.

use std::{collections::BTreeMap, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// A chooser with these variables, and no server on this machine.
fn chooser(vars: &[(&str, &str)]) -> Chooser {
    let vars: BTreeMap<String, String> = vars
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    // Nothing listens on port 1.
    let chooser = Chooser::new(move |name| vars.get(name).cloned());
    chooser
        .port("ollama", 1)
        .port("llama-server", 1)
        .port("lmstudio", 1)
}

#[track_caller]
fn check(vars: &[(&str, &str)], name: &str, expect: Result<&str, &str>) {
    let got = chooser(vars).model(name);
    let got = got
        .map(|model| model.info().id.to_string())
        .map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::Config);
            error.message().to_owned()
        });
    assert_eq!(got.as_deref().map_err(String::as_str), expect);
}

const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-a");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "sk-o");

#[test]
fn model_is_made_when_the_name_is_known() {
    check(
        &[ANTHROPIC],
        " anthropic/claude-sonnet-5 ",
        Ok("anthropic/claude-sonnet-5"),
    );
    check(&[OPENAI], "openai/gpt-5.4", Ok("openai/gpt-5.4"));
    check(&[], "offline/planner", Ok("offline/planner"));
    check(&[], "ollama/qwen3:8b", Ok("ollama/qwen3:8b"));
    check(&[], "lmstudio/org/name", Ok("lmstudio/org/name"));
    check(
        &[OPENAI, ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")],
        "openai/my-own",
        Ok("openai/my-own"),
    );
}

/// The times that a model is waited for, as they are printed.
fn times(model: Result<Arc<dyn Model>, Error>) -> String {
    let text = format!("{:?}", model.expect("a model"));
    let (_, times) = text.split_once("Timeouts { ").expect("it has times");
    times.split(" }").next().unwrap_or_default().to_owned()
}

#[test]
fn times_are_those_of_the_closest_setting() {
    let json = r#"{
        "providers": [{"name": "acme", "base_url": "https://llm.acme.example/v1", "timeouts": {"connect": 3, "silence": "1h"}}],
        "timeouts": {"ollama": {"first_byte": "20m", "idle": 90}, "ollama/slow": {"idle": "1h", "total": 1.5}}
    }"#;
    let chooser = chooser(&[("XAI_API_KEY", "k"), OPENAI])
        .configuration(json)
        .expect("it is read");
    for (name, expect) in [
        (
            "ollama/m",
            "connect: 10s, first_byte: 1200s, idle: 90s, silence: 1800s, total: None",
        ),
        (
            "ollama/slow",
            "connect: 10s, first_byte: 1200s, idle: 3600s, silence: 1800s, total: Some(1.5s)",
        ),
        (
            "acme/m",
            "connect: 3s, first_byte: 600s, idle: 300s, silence: 3600s, total: None",
        ),
        (
            "openai/gpt-5.4",
            "connect: 10s, first_byte: 600s, idle: 600s, silence: 1800s, total: None",
        ),
        (
            "vllm/m",
            "connect: 10s, first_byte: 1800s, idle: 600s, silence: 1800s, total: None",
        ),
    ] {
        assert_eq!(times(chooser.model(name)), expect, "{name}");
    }
    let patch = TimeoutsPatch {
        idle: Some(Duration::from_secs(7)),
        ..TimeoutsPatch::default()
    };
    let expect = "connect: 10s, first_byte: 1200s, idle: 7s, silence: 1800s, total: Some(1.5s)";
    assert_eq!(times(chooser.model_within("ollama/slow", patch)), expect);
    let chooser = chooser.timeouts("", patch);
    assert_eq!(times(chooser.model("ollama/slow")), expect);
    for wrong in [
        r#"{"idle": 0}"#,
        r#"{"idle": "soon"}"#,
        r#"{"idle": -1}"#,
        r#"{"late": 1}"#,
    ] {
        let json = format!(r#"{{"timeouts": {{"ollama": {wrong}}}}}"#);
        assert!(
            Chooser::new(|_| None).configuration(&json).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn address_gets_the_path_that_its_provider_is_known_to_have() {
    for (name, url, expect) in [
        (
            "ollama",
            "http://10.0.0.7:11434",
            "http://10.0.0.7:11434/v1",
        ),
        (
            "ollama",
            "http://10.0.0.7:11434/api",
            "http://10.0.0.7:11434/api",
        ),
        (
            "groq",
            "https://api.groq.com",
            "https://api.groq.com/openai/v1",
        ),
        (
            "openai-chat",
            "https://api.openai.com",
            "https://api.openai.com/v1",
        ),
        (
            "openai-chat",
            "https://gateway.example",
            "https://gateway.example",
        ),
    ] {
        let provider = Provider::all()
            .find(|it| it.name == name)
            .expect("it is known");
        assert_eq!(provider.complete_address(url), expect);
    }
}

#[test]
fn model_names_what_is_near_when_the_name_is_unknown() {
    check(
        &[ANTHROPIC],
        "antropic/claude-sonnet-5",
        Err("no provider is called \"antropic\"; hint: the nearest are anthropic"),
    );
    check(
        &[],
        "gpt-5",
        Err(
            "a model is named provider/model, which is not the form of \"gpt-5\"; hint: the nearest are openai/gpt-5, \
             azure/gpt-5, openai/gpt-5.5, openai/gpt-5.4",
        ),
    );
    check(&[], "offline/x", Err("no model is called \"offline/x\""));
}

#[test]
fn model_says_what_would_work_when_the_key_is_missing() {
    check(
        &[("OPENAI_API_KEY", "  ")],
        "openai/gpt-5",
        Err(
            "no key for openai/gpt-5: OPENAI_API_KEY is not set; hint: set it, take a model of a server on this \
             machine (for example ollama/<model>), or use --model offline/planner",
        ),
    );
}

/// Returns the chosen model, and the way in which it was chosen.
async fn chosen(chooser: &Chooser, requested: Option<&str>) -> (String, How) {
    let chosen = chooser
        .choose(requested)
        .await
        .expect("something is chosen");
    (chosen.model.info().id.to_string(), chosen.how)
}

#[tokio::test]
async fn choose_takes_the_first_that_is_there_when_several_are() {
    let named = ("ADJUTANT_MODEL", "openai/gpt-4.1");
    let all = chooser(&[named, ANTHROPIC, OPENAI]);
    assert_eq!(
        chosen(&all, Some("openai/gpt-5")).await,
        ("openai/gpt-5".into(), How::Asked)
    );
    assert_eq!(
        chosen(&all, Some(" ")).await,
        ("openai/gpt-4.1".into(), How::Variable)
    );
    let keys = chooser(&[("ADJUTANT_MODEL", " "), OPENAI, ANTHROPIC]);
    assert_eq!(
        chosen(&keys, None).await,
        (
            "anthropic/claude-sonnet-5".into(),
            How::Credential("ANTHROPIC_API_KEY".into())
        )
    );
    let blank = chooser(&[("ANTHROPIC_API_KEY", ""), OPENAI]);
    assert_eq!(
        chosen(&blank, None).await,
        (
            "openai/gpt-5.4".into(),
            How::Credential("OPENAI_API_KEY".into())
        )
    );
    assert_eq!(
        chosen(&chooser(&[]), None).await,
        ("offline/planner".into(), How::Offline)
    );
    let error = chooser(&[("ADJUTANT_MODEL", "x/y")])
        .choose(None)
        .await
        .expect_err("there is no x");
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[tokio::test]
async fn choose_asks_servers_of_this_machine_when_there_is_no_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a caller");
        let mut asked = vec![0; 1_024];
        let read = socket.read(&mut asked).await.expect("a request");
        let list = r#"{"object":"list","data":[{"id":"qwen3"},{"id":"other"}]}"#;
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{list}",
            list.len()
        );
        socket
            .write_all(answer.as_bytes())
            .await
            .expect("it is sent");
        String::from_utf8_lossy(&asked[..read])
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    let chooser = chooser(&[]).port("lmstudio", port);
    let base_url = format!("http://127.0.0.1:{port}/v1");
    assert_eq!(
        chosen(&chooser, None).await,
        (
            "lmstudio/qwen3".into(),
            How::Loopback {
                server: "lmstudio",
                base_url
            }
        )
    );
    assert_eq!(
        server.await.expect("the server ends"),
        "GET /v1/models HTTP/1.1"
    );
}

#[test]
fn credentials_say_what_is_there_when_asked() {
    let credentials =
        chooser(&[OPENAI, ("ANTHROPIC_API_KEY", " "), ("GOOGLE_API_KEY", "g")]).credentials();
    let got: Vec<_> = credentials
        .iter()
        .map(|it| (&*it.provider, &*it.variable, it.present))
        .collect();
    let expect = [
        ("anthropic", "ANTHROPIC_API_KEY", false),
        ("openai", "OPENAI_API_KEY", true),
        ("gemini", "GEMINI_API_KEY", false),
        ("gemini", "GOOGLE_API_KEY", true),
        ("openai-chat", "OPENAI_API_KEY", true),
    ];
    assert_eq!(got[..5], expect);
}

#[test]
fn model_is_made_when_its_provider_is_known_or_configured() {
    check(
        &[("GOOGLE_API_KEY", "g")],
        "gemini/gemini-2.5-flash",
        Ok("gemini/gemini-2.5-flash"),
    );
    check(&[OPENAI], "openai-chat/gpt-5", Ok("openai-chat/gpt-5"));
    check(
        &[("OPENROUTER_API_KEY", "o")],
        "openrouter/anyone/anything",
        Ok("openrouter/anyone/anything"),
    );
    check(&[], "vllm/my-own", Ok("vllm/my-own"));
    let azure = ("AZURE_OPENAI_API_KEY", "a");
    check(
        &[azure],
        "azure/mine",
        Err("azure has no address of its own; hint: set AZURE_OPENAI_BASE_URL"),
    );
    check(
        &[
            azure,
            ("AZURE_OPENAI_BASE_URL", "https://a.example/openai/v1"),
        ],
        "azure/mine",
        Ok("azure/mine"),
    );
    for provider in Provider::all() {
        let vars = provider.key_variables.iter().map(|it| (it.as_str(), "key"));
        let vars: Vec<_> = vars
            .chain([(&*provider.base_url_variable, "http://127.0.0.1:9/v1")])
            .collect();
        let name = format!("{}/some-model", provider.name);
        check(&vars, &name, Ok(&name));
    }
}

#[test]
fn configuration_adds_providers_and_models_when_it_can_be_read() {
    let json = r#"{
        "providers": [{"name": "acme", "base_url": "https://a.example/v1", "key_variables": ["ACME_KEY"], "like": "deepseek",
                       "headers": {"x-team": "a"}, "dialect": {"limit": "max_tokens"}, "any_model": false}],
        "models": [{"id": "acme/large", "context_window": 1000, "max_output_tokens": 100}]
    }"#;
    let chooser = chooser(&[("ACME_KEY", "k")])
        .configuration(json)
        .expect("it can be read");
    let model = chooser.model("acme/large").expect("it is listed");
    assert_eq!(model.info().context_window, 1_000);
    let error = chooser.model("acme/larg").expect_err("it is not listed");
    assert_eq!(
        error.message(),
        "no model is called \"acme/larg\"; hint: the nearest are acme/large"
    );
    let wrong = |json: &str| {
        super::tests::chooser(&[])
            .configuration(json)
            .expect_err("it is wrong")
            .to_string()
    };
    assert_eq!(
        wrong(r#"{"providers": [{"name": "a/b"}]}"#),
        "no provider can be called \"a/b\""
    );
    let unknown = wrong(r#"{"providers": [{"name": "a", "url": "x"}]}"#);
    assert!(
        unknown.starts_with("the configuration cannot be read: unknown field `url`"),
        "{unknown}"
    );
}

#[test]
fn configuration_is_refused_at_once_when_a_field_cannot_be_used() {
    let wrong = |json: &str| {
        chooser(&[])
            .configuration(json)
            .expect_err("it is wrong")
            .to_string()
    };
    let of = |fields: &str| wrong(&format!(r#"{{"providers": [{{"name": "a", {fields}}}]}}"#));
    let form = "provider a: base_url: it does not have the form https://host/path";
    for base_url in [
        "a.example",
        "ftp://a.example",
        "https://user:secret@a.example",
        " ",
    ] {
        assert_eq!(
            of(&format!(r#""base_url": "{base_url}""#)),
            form,
            "{base_url}"
        );
    }
    assert_eq!(
        of(r#""like": "b""#),
        "provider a: like: no known dialect is called \"b\""
    );
    assert_eq!(
        of(r#""key_variables": ["A", " "]"#),
        "provider a: key_variables: no variable can be called \" \""
    );
    assert_eq!(
        of(r#""key_command": {"argv": [" "]}"#),
        "provider a: key_command: it names no program"
    );
    assert_eq!(
        of(r#""base_url_variable": " ""#),
        "provider a: base_url_variable: no variable can be called \" \""
    );
    let twice = wrong(r#"{"providers": [{"name": "a"}, {"name": "a"}]}"#);
    assert_eq!(twice, "provider a: name: it is listed twice");
    for name in ["", " ", "a b", "a/b", "offline"] {
        let error = wrong(&format!(r#"{{"providers": [{{"name": "{name}"}}]}}"#));
        assert_eq!(error, format!("no provider can be called {name:?}"));
    }
    let model =
        wrong(r#"{"models": [{"id": "a/b c", "context_window": 1000, "max_output_tokens": 100}]}"#);
    assert_eq!(model, "model a/b c: id: it holds white space");
    let unset = chooser(&[]).configuration(r#"{"providers": [{"name": "a", "base_url": ""}]}"#);
    assert!(unset.is_ok());
}

#[test]
fn key_of_a_known_vendor_stays_at_its_hosts_when_a_file_names_another_address() {
    use Origin::{Code, Environment, File};
    let azure = ("AZURE_OPENAI_API_KEY", "sk-z");
    let own = ("ACME_KEY", "sk-own");
    type Row<'a> = (
        &'a [(&'a str, &'a str)],
        Origin,
        &'a str,
        &'a str,
        Result<Option<&'a str>, &'a str>,
    );
    let rows: [Row<'_>; 10] = [
        (
            &[OPENAI],
            File,
            "http://127.0.0.1:9/v1",
            "OPENAI_API_KEY",
            Err("127.0.0.1:9"),
        ),
        (
            &[OPENAI],
            File,
            "http://api.openai.com/v1",
            "OPENAI_API_KEY",
            Err("api.openai.com"),
        ),
        (
            &[OPENAI],
            File,
            "https://api.openai.com:8443/v1",
            "OPENAI_API_KEY",
            Err("api.openai.com:8443"),
        ),
        (
            &[OPENAI],
            File,
            "https://api.openai.com.evil.example",
            "OPENAI_API_KEY",
            Err("api.openai.com.evil.example"),
        ),
        (
            &[ANTHROPIC],
            File,
            "https://api.openai.com/v1",
            "ANTHROPIC_API_KEY",
            Err("api.openai.com"),
        ),
        (
            &[azure],
            File,
            "https://evil.example",
            azure.0,
            Err("evil.example"),
        ),
        (
            &[OPENAI],
            File,
            "https://api.openai.com/v2",
            "OPENAI_API_KEY",
            Ok(None),
        ),
        (&[own], File, "https://evil.example", "ACME_KEY", Ok(None)),
        (
            &[OPENAI],
            Code,
            "https://proxy.example",
            "OPENAI_API_KEY",
            Ok(Some("proxy.example")),
        ),
        (
            &[OPENAI],
            Environment,
            "https://proxy.example",
            "OPENAI_API_KEY",
            Ok(Some("proxy.example")),
        ),
    ];
    for (vars, origin, url, variable, expect) in rows {
        // A name of its own, and that of the vendor: neither makes a difference.
        for name in ["acme", "openai"] {
            let json = serde_json::json!({"providers": [{"name": name, "base_url": url, "key_variables": [variable]}]});
            let chooser = chooser(vars)
                .configuration_of(origin, &json.to_string())
                .expect("it can be read");
            let model = format!("{name}/m");
            let host = chooser.detour(&model).map(|detour| detour.host);
            let made = chooser.model(&model).map(|_| host.as_deref());
            let refused = expect.err().map(|host| {
                format!(
                    "the key in {variable} is not sent to {host}, which is not its vendor's: {model}; hint: name a \
                     variable of its own in `key_variables`, or trust the file that says where {name} is"
                )
            });
            assert_eq!(
                made.as_ref().map_err(|error| Some(error.message())),
                match expect {
                    Ok(ref host) => Ok(host),
                    Err(_) => Err(refused.as_deref()),
                },
                "{url}"
            );
        }
    }
    let moved =
        chooser(&[OPENAI, ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")]).detour("openai/gpt-5.4");
    assert_eq!(
        moved.map(|it| (it.variable, it.host, it.origin)),
        Some((OPENAI.0.into(), "127.0.0.1:9".into(), Environment))
    );
    let usual = chooser(&[
        OPENAI,
        azure,
        ("AZURE_OPENAI_BASE_URL", "https://my.azure.example/openai"),
    ]);
    assert_eq!(
        (usual.detour("openai/gpt-5.4"), usual.detour("azure/m")),
        (None, None)
    );
}
