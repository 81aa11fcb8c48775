//! In the place of `launch.rs` where nothing can hold a command: none is started.

use adjutant_tool::{ToolError, ToolErrorKind};

use super::{
    CURE, Sandbox,
    job::{CommandJob, OnEnd, Sink},
};

/// No command.
#[derive(Debug)]
pub(crate) enum Running {}

impl Running {
    pub(crate) async fn start(_: &Sandbox, _: CommandJob, _: Sink, _: OnEnd) -> Result<Self, ToolError> {
        Err(ToolError::new(ToolErrorKind::Denied, format!("no command runs without a sandbox; {CURE}")))
    }
}
