//! The shared parts: the pool, the schema, the clock, the leases of the logs, and notifications.

use std::{fmt, sync::Arc, time::Duration};

use adjutant_core::{JournalError, JournalErrorKind};
use adjutant_llm::World;
use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use tokio_postgres::{Config, NoTls, Row, config::SslMode, types::ToSql};

use super::{fault::Fault, journal::Leases, wake::Wakes};

/// The longest time that it may take to make a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The longest time that a request waits for a connection of the pool.
const WAIT: Duration = Duration::from_secs(30);

/// After how long a silent server is looked after.
const SILENCE: Duration = Duration::from_secs(30);

/// The values of a statement's parameters.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The things that all parts share.
pub(super) struct Database {
    pub(super) schema: Arc<str>,
    pub(super) lease: Duration,
    pub(super) world: Arc<dyn World>,
    pub(super) leases: Leases,
    pub(super) wakes: Wakes,
    pub(super) config: Config,
    pool: Pool,
}

impl Database {
    pub(super) fn open(
        url: &str,
        schema: Arc<str>,
        connections: usize,
        lease: Duration,
        world: Arc<dyn World>,
    ) -> Result<Self, JournalError> {
        check_schema(&schema)?;
        let config = config(url, &schema)?;
        let fast = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let pool = Pool::builder(Manager::from_config(config.clone(), NoTls, fast))
            .runtime(Runtime::Tokio1)
            .max_size(connections)
            .wait_timeout(Some(WAIT))
            .create_timeout(Some(CONNECT))
            .build()
            .map_err(|error| {
                JournalError::new(
                    JournalErrorKind::Invalid,
                    "no pool of connections can be made",
                )
                .with_source(error)
            })?;
        Ok(Self {
            schema,
            lease,
            world,
            leases: Leases::default(),
            wakes: Wakes::default(),
            config,
            pool,
        })
    }

    /// A connection, whose transactions see everything that was committed before each statement.
    pub(super) async fn client(&self) -> Result<Object, Fault> {
        Ok(self.pool.get().await?)
    }

    /// The rows that a statement gives, in one round trip once a connection knows it.
    pub(super) async fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Fault> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query(&statement, values).await?)
    }

    /// The only row of a statement, if there is one.
    pub(super) async fn row(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>, Fault> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Runs a statement; returns the number of rows that it changes.
    pub(super) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Fault> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.execute(&statement, values).await?)
    }

    /// The rows of a statement, fetched on a separate task and passed to `work`.
    ///
    /// For streams: an unpolled stream must not hold a connection that others need.
    pub(super) async fn apart<F>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> F,
    ) -> Result<Vec<Row>, Fault>
    where
        F: Future<Output = Result<Vec<Row>, Fault>> + Send + 'static,
    {
        tokio::spawn(work(Arc::clone(self)))
            .await
            .unwrap_or(Err(Fault::Pool(PoolError::Closed)))
    }

    /// Returns the name of the notification channel.
    pub(super) fn channel(&self) -> String {
        format!("adjutant_{}", self.schema)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("schema", &self.schema)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

/// Returns the settings for connections; settings missing in the URL are set so that no request waits forever for a
/// server that is gone.
fn config(url: &str, schema: &str) -> Result<Config, JournalError> {
    // The parser's own error may repeat parts of the URL.
    let unread = |_| {
        JournalError::new(
            JournalErrorKind::Invalid,
            "the URL of the database cannot be read",
        )
    };
    let mut config: Config = url.parse().map_err(unread)?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_application_name().is_none() {
        config.application_name("adjutant");
    }
    if config.get_keepalives_interval().is_none() && config.get_keepalives_retries().is_none() {
        config
            .keepalives_idle(SILENCE)
            .keepalives_interval(CONNECT)
            .keepalives_retries(3);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if !matches!(config.get_ssl_mode(), SslMode::Disable | SslMode::Prefer) {
        let message = "the URL of the database demands TLS, which is not spoken; hint: use a socket or a tunnel";
        return Err(JournalError::new(JournalErrorKind::Invalid, message));
    }
    let given = config.get_options().unwrap_or_default();
    let options = format!(
        "{given} -c search_path={schema} -c default_transaction_isolation=read\\ committed"
    );
    config.options(options.trim_start());
    Ok(config)
}

fn check_schema(schema: &str) -> Result<(), JournalError> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_name = schema
        .bytes()
        .all(|byte| is_letter(byte) || byte.is_ascii_digit())
        && schema.bytes().next().is_some_and(is_letter)
        && schema.len() <= 40
        && !schema.starts_with("pg_");
    if is_name {
        return Ok(());
    }
    let message = format!("a schema cannot be called {schema:?}; hint: 1 to 40 of a-z, 0-9 and _");
    Err(JournalError::new(JournalErrorKind::Invalid, message))
}
