//! Seen is saved: what a reader acknowledges is recorded, a reply that is on its way included.

use adjutant_core::{ActivityId, Error, Record};

use super::LocalExecutor;
use crate::partial_reply::lock;

impl LocalExecutor {
    /// Returns the part of the reply that is not in the log, because someone wishes that what was shown be saved.
    pub(super) fn acknowledge(&mut self) -> Option<Record> {
        self.wishes.0 = self.inbox.asked_to_save();
        let is_asking = self
            .busy
            .iter()
            .any(|act| matches!(act, ActivityId::Ask(_)));
        is_asking
            .then(|| lock(self.feed.seen.reply()).hear())
            .flatten()
    }

    /// Saves what is not in the log yet, and tells those who wished it.
    ///
    /// Cancel: they are told later.
    pub(super) async fn grant(&mut self) -> Result<(), Error> {
        let upto = self.wishes.0;
        self.save(self.setup.durability.at_end()).await?;
        self.wishes.1 = upto;
        self.inbox.saved(upto);
        Ok(())
    }
}
