//! The ownership of a log.

use std::{
    fmt, fs,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use uuid::Uuid;

/// The maximum length of a machine's name in an id.
const MAX_HOST: usize = 64;

/// An owner of a log: of two with the same id, the later one always acquires the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its id.
    pub id: Arc<str>,
    /// True if it acquires a log that another owner holds, which is fenced then; false by default.
    pub takes_over: bool,
}

/// The holder of a log, with the time that is left to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// The id of the owner; by default it starts with its process and its machine.
    pub owner: Arc<str>,
    /// For how long it has worked there, if that is known.
    pub since: Option<Duration>,
    /// The remaining time of its lease; `None` if it lasts as long as its process.
    pub left: Option<Duration>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ids are untrusted text.
        write!(f, "another owner ({})", self.owner.escape_debug())?;
        if let Some(since) = self.since {
            write!(f, " for {} s", since.as_secs())?;
        }
        self.left.map_or(Ok(()), |left| {
            write!(f, "; its lease ends in {:.1} s", left.as_secs_f64())
        })
    }
}

impl Default for Owner {
    /// An owner that no program was before. Its id begins with the process and the machine, for people.
    fn default() -> Self {
        static PROGRAM: OnceLock<String> = OnceLock::new();
        static OWNERS: AtomicU64 = AtomicU64::new(1);
        let program = PROGRAM.get_or_init(|| {
            let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            let host = host
                .trim()
                .chars()
                .filter(|it| it.is_ascii_graphic())
                .take(MAX_HOST)
                .collect::<String>();
            let host = if host.is_empty() {
                host
            } else {
                format!("@{host}")
            };
            format!(
                "process {}{host}, {}",
                std::process::id(),
                Uuid::new_v4().as_simple()
            )
        });
        let number = OWNERS.fetch_add(1, Ordering::Relaxed);
        Self {
            id: format!("{program}-{number}").into(),
            takes_over: false,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}
