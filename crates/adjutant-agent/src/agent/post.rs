//! What is said to the session whoever owns its log.

use adjutant_core::{Error, Post, PostNo};

use crate::agent::Agent;

impl Agent {
    /// Says something to the session, whoever owns its log: the run that goes on there hears it, or the next one.
    ///
    /// An answer to a pause of a run that is parked counts when that run is resumed; a wish to stop counts for the run
    /// that is open, and for none if none is.
    ///
    /// # Errors
    /// `Journal` if there is no such log yet, too many posts wait, or the journal takes none.
    pub async fn post(&self, post: Post) -> Result<PostNo, Error> {
        Ok(self.session.journal().post(self.session.id(), post).await?)
    }
}
