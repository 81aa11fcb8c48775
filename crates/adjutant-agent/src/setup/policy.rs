//! What an application lets calls do: which need a word, who runs them, and how early they may begin.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use adjutant_core::panic_text;
use adjutant_tool::{Ask, Bound, ToolSpec};
use serde_json::Value;

use super::Setup;

type When = dyn Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync;

/// What an application lets calls do.
#[derive(Clone, Default)]
pub(crate) struct Policy {
    when: Vec<Arc<When>>,
    external: bool,
    early: bool,
}

impl Setup {
    /// Adds a rule that says which calls need someone's word; it sees arguments that fit. Its panic refuses the call.
    #[must_use]
    pub fn approve_when(mut self, when: impl Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync + 'static) -> Self {
        self.policy.when.push(Arc::new(when));
        self
    }

    /// Says that no tool is run here: the run gives its calls back, and goes on with their results.
    #[must_use]
    pub fn external_tools(mut self) -> Self {
        self.policy.external = true;
        self
    }

    /// Lets tools of class `Pure` begin while the reply still streams, if nobody need be asked first.
    #[must_use]
    pub fn early_start(mut self) -> Self {
        self.policy.early = true;
        self
    }
}

impl Policy {
    /// Whether calls of this tool are run elsewhere.
    pub(crate) fn is_external(&self, tool: &Bound) -> bool {
        self.external || tool.spec().external
    }

    /// Whether calls may begin while the reply still streams.
    pub(crate) fn is_early(&self) -> bool {
        self.early
    }

    /// What is asked before a call with these arguments; the tool's own words come first.
    ///
    /// # Errors
    /// What a rule panicked with.
    pub(crate) fn ask(&self, tool: &Bound, args: &Value) -> Result<Option<Ask>, String> {
        let ask = || tool.approval(args).or_else(|| self.when.iter().find_map(|when| when(tool.spec(), args)));
        catch_unwind(AssertUnwindSafe(ask)).map_err(|panic| panic_text(&*panic))
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.when.len();
        f.debug_struct("Policy").field("rules", &rules).field("external", &self.external).finish_non_exhaustive()
    }
}
