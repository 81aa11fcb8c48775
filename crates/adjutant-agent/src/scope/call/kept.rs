//! The children of a run: they outlive the calls that opened them, and end before the run does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use adjutant_llm::{CallId, ThreadId};
use futures_util::future::join_all;
use tokio::sync::Notify;

use super::{super::KEPT, CallScope};

/// The scopes whose children belong to the run.
#[derive(Default)]
pub(crate) struct RunScopes {
    state: Mutex<State>,
    rested: Arc<Notify>,
}

#[derive(Default)]
struct State {
    closed: bool,
    any: bool,
    /// Each lives as long as a child of it has a handle, or is running.
    scopes: Vec<Weak<CallScope>>,
}

impl RunScopes {
    /// Keeps a scope until the run ends; `None` if it has ended.
    pub(super) fn keep(
        &self,
        scope: impl FnOnce(Arc<Notify>) -> Arc<CallScope>,
    ) -> Option<Arc<CallScope>> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        let scope = scope(Arc::clone(&self.rested));
        state.any = true;
        state.scopes.retain(|scope| scope.strong_count() > 0);
        state.scopes.push(Arc::downgrade(&scope));
        Some(scope)
    }

    /// True if there was never a child of the run.
    pub(crate) fn is_empty(&self) -> bool {
        !self.state().any
    }

    /// True if no child of the run is running.
    pub(crate) fn is_at_rest(&self) -> bool {
        let scopes = self.state().live_scopes();
        scopes.iter().all(|scope| !scope.is_at_work())
    }

    /// Waits until a child of the run has ended, or one had since the last time.
    pub(crate) async fn rests(&self) {
        self.rested.notified().await;
    }

    /// Cancels the children, waits for them for the grace period, and abandons the rest; none is opened afterwards.
    pub(crate) async fn close(&self) {
        let scopes = {
            let mut state = self.state();
            state.closed = true;
            state.live_scopes()
        };
        join_all(scopes.iter().map(|scope| scope.close())).await;
    }

    /// The executor is gone: running work is dropped.
    pub(crate) fn end(&self) {
        let scopes = {
            let mut state = self.state();
            state.closed = true;
            state.live_scopes()
        };
        scopes.iter().for_each(|scope| scope.drop_children());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the call that opened a child of a run, and its key, from the name of its thread; `None` for other threads.
pub(crate) fn opener<'a>(thread: &'a ThreadId, parent: &ThreadId) -> Option<(CallId, &'a str)> {
    let kept = thread
        .as_str()
        .strip_prefix(parent.as_str())?
        .strip_prefix('/')?
        .strip_prefix(KEPT)?;
    let (call, key) = kept.split_once('/')?;
    Some((call.parse().ok()?, key)).filter(|(_, key)| !key.contains('/'))
}

impl State {
    fn live_scopes(&self) -> Vec<Arc<CallScope>> {
        self.scopes.iter().filter_map(Weak::upgrade).collect()
    }
}

impl std::fmt::Debug for RunScopes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept")
            .field("scopes", &self.state().scopes.len())
            .finish()
    }
}
