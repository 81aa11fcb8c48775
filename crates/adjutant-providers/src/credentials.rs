//! Keys, their sources, and the removal of keys from texts. A key is never printed.

use std::{borrow::Cow, collections::BTreeMap, fmt, pin::Pin, sync::Arc};

use adjutant_llm::{Error, secret};

use crate::tokens::{KeptToken, TokenSource};
#[cfg(feature = "sigv4")]
use crate::{
    sigv4::{AwsKeys, KeyProcess, Signer},
    tokens::KeyCommand,
};

/// A shorter key is not a secret, but a placeholder for a local server.
const MIN_SECRET: usize = 8;
/// The text that replaces a secret.
const MARK: &str = "[key]";
/// Parts of the names of headers with secrets.
const SECRET_HEADERS: [&str; 6] = [
    "authorization",
    "key",
    "token",
    "secret",
    "password",
    "cookie",
];

/// The secret that identifies a caller to a provider; empty for servers without keys.
#[derive(Clone, Default)]
pub struct Key {
    secret: Option<Arc<str>>,
    resolver: Option<Resolver>,
    /// True if the secrets of the resolver are tokens, which go as bearers on every wire.
    is_token: bool,
    #[cfg(feature = "sigv4")]
    signer: Option<Arc<Signer>>,
}

/// Returns the secret of the next request, which must differ from the refused one.
type Resolver = Arc<dyn Fn(Option<Arc<str>>) -> Resolving + Send + Sync>;
/// A future secret; `None` if the configured one stays.
pub(crate) type Resolving = Pin<Box<dyn Future<Output = Result<Option<String>, Error>> + Send>>;

/// The place where a credential was looked for, and whether it was there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credential {
    /// The provider.
    pub provider: String,
    /// The environment variable.
    pub variable: String,
    /// True if it holds anything but white space.
    pub present: bool,
}

impl Key {
    /// A key; surrounding white space is dropped, and blank text is no key.
    pub fn new(secret: &str) -> Self {
        let secret = secret.trim();
        Self {
            secret: (!secret.is_empty()).then(|| secret.into()),
            ..Self::default()
        }
    }

    /// No key.
    pub fn none() -> Self {
        Self::default()
    }

    /// The value of an environment variable, read now; no key if it is unset or blank.
    pub fn from_env(variable: &str) -> Self {
        Self::new(&std::env::var(variable).unwrap_or_default())
    }

    /// The tokens of this source, such as a [`KeyCommand`](crate::KeyCommand). They go as `Authorization: Bearer` on every wire.
    pub fn tokens(source: impl TokenSource + 'static) -> Self {
        let kept = Arc::new(KeptToken::new(source));
        let resolver = move |refused: Option<Arc<str>>| -> Resolving {
            let kept = Arc::clone(&kept);
            Box::pin(async move {
                kept.token(refused.as_deref())
                    .await
                    .map(|it| Some(it.to_string()))
            })
        };
        Self {
            resolver: Some(Arc::new(resolver)),
            is_token: true,
            ..Self::default()
        }
    }

    /// Calls this resolver before every request, for short-lived keys. `None` or blank text keeps the configured key.
    ///
    /// The time it takes counts as waiting for the answer. Its error ends the request.
    #[must_use]
    pub fn resolve<F, R>(mut self, resolver: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Option<String>, Error>> + Send + 'static,
    {
        self.resolver = Some(Arc::new(move |_| Box::pin(resolver())));
        self
    }

    /// The secret itself.
    pub(crate) fn expose(&self) -> Option<&Arc<str>> {
        self.secret.as_ref()
    }

    /// The secret of the next request, if it must be resolved; a different one than the refused secret.
    pub(crate) fn resolving(&self, refused: Option<Arc<str>>) -> Option<Resolving> {
        self.resolver.as_ref().map(|resolver| resolver(refused))
    }

    /// Signs each request to a model with these keys, by Signature Version 4: in the place of a key.
    ///
    /// The service of Amazon Bedrock is `bedrock`. The service of its endpoints `bedrock-mantle` is `bedrock-mantle`.
    #[cfg(feature = "sigv4")]
    pub fn sigv4(keys: AwsKeys, region: impl Into<Arc<str>>, service: impl Into<Arc<str>>) -> Self {
        let signer = Signer::new(Some(keys), region.into(), service.into());
        Self {
            signer: Some(Arc::new(signer)),
            ..Self::default()
        }
    }

    /// Signs each request with the keys that a program prints in the form of AWS's `credential_process`, for example
    /// `aws configure export-credentials`. The program runs again 5 minutes before the keys end; its `ttl` is not used.
    #[cfg(feature = "sigv4")]
    pub fn sigv4_process(
        command: KeyCommand,
        region: impl Into<Arc<str>>,
        service: impl Into<Arc<str>>,
    ) -> Self {
        let kept = Arc::new(KeptToken::new(KeyProcess(command)));
        let signer = Arc::new(Signer::new(None, region.into(), service.into()));
        let target = Arc::clone(&signer);
        let resolver = move |_: Option<Arc<str>>| -> Resolving {
            let (kept, target) = (Arc::clone(&kept), Arc::clone(&target));
            Box::pin(async move {
                target.set_printed(&kept.token(None).await?)?;
                Ok(None)
            })
        };
        Self {
            resolver: Some(Arc::new(resolver)),
            signer: Some(signer),
            ..Self::default()
        }
    }

    /// Returns what signs requests, if anything does.
    #[cfg(feature = "sigv4")]
    pub(crate) fn signer(&self) -> Option<&Arc<Signer>> {
        self.signer.as_ref()
    }

    pub(crate) fn is_token(&self) -> bool {
        self.is_token
    }
}

/// The texts of a request that must never be printed: its keys, and the keys in its headers.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Arc<Vec<Arc<str>>>);

impl Secrets {
    pub(crate) fn add(&mut self, secret: &str) {
        if secret.len() < MIN_SECRET || self.0.iter().any(|it| **it == *secret) {
            return;
        }
        let all = Arc::make_mut(&mut self.0);
        // A text that repeats a key may have encoded it.
        all.extend(secret::forms(secret).into_iter().map(Arc::from));
        // One may be the beginning of another.
        all.sort_by_key(|it| std::cmp::Reverse(it.len()));
    }

    /// Adds the last word of each header that may contain credentials.
    pub(crate) fn add_headers(&mut self, headers: &BTreeMap<String, String>) {
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            if SECRET_HEADERS.iter().any(|it| name.contains(it)) {
                self.add(value.split_whitespace().last().unwrap_or_default());
            }
        }
    }

    /// The text without secrets, and without a beginning of one at its end, where a bound may have cut it.
    pub(crate) fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for secret in self.0.iter() {
            if clean.contains(&**secret) {
                clean = clean.replace(&**secret, MARK).into();
            }
            let mut parts = (MIN_SECRET..secret.len())
                .rev()
                .filter_map(|end| secret.get(..end));
            if let Some(rest) = parts.find_map(|part| clean.strip_suffix(part)) {
                clean = format!("{rest}{MARK}").into();
            }
        }
        clean
    }

    /// The error without secrets, should a server have repeated one. A source that holds one is left out.
    pub(crate) fn scrub(&self, error: Error) -> Error {
        let holds = |text: &str| matches!(self.clean(text), Cow::Owned(_));
        let texts = [
            Some(error.message()),
            error.details().body.as_deref(),
            error.details().code.as_deref(),
            error.details().request_id.as_deref(),
        ];
        let sources = std::iter::successors(std::error::Error::source(&error), |it| it.source());
        if !texts.into_iter().flatten().any(holds)
            && !sources.into_iter().any(|it| holds(&it.to_string()))
        {
            return error;
        }
        let mut scrubbed = Error::new(error.kind(), self.clean(error.message()));
        if let Some(status) = error.details().status {
            scrubbed = scrubbed.with(|it| it.status = Some(status));
        }
        if let Some(code) = error.details().code.as_deref() {
            scrubbed = scrubbed.with(|it| it.code = Some(self.clean(code).into()));
        }
        if let Some(body) = error.details().body.as_deref() {
            scrubbed = scrubbed.with(|it| it.body = Some(self.clean(body).into()));
        }
        if let Some(id) = error.details().request_id.as_deref() {
            scrubbed = scrubbed.with(|it| it.request_id = Some(self.clean(id).into()));
        }
        if let Some(should) = error.details().should_retry {
            scrubbed = scrubbed.with(|it| it.should_retry = Some(should));
        }
        if let Some(overflow) = error.details().overflow {
            scrubbed = scrubbed.with(|it| it.overflow = Some(overflow));
        }
        match error.retry_after() {
            Some(wait) => scrubbed.with(|it| it.retry_after = Some(wait)),
            None => scrubbed,
        }
    }
}

impl From<&str> for Key {
    fn from(secret: &str) -> Self {
        Self::new(secret)
    }
}

impl From<String> for Key {
    fn from(secret: String) -> Self {
        Self::new(&secret)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "sigv4")]
        if self.signer.is_some() {
            return f.write_str("Key(signed)");
        }
        f.write_str(match (&self.secret, &self.resolver) {
            (_, Some(_)) => "Key(resolved)",
            (Some(_), None) => "Key(redacted)",
            (None, None) => "Key(none)",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use adjutant_llm::{ErrorKind, Overflow};

    use super::*;

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add("short");
        secrets.add("sk-secret");
        secrets.add("sk-secret-and-longer");
        let headers = [
            ("Authorization", "Bearer other-token"),
            ("x-own", "no-secret-at-all"),
            ("X-Api-Key", " "),
        ];
        secrets.add_headers(
            &headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        );
        secrets
    }

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(secrets().clean(text), expect);
    }

    #[test]
    fn clean_leaves_no_secret_when_there_are_several() {
        check("short no-secret-at-all", "short no-secret-at-all");
        check("a sk-secret b sk-secret-and-longer", "a [key] b [key]");
        check("Bearer other-token", "Bearer [key]");
        check("sk-secre and more", "sk-secre and more");
        check("cut in sk-secret-and-l", "cut in [key]");
        check("cut in sk-secre", "cut in [key]");
        check("cut in other-tok", "cut in [key]");
        check("cut in sk-secr", "cut in sk-secr");
    }

    #[test]
    fn clean_leaves_no_secret_when_it_is_encoded() {
        let mut secrets = Secrets::default();
        secrets.add("sk-a/b+\"c~1");
        for (text, expect) in [
            (r#"{"key":"sk-a/b+\"c~1"}"#, r#"{"key":"[key]"}"#),
            (r#"{"key":"sk-a\/b+\"c~1"}"#, r#"{"key":"[key]"}"#),
            (
                r"\u0073\u006b\u002d\u0061\u002f\u0062\u002b\u0022\u0063\u007e\u0031",
                "[key]",
            ),
            (r"sk\u002Da\u002Fb\u002B\u0022c\u007E1", "[key]"),
            ("?key=sk-a%2Fb%2B%22c~1&x", "?key=[key]&x"),
            ("?key=sk%2da%2fb%2b%22c%7e1", "?key=[key]"),
            ("%73%6B%2D%61%2F%62%2B%22%63%7E%31", "[key]"),
            // Behind none, one and two bytes: the digits at the edges hold what is beside too.
            ("c2stYS9iKyJjfjE=", "[key]E="),
            ("OnNrLWEvYisiY34x", "On[key]"),
            ("eDpzay1hL2IrImN-MQ==", "eDp[key]Q=="),
            ("eDpzay1hL2IrImN+MQ==", "eDp[key]Q=="),
            ("c2stYS9iKy is no key", "c2stYS9iKy is no key"),
        ] {
            assert_eq!(secrets.clean(text), expect);
        }
    }

    #[test]
    fn scrub_keeps_all_else_when_an_error_holds_a_secret() {
        let overflow = Overflow {
            used: Some(2),
            limit: Some(1),
        };
        let error = |text: &str| {
            let error = Error::new(ErrorKind::Overflow, format!("no {text}")).with(|it| {
                it.status = Some(400);
                it.body = Some(text.into());
            });
            let error = error.with(|it| {
                it.code = Some(text.into());
                it.request_id = Some(text.into());
                it.should_retry = Some(false);
            });
            error.with(|it| {
                it.overflow = Some(overflow);
                it.retry_after = Some(Duration::from_secs(3));
            })
        };
        assert_eq!(secrets().scrub(error("sk-secret")), error("[key]"));
        let kept = secrets().scrub(error("x").with_source(std::io::Error::other("reset")));
        assert_eq!(
            std::error::Error::source(&kept)
                .map(ToString::to_string)
                .as_deref(),
            Some("reset")
        );
        let told = secrets().scrub(error("x").with_source(std::io::Error::other("no sk-secret")));
        assert_eq!(
            (std::error::Error::source(&told).is_none(), told),
            (true, error("x"))
        );
    }

    #[test]
    fn debug_prints_no_secret_when_there_is_one() {
        assert_eq!(
            format!("{:?} {:?}", Key::new(" sk-1 \n"), Key::from("  ")),
            "Key(redacted) Key(none)"
        );
        let resolved = Key::new("sk-1").resolve(|| std::future::ready(Ok(Some("sk-2".to_owned()))));
        assert_eq!(format!("{resolved:?}"), "Key(resolved)");
        assert_eq!(
            Key::from(" sk-1\n".to_owned()).expose().map(|it| &**it),
            Some("sk-1")
        );
    }
}
