//! Stands in until the offline model is there.

use adjutant_llm::{ChunkStream, Model, ModelInfo, Request};

/// Stand-in.
#[derive(Debug)]
pub struct OfflineModel(ModelInfo);

impl OfflineModel {
    /// Stand-in.
    #[expect(clippy::new_without_default, reason = "stand-in")]
    pub fn new() -> Self {
        Self(ModelInfo::new("offline/planner"))
    }
}

impl Model for OfflineModel {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn stream(&self, _: Request) -> ChunkStream {
        Box::pin(futures_util::stream::empty())
    }
}
