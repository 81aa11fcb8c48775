//! The unfinished runs: active, or waiting for an answer. They are stored in a file, which outlives the program.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    error::Error,
    files::{self, Sync},
    workspace::Workspace,
};

/// The file of a workspace with the unfinished runs, next to their sessions.
const FILE: &str = "state/open.json";

/// The unfinished runs by session.
#[derive(Debug, Default)]
pub(super) struct OpenRuns {
    runs: BTreeMap<Arc<str>, OpenRun>,
    workspace: Option<Workspace>,
}

/// An unfinished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenRun {
    /// The time of its last change, in milliseconds since 1970-01-01 UTC.
    pub(super) since_ms: u64,
    pub(super) state: OpenState,
    /// The number of resumes after crashes.
    #[serde(default)]
    pub(super) resumed: u32,
}

/// The state of an unfinished run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OpenState {
    Working,
    /// It waits for an answer.
    Waiting,
    /// A crash interrupted it, and its continuation is undecided.
    Left,
}

impl OpenRuns {
    /// From now on, stores the runs in a file. Returns the runs that were interrupted when the previous program ended,
    /// with the number of earlier interruptions.
    pub(super) fn keep(&mut self, workspace: &Workspace) -> Result<Vec<(Arc<str>, u32)>, Error> {
        let kept = read(workspace)?;
        let mut left = Vec::new();
        for (session, run) in kept {
            let run = self.runs.entry(Arc::clone(&session)).or_insert(run);
            if run.state != OpenState::Waiting {
                run.state = OpenState::Left;
                left.push((session, run.resumed));
            }
        }
        self.workspace = Some(workspace.clone());
        Ok(left)
    }

    /// True if an update of the agent waits for its next start.
    pub(super) fn is_updated(&self) -> bool {
        self.workspace
            .as_ref()
            .is_some_and(|it| it.update().is_some())
    }

    pub(super) fn get(&self, session: &str) -> Option<OpenRun> {
        self.runs.get(session).copied()
    }

    /// Returns the waiting sessions after this one, with the times since when they wait.
    pub(super) fn waiting(&self, after: Option<&str>) -> impl Iterator<Item = (Arc<str>, u64)> {
        let waits = self
            .runs
            .iter()
            .filter(move |(session, run)| run.waits() && after.is_none_or(|it| &***session > it));
        waits.map(|(session, run)| (Arc::clone(session), run.since_ms))
    }

    /// Records that a run of the session is active.
    pub(super) fn work(&mut self, session: &Arc<str>, since_ms: u64) {
        let resumed = self.get(session).map_or(0, |run| {
            run.resumed + u32::from(run.state == OpenState::Left)
        });
        self.set(
            session,
            Some(OpenRun {
                since_ms,
                state: OpenState::Working,
                resumed,
            }),
        );
    }

    /// Records that the interrupted run of the session was continued: no approval is needed.
    pub(super) fn take_up(&mut self, session: &Arc<str>) {
        let run = self.get(session).filter(|run| run.state == OpenState::Left);
        if let Some(run) = run {
            let resumed = run.resumed + 1;
            self.set(
                session,
                Some(OpenRun {
                    state: OpenState::Working,
                    resumed,
                    ..run
                }),
            );
        }
    }

    /// Records that the run of the session was not continued: its continuation is undecided.
    pub(super) fn leave(&mut self, session: &Arc<str>) {
        if let Some(run) = self.get(session) {
            self.set(
                session,
                Some(OpenRun {
                    state: OpenState::Left,
                    ..run
                }),
            );
        }
    }

    /// Records that the run of the session waits.
    pub(super) fn wait(&mut self, session: &Arc<str>, since_ms: u64) {
        self.set(
            session,
            Some(OpenRun {
                since_ms,
                state: OpenState::Waiting,
                resumed: 0,
            }),
        );
    }

    /// Sets the state of the session's run; `None` at its end.
    pub(super) fn set(&mut self, session: &Arc<str>, run: Option<OpenRun>) {
        let before = match run {
            Some(run) => self.runs.insert(Arc::clone(session), run),
            None => self.runs.remove(session),
        };
        if before == run {
            return;
        }
        let Some(file) = self.workspace.as_ref().map(|it| it.file(FILE)) else {
            return;
        };
        // The run continues if the write fails; after a crash, the next prompt closes it.
        if let Err(error) = files::write_json(&file, &self.runs, Sync::Program) {
            tracing::warn!(%error, "the runs that are open were not written");
        }
    }
}

impl OpenRun {
    /// True if it only continues after an approval.
    pub(super) fn waits(self) -> bool {
        self.state != OpenState::Working
    }
}

/// Returns the sessions of an agent whose runs wait for an answer, as last recorded by its process.
///
/// # Errors
/// `Storage` if the file cannot be read.
pub fn waiting_sessions(workspace: &Workspace) -> Result<Vec<Arc<str>>, Error> {
    Ok(read(workspace)?
        .into_iter()
        .filter(|(_, run)| run.waits())
        .map(|(session, _)| session)
        .collect())
}

fn read(workspace: &Workspace) -> Result<BTreeMap<Arc<str>, OpenRun>, Error> {
    Ok(files::read_json_if_any(&workspace.file(FILE))?.unwrap_or_default())
}
