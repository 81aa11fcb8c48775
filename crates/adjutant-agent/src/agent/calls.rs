//! What an agent lets its calls do.

use adjutant_tool::{Ask, ToolSpec};
use serde_json::Value;

use super::Agent;

impl Agent {
    /// Adds a rule that says which calls need someone's word; it sees arguments that fit. Its panic refuses the call.
    #[must_use]
    pub fn approve_when(self, when: impl Fn(&ToolSpec, &Value) -> Option<Ask> + Send + Sync + 'static) -> Self {
        self.with(|setup| setup.approve_when(when))
    }

    /// Says that no tool is run here: a run gives its calls back, and goes on with their results.
    #[must_use]
    pub fn external_tools(self) -> Self {
        self.with(super::Setup::external_tools)
    }

    /// Lets tools of class `Pure` begin while the reply still streams, if nobody need be asked first.
    #[must_use]
    pub fn early_start(self) -> Self {
        self.with(super::Setup::early_start)
    }
}
