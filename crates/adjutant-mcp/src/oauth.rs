//! Sign-in to a server and refresh of its tokens, with the SDK's OAuth and our own rules for permitted addresses.

use std::{sync::Arc, time::Duration};

use adjutant_llm::hidden::is_hidden;
use oauth2::TokenResponse as _;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore as _,
    InMemoryCredentialStore, OAuthClientConfig, OAuthHttpClient, OAuthHttpClientError,
    OAuthHttpClientFuture, OAuthHttpRequest, StoredCredentials,
};

use crate::{
    error::{Error, ErrorKind},
    reach::{self, Reach},
};

/// The time for one request, and the bytes of one answer that are read.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
const MAX_ANSWER: usize = 1024 * 1024;
/// The largest number of characters of an external message that are displayed.
const MAX_SAID: usize = 300;

/// A client for issuers: with limits, without redirects, and only for permitted addresses.
struct Asker {
    client: reqwest::Client,
    reach: Reach,
}

impl Asker {
    async fn ask(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let request = reqwest::Request::try_from(request)?;
        self.reach.judge(request.url())?;
        // The error would show the address, which may hold a secret.
        let mut answer = self
            .client
            .execute(request)
            .await
            .map_err(reqwest::Error::without_url)?;
        let mut response = http::Response::builder().status(answer.status());
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
        Ok(response.body(lean(body))?)
    }
}

impl OAuthHttpClient for Asker {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.ask(request.request))
    }
}

/// The answer of a token endpoint without unused fields, which would be stored and logged by the SDK. Other answers
/// stay unchanged.
fn lean(body: Vec<u8>) -> Vec<u8> {
    const USED: [&str; 5] = [
        "access_token",
        "token_type",
        "expires_in",
        "refresh_token",
        "scope",
    ];
    match serde_json::from_slice::<serde_json::Map<_, _>>(&body) {
        Ok(mut answer) if answer.contains_key("access_token") => {
            answer.retain(|key, _| USED.contains(&key.as_str()));
            serde_json::Value::Object(answer).to_string().into_bytes()
        }
        _ => body,
    }
}

/// The SDK's authorization state for a server, which uses our client.
pub(crate) async fn manager(
    name: &str,
    url: &Url,
    reach: Reach,
) -> Result<AuthorizationManager, Error> {
    let client = reach::client(url, |it| match reach {
        Reach::Public => it
            .timeout(LIMIT)
            .dns_resolver(Arc::new(reach::public_names())),
        Reach::Local => it.timeout(LIMIT),
    })?;
    let asker = Asker { client, reach };
    let made = AuthorizationManager::new_with_oauth_http_client(url.clone(), Arc::new(asker)).await;
    made.map_err(|error| sign_in_error(name, &error))
}

/// Finds who issues the tokens of a server; metadata that are another server's are refused.
pub(crate) async fn discover(
    name: &str,
    manager: &mut AuthorizationManager,
    challenge: Option<&str>,
) -> Result<AuthorizationMetadata, Error> {
    let found = manager.resolve_metadata_from_challenge(challenge).await;
    let found = found.map_err(|error| sign_in_error(name, &error))?;
    let refused = |why: &str| {
        let message = format!("the server `{name}` cannot be signed in to: {why}");
        Err(Error::new(ErrorKind::Unauthorised, message))
    };
    if !found.source.is_discovered() {
        return refused("it names no token issuer");
    }
    let methods = found
        .metadata
        .code_challenge_methods_supported
        .as_deref()
        .unwrap_or_default();
    if !methods.iter().any(|method| method == "S256") {
        return refused(
            "its token issuer does not declare PKCE (S256), so a stolen code could be used",
        );
    }
    manager.set_metadata(found.metadata.clone());
    Ok(found.metadata)
}

/// Refreshes the tokens of a server. Returns the same ones if they have no refresh token, and none if the refresh was
/// refused.
///
/// # Errors
/// `Unavailable` if that may succeed later.
pub(crate) async fn renew(
    name: &str,
    url: &str,
    stored: StoredCredentials,
    client_secret: Option<&String>,
    is_private: bool,
) -> Result<Option<StoredCredentials>, Error> {
    if stored
        .token_response
        .as_ref()
        .is_none_or(|token| token.refresh_token().is_none())
    {
        return Ok(Some(stored));
    }
    let url = reach::address(name, url)?;
    let mut manager = manager(name, &url, Reach::from_url(&url, is_private)).await?;
    let metadata = discover(name, &mut manager, None).await?;
    // A new issuer never receives the tokens of the previous one.
    if metadata.issuer != stored.issuer {
        return Ok(None);
    }
    // There is no redirect, but a client must have an address for it.
    let mut client = OAuthClientConfig::new(&stored.client_id, "http://127.0.0.1/callback");
    client.client_secret = client_secret.cloned();
    manager
        .configure_client(client)
        .map_err(|error| sign_in_error(name, &error))?;
    let store = InMemoryCredentialStore::new();
    store
        .save(stored)
        .await
        .map_err(|error| sign_in_error(name, &error))?;
    manager.set_credential_store(store.clone());
    match manager.refresh_token().await {
        Ok(_) => store
            .load()
            .await
            .map_err(|error| sign_in_error(name, &error)),
        Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Ok(None),
        Err(error) => Err(sign_in_error(name, &error)),
    }
}

/// A failure of the SDK's, in one line of bounded length.
pub(crate) fn sign_in_error(name: &str, error: &AuthError) -> Error {
    let kind = match error {
        AuthError::DiscoveryRequestFailed { .. }
        | AuthError::TokenRefreshFailed(_)
        | AuthError::HttpError(_) => ErrorKind::Unavailable,
        _ => ErrorKind::Unauthorised,
    };
    let mut text = error.to_string();
    let mut below = std::error::Error::source(error);
    while let Some(cause) = below {
        text.push_str(&format!(": {cause}"));
        below = cause.source();
    }
    Error::new(
        kind,
        format!(
            "the server `{name}` cannot be signed in to: {}",
            sanitize_text(&text)
        ),
    )
}

/// An external message: one line of bounded length, without control characters.
pub(crate) fn sanitize_text(text: &str) -> String {
    let plain = |c: char| {
        if c.is_control() || is_hidden(c) {
            ' '
        } else {
            c
        }
    };
    text.chars().take(MAX_SAID).map(plain).collect()
}
