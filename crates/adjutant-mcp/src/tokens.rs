//! The source of a server's tokens: a file written by a sign-in, or a closure of the caller. Tokens are never
//! printed.

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use adjutant_llm::Cause;
use tokio::{sync::Mutex, time::Instant};

use crate::error::{Error, ErrorKind};

pub(crate) mod file;

use file::TokenFile;

/// The longest time for which a token is used, whatever its stated lifetime.
const MAX_TTL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The source of a server's tokens.
#[derive(Clone, Default)]
pub struct Tokens(Origin);

#[derive(Clone, Default)]
enum Origin {
    #[default]
    Nowhere,
    Stored(PathBuf),
    Asked(Arc<AskedTokens>),
}

pub(crate) struct AskedTokens {
    ask: Box<dyn Fn() -> TokenFuture + Send + Sync>,
    /// The last token and its expiry. Locked during a request: concurrent callers share one request.
    last: Mutex<Option<(Arc<str>, Instant)>>,
}

type TokenFuture = Pin<Box<dyn Future<Output = Result<(Arc<str>, Duration), Cause>> + Send>>;

impl Tokens {
    /// Tokens that [`Login`](crate::Login) wrote to this folder: a file for each server, named by its name and
    /// address, readable only by its owner.
    ///
    /// A token that has ended is replaced by its refresh token, by one process at a time.
    pub fn from_directory(folder: impl Into<PathBuf>) -> Self {
        Self(Origin::Stored(folder.into()))
    }

    /// The result of a closure: a token and its lifetime. It is called again after the lifetime, and once more if the
    /// server refuses the token (401).
    pub fn from_fn<F>(ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(Arc<str>, Duration), Cause>> + Send + 'static,
    {
        Self(Origin::Asked(Arc::new(AskedTokens {
            ask: Box::new(move || Box::pin(ask())),
            last: Mutex::default(),
        })))
    }

    /// The tokens of a server; `None` if it uses none.
    pub(crate) fn for_server(&self, name: &Arc<str>, url: &Arc<str>) -> Option<TokenOrigin> {
        Some(match &self.0 {
            Origin::Nowhere => return None,
            Origin::Stored(folder) => TokenOrigin::Stored(TokenFile::new(folder, name, url)),
            Origin::Asked(asked) => TokenOrigin::Asked(Arc::clone(name), Arc::clone(asked)),
        })
    }

    /// The folder that signing in writes to.
    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        match &self.0 {
            Origin::Stored(folder) => Some(folder),
            Origin::Nowhere | Origin::Asked(_) => None,
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::Nowhere => f.write_str("Nowhere"),
            Origin::Stored(folder) => f.debug_tuple("Stored").field(folder).finish(),
            Origin::Asked(_) => f.write_str("Asked"),
        }
    }
}

/// The tokens of one connection.
#[derive(Clone)]
pub(crate) enum TokenOrigin {
    Stored(TokenFile),
    Asked(Arc<str>, Arc<AskedTokens>),
}

impl TokenOrigin {
    /// A token that is presumably valid, and is not the refused one; `None` without a sign-in.
    pub(crate) async fn token(&self, refused: Option<&str>) -> Result<Option<Arc<str>>, Error> {
        let (name, asked) = match self {
            Self::Stored(file) => return file.token(refused).await,
            Self::Asked(name, asked) => (name, asked),
        };
        let mut last = asked.last.lock().await;
        let good = last
            .as_ref()
            .filter(|(token, until)| Instant::now() < *until && Some(&**token) != refused);
        if let Some((token, _)) = good {
            return Ok(Some(Arc::clone(token)));
        }
        *last = None;
        let none = |message: String| Error::new(ErrorKind::Unauthorised, message);
        let (token, ttl) = (asked.ask)().await.map_err(|cause| {
            none(format!("there is no token for the server `{name}`")).with_source(cause)
        })?;
        let token: Arc<str> = token.trim().into();
        if token.is_empty() {
            return Err(none(format!(
                "the token that was given for the server `{name}` is blank"
            )));
        }
        *last = Some((Arc::clone(&token), Instant::now() + ttl.min(MAX_TTL)));
        Ok(Some(token))
    }

    /// Records scopes that a request needs and its token lacks: the next sign-in requests them.
    pub(crate) async fn wants(&self, scopes: &str) -> Result<(), Error> {
        match self {
            Self::Stored(file) => file.wants(scopes).await,
            Self::Asked(..) => Ok(()),
        }
    }
}
