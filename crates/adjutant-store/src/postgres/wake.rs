//! Notifications about posts and changes: one connection listens, and each waiter also checks every second.

use std::{
    collections::HashMap,
    fmt, future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use tokio::{sync::watch, time};
use tokio_postgres::{AsyncMessage, Config, NoTls};

use super::database::Database;

/// The time for which a waiter relies on being woken.
const LOOK: Duration = Duration::from_secs(1);

/// The length of the first pause after a lost connection, and of the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The waiters and the topics that they wait for.
#[derive(Default)]
pub(super) struct Wakes {
    state: Mutex<State>,
    /// Closed when there are no more waiters.
    alive: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    topics: HashMap<String, watch::Sender<()>>,
    is_listening: bool,
}

/// A task that waits.
pub(super) struct Waiter {
    database: Arc<Database>,
    topic: String,
    woken: watch::Receiver<()>,
}

/// The topic of logs that are due.
pub(super) const DUE: &str = "d";

/// The topic of the posts to a log.
pub(super) fn posts(log: &str) -> String {
    topic('p', log)
}

/// The topic of the changes of a key-value store.
pub(super) fn changes(kv: &str) -> String {
    topic('s', kv)
}

/// A notification holds letters, but no NUL.
fn topic(kind: char, name: &str) -> String {
    let mut topic = String::from(kind);
    for byte in name.bytes() {
        topic.extend([byte >> 4, byte & 15].map(|digit| char::from(b'a' + digit)));
    }
    topic
}

impl Waiter {
    /// Waits for a topic from now on.
    pub(super) fn new(database: Arc<Database>, topic: String) -> Self {
        let mut state = database.wakes.lock();
        let woken = state.topics.entry(topic.clone()).or_default().subscribe();
        if !state.is_listening {
            state.is_listening = true;
            let alive = database.wakes.alive.subscribe();
            let listening = listen(
                Arc::downgrade(&database),
                database.config.clone(),
                database.channel(),
                alive,
            );
            tokio::spawn(listening);
        }
        drop(state);
        Self {
            database,
            topic,
            woken,
        }
    }

    /// Marks everything up to now as seen by the waiter.
    pub(super) fn looks(&mut self) {
        self.woken.mark_unchanged();
    }

    /// Waits until something may have happened since it looked.
    pub(super) async fn wait(&mut self) {
        // Either way it is time to look.
        let _ = time::timeout(LOOK, self.woken.changed()).await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.database.wakes.lock();
        if state
            .topics
            .get(&self.topic)
            .is_some_and(|topic| topic.receiver_count() == 1)
        {
            state.topics.remove(&self.topic);
        }
    }
}

impl Wakes {
    fn wake(&self, topic: &str) {
        if let Some(topic) = self.lock().topics.get(topic) {
            topic.send_replace(());
        }
    }

    fn wake_all(&self) {
        for topic in self.lock().topics.values() {
            topic.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").finish_non_exhaustive()
    }
}

/// Listens for as long as there is a database handle, over as many connections as it takes.
async fn listen(
    database: Weak<Database>,
    config: Config,
    channel: String,
    mut alive: watch::Receiver<()>,
) {
    let _stopped = Stopped(Weak::clone(&database));
    let mut pause = PAUSES.0;
    loop {
        tokio::select! {
            _ = alive.changed() => return,
            heard = connection(&database, &config, &channel) => match heard {
                Ok(()) => pause = PAUSES.0,
                Err(error) => {
                    tracing::debug!(%error, "the connection that listens cannot be made");
                    pause = (pause * 2).min(PAUSES.1);
                }
            },
        }
        tokio::select! {
            _ = alive.changed() => return,
            () = time::sleep(pause) => {}
        }
    }
}

/// Listens over one connection until it ends.
async fn connection(
    database: &Weak<Database>,
    config: &Config,
    channel: &str,
) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = config.connect(NoTls).await?;
    let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
    let hear = async {
        while let Some(Ok(message)) = messages.next().await {
            if let (AsyncMessage::Notification(note), Some(database)) =
                (message, database.upgrade())
            {
                database.wakes.wake(note.payload());
            }
        }
    };
    let begin = async {
        client.batch_execute(&format!("listen {channel}")).await?;
        // Anything that happened before may have been missed.
        if let Some(database) = database.upgrade() {
            database.wakes.wake_all();
        }
        future::pending().await
    };
    let (hear, begin) = (pin!(hear), pin!(begin));
    tokio::select! {
        () = hear => Ok(()),
        failed = begin => failed,
    }
}

/// The next waiter opens another connection if the runtime of this one has ended.
struct Stopped(Weak<Database>);

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(database) = self.0.upgrade() {
            database.wakes.lock().is_listening = false;
        }
    }
}
