//! Operations at random, held against a model that is a few lines.

use std::{collections::BTreeMap, fmt, sync::Arc};

use adjutant_agent::{
    Flush, Holder, Journal, JournalError, JournalErrorKind, Log, LogId, Owner, SessionMeta,
};
use proptest::{
    collection,
    prelude::{Just, Strategy, any, prop_oneof},
    test_runner::{Config, TestCaseError, TestRunner},
};

use super::stage::{JournalStage, batch, is_log, is_missing};
use crate::suite::{Verdict, equal, join_task, ok};

/// The number of sequences of operations that are played.
const CASES: u32 = 40;
/// The number of logs that the operations are about, and the number of owners that want them.
const LOGS: usize = 2;
const OWNERS: usize = 2;

#[derive(Debug, Clone)]
enum Operation {
    Own {
        owner: usize,
        log: usize,
        takes_over: bool,
        handle: usize,
    },
    Append {
        owner: usize,
        log: usize,
        count: u64,
    },
    AppendWrong {
        owner: usize,
        log: usize,
    },
    GiveUp {
        owner: usize,
        log: usize,
    },
    Describe {
        log: usize,
        title: u8,
        handle: usize,
    },
    Delete {
        log: usize,
        handle: usize,
    },
    Rename {
        from: usize,
        to: usize,
        handle: usize,
    },
    Read {
        log: usize,
        handle: usize,
    },
}

/// The model's knowledge of a log.
#[derive(Debug, Default)]
struct Known {
    records: u64,
    title: Option<u8>,
    /// The owner that has it now.
    holder: Option<usize>,
}

/// The values that are open in a case, and the model.
struct Case {
    handles: [Arc<dyn Journal>; 2],
    prefix: String,
    held: BTreeMap<(usize, usize), Box<dyn Log>>,
    known: BTreeMap<usize, Known>,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let (owner, log, handle) = (0..OWNERS, 0..LOGS, 0..2usize);
    let pair = || (owner.clone(), log.clone());
    let one = prop_oneof![
        4 => (pair(), any::<bool>(), handle.clone())
            .prop_map(|((owner, log), takes_over, handle)| Operation::Own { owner, log, takes_over, handle }),
        6 => (pair(), 1..4u64).prop_map(|((owner, log), count)| Operation::Append { owner, log, count }),
        1 => pair().prop_map(|(owner, log)| Operation::AppendWrong { owner, log }),
        2 => pair().prop_map(|(owner, log)| Operation::GiveUp { owner, log }),
        1 => (log.clone(), any::<u8>(), handle.clone())
            .prop_map(|(log, title, handle)| Operation::Describe { log, title, handle }),
        1 => (log.clone(), handle.clone()).prop_map(|(log, handle)| Operation::Delete { log, handle }),
        1 => (Just(()), handle.clone(), any::<bool>())
            .prop_map(|((), handle, up)| Operation::Rename { from: usize::from(up), to: usize::from(!up), handle }),
        2 => (log.clone(), handle.clone()).prop_map(|(log, handle)| Operation::Read { log, handle }),
    ];
    collection::vec(one, 1..30)
}

pub(super) async fn random_operations(stage: &JournalStage<'_>) -> Verdict {
    let (handles, prefix) = (
        [stage.open().await, stage.open().await],
        stage.prefix.clone(),
    );
    let runtime = tokio::runtime::Handle::current();
    // The cases block: not on a thread that other tasks need.
    let played = tokio::task::spawn_blocking(move || {
        let config = Config {
            cases: CASES,
            failure_persistence: None,
            ..Config::default()
        };
        let rng = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
        let number = std::cell::Cell::new(0);
        let played = TestRunner::new_with_rng(config, rng).run(&operations(), |operations| {
            number.set(number.get() + 1);
            let mut case = Case::new(handles.clone(), format!("{prefix}-{}", number.get()));
            runtime
                .block_on(case.play(&operations))
                .map_err(TestCaseError::fail)
        });
        played.map_err(|error| error.to_string())
    });
    join_task("the model", played).await
}

impl Case {
    fn new(handles: [Arc<dyn Journal>; 2], prefix: String) -> Self {
        Self {
            handles,
            prefix,
            held: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    fn log(&self, log: usize) -> LogId {
        format!("{}/{log}", self.prefix).into()
    }

    async fn play(&mut self, operations: &[Operation]) -> Verdict {
        for operation in operations {
            self.step(operation)
                .await
                .map_err(|why| format!("{operation:?}: {why}"))?;
        }
        for log in 0..LOGS {
            self.look(log, 0).await?;
            self.look(log, 1).await?;
        }
        Ok(())
    }

    async fn step(&mut self, operation: &Operation) -> Verdict {
        match *operation {
            Operation::Own {
                owner,
                log,
                takes_over,
                handle,
            } => self.own(owner, log, takes_over, handle).await,
            Operation::Append { owner, log, count } => self.append(owner, log, count, 1).await,
            Operation::AppendWrong { owner, log } => self.append(owner, log, 1, 2).await,
            Operation::GiveUp { owner, log } => {
                self.held.remove(&(owner, log));
                if let Some(known) = self
                    .known
                    .get_mut(&log)
                    .filter(|known| known.holder == Some(owner))
                {
                    known.holder = None;
                }
                self.settle(log).await
            }
            Operation::Describe { log, title, handle } => {
                let about = SessionMeta {
                    title: Some(title.to_string().into()),
                    ..SessionMeta::default()
                };
                let described = self.handles[handle].describe(&self.log(log), about).await;
                let missing = self
                    .known
                    .get_mut(&log)
                    .map(|known| known.title = Some(title))
                    .is_none();
                result(described, missing.then_some(JournalErrorKind::Missing))
            }
            Operation::Delete { log, handle } => {
                let deleted = self.handles[handle].delete(&self.log(log)).await;
                let refusal = self.refusal(log);
                if refusal.is_none() {
                    self.known.remove(&log);
                }
                result(deleted, refusal)
            }
            Operation::Rename { from, to, handle } => self.rename(from, to, handle).await,
            Operation::Read { log, handle } => self.look(log, handle).await,
        }
    }

    /// Returns the reason why a log can be neither deleted nor renamed.
    fn refusal(&self, log: usize) -> Option<JournalErrorKind> {
        match self.known.get(&log) {
            None => Some(JournalErrorKind::Missing),
            Some(known) => known.holder.map(|_| JournalErrorKind::Owned),
        }
    }

    async fn own(&mut self, owner: usize, log: usize, takes_over: bool, handle: usize) -> Verdict {
        let named = Owner {
            id: format!("{}-{owner}", self.prefix).into(),
            takes_over: false,
        };
        let named = if takes_over {
            Owner {
                takes_over: true,
                ..named
            }
        } else {
            named
        };
        let owned = self.handles[handle].own(&self.log(log), &named).await;
        let known = self.known.entry(log).or_default();
        if known.holder.is_some_and(|holder| holder != owner) && !takes_over {
            return result(owned, Some(JournalErrorKind::Owned));
        }
        let held = ok("owning", owned)?;
        equal("the head", &held.head().seq.0, &known.records)?;
        known.holder = Some(owner);
        self.held.insert((owner, log), held);
        Ok(())
    }

    /// Appends records, `ahead` of the head.
    async fn append(&mut self, owner: usize, log: usize, count: u64, ahead: u64) -> Verdict {
        let Some(held) = self.held.get_mut(&(owner, log)) else {
            return Ok(());
        };
        let first = held.head().seq.0 + ahead;
        let appended = held
            .append(&batch(first, first + count - 1), Flush::Lazy)
            .await;
        let known = self
            .known
            .get_mut(&log)
            .filter(|known| known.holder == Some(owner));
        match known {
            Some(known) if ahead == 1 => {
                known.records += count;
                result(appended, None)
            }
            // The value need not be of use any more.
            Some(known) => {
                known.holder = None;
                self.held.remove(&(owner, log));
                result(appended, Some(JournalErrorKind::Corrupt))?;
                self.settle(log).await
            }
            None => match appended {
                Ok(_) => Err("a late writer wrote".to_owned()),
                Err(_) => Ok(()),
            },
        }
    }

    async fn rename(&mut self, from: usize, to: usize, handle: usize) -> Verdict {
        let renamed = self.handles[handle]
            .rename(&self.log(from), &self.log(to))
            .await;
        let taken = self
            .known
            .contains_key(&to)
            .then_some(JournalErrorKind::Exists);
        let refusal = self.refusal(from).or(taken);
        if refusal.is_none() {
            let known = self.known.remove(&from).unwrap_or_default();
            self.known.insert(to, known);
        }
        result(renamed, refusal)
    }

    /// Waits until a log that was given up is free: that may take a moment.
    async fn settle(&self, log: usize) -> Verdict {
        let Some(known) = self.known.get(&log).filter(|known| known.holder.is_none()) else {
            return Ok(());
        };
        let named = Owner {
            id: format!("{}-settle", self.prefix).into(),
            takes_over: false,
        };
        for handle in &self.handles {
            let held = super::stage::own(&**handle, &self.log(log), &named).await?;
            equal("the head", &held.head().seq.0, &known.records)?;
        }
        let free = async || match self.handles[0].info(&self.log(log)).await? {
            info if info.is_owned => Err(JournalError::already_owned(
                &self.log(log),
                Holder {
                    owner: "somebody".into(),
                    ..Holder::default()
                },
            )),
            _ => Ok(()),
        };
        super::stage::when_free("telling that a log is free", free).await
    }

    async fn look(&self, log: usize, handle: usize) -> Verdict {
        let (journal, id) = (&self.handles[handle], self.log(log));
        let Some(known) = self.known.get(&log) else {
            return is_missing(&**journal, &id).await;
        };
        is_log(&**journal, &id, &batch(1, known.records)).await?;
        let info = ok("info", journal.info(&id).await)?;
        equal("the head", &info.head.0, &known.records)?;
        equal(
            "whether it is owned",
            &info.is_owned,
            &known.holder.is_some(),
        )?;
        equal(
            "the title",
            &info.about.title.as_deref(),
            &known.title.map(|title| title.to_string()).as_deref(),
        )
    }
}

/// Checks that the result matches the model's.
fn result<T>(got: Result<T, JournalError>, refusal: Option<JournalErrorKind>) -> Verdict {
    let got = got
        .map(drop)
        .map_err(|error| (error.kind, error.to_string()));
    match (&got, refusal) {
        (Ok(()), None) => Ok(()),
        (Err((kind, _)), Some(refusal)) if *kind == refusal => Ok(()),
        _ => Err(format!("expected {refusal:?}, got {got:?}")),
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("prefix", &self.prefix)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}
