//! The end of a sign-in: a port of this machine that a browser is sent back to, once.

use std::{io, time::Duration};

use reqwest::Url;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};

/// The largest head of a request that is read, and the time for it.
const MAX_HEAD: usize = 16 * 1024;
const LIMIT: Duration = Duration::from_secs(10);
/// The number of connections that are read at once; a browser opens some that it never uses.
const MAX_OPEN: usize = 16;

/// A port that waits for a browser.
pub(crate) struct Redirect {
    listener: TcpListener,
    address: String,
}

/// The answer with the right state.
pub(crate) struct Answer {
    pub(crate) code: Option<String>,
    pub(crate) issuer: Option<String>,
    pub(crate) error: Option<String>,
}

/// The page that the browser waits for.
pub(crate) struct LastPage(TcpStream);

impl Redirect {
    pub(crate) async fn listen(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await?;
        let address = format!(
            "http://127.0.0.1:{}/callback",
            listener.local_addr()?.port()
        );
        Ok(Self { listener, address })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the request with this state: other requests do not end the wait.
    pub(crate) async fn wait(&self, state: &str) -> (Answer, LastPage) {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if open.len() < MAX_OPEN => match accepted {
                    Ok((stream, _)) => drop(open.spawn(read_target(stream))),
                    // Out of files, for one: the next try may find some.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                Some(asked) = open.join_next() => {
                    let Ok(Some((stream, target))) = asked else { continue };
                    match answer(&target, state) {
                        Some(answer) => return (answer, LastPage(stream)),
                        None => drop(open.spawn(reject_request(stream))),
                    }
                }
            }
        }
    }
}

impl LastPage {
    pub(crate) async fn show(self, is_done: bool) {
        let text = match is_done {
            true => "You are signed in. This page can be closed.\n",
            false => "The sign-in failed; the terminal says why. This page can be closed.\n",
        };
        write(self.0, "200 OK", text).await;
    }
}

/// The target of a request; `None` if it is not valid HTTP.
async fn read_target(mut stream: TcpStream) -> Option<(TcpStream, String)> {
    let mut head = Vec::new();
    let read = async {
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            if head.len() > MAX_HEAD || stream.read_buf(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        Some(())
    };
    timeout(LIMIT, read).await.ok()??;
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\r').next()?).ok()?;
    let mut words = line.split(' ');
    let target = words
        .next()
        .filter(|method| *method == "GET")
        .and_then(|_| words.next())?
        .to_owned();
    Some((stream, target))
}

async fn reject_request(stream: TcpStream) -> Option<(TcpStream, String)> {
    write(
        stream,
        "404 Not Found",
        "This is not the page that is waited for.\n",
    )
    .await;
    None
}

fn answer(target: &str, state: &str) -> Option<Answer> {
    let url = Url::parse("http://127.0.0.1")
        .ok()?
        .join(target)
        .ok()
        .filter(|url| url.path() == "/callback")?;
    let value = |key: &str| {
        url.query_pairs()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.into_owned())
    };
    value("state").filter(|given| given == state)?;
    let described = value("error_description")
        .map(|text| format!(": {text}"))
        .unwrap_or_default();
    let error = value("error").map(|error| format!("{error}{described}"));
    Some(Answer {
        code: value("code"),
        issuer: value("iss"),
        error,
    })
}

async fn write(mut stream: TcpStream, status: &str, text: &str) {
    let head =
        "content-type: text/plain; charset=utf-8\r\ncache-control: no-store\r\nconnection: close";
    let page = format!(
        "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    );
    // A browser that is gone misses nothing.
    let _gone = timeout(LIMIT, async {
        stream.write_all(page.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}
