//! Short-lived tokens: their source, their lifetime, and programs that print one. Tokens are never printed by
//! Adjutant.

use std::{fmt, process::Stdio, sync::Arc, time::Duration};

use adjutant_llm::{Error, ErrorKind};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::{
    io::AsyncReadExt,
    process::Command,
    sync::Mutex,
    time::{Instant, timeout},
};

/// The longest time that a program may take to print a token.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum time for which a token is used, whatever its own lifetime.
const MAX_TTL: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The largest number of bytes that it may print.
const MAX_OUTPUT: u64 = 64 * 1024;
/// The maximum number of bytes of its standard error that are read.
const MAX_COMPLAINT: u64 = 4 * 1024;

/// Gives tokens: of a cloud's metadata, a vault, a library that signs in.
///
/// A token is used for its own lifetime. If a server refuses it (401), the source is called again, and the request is
/// sent again.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of tokens",
    note = "implement `token`, or ask a closure before every request with `Key::resolve`"
)]
pub trait TokenSource: Send + Sync {
    /// A token that is good now. The time it takes counts as waiting for the answer.
    ///
    /// # Errors
    /// The error that fails the request: `Auth` if no token is available.
    async fn token(&self) -> Result<Token, Error>;
}

/// A token, and how long it may be used.
#[derive(Clone)]
pub struct Token {
    secret: Arc<str>,
    ttl: Duration,
}

/// A program that prints a token, with its arguments. No shell is involved.
///
/// It has 10 seconds, and may print at most 64 KiB; its standard error is not read. Its output is used for `ttl`
/// seconds, and requested again if a server refuses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KeyCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Seconds for which a token is used; 300 by default.
    #[serde(default = "usual_ttl")]
    pub ttl: u64,
}

/// A source and its last token.
pub(crate) struct KeptToken {
    source: Box<dyn TokenSource>,
    // Held while the source is called, so that concurrent requests call it once.
    last: Mutex<Option<(Arc<str>, Instant)>>,
}

impl Token {
    /// A token that may be used for this time; white space around it is dropped.
    pub fn new(secret: impl AsRef<str>, ttl: Duration) -> Self {
        Self {
            secret: secret.as_ref().trim().into(),
            ttl,
        }
    }

    /// Returns the token itself.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Returns the time for which it may be used.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }
}

impl KeptToken {
    pub(crate) fn new(source: impl TokenSource + 'static) -> Self {
        Self {
            source: Box::new(source),
            last: Mutex::default(),
        }
    }

    /// Returns a token that has not expired and was not refused.
    pub(crate) async fn token(&self, refused: Option<&str>) -> Result<Arc<str>, Error> {
        let mut last = self.last.lock().await;
        let good = last
            .as_ref()
            .filter(|(secret, until)| Instant::now() < *until && Some(&**secret) != refused);
        if let Some((secret, _)) = good {
            return Ok(Arc::clone(secret));
        }
        *last = None;
        let Token { secret, ttl } = self.source.token().await?;
        if secret.is_empty() {
            return Err(Error::new(
                ErrorKind::Auth,
                "there is no token: what was given is blank",
            ));
        }
        *last = Some((Arc::clone(&secret), Instant::now() + ttl.min(MAX_TTL)));
        Ok(secret)
    }
}

impl KeyCommand {
    /// A program and its arguments, with a token lifetime of five minutes.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            ttl: usual_ttl(),
        }
    }

    async fn print(&self) -> Result<Vec<u8>, Error> {
        self.run(None).await
    }

    /// Runs the program and returns its output. The start of its standard error is read if a buffer is passed.
    pub(crate) async fn run(&self, complaint: Option<&mut Vec<u8>>) -> Result<Vec<u8>, Error> {
        let Some((program, arguments)) = self.argv.split_first() else {
            return Err(Error::new(
                ErrorKind::Config,
                "the command of a key names no program",
            ));
        };
        let failed = |what: String| {
            Error::new(
                ErrorKind::Auth,
                format!("no token from {program:?}: {what}"),
            )
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(match complaint {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|source| {
            Error::new(
                ErrorKind::Config,
                format!("the command of a key could not be run: {program:?}"),
            )
            .with_source(source)
        })?;
        let mut printed = Vec::new();
        let errors = child.stderr.take().zip(complaint);
        let complained = async {
            if let Some((mut errors, complaint)) = errors {
                let _ = (&mut errors)
                    .take(MAX_COMPLAINT)
                    .read_to_end(complaint)
                    .await;
                let _ = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await;
            }
        };
        let ended = async {
            if let Some(output) = child.stdout.take() {
                output
                    .take(MAX_OUTPUT + 1)
                    .read_to_end(&mut printed)
                    .await?;
            }
            if printed.len() as u64 > MAX_OUTPUT {
                Ok(None)
            } else {
                child.wait().await.map(Some)
            }
        };
        let ended = async { futures_util::future::join(ended, complained).await.0 };
        match timeout(PATIENCE, ended).await {
            Err(_) => Err(failed(format!("it took more than {PATIENCE:?}"))),
            Ok(Err(error)) => {
                Err(failed("its output could not be read".to_owned()).with_source(error))
            }
            Ok(Ok(None)) => Err(failed("it printed more than 64 KiB".to_owned())),
            Ok(Ok(Some(status))) if !status.success() => {
                Err(failed(format!("it ended with {status}")))
            }
            Ok(Ok(Some(_))) => Ok(printed),
        }
    }
}

#[async_trait]
impl TokenSource for KeyCommand {
    async fn token(&self) -> Result<Token, Error> {
        let printed = String::from_utf8(self.print().await?);
        // The error would contain the output.
        let printed = printed
            .map_err(|_| Error::new(ErrorKind::Auth, "the command of a key printed no text"))?;
        Ok(Token::new(printed, Duration::from_secs(self.ttl)))
    }
}

fn usual_ttl() -> u64 {
    300
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}
