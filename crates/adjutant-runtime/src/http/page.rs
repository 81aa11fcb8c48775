//! The web UI: its files, its cookie, and the export of sessions.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{MAX_REQUEST_BYTES, error::Problem, guard::Keys};
use crate::{Error, ErrorKind, Prompter, prompt::Look};

/// The main file of the web UI.
const INDEX: &str = "index.html";
/// The maximum number of bytes of events in an export.
const MAX_EXPORTED: usize = 32 * MAX_REQUEST_BYTES;
/// The time without an event after which the export of an active session ends.
const QUIET: Duration = Duration::from_secs(2);
/// The maximum number of requests in an export.
const MAX_REQUESTS: u32 = 1_000;
/// The security headers of a response.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];
/// The content security policy of an exported page: it can only display itself.
const SEALED: &str = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// A file of the web UI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageFile {
    /// Its name, without directories; `index.html` is the main file.
    pub name: &'static str,
    /// Its content in UTF-8.
    pub text: &'static str,
}

impl PageFile {
    /// Creates a file with this name and content.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text }
    }

    fn media(&self) -> &'static str {
        match self.name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/plain; charset=utf-8",
        }
    }
}

/// True if a path is a file of the web UI, which needs no token.
pub(super) fn is_file(path: &str) -> bool {
    path == "/" || path.starts_with("/app/")
}

/// Adds the headers that protect a response against use by other pages.
pub(super) fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Adds the routes of the web UI.
pub(crate) fn with_page<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    files: &'static [PageFile],
    keys: &Keys,
) -> Router<S> {
    let cookie = keys.visitor.as_ref().map(|secret| {
        format!(
            "{}={secret}; HttpOnly; SameSite=Strict; Path=/",
            keys.cookie()
        )
    });
    router
        .route("/", get(async move || file(files, INDEX)))
        .route(
            "/app/{name}",
            get(async move |Path(name): Path<String>| file(files, &name)),
        )
        .route("/v1/session", post(async move || known(cookie)))
}

/// Sends the cookie to a browser with the token.
fn known(cookie: Option<String>) -> Response {
    match cookie {
        Some(cookie) => (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response(),
        None => Problem::new(
            StatusCode::NOT_FOUND,
            ErrorKind::Missing,
            "there is no page here",
        )
        .into_response(),
    }
}

fn file(files: &[PageFile], name: &str) -> Response {
    match files.iter().find(|file| file.name == name) {
        Some(file) => (
            [
                (header::CONTENT_TYPE, file.media()),
                (header::CACHE_CONTROL, "no-cache"),
            ],
            file.text,
        )
            .into_response(),
        None => Problem::new(
            StatusCode::NOT_FOUND,
            ErrorKind::Missing,
            "there is no such file",
        )
        .into_response(),
    }
}

/// Returns a session as one HTML file that needs no server: the web UI with the events.
pub(crate) async fn export(
    files: &'static [PageFile],
    prompter: &Arc<dyn Prompter>,
    session: &str,
) -> Result<Response, Error> {
    let (mut events, mut bytes) = (Vec::<Value>::new(), 0);
    let mut told = prompter.attach(Some(session), Some(0)).await?;
    while let Ok(Some(event)) = timeout(QUIET, told.next()).await {
        let event = serde_json::to_value(event?).unwrap_or_default();
        bytes += event.to_string().len();
        if bytes > MAX_EXPORTED {
            let message = format!("the events of the session have more than {MAX_EXPORTED} bytes");
            return Err(Error::new(ErrorKind::Full, message));
        }
        events.push(event);
    }
    let look = Look::Context {
        after: 0,
        limit: Some(MAX_REQUESTS),
    };
    let context = prompter.look(Some(session), look).await?;
    let context = context.get("requests").cloned().unwrap_or_default();
    let text = sealed(
        files,
        &json!({"session": session, "events": events, "context": context}),
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"session.html\"",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, text).into_response())
}

/// Returns the web UI in one file. Its modules have no addresses there, so an import map names them.
fn sealed(files: &[PageFile], exported: &Value) -> String {
    let index = files
        .iter()
        .find(|file| file.name == INDEX)
        .map_or("", |file| file.text);
    let mut head = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{SEALED}\">");
    let (mut modules, mut body, mut page) =
        (serde_json::Map::new(), String::new(), index.to_owned());
    for file in files {
        if file.name.ends_with(".css") {
            let _ = write!(head, "<style>{}</style>", file.text.replace("</", "<\\/"));
            page = without(&page, "<link ", file.name, ">");
        } else if file.name.ends_with(".js") {
            let mut text = file.text.to_owned();
            for other in files {
                text = text.replace(
                    &format!("\"./{}\"", other.name),
                    &format!("\"page/{}\"", other.name),
                );
            }
            let address = format!(
                "data:text/javascript;base64,{}",
                BASE64_STANDARD.encode(text)
            );
            modules.insert(format!("page/{}", file.name), Value::String(address));
            if page.contains(&format!("/app/{}\"", file.name)) {
                page = without(&page, "<script ", file.name, "</script>");
                let _ = write!(
                    body,
                    "<script type=\"module\">import \"page/{}\";</script>",
                    file.name
                );
            }
        }
    }
    // Escaped so that the text of an event cannot close the script element.
    let data = exported.to_string().replace('<', "\\u003c");
    let map = json!({ "imports": modules });
    let scripts = format!(
        "<script type=\"importmap\">{map}</script><script type=\"application/json\" id=\"exported\">{data}</script>{body}"
    );
    let page = before(&page, "</head>", &head);
    before(&page, "</body>", &scripts)
}

/// Removes the element that refers to a file.
fn without(page: &str, begin: &str, name: &str, end: &str) -> String {
    let Some(at) = page.find(&format!("/app/{name}\"")) else {
        return page.to_owned();
    };
    let (head, tail) = page.split_at(at);
    let from = head.rfind(begin).unwrap_or(at);
    let upto = tail.find(end).map_or(page.len(), |it| at + it + end.len());
    format!(
        "{}{}",
        page.get(..from).unwrap_or_default(),
        page.get(upto..).unwrap_or_default()
    )
}

fn before(page: &str, mark: &str, what: &str) -> String {
    let at = page.rfind(mark).unwrap_or(page.len());
    let (head, tail) = page.split_at(at);
    format!("{head}{what}{tail}")
}
