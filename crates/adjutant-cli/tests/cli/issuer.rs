//! A server of the Model Context Protocol on loopback; and one that wants tokens, with whoever issues them and a browser.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    net::TcpStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use adjutant::{
    llm::CallResult,
    mcp::{HttpOptions, McpHost},
    tools::{ToolSpec, Tools, tool_fn},
};
use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

type Fields = BTreeMap<String, String>;

/// What was issued, and how the issuer is.
#[derive(Default)]
pub(crate) struct Issued {
    /// The issuer that comes back to the browser, in the place of the right one.
    pub(crate) says: Option<String>,
    /// The seconds that the next token lives.
    pub(crate) life: u64,
    /// True if calls are refused whatever their token is, and nothing else.
    pub(crate) refuses_calls: bool,
    /// What clients registered, and how often tokens were given by a code and by a refresh token.
    pub(crate) registered: Vec<Value>,
    pub(crate) given: [usize; 2],
    /// What a code was asked for with.
    codes: BTreeMap<String, Fields>,
    good: BTreeSet<String>,
    refresh: BTreeSet<String>,
}

/// A server with one tool and one prompt; it ends when this is dropped.
pub(crate) struct Birds {
    pub(crate) base: String,
    issued: Arc<Mutex<Issued>>,
    _runtime: Runtime,
}

type Shared = (Arc<Mutex<Issued>>, String);

impl Birds {
    /// One that lets everybody in.
    pub(crate) fn open() -> Self {
        Self::start(|_, served| served)
    }

    /// One that wants tokens, and issues them.
    pub(crate) fn guarded() -> Self {
        Self::start(|shared, served| {
            let served = served.layer(from_fn_with_state(shared.clone(), enter));
            Router::new()
                .fallback(issue)
                .with_state(shared)
                .merge(served)
        })
    }

    fn start(around: impl FnOnce(Shared, Router) -> Router) -> Self {
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let look = tool_fn(
            ToolSpec::new("look", "Looks.", object(json!({}))),
            |_: Value, _| async { Ok(CallResult::ok("a heron")) },
        );
        let greet = ToolSpec::new(
            "greet",
            "Greets somebody.",
            object(json!({"who": {"type": "string"}})),
        );
        let greet = tool_fn(greet, |args: Value, _| async move {
            Ok(CallResult::ok(format!(
                "Greet {}.",
                args["who"].as_str().unwrap_or_default()
            )))
        });
        let host = McpHost::new("birds")
            .tools(Tools::new("birds").tool(look))
            .prompts(Tools::new("said").tool(greet));
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let issued = Arc::new(Mutex::new(Issued {
            life: 3_600,
            ..Issued::default()
        }));
        let router = around(
            (Arc::clone(&issued), base.clone()),
            host.router(HttpOptions::open()),
        );
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            base,
            issued,
            _runtime: runtime,
        }
    }

    pub(crate) fn issued(&self) -> MutexGuard<'_, Issued> {
        lock(&self.issued)
    }
}

fn lock(issued: &Mutex<Issued>) -> MutexGuard<'_, Issued> {
    issued.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets in who has a token.
async fn enter(State((issued, base)): State<Shared>, request: Request, next: Next) -> Response {
    let token = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let is_call = request
        .headers()
        .get("mcp-method")
        .is_some_and(|method| method == "tools/call");
    let is_in = {
        let issued = lock(&issued);
        token.is_some_and(|token| issued.good.contains(token)) && !(is_call && issued.refuses_calls)
    };
    if is_in {
        return next.run(request).await;
    }
    let challenge =
        format!("Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
    (
        StatusCode::UNAUTHORIZED,
        [(header::WWW_AUTHENTICATE, challenge)],
    )
        .into_response()
}

/// Whoever issues the tokens.
async fn issue(
    State((issued, base)): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut issued = lock(&issued);
    let answer = match uri.path() {
        "/.well-known/oauth-protected-resource/mcp" => {
            json!({"resource": format!("{base}/mcp"), "authorization_servers": [base], "scopes_supported": ["look"]})
        }
        "/.well-known/oauth-authorization-server" => json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"],
            "authorization_response_iss_parameter_supported": true,
        }),
        "/register" => {
            let asked: Value = serde_json::from_slice(&body).expect("JSON");
            issued.registered.push(asked.clone());
            json!({"client_id": "adjutant-1", "redirect_uris": asked["redirect_uris"]})
        }
        "/authorize" => {
            let asked = fields(uri.query().unwrap_or_default());
            let is_right = asked["response_type"] == "code"
                && asked["client_id"] == "adjutant-1"
                && asked["code_challenge_method"] == "S256"
                && asked["resource"] == format!("{base}/mcp")
                && issued
                    .registered
                    .iter()
                    .any(|it| it["redirect_uris"][0] == *asked["redirect_uri"]);
            assert!(
                is_right && !headers.contains_key("authorization"),
                "{asked:?}"
            );
            let code = format!("code-{}", issued.codes.len());
            let says = issued.says.clone().unwrap_or_else(|| base.clone());
            let back = format!(
                "{}?code={code}&state={}&iss={says}",
                asked["redirect_uri"], asked["state"]
            );
            issued.codes.insert(code, asked);
            return (StatusCode::FOUND, [(header::LOCATION, back)]).into_response();
        }
        "/token" => match issued.token(&fields(&String::from_utf8_lossy(&body))) {
            Some(given) => given,
            None => {
                return (
                    StatusCode::BAD_REQUEST,
                    json!({"error": "invalid_grant"}).to_string(),
                )
                    .into_response();
            }
        },
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    (
        [(header::CONTENT_TYPE, "application/json")],
        answer.to_string(),
    )
        .into_response()
}

impl Issued {
    /// A token for a code whose verifier fits, or for a refresh token; each is good once.
    fn token(&mut self, form: &Fields) -> Option<Value> {
        let kind = usize::from(form.get("grant_type")? == "refresh_token");
        if kind == 1 {
            self.refresh.take(form.get("refresh_token")?)?;
        } else {
            let asked = self.codes.remove(form.get("code")?)?;
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(form.get("code_verifier")?));
            let same = |key: &str| asked.get(key) == form.get(key);
            (asked["code_challenge"] == challenge && same("redirect_uri") && same("client_id"))
                .then_some(())?;
        }
        self.given[kind] += 1;
        let at = self.given[0] + self.given[1];
        self.good = [format!("access-{at}")].into();
        self.refresh = [format!("refresh-{at}")].into();
        Some(json!({
            "access_token": format!("access-{at}"), "refresh_token": format!("refresh-{at}"), "token_type": "Bearer",
            "expires_in": self.life,
        }))
    }
}

/// The fields of a query, or of a form.
fn fields(text: &str) -> Fields {
    let plain = |text: &str| {
        let (mut bytes, mut rest) = (Vec::new(), text.bytes());
        while let Some(byte) = rest.next() {
            let hex = |byte: Option<u8>| {
                char::from(byte.unwrap_or_default())
                    .to_digit(16)
                    .unwrap_or_default()
            };
            bytes.push(match byte {
                b'%' => u8::try_from(hex(rest.next()) * 16 + hex(rest.next())).expect("two digits"),
                b'+' => b' ',
                byte => byte,
            });
        }
        String::from_utf8(bytes).expect("UTF-8")
    };
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (plain(key), plain(value)))
        .collect()
}

/// A page that a browser opens: its first line, and where it sends the browser.
pub(crate) fn browse(url: &str) -> (String, Option<String>) {
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|url| url.split_once('/'))
        .expect("an address");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let head = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it is sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("it is read");
    let to = page
        .lines()
        .find_map(|line| line.strip_prefix("location: "))
        .map(str::to_owned);
    (page.lines().next().unwrap_or_default().to_owned(), to)
}
