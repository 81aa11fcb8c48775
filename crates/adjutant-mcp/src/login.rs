//! Signing in: an address that a person opens, and the redirect that comes back from it.

use std::{fmt, sync::Arc, time::Duration};

use reqwest::{StatusCode, Url, header::WWW_AUTHENTICATE};
use rmcp::transport::auth::{
    AuthorizationManager, CredentialStore as _, InMemoryCredentialStore, OAuthClientConfig,
};
use tokio::time::timeout;

use crate::{
    config::HttpConfig,
    error::{Error, ErrorKind},
    http,
    oauth::{LIMIT, discover, manager, sanitize_text, sign_in_error},
    reach::{self, Reach},
    redirect::Redirect,
    tokens::file::TokenFile,
};

/// The time that a person has to sign in.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// A request without effect: it only triggers the server's authorization challenge.
const PROBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// A started sign-in to a server.
///
/// ```no_run
/// # async fn sign_in() -> Result<(), adjutant_mcp::Error> {
/// use adjutant_mcp::{HttpConfig, Login, LoginOptions, Tokens};
///
/// let mut server = HttpConfig::new("https://mcp.example.com/mcp");
/// server.tokens = Tokens::from_directory("/home/me/.config/tokens");
/// let login = Login::begin("example", &server, LoginOptions::default()).await?;
/// println!("open {}", login.url());
/// login.finish().await
/// # }
/// ```
pub struct Login {
    file: TokenFile,
    manager: AuthorizationManager,
    store: InMemoryCredentialStore,
    redirect: Redirect,
    url: String,
    client_secret: Option<String>,
    is_private: bool,
}

/// Optional settings for a sign-in.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct LoginOptions {
    /// The id of a client that is registered there. Without one, it is the address of `client_metadata` if the server
    /// supports that, and otherwise a client is registered if possible.
    pub client_id: Option<String>,
    /// The secret of that client; it is kept with the tokens.
    pub client_secret: Option<String>,
    /// The address of a document that describes this client (`https://…`).
    pub client_metadata: Option<String>,
    /// The scopes of the token; by default those that the server has requested so far.
    pub scopes: Vec<String>,
    /// The port of this machine that the browser comes back to, where a registered client has one; any by default.
    pub port: Option<u16>,
    /// True if the token issuer may be in a private network. It always may if the server's own name is local.
    pub is_private: bool,
}

impl Login {
    /// Begins to sign in: finds out who issues the tokens of a server, and listens for the redirect on this machine.
    ///
    /// # Errors
    /// `Invalid` if the server has no stored tokens, or its address is not allowed; `Unauthorised` if the sign-in is
    /// impossible: the server names no issuer, the issuer's metadata belong to another one, or it lacks a required
    /// feature; `Unavailable` if a server cannot be reached.
    pub async fn begin(
        name: &str,
        config: &HttpConfig,
        options: LoginOptions,
    ) -> Result<Self, Error> {
        let Some(folder) = config.tokens.folder() else {
            let message = format!("there is no folder for the tokens of the server `{name}`");
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        if options.client_secret.is_some() && options.client_id.is_none() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the secret of a client is of no use without its id",
            ));
        }
        let server = reach::address(name, &config.url)?;
        reach::may_carry_token(name, &server)?;
        let file = TokenFile::new(folder, &Arc::from(name), &config.url);
        // Tokens that are unreadable or belong to another server are replaced.
        let kept = match file.load() {
            Err(error) if error.kind == ErrorKind::Invalid => None,
            kept => kept?,
        };
        let is_private = options.is_private || kept.as_ref().is_some_and(|kept| kept.is_private);
        let challenge = challenge(name, &server, config).await?;
        let reach = Reach::from_url(&server, is_private);
        let mut manager = manager(name, &server, reach).await?;
        let metadata = discover(name, &mut manager, challenge.as_deref()).await?;

        let mut scopes = options.scopes.clone();
        if let Some(kept) = kept.filter(|kept| scopes.is_empty() && !kept.wanted.is_empty()) {
            scopes = kept.scopes().to_vec();
            scopes.extend(kept.wanted);
        }
        if scopes.is_empty() {
            scopes = manager.select_initial_scopes(&[]).await;
        }
        // With it a refresh token is given, where it is known at all.
        let offline = metadata
            .scopes_supported
            .iter()
            .flatten()
            .find(|scope| *scope == "offline_access");
        scopes.extend(offline.filter(|_| !scopes.is_empty()).cloned());
        let mut seen = std::collections::HashSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();

        let redirect = Redirect::listen(options.port).await.map_err(|error| {
            let message =
                format!("cannot listen for the end of the sign-in to the server `{name}`");
            Error::new(ErrorKind::Unavailable, message).with_source(error)
        })?;
        let takes_documents = metadata
            .additional_fields
            .get("client_id_metadata_document_supported");
        let takes_documents = takes_documents.is_some_and(|takes| *takes == true);
        let known = options
            .client_id
            .or(options.client_metadata.filter(|_| takes_documents));
        let client = match known {
            Some(id) => {
                let mut client = OAuthClientConfig::new(id, redirect.address());
                client.client_secret = options.client_secret;
                client
            }
            None => {
                let registered = manager
                    .register_client("Adjutant", redirect.address(), &scopes)
                    .await;
                registered.map_err(|error| sign_in_error(name, &error))?
            }
        };
        let client_secret = client.client_secret.clone();
        manager
            .configure_client(client)
            .map_err(|error| sign_in_error(name, &error))?;
        let store = InMemoryCredentialStore::new();
        manager.set_credential_store(store.clone());
        let url = manager
            .get_authorization_url(&scopes)
            .await
            .map_err(|error| sign_in_error(name, &error))?;
        // It is opened by a browser: nothing else than a page of the web may be.
        let is_page = match Url::parse(&url) {
            Ok(page) => {
                page.scheme() == "https" || page.scheme() == "http" && reach == Reach::Local
            }
            Err(_) => false,
        };
        if !is_page {
            let message = format!(
                "the server `{name}` cannot be signed in to: the page for that is none of https"
            );
            return Err(Error::new(ErrorKind::Unauthorised, message));
        }
        Ok(Self {
            file,
            manager,
            store,
            redirect,
            url,
            client_secret,
            is_private,
        })
    }

    /// The address that a person opens to sign in.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits until the person has signed in, ten minutes at most, and keeps the tokens.
    ///
    /// Cancel: there is no sign-in, and nothing was changed.
    ///
    /// # Errors
    /// `Unauthorised` if it was refused, or the answer does not come from the issuer; `TimedOut`.
    pub async fn finish(self) -> Result<(), Error> {
        let Self {
            file,
            manager,
            store,
            redirect,
            url,
            client_secret,
            is_private,
        } = self;
        let name = &*file.name;
        let refused = |why: &str| {
            Error::new(
                ErrorKind::Unauthorised,
                format!("the sign-in to the server `{name}` failed: {why}"),
            )
        };
        let state = Url::parse(&url).ok().and_then(|url| {
            url.query_pairs()
                .find(|(key, _)| key == "state")
                .map(|(_, state)| state.into_owned())
        });
        let state = state.ok_or_else(|| refused("there is no state to know its end by"))?;
        let waited = timeout(PATIENCE, redirect.wait(&state)).await;
        let (answer, page) = waited.map_err(|_| {
            let message = format!(
                "nobody signed in to the server `{name}` in {} minutes",
                PATIENCE.as_secs() / 60
            );
            Error::new(ErrorKind::TimedOut, message)
        })?;
        let done = async {
            let code = match (answer.code, answer.error) {
                (_, Some(error)) => return Err(refused(&sanitize_text(&error))),
                (None, None) => return Err(refused("what came back holds no code")),
                (Some(code), None) => code,
            };
            let exchanged = manager
                .exchange_code_for_token_with_issuer(&code, &state, answer.issuer.as_deref())
                .await;
            exchanged.map_err(|error| sign_in_error(name, &error))?;
            let credentials = store
                .load()
                .await
                .map_err(|error| sign_in_error(name, &error))?;
            let credentials = credentials.ok_or_else(|| refused("no token was given"))?;
            file.keep(credentials, client_secret, is_private).await
        };
        let done = done.await;
        page.show(done.is_ok()).await;
        done
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("server", &self.file.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LoginOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LoginOptions");
        shown
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// The server's challenge to a request without a token: the issuer and the scopes.
async fn challenge(name: &str, server: &Url, config: &HttpConfig) -> Result<Option<String>, Error> {
    let client = reach::client(server, |it| it.timeout(LIMIT))?;
    let mut request = client.post(server.clone());
    for (header, value) in http::headers(name, config)? {
        request = request.header(header, value);
    }
    let request = request
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    let answer = request.body(PROBE).send().await.map_err(|error| {
        let message = format!("the server `{name}` cannot be reached");
        Error::new(ErrorKind::Unavailable, message).with_source(error.without_url())
    })?;
    if answer.status() != StatusCode::UNAUTHORIZED {
        return Ok(None);
    }
    let said: Vec<_> = answer
        .headers()
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|said| said.to_str().ok())
        .collect();
    let best = said
        .iter()
        .find(|said| said.contains("resource_metadata"))
        .or(said.first());
    Ok(best.map(|said| (*said).to_owned()))
}
