//! The tool `fetch`, against a server on loopback that answers as bytes say.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ToolError, ToolErrorKind};
use adjutant_toolkit::{AccessMode, Fetch, Rules};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// The bytes that answer a path, of a server at a port.
type Answer = fn(&str, u16) -> Vec<u8>;

/// Calls `fetch` for what `of` makes of the server's port; the server answers by the path.
fn fetch(of: impl FnOnce(u16) -> (Fetch, Value), answer: Answer) -> Result<CallResult, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = vec![0; 8_192];
                    let count = stream.read(&mut request).await.unwrap_or(0);
                    let request = String::from_utf8_lossy(&request[..count]).into_owned();
                    let path = request.split(' ').nth(1).unwrap_or_default();
                    // Who asked may have enough of it.
                    let _ = stream.write_all(&answer(path, port)).await;
                });
            }
        });
        let (fetch, args) = of(port);
        let tool = fetch
            .toolbox()
            .toolset()
            .get("fetch")
            .expect("the toolbox holds it")
            .clone();
        tool.call(args, CallContext::detached()).await
    })
}

fn reply(kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let length = body.as_ref().len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.as_bytes(), body.as_ref()].concat()
}

fn redirect(to: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
    .into_bytes()
}

/// The page at `/` of the server, which may be asked.
fn page(port: u16) -> (Fetch, Value) {
    (
        Fetch::new().allow_private("127.0.0.1"),
        json!({ "url": format!("http://127.0.0.1:{port}/") }),
    )
}

fn text(answer: Answer) -> String {
    let text =
        fetch(page, answer).map_or_else(|error| error.message.to_string(), |result| result.text());
    // Without its first line, which names the port.
    text.split_once("\n")
        .map_or(text.clone(), |(_, rest)| rest.trim_start().to_owned())
}

#[test]
fn page_is_markdown_when_it_is_html() {
    let shown = text(|_, _| {
        reply(
            "text/html; charset=utf-8",
            "<!doctype html><html><head><title>A &amp; B</title><style>p { x }</style><script>alert('<p>')</script></head><body>
            <h1>Top <em>most</em></h1><p>One <b>two</b>\n three<br>four &lt;tag&gt; <code>a  b</code><p>next
            <a href='/x y'>a link</a>, <a href='#top'>none</a>, <a href='javascript:alert(1)'>script</a><a href=z></a>
            <ul><li>one<li>two<ol start=3><li>deep<li><p>deeper</p></ol></ul>
            <blockquote><p>said</p><p>twice</p></blockquote>
            <pre>fn a() {\n  1\n}</pre><hr><img src=i.png alt='An  image'> <img src=data:x alt=inline><img src=j.png>
            <table><tr><th>k<th>v|w</tr><tr><td>1<td>two<p>lines</tr></table>
            <table><tr><td>plain</td><td>cells</td></tr></table>
            <p hidden>not seen</p><div style='color: red; display : none'>nor <p>this</div><p>end</p>",
        )
    });
    assert_eq!(
        shown,
        "Title: A & B

# Top *most*

One **two** three
four <tag> `a b`

next [a link](http://127.0.0.1:PORT/x%20y), none, script

- one
- two
  3. deep
  4. deeper

> said
>
> twice

```
fn a() {
  1
}
```

---

![An image](http://127.0.0.1:PORT/i.png) inline

| k | v\\|w |
| --- | --- |
| 1 | two lines |

plain | cells

end"
        .replace(
            "PORT",
            shown
                .split("127.0.0.1:")
                .nth(1)
                .and_then(|it| it.split('/').next())
                .unwrap_or_default()
        )
    );
}

#[test]
fn text_is_read_in_its_encoding_and_what_is_none_is_refused() {
    let rows: [(Answer, &str); 8] = [
        (
            |_, _| reply("text/plain", "plain <b>\r\ntext"),
            "plain <b>\ntext",
        ),
        (|_, _| reply("application/json", "{\"a\": 1}"), "{\"a\": 1}"),
        (
            |_, _| reply("text/plain; charset=ISO-8859-1", b"caf\xe9"),
            "café",
        ),
        (
            |_, _| reply("text/html", b"<meta charset=windows-1251><p>\xcf\xf0\xe8"),
            "При",
        ),
        (|_, _| reply("text/plain", b"\xff\xfea\0b\0"), "ab"),
        (
            |_, _| reply("text/plain", "a\u{202e}b\u{200b}\u{1b}[31m"),
            "ab[31m\n[3 characters that do not show were left out]",
        ),
        (
            |_, _| reply("image/png", b"\x89PNG\0\x01"),
            "the page is image/png, 6 B, and no text",
        ),
        (|_, _| reply("", b"<HTML><p>found"), "found"),
    ];
    for (answer, wanted) in rows {
        assert_eq!(text(answer), wanted);
    }
}

#[test]
fn long_page_is_read_on_where_it_was_cut() {
    let long: Answer = |_, _| reply("text/plain", "é".repeat(40_000));
    let first = fetch(page, long).expect("a page");
    assert!(
        first
            .text()
            .ends_with("[bytes 0 to 50000 of 80000; read on with start=50000]")
    );
    assert_eq!(first.details["truncated"], json!(true));
    let from = |start: u64| {
        move |port| {
            (
                page(port).0,
                json!({ "url": page(port).1["url"], "start": start }),
            )
        }
    };
    let rest = fetch(from(50_000), long).expect("the rest").text();
    assert_eq!(rest.matches('é').count(), 15_000, "{}", rest.len());
    assert_eq!(
        &*fetch(from(90_000), long).expect_err("beyond it").message,
        "the text has only 80000 bytes"
    );
}

#[test]
fn private_address_is_refused_in_every_form_and_behind_every_redirect() {
    let urls = [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://0/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://localhost/",
        "http://LOCALHOST/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http:127.0.0.1",
        "http:\\\\127.0.0.1\\",
    ];
    for url in urls {
        let refused =
            fetch(|_| (Fetch::new(), json!({ "url": url })), |_, _| Vec::new()).expect_err(url);
        assert_eq!(
            refused.kind,
            ToolErrorKind::Denied,
            "{url}: {}",
            refused.message
        );
    }
    let hop: Answer = |_, port| redirect(&format!("http://localhost:{port}/"));
    assert_eq!(
        fetch(page, hop).expect_err("a redirect").kind,
        ToolErrorKind::Denied
    );
    for url in [
        "ftp://example.org/",
        "file:///etc/passwd",
        "data:text/plain,x",
        "http://a:b@example.org/",
        "nothing",
        "http://",
    ] {
        let refused =
            fetch(|_| (Fetch::new(), json!({ "url": url })), |_, _| Vec::new()).expect_err(url);
        assert_eq!(
            refused.kind,
            ToolErrorKind::InvalidArguments,
            "{url}: {}",
            refused.message
        );
    }
}

#[test]
fn redirect_is_followed_as_far_as_rules_and_bounds_allow() {
    let to_self: Answer = |path, _| match path {
        "/" => redirect("/there"),
        _ => reply("text/plain", "arrived"),
    };
    assert_eq!(text(to_self), "arrived");
    let forever: Answer = |path, _| redirect(&format!("{path}x"));
    assert!(
        fetch(page, forever)
            .expect_err("too many")
            .message
            .starts_with("more than 5 redirects")
    );
    let away: Answer = |path, port| match path {
        "/" => redirect(&format!("http://localhost:{port}/away")),
        _ => reply("text/plain", "away"),
    };
    let ruled = |rule: &'static str| {
        move |port: u16| {
            let rules = Rules::new("/")
                .mode(AccessMode::Ask)
                .with(rule, "a test")
                .expect("rules");
            (
                page(port).0.allow_private("localhost").rules(rules),
                page(port).1,
            )
        }
    };
    assert!(
        fetch(ruled("allow fetch(localhost)"), away)
            .expect("allowed")
            .text()
            .ends_with("away")
    );
    let told = fetch(ruled("deny fetch(localhost)"), away)
        .expect("told")
        .text();
    assert!(
        told.contains("which was not followed: the host `localhost`: rule `deny fetch(localhost)`"),
        "{told}"
    );
    let asks = fetch(ruled("allow fetch(example.org)"), away)
        .expect("told")
        .text();
    assert!(
        asks.contains("no rule allows the host `localhost`"),
        "{asks}"
    );
}

#[test]
fn server_that_fails_floods_or_hangs_up_is_told_plainly() {
    let missing = |_: &str, _: u16| {
        b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<p>gone"
            .to_vec()
    };
    let failed = fetch(page, missing).expect("a result").text();
    assert!(failed.ends_with("answers 404 Not Found\ngone"), "{failed}");
    let flood =
        fetch(page, |_, _| reply("text/plain", vec![b'x'; (10 << 20) + 5])).expect("a page");
    assert!(
        flood
            .text()
            .contains("10.0 MB read; the page is longer, and what follows was not read"),
        "{flood:?}"
    );
    let cut = fetch(page, |_, _| {
        reply("text/plain", "whole").into_iter().take(86).collect()
    })
    .expect_err("a cut page");
    assert!(
        cut.message.starts_with("cannot fetch http://127.0.0.1"),
        "{}",
        cut.message
    );
    assert!(
        fetch(page, |_, _| Vec::new())
            .expect_err("nothing")
            .message
            .starts_with("cannot fetch")
    );
}

#[test]
fn hostile_page_costs_its_length() {
    let deep: Answer = |_, _| {
        reply(
            "text/html",
            format!("{}bottom", "<div><ul><li><blockquote>".repeat(20_000)),
        )
    };
    let open: Answer = |_, _| {
        reply(
            "text/html",
            format!("{}end", "<x></y><b><a href=q>".repeat(20_000)),
        )
    };
    let table: Answer = |_, _| {
        let wide = "x".repeat(100_000);
        reply(
            "text/html",
            format!("<table><tr><th>a<td>{wide}{}", "<tr><td>".repeat(10_000)),
        )
    };
    let lines: Answer = |_, _| {
        reply(
            "text/html",
            format!("{}<pre>{}", "<blockquote>".repeat(60), "\n".repeat(400_000)),
        )
    };
    for answer in [deep, open, table, lines] {
        let shown = fetch(page, answer).expect("a page");
        assert!(shown.details["text"].as_u64().expect("a size") < 12 << 20);
    }
}

#[test]
fn only_admitted_hosts_are_reached_at_redirects_too() {
    let admitted = |own: bool| {
        move |port: u16| {
            let fetch = Fetch::new()
                .allow_private("127.0.0.1")
                .allow_private("localhost");
            let fetch =
                fetch.admit(
                    move |host, asked| match own && host == "127.0.0.1" && asked == port {
                        true => Ok(()),
                        false => Err(format!("{host} is not admitted")),
                    },
                );
            (fetch, json!({ "url": format!("http://127.0.0.1:{port}/") }))
        }
    };
    let answer: Answer = |path, port| match path {
        "/" => redirect("/there"),
        "/there" => reply("text/plain", "seen"),
        _ => redirect(&format!("http://localhost:{port}/there")),
    };
    let seen = fetch(admitted(true), answer).expect("it is admitted");
    assert!(seen.text().contains("seen"));
    let error = fetch(admitted(false), answer).expect_err("it is not admitted");
    assert_eq!(error.kind, ToolErrorKind::Denied);
    let away: Answer = |_, port| redirect(&format!("http://localhost:{port}/there"));
    let error = fetch(admitted(true), away).expect_err("the redirect is not admitted");
    assert_eq!(
        (error.kind, &*error.message),
        (ToolErrorKind::Denied, "localhost is not admitted")
    );
    // The name has no address at all: it was not asked for.
    let nowhere: Answer = |_, _| redirect("http://nowhere.invalid/");
    let error = fetch(admitted(true), nowhere).expect_err("the redirect is not admitted");
    assert_eq!(&*error.message, "nowhere.invalid is not admitted");
}

/// The bytes that answer a path: `/hop/STATUS/TARGET` is a redirect.
fn hop(path: &str, port: u16) -> Vec<u8> {
    match path
        .strip_prefix("/hop/")
        .and_then(|rest| rest.split_once('/'))
    {
        Some((status, to)) => {
            let to = to.replace("{port}", &port.to_string());
            format!("HTTP/1.1 {status} Moved\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .into_bytes()
        }
        None => reply("text/plain", "reached"),
    }
}

/// Fetches an address of a server that listens on all addresses. Returns true if it got a request for `/there`.
async fn is_reached(row: &str, allowed: &str) -> bool {
    let listener = match TcpListener::bind("[::]:0").await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind("0.0.0.0:0").await.expect("a port"),
    };
    let port = listener.local_addr().expect("an address").port();
    let is_reached = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_reached);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 8_192];
            let count = stream.read(&mut request).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..count]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            seen.fetch_or(path.starts_with("/there"), Ordering::Relaxed);
            // The client may be gone.
            let _ = stream.write_all(&hop(path, port)).await;
        }
    });
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let url = match row.starts_with('/') {
        true => format!("http://127.0.0.1:{port}{row}"),
        false => row.replace("{host}", host.trim()),
    };
    let url = url.replace("{port}", &port.to_string());
    let url = url
        .replace("<SHY>", "\u{ad}")
        .replace("<TAB>", "\t")
        .replace("<SP>", " ");
    let mut fetch = Fetch::new().allow_private(allowed);
    if row.starts_with('/') {
        fetch = fetch.allow_private("127.0.0.1");
    }
    let tools = fetch.toolbox();
    let tool = tools.toolset().get("fetch").expect("the tool").clone();
    // A refusal is an error, and the server does not get a request.
    let _ = tool
        .call(json!({ "url": url }), CallContext::detached())
        .await;
    is_reached.load(Ordering::Relaxed)
}

#[test]
fn no_way_of_writing_an_address_of_this_machine_reaches_it() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (mut real, mut through, mut skipped) = (0, Vec::new(), Vec::new());
    for row in include_str!("attacks/9-fetch.txt")
        .lines()
        .filter(|row| !row.starts_with('#'))
    {
        let (name, url) = row.split_once(" :: ").expect(row);
        if !runtime.block_on(is_reached(url, "*")) {
            skipped.push(name);
            continue;
        }
        real += 1;
        if runtime.block_on(is_reached(url, "none.invalid")) {
            through.push(name);
        }
    }
    // A closed output is no failure.
    let _ = std::io::Write::write_fmt(
        &mut std::io::stdout(),
        format_args!("{real} attacks are real; not reachable here at all: {skipped:?}\n"),
    );
    assert_eq!(through, Vec::<&str>::new());
    assert!(real >= 20, "{real}");
}
