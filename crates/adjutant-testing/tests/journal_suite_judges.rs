//! The suite of journals against journals that break a promise: it must say which.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use adjutant_agent::{
    Journal, JournalError, JournalErrorKind, Log, LogId, MemoryJournal, Owner, RecordStream, Seq,
};
use adjutant_testing::journal_suite::{CHECKS, check, lab_fn};
use async_trait::async_trait;

/// Gives every owner the log, and loses the newest record when it is read for the second time.
#[derive(Debug, Clone, Default)]
struct Careless {
    inner: MemoryJournal,
    was_read: Arc<AtomicBool>,
}

#[async_trait]
impl Journal for Careless {
    async fn own(&self, log: &LogId, owner: &Owner) -> Result<Box<dyn Log>, JournalError> {
        self.inner
            .own(
                log,
                &Owner {
                    takes_over: true,
                    ..owner.clone()
                },
            )
            .await
    }

    fn read(&self, log: &LogId, after: Seq) -> RecordStream {
        let skipped = u64::from(self.was_read.swap(true, Ordering::Relaxed));
        self.inner.read(log, Seq(after.0 + skipped))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn careless_journal_is_found_out() {
    let journal = Careless::default();
    let report =
        check(&lab_fn(move || journal.clone()).without("large_text", "it takes long")).await;
    let broken: Vec<_> = report.broken().map(|(name, _)| name).collect();
    for name in [
        "append_then_read",
        "second_owner_refused",
        "one_of_many",
        "delete_refused",
        "posts_in_order",
    ] {
        assert!(
            broken.contains(&name),
            "{name} was taken for kept: {report}"
        );
    }
    assert!(
        report
            .to_string()
            .contains("large_text was skipped: it takes long"),
        "{report}"
    );
    assert_eq!(report.rows.len(), CHECKS.len());
    let kind = JournalErrorKind::Unsupported;
    assert_eq!(
        Careless::default()
            .delete(&"x".into())
            .await
            .expect_err("it cannot")
            .kind,
        kind
    );
}
