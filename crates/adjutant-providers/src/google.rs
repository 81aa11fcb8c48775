//! Google application default credentials: access tokens for the user or the service account of a JSON file.
//!
//! Source: "How Application Default Credentials works", docs.cloud.google.com, and "Using OAuth 2.0 for server to server
//! applications", developers.google.com, 2026-11.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use adjutant_llm::{Error, ErrorKind};
use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::{Url, header};
use rustls::{
    SignatureScheme,
    crypto::ring::sign::any_supported_type,
    pki_types::{PrivateKeyDer, pem::PemObject},
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use crate::{
    driver::{Route, client},
    tokens::{Token, TokenSource},
};

/// The file of the credentials, below the configuration of `gcloud`.
const FILE: &str = "application_default_credentials.json";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// The longest time that the exchange for a token may take.
const EXCHANGE: Duration = Duration::from_secs(10);
/// The time before its expiry from which a token is no longer used.
const MARGIN: Duration = Duration::from_secs(300);
/// The maximum number of bytes of a credentials file, and of an answer.
const MAX_BYTES: usize = 64 * 1024;

/// The credentials of a file.
#[derive(Clone)]
pub(crate) struct GoogleCredentials {
    path: PathBuf,
    account: Arc<Account>,
}

/// The content of a credentials file.
#[derive(Deserialize)]
struct Account {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default = "default_token_uri")]
    token_uri: String,
    quota_project_id: Option<String>,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: String,
    #[serde(default)]
    refresh_token: String,
    #[serde(default)]
    client_email: String,
    #[serde(default)]
    private_key: String,
    private_key_id: Option<String>,
}

/// The answer to an exchange.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Granted {
    access_token: String,
    expires_in: u64,
    error: String,
    error_description: String,
}

impl GoogleCredentials {
    /// Finds the file that `GOOGLE_APPLICATION_CREDENTIALS` names, else the file of `gcloud auth application-default login`.
    ///
    /// # Errors
    /// `Config` if the file that the variable names does not exist, or if a file cannot be used.
    pub(crate) fn find(var: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Error> {
        if let Some(path) = var("GOOGLE_APPLICATION_CREDENTIALS") {
            return Self::read(Path::new(&path)).map(Some);
        }
        let home = var("HOME").map(|home| PathBuf::from(home).join(".config/gcloud"));
        let windows = || var("APPDATA").map(|data| PathBuf::from(data).join("gcloud"));
        let folder = var("CLOUDSDK_CONFIG").map(PathBuf::from);
        let path = folder.or(home).or_else(windows).map(|it| it.join(FILE));
        path.filter(|path| path.is_file())
            .map(|path| Self::read(&path))
            .transpose()
    }

    fn read(path: &Path) -> Result<Self, Error> {
        let fail = |why: &str| {
            let path = path.display();
            Err(Error::new(
                ErrorKind::Config,
                format!("the Google credentials in {path} cannot be used: {why}"),
            ))
        };
        let text = match std::fs::read(path) {
            Ok(text) if text.len() <= MAX_BYTES => text,
            Ok(_) => return fail("the file has more than 64 KiB"),
            Err(error) => return fail(&error.to_string()),
        };
        // The error of the parser could repeat a key.
        let Ok(account) = serde_json::from_slice::<Account>(&text) else {
            return fail("it is not a JSON credentials file");
        };
        let missing = match &*account.kind {
            "authorized_user" => account.refresh_token.is_empty() || account.client_id.is_empty(),
            "service_account" => account.private_key.is_empty() || account.client_email.is_empty(),
            kind => {
                return fail(&format!(
                    "type {kind:?} is not supported; hint: set CLOUDSDK_AUTH_ACCESS_TOKEN, or a `key_command` that runs \
                     \"gcloud auth application-default print-access-token\""
                ));
            }
        };
        if missing {
            return fail(&format!("a field of type {:?} is missing", account.kind));
        }
        if !is_safe(&account.token_uri) {
            return fail("token_uri is not an https address");
        }
        Ok(Self {
            path: path.to_owned(),
            account: Arc::new(account),
        })
    }

    /// Returns the project that requests are counted for, which a user's token needs.
    pub(crate) fn quota_project(&self) -> Option<&str> {
        self.account.quota_project_id.as_deref()
    }

    fn fail(&self, why: &str) -> Error {
        let hint = match &*self.account.kind {
            "authorized_user" => "; hint: run \"gcloud auth application-default login\"",
            _ => "",
        };
        let path = self.path.display();
        Error::new(
            ErrorKind::Auth,
            format!("no Google access token for the credentials in {path}: {why}{hint}"),
        )
    }

    async fn exchange(&self, now: Duration) -> Result<Granted, Error> {
        let account = &self.account;
        let user = [
            ("grant_type", "refresh_token"),
            ("client_id", &account.client_id),
            ("client_secret", &account.client_secret),
            ("refresh_token", &account.refresh_token),
        ];
        let assertion = match &*account.kind {
            "service_account" => account.assertion(now).map_err(|why| self.fail(why))?,
            _ => String::new(),
        };
        let service = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", &*assertion),
        ];
        let unreachable = |error: reqwest::Error| {
            self.fail("the token server cannot be reached")
                .with_source(error.without_url())
        };
        let mut url =
            Url::parse(&account.token_uri).map_err(|_| self.fail("token_uri is not an address"))?;
        let route = if is_loopback(&url) {
            Route::Loopback
        } else {
            Route::Outside
        };
        let form = match &*account.kind {
            "service_account" => &service[..],
            _ => &user[..],
        };
        // The query of an address has the form of such a body.
        let plain = url.clone();
        url.query_pairs_mut().clear().extend_pairs(form);
        let body = url.query().unwrap_or_default().to_owned();
        let post = client(EXCHANGE, route)?
            .post(plain)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        let mut answer = post.send().await.map_err(unreachable)?;
        let status = answer.status();
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_BYTES {
                return Err(self.fail("the answer of the token server has more than 64 KiB"));
            }
        }
        let granted: Granted = serde_json::from_slice(&bytes).unwrap_or_default();
        if status.is_success() && !granted.access_token.is_empty() {
            return Ok(granted);
        }
        let why = match (&*granted.error, &*granted.error_description) {
            ("", _) => format!("the token server answered {status}"),
            (error, "") => error.to_owned(),
            (error, description) => format!("{error}: {description}"),
        };
        Err(self.fail(&why.chars().take(300).collect::<String>()))
    }
}

impl Account {
    /// Returns the signed claim of a service account that the token server exchanges.
    fn assertion(&self, now: Duration) -> Result<String, &'static str> {
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.private_key_id});
        let claims = json!({
            "iss": self.client_email, "scope": SCOPE, "aud": self.token_uri,
            "iat": now.as_secs(), "exp": now.as_secs() + 3_600,
        });
        let text = format!("{}.{}", part(header), part(claims));
        let wrong = "private_key is not an RSA key in PEM form";
        let key = PrivateKeyDer::from_pem_slice(self.private_key.as_bytes()).map_err(|_| wrong)?;
        let key = any_supported_type(&key).map_err(|_| wrong)?;
        let signer = key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256]);
        let signature = signer.ok_or(wrong)?.sign(text.as_bytes());
        let signature = signature.map_err(|_| "the claim cannot be signed")?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

#[async_trait]
impl TokenSource for GoogleCredentials {
    async fn token(&self) -> Result<Token, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let exchange = self.exchange(now.unwrap_or_default());
        let granted = timeout(EXCHANGE, exchange)
            .await
            .unwrap_or_else(|_| Err(self.fail("the token server did not answer in 10 seconds")))?;
        let life = Duration::from_secs(granted.expires_in);
        Ok(Token::new(
            granted.access_token,
            life.saturating_sub(MARGIN),
        ))
    }
}

/// True if a secret can be sent to an address: encrypted, or within this machine.
fn is_safe(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" || is_loopback(&url))
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|it| it.is_loopback())
    })
}

fn default_token_uri() -> String {
    TOKEN_URI.to_owned()
}
