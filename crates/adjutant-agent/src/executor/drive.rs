//! Requests of a drive to its executor, apart from activities.

use std::sync::Arc;

use adjutant_core::{Error, Events, Run, Seq};
use adjutant_llm::ToolName;

use super::{LocalExecutor, prepare};
use crate::{setup::Setup, turn_position::TurnPosition};

impl LocalExecutor {
    /// Saves the pending records.
    pub(crate) async fn save_all(&mut self) -> Result<(), Error> {
        self.save(self.setup.durability.at_end()).await
    }

    /// Holds warnings back until the first records of the drive are emitted.
    pub(crate) fn hold(&self) {
        self.feed.hold();
    }

    /// Shows the warnings that were kept back.
    pub(crate) fn release(&self) {
        self.feed.release();
    }

    /// The last emitted record.
    pub(crate) fn last_emitted(&self) -> Seq {
        self.feed.newest()
    }

    /// Continues a run that another executor has performed before.
    pub(crate) fn go_on(&mut self, events: Option<Events>, run: &Run) {
        if let Some(events) = events {
            *self.feed.events() = events.by(Arc::clone(&self.setup.who));
        }
        self.place = TurnPosition {
            run: run.run(),
            turn: run.turn(),
        };
    }

    /// Takes the event state that the next executor needs to continue.
    pub(crate) fn take_events(&mut self) -> Events {
        std::mem::replace(
            &mut *self.feed.events(),
            Events::new(Arc::clone(&self.setup.who)),
        )
    }
}

/// The names of the tools that a run starts with.
pub(crate) async fn tool_names(setup: &Setup) -> Result<Vec<ToolName>, String> {
    let (_, tools) = prepare::resolve(setup, Default::default()).await?;
    Ok(tools
        .iter()
        .map(|tool| tool.spec().name().clone())
        .collect())
}
