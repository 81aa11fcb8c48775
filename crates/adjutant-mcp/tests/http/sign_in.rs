//! Signing in, to good servers and to hostile ones.

use adjutant_mcp::{
    ErrorKind::{self, Unauthorised, Unavailable},
    HttpConfig, Login, LoginOptions, Tokens,
};
use serde_json::json;

use crate::stage::{Change, Stage, Ways, asks, browse};

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const ISSUER: &str = "/.well-known/oauth-authorization-server";

type Back = fn(&str, &str) -> String;

/// What is done, what comes back, the registrations and tokens that were asked for, the kind, words of the message.
type Row = (
    &'static str,
    Change,
    Back,
    usize,
    usize,
    ErrorKind,
    &'static str,
);

fn good(state: &str, base: &str) -> String {
    format!("code=c&state={state}&iss={base}")
}

fn none(_: &mut Ways, _: &str) {}

const ROWS: &[Row] = &[
    (
        "foreign resource",
        |w, _| w.resource = vec![("resource", json!("https://good.example/mcp"))],
        good,
        0,
        0,
        Unauthorised,
        "good.example",
    ),
    (
        "resource beside it",
        |w, b| w.resource = vec![("resource", json!(format!("{b}/mcp2")))],
        good,
        0,
        0,
        Unauthorised,
        "mcp2",
    ),
    (
        "no metadata in it",
        |w, _| w.instead = vec![(RESOURCE, 200, String::new(), "{}".into())],
        good,
        0,
        0,
        Unauthorised,
        "metadata",
    ),
    (
        "nobody issues",
        |w, _| {
            w.instead = vec![
                (RESOURCE, 404, String::new(), String::new()),
                (ISSUER, 404, String::new(), String::new()),
            ]
        },
        good,
        0,
        0,
        Unauthorised,
        "names no token issuer",
    ),
    (
        "other issuer",
        |w, _| w.issuer = vec![("issuer", json!("https://good.example"))],
        good,
        0,
        0,
        Unauthorised,
        "issuer mismatch",
    ),
    (
        "private issuer",
        |w, _| w.resource = vec![("authorization_servers", json!(["http://10.0.0.1/"]))],
        good,
        0,
        0,
        Unauthorised,
        "10.0.0.1",
    ),
    (
        "issuer of a cloud's metadata",
        |w, _| w.resource = vec![("authorization_servers", json!(["http://169.254.169.254/"]))],
        good,
        0,
        0,
        Unauthorised,
        "169.254",
    ),
    (
        "metadata elsewhere",
        |w, _| w.instead = vec![(ISSUER, 302, "http://10.0.0.1/as".into(), String::new())],
        good,
        0,
        0,
        Unavailable,
        "redirect to non-same-origin",
    ),
    (
        "metadata in a circle",
        |w, _| w.instead = vec![(ISSUER, 302, ISSUER.into(), String::new())],
        good,
        0,
        0,
        Unavailable,
        "redirects",
    ),
    (
        "metadata without end",
        |w, _| w.endless = Some(ISSUER),
        good,
        0,
        0,
        Unavailable,
        "longer than 1048576 bytes",
    ),
    (
        "no PKCE",
        |w, _| w.issuer = vec![("code_challenge_methods_supported", json!(null))],
        good,
        0,
        0,
        Unauthorised,
        "PKCE",
    ),
    (
        "plain PKCE",
        |w, _| w.issuer = vec![("code_challenge_methods_supported", json!(["plain"]))],
        good,
        0,
        0,
        Unauthorised,
        "PKCE",
    ),
    (
        "no registration",
        |w, _| w.issuer = vec![("registration_endpoint", json!(null))],
        good,
        0,
        0,
        Unauthorised,
        "registration",
    ),
    (
        "page that is none",
        |w, _| w.issuer = vec![("authorization_endpoint", json!("file:///etc/passwd"))],
        good,
        1,
        0,
        Unauthorised,
        "none of https",
    ),
    (
        "registration refused at length",
        |w, _| w.instead = vec![("/register", 400, String::new(), "\u{1b}[2J".repeat(9_999))],
        good,
        1,
        0,
        Unauthorised,
        "HTTP 400",
    ),
    (
        "token without end",
        |w, _| w.endless = Some("/token"),
        good,
        1,
        1,
        Unauthorised,
        "cannot be signed in to",
    ),
    (
        "token elsewhere",
        |w, _| w.instead = vec![("/token", 307, "http://10.0.0.1/token".into(), String::new())],
        good,
        1,
        1,
        Unauthorised,
        "cannot be signed in to",
    ),
    (
        "other issuer answers",
        none,
        |s, _| format!("code=c&state={s}&iss=https://good.example"),
        1,
        0,
        Unauthorised,
        "good.example",
    ),
    (
        "no issuer answers",
        none,
        |s, _| format!("code=c&state={s}"),
        1,
        0,
        Unauthorised,
        "issuer",
    ),
    (
        "other code",
        none,
        |s, b| format!("code=d&state={s}&iss={b}"),
        1,
        1,
        Unauthorised,
        "invalid_grant",
    ),
    (
        "no code",
        none,
        |s, b| format!("state={s}&iss={b}"),
        1,
        0,
        Unauthorised,
        "no code",
    ),
    (
        "said no",
        none,
        |s, b| format!("error=access_denied&error_description=%1b[2Jno&state={s}&iss={b}"),
        1,
        0,
        Unauthorised,
        "access_denied:  [2Jno",
    ),
];

/// What comes of a sign-in: how often a client was registered and a token asked for, and the failure.
async fn outcome(
    change: Change,
    back: fn(&str, &str) -> String,
) -> (usize, usize, Option<(ErrorKind, String)>) {
    let stage = Stage::new().await;
    stage.change(change);
    let signed_in = async {
        let login = Login::begin("stage", &stage.config(), LoginOptions::default()).await?;
        let back = back(&asks(login.url(), "state"), &stage.base());
        let browser = browse(asks(login.url(), "redirect_uri"), back);
        tokio::join!(login.finish(), browser).0
    };
    let failure = signed_in
        .await
        .err()
        .map(|error: adjutant_mcp::Error| (error.kind, error.message.to_string()));
    (stage.count("/register"), stage.count("/token"), failure)
}

#[tokio::test]
async fn sign_in_is_refused_where_somebody_else_could_get_the_token() {
    for (name, change, back, registered, tokens, kind, words) in ROWS {
        let (is_registered, has_token, failure) = outcome(*change, *back).await;
        let (was, message) = failure.expect(name);
        assert_eq!(
            (was, is_registered, has_token),
            (*kind, *registered, *tokens),
            "{name}: {message}"
        );
        assert!(
            message.contains(words) && message.len() < 600 && !message.contains('\u{1b}'),
            "{name}: {message}"
        );
    }
}

#[tokio::test]
async fn sign_in_keeps_tokens_whichever_way_a_client_is_known() {
    let options = |change: fn(&mut LoginOptions)| {
        let mut options = LoginOptions::default();
        change(&mut options);
        options
    };
    let documents: Change =
        |w, _| w.issuer = vec![("client_id_metadata_document_supported", json!(true))];
    let document =
        |o: &mut LoginOptions| o.client_metadata = Some("https://me.example/client.json".into());
    // What is known, the client that asks for the token, and how often one was registered.
    let rows: [(&str, Change, LoginOptions, &str, usize); 4] = [
        ("nothing", none, LoginOptions::default(), "registered", 1),
        (
            "an id",
            none,
            options(|o| o.client_id = Some("mine".into())),
            "mine",
            0,
        ),
        (
            "a document",
            documents,
            options(document),
            "https://me.example/client.json",
            0,
        ),
        (
            "a document that is not taken",
            none,
            options(document),
            "registered",
            1,
        ),
    ];
    for (name, change, options, client, registered) in rows {
        let stage = Stage::new().await;
        stage.change(change);
        stage.sign_in(options).await.expect(name);
        assert_eq!(stage.count("/register"), registered, "{name}");
        let form = stage.ways.lock().expect("no panic").forms.concat();
        let value = |key: &str| {
            form.iter()
                .find(|(known, _)| known == key)
                .map_or("", |(_, value)| value)
        };
        assert!(
            !std::fs::read_to_string(stage.file())
                .expect("it is read")
                .contains("who it is"),
            "{name}"
        );
        assert_eq!(
            (value("client_id"), value("resource")),
            (client, &*format!("{}/mcp", stage.base())),
            "{name}"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &std::path::Path| {
                std::fs::metadata(path)
                    .expect("it is there")
                    .permissions()
                    .mode()
                    & 0o777
            };
            let file = stage.file();
            assert_eq!(
                (mode(&file), mode(file.parent().expect("a folder"))),
                (0o600, 0o700)
            );
        }
    }
}

#[tokio::test]
async fn sign_in_waits_for_the_state_that_it_gave() {
    let stage = Stage::new().await;
    let login = Login::begin("stage", &stage.config(), LoginOptions::default())
        .await
        .expect("it begins");
    let (redirect, state) = (
        asks(login.url(), "redirect_uri"),
        asks(login.url(), "state"),
    );
    assert_eq!(asks(login.url(), "scope"), "read");
    assert!(!format!("{login:?}").contains(&state));
    let strangers = async {
        for query in [
            "code=c&state=other",
            "code=c",
            "error=no&state=x",
            &format!("code=c&state={state}x"),
        ] {
            assert_eq!(
                browse(redirect.clone(), query.into()).await,
                "HTTP/1.1 404 Not Found",
                "{query}"
            );
        }
        browse(
            redirect.clone(),
            format!("code=c&state={state}&iss={}", stage.base()),
        )
        .await
    };
    let (done, seen) = tokio::join!(login.finish(), strangers);
    done.expect("the right one ends it");
    assert_eq!((&*seen, stage.count("/token")), ("HTTP/1.1 200 OK", 1));
    assert_eq!(
        browse(redirect, format!("code=c&state={state}")).await,
        "",
        "the port is closed"
    );
}

#[tokio::test]
async fn sign_in_ends_when_nobody_comes() {
    let stage = Stage::new().await;
    let login = Login::begin("stage", &stage.config(), LoginOptions::default())
        .await
        .expect("it begins");
    tokio::time::pause();
    let error = login.finish().await.expect_err("nobody came");
    assert_eq!(
        (error.kind, error.is_retryable()),
        (ErrorKind::TimedOut, true)
    );
}

#[tokio::test]
async fn sign_in_refuses_what_cannot_be_meant() {
    let stored = |url: &str| {
        let mut config = HttpConfig::new(url);
        config.tokens = Tokens::from_directory("/nowhere");
        config
    };
    let mut with_secret = LoginOptions::default();
    with_secret.client_secret = Some("hush".into());
    let rows = [
        (
            HttpConfig::new("https://a.example/"),
            LoginOptions::default(),
            "no folder",
        ),
        (
            stored("ftp://a.example/"),
            LoginOptions::default(),
            "none of the web's",
        ),
        (
            stored("https://me:pw@a.example/"),
            LoginOptions::default(),
            "credentials",
        ),
        (
            stored("http://a.example/mcp"),
            LoginOptions::default(),
            "https alone",
        ),
        (
            stored("http://8.8.8.8/mcp"),
            LoginOptions::default(),
            "https alone",
        ),
        (stored("https://a.example/"), with_secret, "without its id"),
    ];
    for (config, options, words) in rows {
        let error = Login::begin("stage", &config, options)
            .await
            .expect_err(words);
        assert!(
            error.kind == ErrorKind::Invalid && error.message.contains(words),
            "{error}"
        );
        assert!(!error.message.contains("pw"), "{error}");
    }
}
