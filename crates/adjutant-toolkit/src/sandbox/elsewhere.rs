//! In the place of `launch.rs` where nothing can hold a command: none is started.

use adjutant_tool::{ToolError, ToolErrorKind};

use super::{
    Sandbox,
    job::{CommandJob, OnEnd, Sink},
};

/// No command.
#[derive(Debug)]
pub(crate) enum Running {}

impl Running {
    pub(crate) async fn start(
        sandbox: &Sandbox,
        _: CommandJob,
        _: Sink,
        _: OnEnd,
    ) -> Result<Self, ToolError> {
        Err(ToolError::new(
            ToolErrorKind::Denied,
            format!("no command runs without a sandbox; {}", sandbox.cure()),
        ))
    }
}

pub(super) fn has_helper() -> bool {
    false
}

/// Lets a sandbox start this program again; on this system no sandbox does.
pub fn sandbox_helper() {}
