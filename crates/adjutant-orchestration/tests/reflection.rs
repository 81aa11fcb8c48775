//! Reflections: the same promises in every place, what is found, what is written, and what agents learn.

#[path = "reflection/agents.rs"]
mod agents;
#[path = "reflection/directory.rs"]
mod directory;
#[path = "reflection/keeping.rs"]
mod keeping;
#[path = "reflection/places.rs"]
mod places;
#[path = "reflection/ranking.rs"]
mod ranking;
#[path = "reflection/redaction.rs"]
mod redaction;
#[path = "reflection/rendering.rs"]
mod rendering;

use adjutant_orchestration::reflection::{Failed, Reflection};

/// 2000-02-29, midnight.
const NOW_MS: u64 = 951_782_400_000;

fn failed(task: &str, summary: &str) -> Failed {
    Failed {
        agent: "coder".into(),
        task: task.into(),
        summary: summary.into(),
        ..Failed::default()
    }
}

fn summaries(reflections: &[Reflection]) -> Vec<&str> {
    reflections.iter().map(|it| &*it.summary).collect()
}
