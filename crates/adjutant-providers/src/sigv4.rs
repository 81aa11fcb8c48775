//! Requests signed with AWS keys. `aws-sigv4` signs the request exactly as it is sent.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use adjutant_llm::{Error, ErrorKind};
use async_trait::async_trait;
use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4,
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::tokens::{KeyCommand, Token, TokenSource};

/// The time before their expiry from which keys are no longer used.
const MARGIN: Duration = Duration::from_secs(300);
/// The time for which keys without an end are used before the program runs again.
const UNLIMITED: Duration = Duration::from_secs(900);

/// Keys of AWS. They are never printed.
#[derive(Clone)]
pub struct AwsKeys {
    access: Arc<str>,
    secret: Arc<str>,
    session: Option<Arc<str>>,
}

/// Signs the requests of a model.
pub(crate) struct Signer {
    /// `None` until a program has printed them.
    keys: RwLock<Option<AwsKeys>>,
    region: Arc<str>,
    service: Arc<str>,
}

/// A program that prints keys in the form of `credential_process`, as `aws configure export-credentials` does.
pub(crate) struct KeyProcess(pub(crate) KeyCommand);

/// The keys that such a program prints. Source: "Process credential provider", docs.aws.amazon.com/sdkref, 2026.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PrintedKeys {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<String>,
}

impl AwsKeys {
    /// An access key and its secret.
    pub fn new(access: impl Into<Arc<str>>, secret: impl Into<Arc<str>>) -> Self {
        Self {
            access: access.into(),
            secret: secret.into(),
            session: None,
        }
    }

    /// Sets the token of keys that do not live long.
    #[must_use]
    pub fn session(mut self, token: impl Into<Arc<str>>) -> Self {
        self.session = Some(token.into());
        self
    }
}

impl Signer {
    pub(crate) fn new(keys: Option<AwsKeys>, region: Arc<str>, service: Arc<str>) -> Self {
        Self {
            keys: RwLock::new(keys),
            region,
            service,
        }
    }

    fn keys(&self) -> Option<AwsKeys> {
        self.keys
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sets the keys that a program printed.
    ///
    /// # Errors
    /// `Auth` if the text is not of the form of `credential_process`.
    pub(crate) fn set_printed(&self, text: &str) -> Result<(), Error> {
        let printed = PrintedKeys::read(text)?;
        let mut keys = AwsKeys::new(printed.access_key_id, printed.secret_access_key);
        if let Some(token) = printed.session_token {
            keys = keys.session(token);
        }
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(keys);
        Ok(())
    }

    /// The texts that must never be printed.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Arc<str>> {
        let keys = self.keys().map(|keys| [Some(keys.secret), keys.session]);
        keys.into_iter().flatten().flatten()
    }

    /// Signs a request with this body, as it is: headers that follow are not signed.
    ///
    /// # Errors
    /// `Config` if the keys or a header cannot be used.
    pub(crate) fn sign(
        &self,
        request: &mut reqwest::Request,
        body: impl Iterator<Item = Bytes>,
        now: SystemTime,
    ) -> Result<(), Error> {
        self.sign_as(request, body, now, SigningSettings::default())
    }

    fn sign_as(
        &self,
        request: &mut reqwest::Request,
        body: impl Iterator<Item = Bytes>,
        now: SystemTime,
        settings: SigningSettings,
    ) -> Result<(), Error> {
        // The source may contain the signed content.
        let wrong = |_| {
            Error::new(
                ErrorKind::Config,
                "the request could not be signed with the AWS keys",
            )
        };
        let mut digest = Sha256::new();
        body.for_each(|piece| digest.update(&piece));
        let digest = digest
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let AwsKeys {
            access,
            secret,
            session,
        } = &self.keys().ok_or_else(|| wrong(()))?;
        let session = session.as_deref().map(str::to_owned);
        let identity = Credentials::new(&**access, &**secret, session, None, "adjutant").into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(&self.service);
        let params = params.time(now).settings(settings).build();
        let params = params.map_err(|_| wrong(())).map(Into::into)?;
        // Others may change it on the way.
        let plain = request
            .headers()
            .iter()
            .filter(|(name, _)| **name != header::USER_AGENT);
        let headers = plain.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let (method, url) = (request.method().as_str(), request.url().as_str());
        let signable =
            SignableRequest::new(method, url, headers, SignableBody::Precomputed(digest));
        let signed = signable
            .and_then(|it| sign(it, &params))
            .map_err(|_| wrong(()))?;
        let (made, _) = signed.into_parts();
        for (name, value) in made.headers() {
            let header = HeaderName::try_from(name)
                .ok()
                .zip(HeaderValue::try_from(value).ok());
            let (name, mut value) = header.ok_or_else(|| wrong(()))?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        Ok(())
    }
}

impl PrintedKeys {
    fn read(text: &str) -> Result<Self, Error> {
        // The error of the parser could repeat a key.
        serde_json::from_str(text).map_err(|_| {
            Error::new(
                ErrorKind::Auth,
                "the program for AWS credentials did not print the JSON of credential_process",
            )
        })
    }
}

#[async_trait]
impl TokenSource for KeyProcess {
    async fn token(&self) -> Result<Token, Error> {
        let mut complaint = Vec::new();
        let printed = self.0.run(Some(&mut complaint)).await;
        let printed = printed.map_err(|error| self.explain(error, &complaint))?;
        let text = String::from_utf8_lossy(&printed);
        let life = match PrintedKeys::read(&text)?.expiration {
            Some(end) => end
                .parse::<Timestamp>()
                .ok()
                .and_then(|end| Duration::try_from(end.duration_since(Timestamp::now())).ok())
                .unwrap_or_default()
                .saturating_sub(MARGIN),
            None => UNLIMITED,
        };
        Ok(Token::new(text, life))
    }
}

impl KeyProcess {
    /// Returns the error with the program's standard error and a hint.
    fn explain(&self, error: Error, complaint: &[u8]) -> Error {
        let text = String::from_utf8_lossy(complaint);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        let Some(line) = line else {
            return error;
        };
        let lower = text.to_lowercase();
        // Source: botocore 1.42 (`exceptions.py`), and awscli 2.32 (`export-credentials`), 2025 to 2026.
        let is_ended = lower.contains("sso") || lower.contains("aws login");
        let words = ["expired", "refresh", "login", "invalid"];
        let hint = if is_ended && words.iter().any(|word| lower.contains(word)) {
            "the SSO session has ended; hint: run \"aws sso login\" for the profile"
        } else if lower.contains("invalid choice") {
            "hint: update the AWS CLI to version 2"
        } else {
            "hint: run \"aws configure sso\" or \"aws configure\", or set AWS_PROFILE"
        };
        let line: String = line.chars().take(300).collect();
        let program = self.0.argv.join(" ");
        Error::new(
            ErrorKind::Auth,
            format!("no AWS credentials from {program:?}: {line}; {hint}"),
        )
        .with_source(error)
    }
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsKeys(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aws_sigv4::http_request::PayloadChecksumKind;

    use super::*;

    /// 2015-08-30T12:36:00Z.
    const NOW: Duration = Duration::from_secs(1_440_938_160);
    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
    const TOKEN: &str = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";

    #[track_caller]
    fn check(call: &str, headers: &[(&str, &str)], body: &str, token: Option<&str>, expect: &str) {
        let (method, path) = call.split_once(' ').expect("a method and a path");
        let url = format!("https://example.amazonaws.com{path}")
            .parse()
            .expect("a URL");
        let mut request = reqwest::Request::new(method.parse().expect("a method"), url);
        for (name, value) in headers {
            let name = HeaderName::try_from(*name).expect("a name");
            request
                .headers_mut()
                .append(name, HeaderValue::try_from(*value).expect("a value"));
        }
        let keys = AwsKeys::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let keys = AwsKeys {
            session: token.map(Into::into),
            ..keys
        };
        let signer = Signer::new(Some(keys), "us-east-1".into(), "service".into());
        let mut settings = SigningSettings::default();
        if !body.is_empty() {
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        let pieces = body.as_bytes().chunks(5).map(Bytes::copy_from_slice);
        signer
            .sign_as(&mut request, pieces, SystemTime::UNIX_EPOCH + NOW, settings)
            .expect("it is signed");
        let made = request.headers()["authorization"].to_str().expect("text");
        assert!(
            made.ends_with(&format!("Signature={expect}")),
            "{call}: {made}"
        );
        assert!(request.headers()["authorization"].is_sensitive());
    }

    /// Source: `aws-signing-test-suite/v4` of `aws-sigv4` 1.6, of the folders `post-vanilla`, `post-vanilla-query`,
    /// `post-header-key-sort`, `get-vanilla`, `get-vanilla-with-session-token` and `post-x-www-form-urlencoded`.
    #[test]
    fn signature_is_that_of_the_vectors() {
        check(
            "POST /",
            &[],
            "",
            None,
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        );
        let query = "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11";
        check("POST /?Param1=value1", &[], "", None, query);
        let sorted = "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c";
        check(
            "POST /",
            &[("My-Header1", "value1"), ("user-agent", "x")],
            "",
            None,
            sorted,
        );
        check(
            "GET /",
            &[],
            "",
            None,
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        );
        let session = "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8";
        check("GET /", &[], "", Some(TOKEN), session);
        let form = "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b";
        check(
            "POST /",
            &[FORM, ("content-length", "13")],
            "Param1=value1",
            None,
            form,
        );
    }
}
