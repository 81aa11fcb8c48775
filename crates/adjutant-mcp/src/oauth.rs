//! Signing in to a server, and renewing what that gave, by the SDK's OAuth with our rules about who is asked.

use std::{net::IpAddr, sync::Arc, time::Duration};

use adjutant_llm::hidden::is_hidden;
use adjutant_toolkit::is_public;
use oauth2::TokenResponse as _;
use reqwest::{Url, redirect::Policy};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore as _, InMemoryCredentialStore,
    OAuthClientConfig, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
    StoredCredentials,
};

use crate::{
    error::{Error, ErrorKind},
    http,
    tokens::file::{Kept, TokenFile},
};

pub(crate) mod login;
mod redirect;

/// The time for one request, and the bytes of one answer that are read.
const LIMIT: Duration = Duration::from_secs(30);
const MAX_ANSWER: usize = 1024 * 1024;
/// The largest number of characters of what a stranger said that is shown.
const MAX_SAID: usize = 300;

/// What to do where a token is missing.
pub(crate) fn hint(name: &str) -> String {
    format!("adjutant mcp login {name}")
}

/// Where an answer of who issues tokens may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// From public addresses, by https.
    Public,
    /// From this machine and its networks too: the server is there itself, or the user said so.
    Local,
}

impl Reach {
    pub(crate) fn of(server: &Url, is_private: bool) -> Self {
        if is_private || is_local(server) { Self::Local } else { Self::Public }
    }

    fn judge(self, url: &Url) -> Result<(), OAuthHttpClientError> {
        let literal = url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
        let shown = http::shown(url.as_str());
        match self {
            Self::Local => Ok(()),
            Self::Public if url.scheme() != "https" => Err(format!("{shown} is not asked: it is no https").into()),
            Self::Public if literal.is_some_and(|address| !is_public(address)) => {
                Err(format!("{shown} is not asked: its address is not public").into())
            }
            Self::Public => Ok(()),
        }
    }
}

/// True if the name of a server says that it is on this machine or in its network.
pub(crate) fn is_local(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(address) => !is_public(address),
        Err(_) => !host.trim_end_matches('.').contains('.') || host.ends_with(".localhost"),
    }
}

/// Asks who issues tokens: bounded, followed nowhere, and only where they may be.
struct Asker {
    client: reqwest::Client,
    reach: Reach,
}

impl Asker {
    async fn ask(&self, request: ::http::Request<Vec<u8>>) -> Result<::http::Response<Vec<u8>>, OAuthHttpClientError> {
        let request = reqwest::Request::try_from(request)?;
        self.reach.judge(request.url())?;
        // The error would show the address, which may hold a secret.
        let mut answer = self.client.execute(request).await.map_err(reqwest::Error::without_url)?;
        let mut response = ::http::Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            response = response.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(format!("an answer is longer than {MAX_ANSWER} bytes").into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(response.body(body)?)
    }
}

impl OAuthHttpClient for Asker {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.ask(request.request))
    }
}

/// The SDK's state of signing in to a server, which asks with our client.
async fn manager(name: &str, url: &Url, reach: Reach) -> Result<AuthorizationManager, Error> {
    let mut builder = http::builder().redirect(Policy::none()).timeout(LIMIT);
    if reach == Reach::Public {
        builder = builder.dns_resolver(Arc::new(http::PublicNames));
    }
    let asker = Asker { client: http::build(http::direct(builder, url))?, reach };
    let made = AuthorizationManager::new_with_oauth_http_client(url.clone(), Arc::new(asker)).await;
    made.map_err(|error| failed(name, &error))
}

/// Finds who issues the tokens of a server; metadata that are another server's are refused.
async fn discover(
    name: &str,
    manager: &mut AuthorizationManager,
    challenge: Option<&str>,
) -> Result<AuthorizationMetadata, Error> {
    let found = manager.resolve_metadata_from_challenge(challenge).await;
    let found = found.map_err(|error| failed(name, &error))?;
    let refused = |why: &str| {
        let message = format!("the server `{name}` cannot be signed in to: {why}");
        Err(Error::new(ErrorKind::Unauthorised, message))
    };
    if !found.source.is_discovered() {
        return refused("it does not say who issues its tokens");
    }
    let methods = found.metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
    if !methods.iter().any(|method| method == "S256") {
        return refused("who issues its tokens does not say that PKCE (S256) is checked: a stolen code would be good");
    }
    manager.set_metadata(found.metadata.clone());
    Ok(found.metadata)
}

/// Renews the tokens of a server. Gives the same ones if they were never to be renewed, and none if nobody renews them any more.
///
/// # Errors
/// `Unavailable` if that may succeed later.
pub(crate) async fn renew(file: &TokenFile, kept: &Kept) -> Result<Option<StoredCredentials>, Error> {
    let token = kept.credentials.as_ref().and_then(|stored| stored.token_response.as_ref());
    let (Some(stored), true) = (&kept.credentials, token.is_some_and(|token| token.refresh_token().is_some())) else {
        return Ok(kept.credentials.clone());
    };
    let (name, url) = (&*file.name, http::address(&file.name, &file.url)?);
    let mut manager = manager(name, &url, Reach::of(&url, kept.is_private)).await?;
    let metadata = discover(name, &mut manager, None).await?;
    // Whoever issues tokens now never sees those of whoever did before.
    if metadata.issuer != stored.issuer {
        return Ok(None);
    }
    // No redirect is asked for, but a client has an address for it.
    let mut client = OAuthClientConfig::new(&stored.client_id, "http://127.0.0.1/callback");
    client.client_secret.clone_from(&kept.client_secret);
    manager.configure_client(client).map_err(|error| failed(name, &error))?;
    let store = InMemoryCredentialStore::new();
    store.save(stored.clone()).await.map_err(|error| failed(name, &error))?;
    manager.set_credential_store(store.clone());
    match manager.refresh_token().await {
        Ok(_) => store.load().await.map_err(|error| failed(name, &error)),
        Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Ok(None),
        Err(error) => Err(failed(name, &error)),
    }
}

/// A failure of the SDK's, in one line of bounded length.
fn failed(name: &str, error: &AuthError) -> Error {
    let kind = match error {
        AuthError::DiscoveryRequestFailed { .. } | AuthError::TokenRefreshFailed(_) | AuthError::HttpError(_) => {
            ErrorKind::Unavailable
        }
        _ => ErrorKind::Unauthorised,
    };
    let mut text = error.to_string();
    let mut below = std::error::Error::source(error);
    while let Some(cause) = below {
        text.push_str(&format!(": {cause}"));
        below = cause.source();
    }
    Error::new(kind, format!("the server `{name}` cannot be signed in to: {}", said(&text)))
}

/// What a stranger said: one line of bounded length, nothing that a terminal obeys.
fn said(text: &str) -> String {
    let plain = |c: char| if c.is_control() || is_hidden(c) { ' ' } else { c };
    text.chars().take(MAX_SAID).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_may_be_in_a_private_network_only_where_its_server_is() {
        let url = |text: &str| Url::parse(text).expect("an address");
        let local = [
            "http://localhost:1/",
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://10.1.2.3/",
            "http://mcp/",
            "http://a.localhost/",
        ];
        let public = ["https://a.example/", "https://8.8.8.8/", "https://[2606:4700::1]/", "https://a.internal/"];
        for (texts, is_one) in [(&local[..], true), (&public[..], false)] {
            for text in texts {
                assert_eq!(is_local(&url(text)), is_one, "{text}");
            }
        }
        let judged =
            |text| Reach::of(&url("https://a.example/"), false).judge(&url(text)).map_err(|error| error.to_string());
        for (text, words) in [
            ("http://as.example/", "no https"),
            ("https://127.0.0.1/", "not public"),
            ("https://[fd00::1]/", "not public"),
            ("https://169.254.169.254/latest?key=hush", "https://169.254.169.254/latest is not asked"),
        ] {
            let error = judged(text).expect_err(text);
            assert!(error.contains(words) && !error.contains("hush"), "{error}");
            Reach::of(&url("http://localhost/"), false).judge(&url(text)).expect("it is local too");
        }
        judged("https://as.example/").expect("it is public");
    }

    #[tokio::test]
    async fn name_is_resolved_only_to_public_addresses() {
        use reqwest::dns::Resolve;
        let found = http::PublicNames.resolve("localhost".parse().expect("a name")).await;
        let error = found.err().expect("it is this machine").to_string();
        assert!(error.contains("localhost is at") && error.contains("not public"), "{error}");
    }
}
