//! The file of a server's tokens: read by its owner alone, written whole, renewed by one process at a time.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use adjutant_llm::private;
use oauth2::TokenResponse;
use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use crate::{
    error::{Error, ErrorKind, login_hint},
    oauth,
};

/// The largest size of a file of tokens, in bytes.
const MAX_FILE: u64 = 256 * 1024;
/// The scopes that may be wanted at once, and the bytes of each.
const MAX_SCOPES: usize = 64;
const MAX_SCOPE: usize = 256;
/// The interval of attempts to take the lock, and their number: a minute in total.
const PAUSE: Duration = Duration::from_millis(50);
const TRIES: u32 = 1_200;
/// The time before its end from which a token is renewed, in seconds; half of its life, if that is less.
const EARLY: u64 = 30;

/// The file of a server's tokens.
#[derive(Clone)]
pub(crate) struct TokenFile {
    pub(crate) name: Arc<str>,
    pub(crate) url: Arc<str>,
    path: Arc<Path>,
    /// The last state that was read; locked during a refresh.
    kept: Arc<Mutex<Option<KeptTokens>>>,
}

/// The stored data of a server.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct KeptTokens {
    /// The server's name and address: a token goes nowhere else.
    name: Arc<str>,
    url: Arc<str>,
    /// The secret of the client, if it has one.
    pub(crate) client_secret: Option<String>,
    /// True if the token issuer may be in a private network.
    pub(crate) is_private: bool,
    /// Scopes that a request needed and its token had not.
    pub(crate) wanted: Vec<String>,
    pub(crate) credentials: Option<StoredCredentials>,
}

impl KeptTokens {
    fn access(&self) -> Option<&str> {
        Some(
            self.credentials
                .as_ref()?
                .token_response
                .as_ref()?
                .access_token()
                .secret(),
        )
    }

    pub(crate) fn scopes(&self) -> &[String] {
        self.credentials
            .as_ref()
            .map_or(&[], |credentials| &credentials.granted_scopes)
    }

    /// The token, if it is presumably valid and was not refused.
    fn good(&self, refused: Option<&str>) -> Option<Arc<str>> {
        let credentials = self.credentials.as_ref()?;
        let access = self.access().filter(|access| Some(*access) != refused)?;
        let life = credentials
            .token_response
            .as_ref()?
            .expires_in()
            .map(|life| life.as_secs());
        if let (Some(life), Some(since)) = (life, credentials.token_received_at) {
            let now = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs();
            let left = life.saturating_sub(now.saturating_sub(since));
            if left < EARLY.min(life / 2).max(1) {
                return None;
            }
        }
        Some(access.into())
    }
}

impl TokenFile {
    pub(crate) fn new(folder: &Path, name: &Arc<str>, url: &Arc<str>) -> Self {
        let mut digest = Sha256::new();
        digest.update(name.as_bytes());
        digest.update([0]);
        digest.update(url.as_bytes());
        let digest: String = digest
            .finalize()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        // The digest separates names whose other characters are equal.
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        let shown: String = name.chars().take(64).map(plain).collect();
        let path: PathBuf = folder.join(format!("{shown}-{digest}.json"));
        Self {
            name: Arc::clone(name),
            url: Arc::clone(url),
            path: path.into(),
            kept: Arc::default(),
        }
    }

    /// A token that is presumably valid, and is not the refused one; `None` without a sign-in.
    ///
    /// Cancel: a started refresh continues, so that no new refresh token is lost.
    pub(crate) async fn token(&self, refused: Option<&str>) -> Result<Option<Arc<str>>, Error> {
        let mut kept = self.kept.lock().await;
        if let Some(token) = kept.as_ref().and_then(|kept| kept.good(refused)) {
            return Ok(Some(token));
        }
        // Another process may have signed in, or refreshed the token, since it was read.
        *kept = self.load()?;
        let Some(now) = kept.as_ref() else {
            return Ok(None);
        };
        if let Some(token) = now.good(refused) {
            return Ok(Some(token));
        }
        drop(kept);
        let (this, refused) = (self.clone(), refused.map(Arc::<str>::from));
        let renewal = tokio::spawn(async move { this.renew(refused.as_deref()).await });
        renewal.await.unwrap_or_else(|error| {
            Err(self
                .file_error("the renewal of the token of")
                .with_source(error))
        })
    }

    async fn renew(&self, refused: Option<&str>) -> Result<Option<Arc<str>>, Error> {
        let mut kept = self.kept.lock().await;
        let _lock = self.lock().await?;
        let Some(mut now) = self.load()? else {
            return Ok(None);
        };
        if now.good(refused).is_none() {
            // Refused permanently: it is not used again.
            if let Some(stored) = now.credentials.take() {
                let client_secret = now.client_secret.as_ref();
                now.credentials =
                    oauth::renew(&self.name, &self.url, stored, client_secret, now.is_private)
                        .await?;
                self.save(&now)?;
            }
        }
        let token = now.good(refused);
        *kept = Some(now);
        Ok(token)
    }

    /// Records scopes for the next sign-in.
    pub(crate) async fn wants(&self, scopes: &str) -> Result<(), Error> {
        let scopes = scopes
            .split_ascii_whitespace()
            .filter(|scope| scope.len() <= MAX_SCOPE)
            .take(MAX_SCOPES);
        let scopes: Vec<_> = scopes.map(str::to_owned).collect();
        let _lock = self.lock().await?;
        let Some(mut now) = self.load()? else {
            return Ok(());
        };
        if now.wanted != scopes {
            now.wanted = scopes;
            self.save(&now)?;
        }
        Ok(())
    }

    /// Stores the result of a sign-in.
    pub(crate) async fn keep(
        &self,
        credentials: StoredCredentials,
        client_secret: Option<String>,
        is_private: bool,
    ) -> Result<(), Error> {
        let (name, url) = (Arc::clone(&self.name), Arc::clone(&self.url));
        let now = KeptTokens {
            name,
            url,
            client_secret,
            is_private,
            wanted: Vec::new(),
            credentials: Some(credentials),
        };
        let mut kept = self.kept.lock().await;
        let _lock = self.lock().await?;
        self.save(&now)?;
        *kept = Some(now);
        Ok(())
    }

    /// The content of the file; `None` if it does not exist.
    pub(crate) fn load(&self) -> Result<Option<KeptTokens>, Error> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.file_error("reading the tokens of").with_source(error)),
        };
        self.judge(&file)?;
        let mut text = Vec::new();
        let read = file.take(MAX_FILE + 1).read_to_end(&mut text);
        read.map_err(|error| self.file_error("reading the tokens of").with_source(error))?;
        let kept: Option<KeptTokens> = serde_json::from_slice(&text)
            .ok()
            .filter(|_| text.len() as u64 <= MAX_FILE);
        // The parser's error would contain the file's content.
        let Some(kept) = kept.filter(|kept| (&kept.name, &kept.url) == (&self.name, &self.url))
        else {
            let message = format!(
                "{} holds no tokens of the server `{}`",
                self.path.display(),
                self.name
            );
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("{message}; hint: {}", login_hint(&self.name)),
            ));
        };
        Ok(Some(kept))
    }

    /// Fails if other users can read or write the file.
    fn judge(&self, file: &File) -> Result<(), Error> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let about = file
                .metadata()
                .map_err(|error| self.file_error("reading the tokens of").with_source(error))?;
            let path = self.path.display();
            if about.uid() != rustix::process::geteuid().as_raw() {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("{path} belongs to another user, and is not read"),
                ));
            }
            if about.mode() & 0o077 != 0 {
                let message = format!(
                    "{path} can be opened by other users, and is not read; hint: chmod 600 {path}"
                );
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        Ok(())
    }

    /// Writes a temporary file and renames it: a reader sees the old tokens or the new ones.
    fn save(&self, kept: &KeptTokens) -> Result<(), Error> {
        let failed = |error: io::Error| self.file_error("writing the tokens of").with_source(error);
        let text = serde_json::to_vec(kept).map_err(|error| failed(error.into()))?;
        let beside = self.path.with_extension("new");
        let written = (|| {
            // A remainder of a process that ended while writing; the lock is exclusive.
            match fs::remove_file(&beside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file =
                private::file(OpenOptions::new().write(true).create_new(true)).open(&beside)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)
        })();
        written.map_err(failed)
    }

    /// The lock of the file, let go of when it is dropped.
    async fn lock(&self) -> Result<File, Error> {
        let failed = |error: io::Error| self.file_error("locking the tokens of").with_source(error);
        if let Some(folder) = self.path.parent() {
            private::folder(folder).map_err(failed)?;
        }
        let path = self.path.with_extension("lock");
        let mut options = OpenOptions::new();
        let file = private::file(options.create(true).truncate(false).write(true))
            .open(path)
            .map_err(failed)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        let message = format!(
            "another process has held the tokens of the server `{}` for a minute",
            self.name
        );
        Err(Error::new(ErrorKind::TimedOut, message))
    }

    fn file_error(&self, what: &str) -> Error {
        let message = format!(
            "{what} the server `{}` failed: {}",
            self.name,
            self.path.display()
        );
        Error::new(ErrorKind::Unavailable, message)
    }
}
