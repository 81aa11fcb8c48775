//! Who owns a log.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use uuid::Uuid;

/// Who owns a log, or wishes to: of two with one id, the later one always takes the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    id: Arc<str>,
    takes_over: bool,
}

impl Owner {
    /// An owner that no program was before.
    pub fn new() -> Self {
        static PROGRAM: OnceLock<Uuid> = OnceLock::new();
        static OWNERS: AtomicU64 = AtomicU64::new(1);
        let program = PROGRAM.get_or_init(Uuid::new_v4);
        let number = OWNERS.fetch_add(1, Ordering::Relaxed);
        Self::named(format!("{}-{number}", program.as_simple()))
    }

    /// The owner with this id.
    pub fn named(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), takes_over: false }
    }

    /// Takes a log even if another owner has it, who is fenced then.
    #[must_use]
    pub fn taking_over(self) -> Self {
        Self { takes_over: true, ..self }
    }

    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Whether it takes a log that another owner has.
    pub fn takes_over(&self) -> bool {
        self.takes_over
    }
}

impl Default for Owner {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}
