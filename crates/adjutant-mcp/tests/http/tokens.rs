//! The tokens of a server: who sends them where, and who renews them.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use adjutant_mcp::{
    ErrorKind, HttpConfig, Login, LoginOptions, McpServer, Revision, ServerConfig, Tokens,
    Transport,
};
use adjutant_tool::{Answer, AskKind, CallContext, Entered, Identity, Reentry, Toolbox, Toolset};
use serde_json::json;
use tokio::sync::Notify;

use crate::stage::{Change, Stage, asks};

/// What a server is good for: the text of a call of its tool, or why it cannot be reached.
async fn used(config: HttpConfig) -> Result<String, (ErrorKind, String)> {
    let mut config = ServerConfig::new(Transport::Http(config));
    config.revision = Revision::V2026_07_28;
    let server = McpServer::new("stage", config).expect("it can be meant");
    server
        .ready()
        .await
        .map_err(|error| (error.kind, error.message.to_string()))?;
    let tools = server
        .resolve(&Identity::root("s".into(), "s", "s"))
        .await
        .expect("it never fails");
    let called = tools
        .iter()
        .next()
        .expect("a tool")
        .call(json!({}), CallContext::detached())
        .await;
    Ok(called.map_or_else(|error| error.message.to_string(), |result| result.text()))
}

async fn signed_in(life: u64) -> Stage {
    let stage = Stage::new().await;
    stage.ways.lock().expect("no panic").life = Some(life);
    stage
        .sign_in(LoginOptions::default())
        .await
        .expect("it is signed in");
    stage.ways.lock().expect("no panic").life = Some(3_600);
    stage
}

/// Rewrites the file of the tokens.
fn rewrite(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("it is read");
    assert!(text.contains(from), "{from}");
    fs::write(file, text.replace(from, to)).expect("it is written");
}

#[tokio::test]
async fn token_is_used_by_whom_it_was_given_to_and_read_from_no_other_file() {
    let stage = signed_in(3_600).await;
    assert_eq!(used(stage.config()).await, Ok("seen".into()));
    type Spoil = fn(&Path, &str);
    let rows: [(&str, Spoil, &str); 5] = [
        (
            "of another server",
            |file, _| rewrite(file, "\"stage\"", "\"other\""),
            "holds no tokens of the server",
        ),
        (
            "for another address",
            |file, base| rewrite(file, base, "https://good.example"),
            "holds no tokens",
        ),
        (
            "no tokens",
            |file, _| fs::write(file, "{\"access\":\"hush\"").expect("it is written"),
            "holds no tokens",
        ),
        (
            "too long",
            |file, _| fs::write(file, " ".repeat(300_000)).expect("it is written"),
            "holds no tokens",
        ),
        #[cfg(unix)]
        ("open to others", |file, _| wide(file), "chmod 600"),
        #[cfg(not(unix))]
        (
            "none",
            |file, _| fs::write(file, "").expect("it is written"),
            "holds no tokens",
        ),
    ];
    for (name, spoil, words) in rows {
        let stage = signed_in(3_600).await;
        spoil(&stage.file(), &stage.base());
        let before = stage.count("/mcp");
        let (kind, message) = used(stage.config()).await.expect_err(name);
        assert_eq!(
            (kind, stage.count("/mcp")),
            (ErrorKind::Invalid, before),
            "{name}: {message}"
        );
        assert!(
            message.contains(words) && !message.contains("hush"),
            "{name}: {message}"
        );
        stage.sign_in(LoginOptions::default()).await.expect(name);
        assert_eq!(used(stage.config()).await, Ok("seen".into()), "{name}");
    }
}

#[cfg(unix)]
fn wide(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o640)).expect("it can be changed");
}

#[cfg(unix)]
#[tokio::test]
async fn token_of_another_users_file_is_not_read() {
    let stage = signed_in(3_600).await;
    // Only root can give a file away.
    if std::os::unix::fs::chown(stage.file(), Some(65_534), None).is_ok() {
        let (kind, message) = used(stage.config()).await.expect_err("it is another's");
        assert!(
            kind == ErrorKind::Invalid && message.contains("another user"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn token_that_is_missing_or_refused_ends_in_a_hint_and_not_in_a_loop() {
    let hint = "adjutant mcp login stage";
    let stage = Stage::new().await;
    let (kind, message) = used(stage.config()).await.expect_err("nobody signed in");
    assert!(
        kind == ErrorKind::Unauthorised && message.contains(hint),
        "{message}"
    );
    assert_eq!((stage.count("/mcp"), stage.count("/token")), (1, 0));

    let stage = signed_in(3_600).await;
    let before = stage.count("/mcp");
    stage.change(|ways, _| ways.is_hard = true);
    let (kind, message) = used(stage.config()).await.expect_err("it is refused");
    assert!(
        kind == ErrorKind::Unauthorised && message.contains(hint),
        "{message}"
    );
    // The request, what finds out who renews, and the request again.
    assert_eq!((stage.count("/mcp") - before, stage.renewals()), (3, 1));
}

#[tokio::test]
async fn token_is_renewed_once_however_many_need_it() {
    let stage = signed_in(0).await;
    let config = stage.config();
    let all = tokio::join!(
        used(config.clone()),
        used(config.clone()),
        used(config.clone()),
        used(config)
    );
    let seen = || Ok("seen".to_owned());
    assert_eq!(all, (seen(), seen(), seen(), seen()));
    assert_eq!(stage.renewals(), 1);
}

#[tokio::test]
async fn token_that_nobody_waits_for_any_more_is_kept() {
    let stage = signed_in(3_600).await;
    let mut config = ServerConfig::new(stage.config());
    config.revision = Revision::V2026_07_28;
    let server = McpServer::new("stage", config).expect("it can be meant");
    let tools = server
        .resolve(&Identity::root("s".into(), "s", "s"))
        .await
        .expect("it never fails");
    let gate = Arc::new((Notify::new(), Notify::new()));
    stage.ways.lock().expect("no panic").good.clear();
    stage.ways.lock().expect("no panic").gate = Some(Arc::clone(&gate));
    let tool = tools.iter().next().expect("a tool").clone();
    let call = tokio::spawn(async move { tool.call(json!({}), CallContext::detached()).await });
    gate.0.notified().await;
    call.abort();
    assert!(call.await.expect_err("it was stopped").is_cancelled());
    // The request of the call ends too.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    gate.1.notify_one();
    assert_eq!(used(stage.config()).await, Ok("seen".into()));
    assert_eq!(stage.renewals(), 1);
}

#[tokio::test]
async fn token_that_nobody_renews_is_let_go_of() {
    // A refresh token that is refused, and one whose issuer is another one now.
    for (is_moved, renewals) in [(false, 1), (true, 0)] {
        let stage = signed_in(0).await;
        if is_moved {
            stage.change(|ways, base| {
                let other = base.replace("127.0.0.1", "localhost");
                ways.resource = vec![("authorization_servers", json!([other]))];
                ways.issuer = vec![("issuer", json!(other))];
            });
        } else {
            stage.change(|ways, _| ways.refresh.clear());
        }
        for _ in 0..2 {
            let (kind, message) = used(stage.config()).await.expect_err("it is over");
            assert_eq!(
                (kind, stage.renewals()),
                (ErrorKind::Unauthorised, renewals),
                "{message}"
            );
        }
        let text = fs::read_to_string(stage.file()).expect("it is read");
        assert!(!text.contains("refresh-1"), "{text}");
    }
}

#[tokio::test]
async fn scopes_that_a_call_needed_are_asked_for_by_the_next_sign_in() {
    let stage = signed_in(3_600).await;
    stage.change(|ways, _| ways.needs = Some("write"));
    let said = used(stage.config()).await.expect("it can be reached");
    assert!(
        said.contains("more scopes") && said.contains("adjutant mcp login stage"),
        "{said}"
    );
    let login = Login::begin("stage", &stage.config(), LoginOptions::default())
        .await
        .expect("it begins");
    assert_eq!(asks(login.url(), "scope"), "read write");
}

/// A server and its tools, as another process has them.
async fn begun(config: HttpConfig) -> (McpServer, Toolset) {
    let mut config = ServerConfig::new(config);
    config.revision = Revision::V2026_07_28;
    let server = McpServer::new("stage", config).expect("it can be meant");
    let tools = server
        .resolve(&Identity::root("s".into(), "s", "s"))
        .await
        .expect("it never fails");
    (server, tools)
}

#[tokio::test]
async fn call_that_is_refused_for_want_of_a_token_waits_until_somebody_has_signed_in() {
    let hint = "adjutant mcp login stage";
    let want: [(&str, Change); 2] = [
        ("a token that is not there", |ways, _| {
            ways.good.clear();
            ways.refresh.clear();
        }),
        ("more scopes than its token has", |ways, _| {
            ways.needs = Some("write")
        }),
    ];
    // Where the process ends between the refusal and the answer, and where it stays.
    for ((words, change), is_other) in want
        .into_iter()
        .flat_map(|want| [(want, false), (want, true)])
    {
        let stage = signed_in(3_600).await;
        let (mut server, mut set) = begun(stage.config()).await;
        stage.change(change);
        let call = Reentry::default();
        let body = |set: &Toolset| {
            let tool = set.iter().next().expect("a tool").clone();
            move |cx| async move { Ok(tool.call(json!({}), cx).await?.text()) }
        };
        let Entered::Waiting(asks) = call.enter(body(&set)).await else {
            panic!("{words}: it does not wait")
        };
        let [(key, ask)] = &asks[..] else {
            panic!("{words}: {asks:?}")
        };
        assert_eq!(
            (ask.kind, &ask.data["mcp"]["command"]),
            (AskKind::Authorisation, &json!(hint)),
            "{words}"
        );
        assert!(
            ask.prompt.contains(words) && ask.prompt.contains(hint),
            "{}",
            ask.prompt
        );
        // Somebody who says so and has not is asked once more.
        call.answer(key, Answer::approve()).expect("it fits");
        let Entered::Waiting(asks) = call.enter(body(&set)).await else {
            panic!("{words}: it does not wait again")
        };
        let key = asks[0].0.clone();
        stage.change(|ways, _| ways.needs = None);
        stage
            .sign_in(LoginOptions::default())
            .await
            .expect("it is signed in");
        if is_other {
            (server, set) = begun(stage.config()).await;
        }
        call.answer(&key, Answer::approve()).expect("it fits");
        let Entered::Ended(text) = call.enter(body(&set)).await else {
            panic!("{words}: it does not end")
        };
        assert_eq!(text, "seen", "{words}");
        let denied = Reentry::default();
        stage.change(change);
        let Entered::Waiting(asks) = denied.enter(body(&set)).await else {
            panic!("{words}: it does not wait")
        };
        denied
            .answer(&asks[0].0, Answer::deny("not now"))
            .expect("it fits");
        let Entered::Ended(text) = denied.enter(body(&set)).await else {
            panic!("{words}: it does not end")
        };
        assert!(text.contains(words) && text.contains(hint), "{text}");
        drop(server);
    }
}

#[tokio::test]
async fn token_is_asked_for_anew_once_when_it_is_refused() {
    // The token that is good, and how often the source was asked.
    for (good, is_good, asked) in [
        ("asked-1", true, 1),
        ("asked-2", true, 2),
        ("other", false, 2),
    ] {
        let stage = Stage::new().await;
        stage
            .ways
            .lock()
            .expect("no panic")
            .good
            .insert(good.into());
        let count = Arc::new(AtomicUsize::new(0));
        let mut config = stage.config();
        let counted = Arc::clone(&count);
        config.tokens = Tokens::from_fn(move || {
            let token = format!(" asked-{}\n", counted.fetch_add(1, Relaxed) + 1);
            async { Ok((token.into(), Duration::from_secs(300))) }
        });
        let outcome = used(config).await;
        assert_eq!(
            (outcome.is_ok(), count.load(Relaxed)),
            (is_good, asked),
            "{outcome:?}"
        );
        assert!(is_good || stage.count("/mcp") == 2, "{outcome:?}");
    }
    let blank = || async { Ok((" \n".into(), Duration::ZERO)) };
    let none = || async { Err(std::io::Error::other("hush").into()) };
    for (tokens, words) in [
        (Tokens::from_fn(blank), "is blank"),
        (Tokens::from_fn(none), "no token"),
    ] {
        let mut config = HttpConfig::new("http://127.0.0.1:9/mcp");
        config.tokens = tokens;
        let (kind, message) = used(config).await.expect_err(words);
        assert!(
            kind == ErrorKind::Unauthorised && message.contains(words),
            "{message}"
        );
        assert!(!message.contains("hush"), "{message}");
    }
}

#[tokio::test]
async fn request_goes_nowhere_else_and_is_read_no_further_than_its_limit() {
    let other = Stage::new().await;
    let own = |stage: &Stage| {
        let mut config = stage.config();
        stage
            .ways
            .lock()
            .expect("no panic")
            .good
            .insert("mine".into());
        config.tokens = Tokens::default();
        config
            .headers
            .insert("Authorization".into(), "Bearer mine".into());
        config.headers.insert("x-key".into(), "hush".into());
        config.url = format!("{}?key=hush", config.url).into();
        config
    };
    let stage = Stage::new().await;
    assert_eq!(used(own(&stage)).await, Ok("seen".into()));
    let shown = format!("{:?}", own(&stage));
    assert!(
        shown.contains("x-key") && !shown.contains("hush") && !shown.contains("mine"),
        "{shown}"
    );

    let elsewhere = format!("{}/mcp", other.base());
    let rows = [
        (307, elsewhere.clone(), "redirects to http://127.0.0.1"),
        (
            308,
            "http://10.0.0.1/mcp".into(),
            "redirects to http://10.0.0.1",
        ),
        (302, elsewhere, "redirects to http://127.0.0.1"),
        (302, "/old".into(), "would lose the request"),
        (307, "/mcp".into(), "redirects without end"),
    ];
    for (status, to, words) in rows {
        let stage = Stage::new().await;
        stage.ways.lock().expect("no panic").instead = vec![("/mcp", status, to, String::new())];
        let (kind, message) = used(own(&stage)).await.expect_err(words);
        assert!(
            kind == ErrorKind::Protocol && message.contains(words) && !message.contains("hush"),
            "{message}"
        );
    }
    assert_eq!(other.count("/mcp"), 0);

    let stage = Stage::new().await;
    stage.change(|ways, _| ways.instead = vec![("/old", 308, "/mcp".into(), String::new())]);
    let mut config = own(&stage);
    config.url = format!("{}/old", stage.base()).into();
    assert_eq!(used(config).await, Ok("seen".into()), "within the origin");

    stage.change(|ways, _| ways.endless = Some("/mcp"));
    let (_, message) = used(own(&stage)).await.expect_err("it has no end");
    assert!(
        message.contains("16777216 bytes") && !message.contains("hush"),
        "{message}"
    );
}

#[tokio::test]
async fn server_that_cannot_be_meant_is_refused_without_its_secrets() {
    let with = |header: &str, value: &str| {
        let mut config = HttpConfig::new("http://127.0.0.1:9/mcp");
        config.headers.insert(header.into(), value.into());
        config
    };
    let mut clear = HttpConfig::new("http://a.example/mcp");
    clear.tokens = Tokens::from_directory("/nowhere");
    let rows = [
        (
            with("Host", "hush"),
            "\"Host\" of the server `stage` is one that the protocol sets itself",
        ),
        (with("mcp-session-id", "hush"), "sets itself"),
        (with("x key", "hush"), "no header has"),
        (with("x-key", "hush\r\nx: y"), "cannot be sent"),
        (HttpConfig::new("https://me:hush@a.example/"), "credentials"),
        (HttpConfig::new("nowhere"), "cannot be read"),
        (clear, "https alone"),
    ];
    for (config, words) in rows {
        assert!(!format!("{config:?}").contains("hush"));
        let (kind, message) = used(config).await.expect_err(words);
        assert!(
            kind == ErrorKind::Invalid && message.contains(words) && !message.contains("hush"),
            "{message}"
        );
    }
}
