//! The application's policy for calls: decides which need an approval.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use adjutant_core::panic_text;
use adjutant_tool::{Ask, Bound, ToolSpec};
use serde_json::Value;

use super::{CallOptions, Setup};

type When = dyn Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync;

/// The rules that decide which calls need an approval.
#[derive(Clone, Default)]
pub(crate) struct Policy {
    when: Vec<Arc<When>>,
}

impl Setup {
    /// Changes how calls are performed.
    #[must_use]
    pub(crate) fn calls(mut self, change: impl FnOnce(&mut CallOptions)) -> Self {
        change(&mut self.calls);
        self
    }

    /// Adds a rule that decides which calls need an approval; it receives validated arguments. Its panic refuses the
    /// call.
    #[must_use]
    pub(crate) fn approve_when(
        mut self,
        when: impl Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync + 'static,
    ) -> Self {
        self.policy.when.push(Arc::new(when));
        self
    }
}

impl Policy {
    /// Returns the question to ask before a call with these arguments; the tool's own question comes first.
    ///
    /// # Errors
    /// The panic message of a rule.
    pub(crate) fn ask(&self, tool: &Bound, args: &Value) -> Result<Option<Ask>, String> {
        let ask = || {
            tool.approval(args)
                .or_else(|| self.when.iter().find_map(|when| when(tool.spec(), args)))
        };
        catch_unwind(AssertUnwindSafe(ask)).map_err(|panic| panic_text(&*panic))
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.when.len();
        f.debug_struct("Policy")
            .field("rules", &rules)
            .finish_non_exhaustive()
    }
}
