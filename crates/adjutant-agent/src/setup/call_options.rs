//! Options of calls, unless their tools set others.

use std::time::Duration;

use adjutant_llm::telemetry::Contents;
use adjutant_tool::Bound;

/// The options of calls, unless their tools set others.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// The longest time that one call may take; 10 minutes, and `None` for no limit.
    pub timeout: Option<Duration>,
    /// The time that a cancelled call has to end well before it is dropped; 2 seconds.
    pub grace: Duration,
    /// The largest number of bytes of text that one result may put into the context; 100,000.
    pub max_result_bytes: usize,
    /// The setting that lets spans of calls hold arguments and results; by default they do not.
    pub contents: Contents,
    /// True if no tool runs here: a run returns its calls, and continues with their results.
    pub external: bool,
    /// True if tools of class `Pure` start while the reply still streams, unless they need an approval.
    pub early: bool,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_secs(600)),
            grace: Duration::from_secs(2),
            max_result_bytes: 100_000,
            contents: Contents::default(),
            external: false,
            early: false,
        }
    }
}

impl CallOptions {
    /// True if calls of this tool are run elsewhere.
    pub(crate) fn is_external(&self, tool: &Bound) -> bool {
        self.external || tool.spec().external
    }
}
