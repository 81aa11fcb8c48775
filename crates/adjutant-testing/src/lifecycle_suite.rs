//! The promises of a backend of agents, and of what its processes begin in: a list, each with a name, played in a [`LifeLab`].
//!
//! The agents of the suite run in its own host, [`host`]: a test without a harness can be both.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use adjutant_runtime::backend::{Process, ProcessOptions};
//! use adjutant_testing::lifecycle_suite;
//!
//! fn main() -> std::process::ExitCode {
//!     if let Some(code) = lifecycle_suite::host() {
//!         return code;
//!     }
//!     let lab = lifecycle_suite::lab_fn(|home| {
//!         // With a launcher of your own: `ProcessOptions::launcher`.
//!         let options = ProcessOptions::new().grace(lifecycle_suite::GRACE).host_change(lifecycle_suite::HOST_CHANGE);
//!         Arc::new(Process::new(home, None, options).expect("this program is the host"))
//!     });
//!     let runtime = tokio::runtime::Runtime::new().expect("a runtime");
//!     let report = runtime.block_on(lifecycle_suite::check(&lab));
//!     println!("{report}");
//!     if report.broken().next().is_none() { 0.into() } else { 1.into() }
//! }
//! ```

mod host;
mod living;
mod outliving;
mod stage;

use std::{fmt, path::Path, sync::Arc, time::Duration};

use adjutant_runtime::{Backend, backend::HostChange};
use async_trait::async_trait;

pub use self::host::{act, build, host};
use self::stage::LifeStage;
use crate::suite::checks;
pub use crate::suite::{Check, Played, Report, Row};

/// The grace period of agents in a tested backend: long enough for a normal end, which one of them never reaches.
pub const GRACE: Duration = Duration::from_secs(3);
/// How a tested backend handles a changed host. A rebuilt test creates new agents, so it sees no change.
pub const HOST_CHANGE: HostChange = HostChange::Accept;
/// The checks of agents that live on without their operator.
const OF_PROCESSES: &[&str] = &[
    "environment_arrives",
    "outlives_its_operator",
    "crash_is_told",
    "adopted_crash_is_told",
    "death_unseen_is_told",
    "early_end_is_told",
    "end_is_told_by_itself",
    "deaf_is_killed",
    "adopted_deaf_is_killed",
    "children_end_with_it",
    "signal_ends_it_well",
];

/// A place to try out a backend.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a laboratory for backends",
    note = "implement `open`, or use `lifecycle_suite::lab_fn`"
)]
#[async_trait]
pub trait LifeLab: Send + Sync {
    /// A new backend over this folder, as the next operator would have it. Its agents run in [`host`], or are made by [`build`].
    async fn open(&self, home: &Path) -> Arc<dyn Backend>;

    /// Returns the reason why a check cannot be played here; by default, all can.
    fn skips(&self, check: &str) -> Option<String> {
        let _ = check;
        None
    }
}

/// Opens a backend over a folder.
type Open = dyn Fn(&Path) -> Arc<dyn Backend> + Send + Sync;

/// A laboratory made of a function, as [`lab_fn`] makes it.
pub struct LabFn {
    open: Box<Open>,
    without: Vec<(&'static str, &'static str)>,
}

/// A laboratory made of a function that opens a backend over a folder.
pub fn lab_fn(open: impl Fn(&Path) -> Arc<dyn Backend> + Send + Sync + 'static) -> LabFn {
    LabFn {
        open: Box::new(open),
        without: Vec::new(),
    }
}

impl LabFn {
    /// Skips a check that the backend does not claim to pass.
    #[must_use]
    pub fn without(mut self, check: &'static str, why: &'static str) -> Self {
        self.without.push((check, why));
        self
    }

    /// Skips what only agents in processes of their own can pass.
    #[must_use]
    pub fn without_processes(self) -> Self {
        let why = "its agents end with its program";
        OF_PROCESSES
            .iter()
            .fold(self, |lab, check| lab.without(check, why))
    }
}

impl fmt::Debug for LabFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LabFn")
            .field("without", &self.without)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl LifeLab for LabFn {
    async fn open(&self, home: &Path) -> Arc<dyn Backend> {
        (self.open)(home)
    }

    fn skips(&self, check: &str) -> Option<String> {
        self.without
            .iter()
            .find(|(name, _)| *name == check)
            .map(|(_, why)| (*why).to_owned())
    }
}

// The list of checks plays in what each suite calls so.
use LifeLab as Lab;

checks! {
    $ lifecycle_suite, "The expression makes a [`LifeLab`](crate::lifecycle_suite::LifeLab) for each test, and may await.", LifeStage;
    living::lives_from_created_to_removed: "an agent is made, begins, answers, stops, begins again and goes, and each is told",
    living::work_is_told: "an agent that is at work says so, and that it is ready when it is done",
    living::work_is_stopped: "an agent that is at work can be stopped",
    living::second_run_refused: "an agent that runs is not begun again, and its run ends well when it is stopped",
    living::prepared_once: "of many who prepare at once one does, and a workspace is made once",
    living::preparing_again: "what failed to be prepared is told, and is tried again",
    living::names_are_unique: "a name and an id are given once in a folder",
    living::bad_names_refused: "names that would lead elsewhere are refused, and nothing is made",
    living::folder_is_private: "the folder of an agent is its owner's alone",
    living::destroyed_whole: "a backend takes away all that it made",
    living::links_are_not_followed: "links are deleted and not followed when an agent is removed",
    living::goes_on_unwatched: "an agent goes on when nobody waits for its run",
    living::found_again: "agents that are stopped are found again as they were",
    outliving::environment_arrives: "the environment of a host is the one that is made for it",
    outliving::outlives_its_operator: "an agent outlives its operator, and the next one goes on with the same process",
    outliving::crash_is_told: "a process that is killed has crashed, and may begin again",
    outliving::adopted_crash_is_told: "a process that was adopted and is killed has crashed",
    outliving::death_unseen_is_told: "a process that died while nobody followed it has crashed, and leaves nothing",
    outliving::early_end_is_told: "a host that ends at once has crashed, with its exit code and its last words",
    outliving::end_is_told_by_itself: "a host that tells why it cannot begin is believed",
    outliving::deaf_is_killed: "a host that ignores every word is killed after the grace, with all that it started",
    outliving::adopted_deaf_is_killed: "so is one that was adopted",
    outliving::children_end_with_it: "what a host starts ends with it, wherever it went",
    outliving::signal_ends_it_well: "the signal to end reaches a host by its group, and what holds it waits for its end",
}
