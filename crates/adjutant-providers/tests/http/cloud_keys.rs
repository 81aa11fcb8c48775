//! Credentials that people have for clouds: what the AWS CLI prints, and the application default credentials of Google.

use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use adjutant_llm::{Error, ErrorKind, Request, complete};
use adjutant_providers::Chooser;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::server::{Server, events, fixture, serve, status};

fn chooser(vars: &[(&str, &str)]) -> Chooser {
    let vars = vars
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()));
    let vars: BTreeMap<String, String> = vars.collect();
    Chooser::new(move |name| vars.get(name).cloned())
}

/// Asks a model once, and returns what it was refused with.
async fn ask(chooser: &Chooser, name: &str) -> Result<(), Error> {
    let model = chooser.model(name)?;
    complete(&model, Request::new().user("hi"))
        .await
        .map(|_| ())
}

/// A directory with an AWS CLI that runs this script.
#[cfg(feature = "sigv4")]
fn aws(directory: &Path, script: &str) -> PathBuf {
    let path = directory.join("aws");
    let text = format!("#!/bin/sh\ncd {}\n{script}\n", directory.display());
    std::fs::write(&path, text).expect("a program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    directory.to_owned()
}

/// Prints keys that end at this time, another one each time.
#[cfg(feature = "sigv4")]
fn printing(expiration: &str) -> String {
    format!(
        r#"[ "$*" = "configure export-credentials --format process" ] || exit 9
n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n >n
printf '{{"Version":1,"AccessKeyId":"AKID%s","SecretAccessKey":"secret-of-run-%s","SessionToken":"token-of-run-%s","Expiration":"{expiration}"}}' $n $n $n"#
    )
}

/// Asks models of Bedrock over one program, and returns the keys that signed the requests.
#[cfg(feature = "sigv4")]
async fn signed(names: &[&str], expiration: &str) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = aws(directory.path(), &printing(expiration));
    let text = events(&fixture("openai", "text"));
    let mut server = serve(vec![text; names.len() * 2]).await;
    let chooser = chooser(&[
        ("PATH", &path.display().to_string()),
        ("AWS_REGION", "eu-west-1"),
        ("BEDROCK_BASE_URL", &server.base_url),
        ("BEDROCK_MANTLE_BASE_URL", &server.base_url),
    ]);
    let mut keys = Vec::new();
    for name in names {
        let model = chooser.model(name).expect("the AWS CLI is there");
        for _ in 0..2 {
            complete(&model, Request::new().user("hi"))
                .await
                .expect("a reply");
            let seen = server.next().await;
            let signature = seen.header("authorization").expect("it is signed");
            let key = signature.split(['=', '/']).nth(1).expect("the key");
            let token = seen.header("x-amz-security-token").expect("a token");
            assert_eq!(
                token.strip_prefix("token-of-run-"),
                key.strip_prefix("AKID")
            );
            assert!(!seen.head.contains("secret-of") && !format!("{model:?}").contains("AKID"));
            keys.push(key.to_owned());
        }
    }
    keys
}

#[cfg(feature = "sigv4")]
#[tokio::test]
async fn requests_are_signed_with_the_keys_of_the_aws_cli_until_they_end() {
    let names = [
        "bedrock/openai.gpt-5.5",
        "bedrock-mantle/openai.gpt-6-astra",
    ];
    let kept = signed(&names, "2999-01-01T00:00:00+00:00").await;
    assert_eq!(kept, ["AKID1", "AKID1", "AKID2", "AKID2"]);
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(200);
    let ended = signed(&names[..1], &end.to_string()).await;
    assert_eq!(
        ended,
        ["AKID1", "AKID2"],
        "the program runs before the keys end"
    );
}

/// Source: messages of awscli 2.32 and botocore 1.42, 2025 to 2026.
#[cfg(feature = "sigv4")]
#[tokio::test]
async fn aws_cli_is_explained_when_it_prints_no_keys() {
    let cases = [
        (
            "echo 'Error when retrieving token from sso: Token has expired and refresh failed' >&2; exit 255",
            "the SSO session has ended; hint: run \"aws sso login\"",
        ),
        (
            "echo 'The config profile (team) could not be found' >&2; exit 255",
            "The config profile (team) could not be found; hint: run \"aws configure sso\"",
        ),
        (
            "echo \"aws: error: argument subcommand: Invalid choice, valid choices are:\" >&2; exit 252",
            "hint: update the AWS CLI to version 2",
        ),
        ("exit 3", "it ended with exit status: 3"),
        (
            "echo secret-of-mine",
            "did not print the JSON of credential_process",
        ),
        ("head -c 200000 /dev/zero >&2; exit 1", "no AWS credentials"),
    ];
    for (script, why) in cases {
        let directory = tempfile::tempdir().expect("a directory");
        let path = aws(directory.path(), script).display().to_string();
        let vars = [("PATH", &*path), ("AWS_REGION", "eu-west-1")];
        let vars = [&vars[..], &[("BEDROCK_BASE_URL", "http://127.0.0.1:9")]].concat();
        let error = ask(&chooser(&vars), "bedrock/openai.gpt-5.5")
            .await
            .expect_err(why);
        assert_eq!(error.kind(), ErrorKind::Auth, "{script}");
        assert!(error.message().contains(why), "{script}: {error}");
        assert!(
            !format!("{error:?}").contains("secret-of-mine"),
            "{error:?}"
        );
    }
    let vars = [("AWS_REGION", "eu-west-1"), ("PATH", "/nowhere")];
    let error = ask(&chooser(&vars), "bedrock/openai.gpt-5.5")
        .await
        .expect_err("no CLI");
    let why = "AWS_BEARER_TOKEN_BEDROCK is not set, and the AWS CLI is not installed or AWS_REGION is not set";
    assert!(error.message().contains(why), "{error}");
}

/// A file of credentials with these members, whose tokens this server grants.
fn credentials(directory: &Path, server: &Server, members: Value) -> String {
    let mut all = json!({"token_uri": format!("{}/token", server.base_url)});
    let members = members.as_object().expect("an object").clone();
    all.as_object_mut().expect("an object").extend(members);
    let path = directory.join("application_default_credentials.json");
    std::fs::write(&path, all.to_string()).expect("a file");
    path.display().to_string()
}

fn granted(token: &str) -> crate::server::Answer {
    let body = json!({"access_token": token, "expires_in": 3599, "token_type": "Bearer"});
    status(
        "200 OK",
        "content-type: application/json\r\n",
        &body.to_string(),
    )
}

fn user() -> Value {
    json!({
        "type": "authorized_user", "client_id": "id-of-gcloud", "client_secret": "secret-of-gcloud",
        "refresh_token": "refresh-token/of mine", "quota_project_id": "acme-7",
    })
}

#[tokio::test]
async fn vertex_is_asked_with_the_default_credentials_of_the_user() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = events(&fixture("gemini", "text"));
    let mut server = serve(vec![granted("token-of-the-user"), text.clone(), text]).await;
    let home = directory.path().join(".config/gcloud");
    std::fs::create_dir_all(&home).expect("a directory");
    credentials(&home, &server, user());
    let chooser = chooser(&[
        ("HOME", &directory.path().display().to_string()),
        ("VERTEX_BASE_URL", &server.base_url),
    ]);
    let model = chooser
        .model("vertex/gemini-3.8-flash")
        .expect("there are credentials");
    for _ in 0..2 {
        complete(&model, Request::new().user("hi"))
            .await
            .expect("a reply");
    }
    let exchange = server.next().await;
    assert!(
        exchange.head.starts_with("POST /token HTTP/1.1"),
        "{}",
        exchange.head
    );
    let form = "grant_type=refresh_token&client_id=id-of-gcloud&client_secret=secret-of-gcloud&refresh_token=\
                refresh-token%2Fof+mine";
    assert_eq!(exchange.body, form);
    for _ in 0..2 {
        let seen = server.next().await;
        assert_eq!(
            seen.header("authorization"),
            Some("Bearer token-of-the-user")
        );
        assert_eq!(seen.header("x-goog-user-project"), Some("acme-7"));
    }
    let printed = format!("{model:?}");
    assert!(
        !printed.contains("refresh-token") && !printed.contains("secret-of"),
        "{printed}"
    );
}

#[tokio::test]
async fn vertex_is_asked_with_a_service_account() {
    let directory = tempfile::tempdir().expect("a directory");
    let key = format!(
        "{}/tests/fixtures/google/key-for-tests.pem",
        env!("CARGO_MANIFEST_DIR")
    );
    let key = std::fs::read_to_string(key).expect("a fixture");
    let text = events(&fixture("anthropic", "text"));
    let mut server = serve(vec![granted("token-of-the-account"), text]).await;
    let account = json!({
        "type": "service_account", "client_email": "bot@acme.example", "private_key": key, "private_key_id": "k1",
    });
    let path = credentials(directory.path(), &server, account);
    let vars = [
        ("GOOGLE_APPLICATION_CREDENTIALS", &*path),
        ("VERTEX_BASE_URL", &server.base_url),
    ];
    ask(&chooser(&vars), "vertex/claude-sonnet-5")
        .await
        .expect("a reply");
    let exchange = server.next().await;
    let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    let assertion = exchange.body.strip_prefix(form).expect("an assertion");
    let parts: Vec<_> = assertion
        .split('.')
        .map(|it| URL_SAFE_NO_PAD.decode(it).expect("base64"))
        .collect();
    let header: Value = serde_json::from_slice(&parts[0]).expect("JSON");
    assert_eq!(header, json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
    let claims: Value = serde_json::from_slice(&parts[1]).expect("JSON");
    assert_eq!(claims["iss"], "bot@acme.example");
    assert_eq!(claims["aud"], format!("{}/token", server.base_url));
    assert_eq!(parts[2].len(), 256, "an RSA signature of 2,048 bits");
    let seen = server.next().await;
    assert_eq!(
        seen.header("authorization"),
        Some("Bearer token-of-the-account")
    );
}

#[tokio::test]
async fn google_credentials_are_explained_when_they_cannot_be_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused =
        r#"{"error":"invalid_grant","error_description":"Token has been expired or revoked."}"#;
    let refused = status(
        "400 Bad Request",
        "content-type: application/json\r\n",
        refused,
    );
    let large = status("200 OK", "", &"x".repeat(70_000));
    let server = serve(vec![refused, large]).await;
    let mut federated = user();
    federated["type"] = "external_account".into();
    let mut plain = user();
    plain["token_uri"] = "http://token.example/".into();
    let account =
        json!({"type": "service_account", "client_email": "a@b.example", "private_key": "no key"});
    let cases = [
        (
            user(),
            ErrorKind::Auth,
            "invalid_grant: Token has been expired or revoked.; hint: run \"gcloud auth",
        ),
        (user(), ErrorKind::Auth, "has more than 64 KiB"),
        (
            federated,
            ErrorKind::Config,
            "type \"external_account\" is not supported; hint: ",
        ),
        (
            plain,
            ErrorKind::Config,
            "token_uri is not an https address",
        ),
        (
            account,
            ErrorKind::Auth,
            "private_key is not an RSA key in PEM form",
        ),
        (
            json!({"type": "authorized_user"}),
            ErrorKind::Config,
            "a field of type \"authorized_user\" is missing",
        ),
    ];
    for (members, kind, why) in cases {
        let path = credentials(directory.path(), &server, members);
        let vars = [
            ("GOOGLE_APPLICATION_CREDENTIALS", &*path),
            ("VERTEX_BASE_URL", "http://127.0.0.1:9"),
        ];
        let error = ask(&chooser(&vars), "vertex/gemini-3.8-flash")
            .await
            .expect_err(why);
        assert!(error.message().contains(why), "{error}");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!format!("{error:?}").contains("refresh-token"), "{error:?}");
    }
    let vars = [
        ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json"),
        ("VERTEX_BASE_URL", "http://127.0.0.1:9"),
    ];
    let error = chooser(&vars)
        .model("vertex/gemini-3.8-flash")
        .expect_err("no file");
    assert!(
        error.message().contains("/nowhere.json cannot be used"),
        "{error}"
    );
}
