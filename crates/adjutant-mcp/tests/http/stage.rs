//! A server and whoever issues its tokens, on loopback, as good or as bad as a row wants them.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use adjutant_mcp::{HttpConfig, Login, LoginOptions, Tokens};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

/// What a row changes about the stage: a document that is served instead of the good one.
pub(crate) type Change = fn(&mut Ways, &str);

#[derive(Default)]
pub(crate) struct Ways {
    /// What is answered at a path instead of what would be: a status, headers, a body.
    pub(crate) instead: Vec<(&'static str, u16, String, String)>,
    /// Changes of the metadata of the server, and of whoever issues its tokens.
    pub(crate) resource: Vec<(&'static str, Value)>,
    pub(crate) issuer: Vec<(&'static str, Value)>,
    /// The path whose answer has no end.
    pub(crate) endless: Option<&'static str>,
    /// Seconds that a token lives.
    pub(crate) life: Option<u64>,
    /// The scope that a call needs.
    pub(crate) needs: Option<&'static str>,
    /// True if no token is ever good.
    pub(crate) is_hard: bool,
    /// What was asked for: method, path, and the `Authorization` that it had.
    pub(crate) asked: Vec<(String, String)>,
    /// Tells that a token is asked for, and waits before it is given; once.
    pub(crate) gate: Option<Arc<(Notify, Notify)>>,
    /// The bodies that came to the token endpoint.
    pub(crate) forms: Vec<Vec<(String, String)>>,
    /// The tokens that are good.
    pub(crate) good: HashSet<String>,
    pub(crate) refresh: HashSet<String>,
    given: usize,
}

pub(crate) struct Stage {
    pub(crate) ways: Arc<Mutex<Ways>>,
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let ways = Arc::new(Mutex::new(Ways {
            life: Some(3_600),
            ..Ways::default()
        }));
        let app = Router::new()
            .fallback(serve)
            .with_state((Arc::clone(&ways), address));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            ways,
            address,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn config(&self) -> HttpConfig {
        let mut config = HttpConfig::new(format!("{}/mcp", self.base()));
        config.tokens = Tokens::from_directory(self.folder.path().join("tokens"));
        config
    }

    pub(crate) fn change(&self, change: Change) {
        change(&mut self.ways.lock().expect("no panic"), &self.base());
    }

    /// How often a token was renewed, or tried to be.
    pub(crate) fn renewals(&self) -> usize {
        let ways = self.ways.lock().expect("no panic");
        let is_renewal = |form: &&Vec<(String, String)>| {
            form.contains(&("grant_type".into(), "refresh_token".into()))
        };
        ways.forms.iter().filter(is_renewal).count()
    }

    /// How often something was asked for.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.ways
            .lock()
            .expect("no panic")
            .asked
            .iter()
            .filter(|(asked, _)| asked == path)
            .count()
    }

    /// Signs in as somebody with a browser does.
    pub(crate) async fn sign_in(&self, options: LoginOptions) -> Result<(), adjutant_mcp::Error> {
        let login = Login::begin("stage", &self.config(), options).await?;
        let back = format!(
            "code=c&state={}&iss={}",
            asks(login.url(), "state"),
            self.base()
        );
        let browser = browse(asks(login.url(), "redirect_uri"), back);
        tokio::join!(login.finish(), browser).0
    }

    /// The one file of tokens.
    pub(crate) fn file(&self) -> std::path::PathBuf {
        let files = std::fs::read_dir(self.folder.path().join("tokens")).expect("a folder");
        let file = files
            .map(|file| file.expect("a file").path())
            .find(|file| file.extension() == Some("json".as_ref()));
        file.expect("a file of tokens")
    }
}

/// What the address that a person opens asks for.
pub(crate) fn asks(url: &str, key: &str) -> String {
    let url = reqwest::Url::parse(url).expect("an address");
    url.query_pairs()
        .find(|(name, _)| name == key)
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// A browser that is sent back; gives the first line of what it sees.
pub(crate) async fn browse(redirect: String, query: String) -> String {
    let url = reqwest::Url::parse(&redirect).expect("an address");
    let port = url.port().expect("a port");
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else {
        return String::new();
    };
    let head = format!(
        "GET {}?{query} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n",
        url.path()
    );
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    let mut page = String::new();
    // A login that ended takes its port with it.
    let _ = stream.read_to_string(&mut page).await;
    page.lines().next().unwrap_or_default().to_owned()
}

type Shared = (Arc<Mutex<Ways>>, SocketAddr);

async fn serve(
    State((ways, address)): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let answer = answer(
        &ways,
        &format!("http://{address}"),
        &method,
        &uri,
        &headers,
        &body,
    );
    let gate = ways
        .lock()
        .expect("no panic")
        .gate
        .take_if(|_| uri.path() == "/token");
    if let Some(gate) = gate {
        gate.0.notify_one();
        gate.1.notified().await;
    }
    answer
}

fn answer(
    ways: &Mutex<Ways>,
    base: &str,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
) -> Response {
    let mut ways = ways.lock().expect("no panic");
    let authorization = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    ways.asked
        .push((uri.path().to_owned(), authorization.to_owned()));
    if let Some((_, status, location, body)) =
        ways.instead.iter().find(|(path, ..)| *path == uri.path())
    {
        let status = StatusCode::from_u16(*status).expect("a status");
        return (
            status,
            [
                ("location", location.clone()),
                ("content-type", "application/json".into()),
            ],
            body.clone(),
        )
            .into_response();
    }
    if ways.endless == Some(uri.path()) {
        let piece = || {
            futures_util::future::ready(Some((
                Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 65_536])),
                (),
            )))
        };
        let body = Body::from_stream(futures_util::stream::unfold((), move |()| piece()));
        return ([("content-type", "application/json")], body).into_response();
    }
    match uri.path() {
        "/mcp" => mcp(&mut ways, base, method, authorization, body),
        "/.well-known/oauth-protected-resource/mcp" => {
            let document =
                json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] });
            changed(document, &ways.resource)
        }
        "/.well-known/oauth-authorization-server" => {
            let document = json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"],
                "authorization_response_iss_parameter_supported": true,
            });
            changed(document, &ways.issuer)
        }
        "/register" => {
            let asked: Value = serde_json::from_slice(body).expect("JSON");
            json_of(
                201,
                &json!({ "client_id": "registered", "redirect_uris": asked["redirect_uris"] }),
            )
        }
        "/token" => token(&mut ways, body),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn changed(mut document: Value, changes: &[(&str, Value)]) -> Response {
    for (key, value) in changes {
        document[*key] = value.clone();
    }
    json_of(200, &document)
}

fn json_of(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (
        status,
        [("content-type", "application/json")],
        body.to_string(),
    )
        .into_response()
}

fn token(ways: &mut Ways, body: &[u8]) -> Response {
    let form = String::from_utf8_lossy(body);
    let form = reqwest::Url::parse(&format!("http://form/?{form}")).expect("a form");
    let form: Vec<_> = form.query_pairs().into_owned().collect();
    let value = |key: &str| {
        form.iter()
            .find(|(name, _)| name == key)
            .map_or("", |(_, value)| value)
    };
    let is_good = match value("grant_type") {
        "authorization_code" => value("code") == "c" && !value("code_verifier").is_empty(),
        // Each is good once.
        _ => ways.refresh.remove(value("refresh_token")),
    };
    ways.forms.push(form);
    if !is_good {
        return json_of(400, &json!({ "error": "invalid_grant" }));
    }
    ways.given += 1;
    let (access, refresh) = (
        format!("access-{}", ways.given),
        format!("refresh-{}", ways.given),
    );
    ways.good.clear();
    ways.good.insert(access.clone());
    ways.refresh.insert(refresh.clone());
    let mut answer = json!({
        "access_token": access, "token_type": "Bearer", "refresh_token": refresh, "id_token": "who it is",
    });
    if let Some(life) = ways.life {
        answer["expires_in"] = life.into();
    }
    json_of(200, &answer)
}

fn mcp(ways: &mut Ways, base: &str, method: &Method, authorization: &str, body: &[u8]) -> Response {
    let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
    let metadata = format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
    if ways.is_hard || !ways.good.contains(token) {
        let challenge = format!("Bearer scope=\"read\", {metadata}");
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response();
    }
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let asked: Value = serde_json::from_slice(body).expect("JSON");
    let mut result = match asked["method"].as_str() {
        Some("server/discover") => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "stage", "version": "1" },
        }),
        Some("tools/list") => {
            json!({ "tools": [{ "name": "look", "inputSchema": { "type": "object" } }] })
        }
        Some("tools/call") => match ways.needs {
            Some(needs) => {
                let challenge =
                    format!("Bearer error=\"insufficient_scope\", scope=\"{needs}\", {metadata}");
                return (StatusCode::FORBIDDEN, [("www-authenticate", challenge)]).into_response();
            }
            None => json!({ "content": [{ "type": "text", "text": "seen" }] }),
        },
        _ => {
            return json_of(
                200,
                &json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32601, "message": "no" } }),
            );
        }
    };
    (result["resultType"], result["ttlMs"], result["cacheScope"]) =
        ("complete".into(), 0.into(), "private".into());
    json_of(
        200,
        &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }),
    )
}
