//! Instructions: resolved once when a drive starts, and frozen within it.

use std::{panic::AssertUnwindSafe, sync::Arc};

use adjutant_core::{Failure, RunNo, chain, panic_text};
use futures_util::FutureExt;

use crate::{
    executor,
    instructions::InstructionError,
    sections::{SectionContext, resolve_system},
    setup::Setup,
};

impl Setup {
    /// The same setup with the system prompt of a run.
    ///
    /// # Errors
    /// `Instructions` if it cannot be made; a panic of who makes it counts as that.
    pub(crate) async fn with_system_prompt(
        self: &Arc<Self>,
        run: RunNo,
    ) -> Result<Arc<Self>, Failure> {
        if self.is_instructed() {
            return Ok(Arc::clone(self));
        }
        let failed = |message: String| Failure::Instructions {
            message: message.into(),
        };
        let resolved = match AssertUnwindSafe(self.resolve_system(run))
            .catch_unwind()
            .await
        {
            Ok(resolved) => resolved.map_err(|error| failed(chain(&error)))?,
            Err(panic) => {
                return Err(failed(format!(
                    "their source panicked: {}",
                    panic_text(&*panic)
                )));
            }
        };
        Ok(Arc::new(Setup {
            system: resolved,
            ..Setup::clone(self)
        }))
    }

    async fn resolve_system(&self, run: RunNo) -> Result<Arc<str>, InstructionError> {
        let (who, state) = (Arc::clone(&self.who), Arc::clone(&self.state));
        let mut cx = SectionContext {
            who,
            state,
            run,
            tools: Arc::default(),
        };
        if !self.sections.is_empty() {
            cx.tools = executor::tool_names(self)
                .await
                .map_err(InstructionError::failure)?
                .into();
        }
        resolve_system(&self.instructions, &self.sections, &cx).await
    }
}
