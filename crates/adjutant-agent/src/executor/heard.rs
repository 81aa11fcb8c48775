//! Seen is saved: text that a reader acknowledges is recorded, including an incomplete reply.

use adjutant_core::{ActivityId, Error, Record};

use super::LocalExecutor;
use crate::partial_reply::lock;

impl LocalExecutor {
    /// Returns the unrecorded part of the reply, if a save of the emitted records was requested.
    pub(super) fn acknowledge(&mut self) -> Option<Record> {
        self.wishes.0 = self.inbox.last_save_request();
        let is_asking = self
            .busy
            .iter()
            .any(|act| matches!(act, ActivityId::Ask(_)));
        is_asking
            .then(|| lock(self.feed.seen.reply()).hear())
            .flatten()
    }

    /// Saves the pending records, and notifies the requesters.
    ///
    /// Cancel: they are notified later.
    pub(super) async fn grant(&mut self) -> Result<(), Error> {
        let upto = self.wishes.0;
        self.save(self.setup.durability.at_end()).await?;
        self.wishes.1 = upto;
        self.inbox.complete_saves(upto);
        Ok(())
    }
}
