//! The parts that the suites of storages share: lists of checks, their outcomes, and the way a check becomes a test.

use std::{
    error::Error,
    fmt,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use adjutant_agent::{chain, panic_text};
use adjutant_llm::FixedWorld;
use tokio::{sync::oneshot, task::JoinHandle};

/// The longest time that a check waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A promise, and the play that shows whether it is kept; `L` is the laboratory that it is played in.
pub struct Check<L: ?Sized> {
    /// The name, for example `append_then_read`.
    pub name: &'static str,
    /// The promise.
    pub what: &'static str,
    pub(crate) play: fn(&L) -> Playing<'_>,
}

/// A laboratory made of a function that opens a storage, as `lab_fn` of each suite makes it.
pub struct FnLab<T: ?Sized> {
    open: Box<dyn Fn() -> Arc<T> + Send + Sync>,
    /// The clock of the journals that it opens.
    pub(crate) world: Arc<FixedWorld>,
    without: Vec<(&'static str, &'static str)>,
}

impl<T: ?Sized> FnLab<T> {
    pub(crate) fn new(open: impl Fn() -> Arc<T> + Send + Sync + 'static) -> Self {
        Self {
            open: Box::new(open),
            world: Arc::default(),
            without: Vec::new(),
        }
    }

    /// Skips a check that the storage does not claim to pass.
    #[must_use]
    pub fn without(mut self, check: &'static str, why: &'static str) -> Self {
        self.without.push((check, why));
        self
    }

    /// A new handle on the storage.
    pub(crate) fn handle(&self) -> Arc<T> {
        (self.open)()
    }

    /// Returns the reason why a check is skipped, if it is.
    pub(crate) fn why(&self, check: &str) -> Option<String> {
        self.without
            .iter()
            .find(|(name, _)| *name == check)
            .map(|(_, why)| (*why).to_owned())
    }
}

impl<T: ?Sized> fmt::Debug for FnLab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnLab")
            .field("without", &self.without)
            .finish_non_exhaustive()
    }
}

/// The outcomes of a list of checks. `Display` shows a line for each that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The outcome of each check, in order.
    pub rows: Vec<Row>,
}

/// The name and the outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The name of the check.
    pub check: &'static str,
    /// The outcome of the check.
    pub result: Played,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Played {
    /// The promise was kept.
    Kept,
    /// The environment cannot run it, for this reason.
    Skipped(String),
    /// The contract was violated: the expected and the actual result.
    Broken(String),
}

/// The outcome of a check: the error contains the expected and the actual result.
pub(crate) type Verdict = Result<(), String>;

pub(crate) type Playing<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

impl<L: ?Sized> fmt::Debug for Check<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("name", &self.name)
            .field("what", &self.what)
            .finish_non_exhaustive()
    }
}

impl<L: ?Sized> Check<L> {
    /// Plays it; a panic breaks the promise, and so does a play that does not end within a minute.
    pub(crate) async fn play(&self, lab: &L) -> Played {
        let mut playing = (self.play)(lab);
        let caught = std::future::poll_fn(move |cx| {
            catch_unwind(AssertUnwindSafe(|| playing.as_mut().poll(cx))).unwrap_or_else(|panic| {
                Poll::Ready(Err(format!("panicked: {}", panic_text(&*panic))))
            })
        });
        match tokio::time::timeout(PATIENCE, caught).await {
            Ok(Ok(())) => Played::Kept,
            Ok(Err(why)) => Played::Broken(why),
            Err(_) => Played::Broken(format!("was not done within {PATIENCE:?}")),
        }
    }
}

impl Report {
    /// The promises that were broken, and how.
    pub fn broken(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.rows.iter().filter_map(|row| match &row.result {
            Played::Broken(why) => Some((row.check, why.as_str())),
            Played::Kept | Played::Skipped(_) => None,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self
            .rows
            .iter()
            .filter(|row| row.result == Played::Kept)
            .count();
        write!(f, "{kept} of {} promises were kept", self.rows.len())?;
        self.rows.iter().try_for_each(|row| match &row.result {
            Played::Kept => Ok(()),
            Played::Skipped(why) => write!(f, "\n{} was skipped: {why}", row.check),
            Played::Broken(why) => write!(f, "\n{} was broken: {why}", row.check),
        })
    }
}

/// Runs a check as a test: on two threads, so that what happens at once does.
pub(crate) fn test(check: &str, playing: impl Future<Output = Option<Played>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let played = runtime
        .map_err(|error| format!("{check} needs a runtime: {error}"))
        .and_then(|runtime| {
            let played = runtime.block_on(playing);
            // A storage that hangs must not keep the test from ending.
            runtime.shutdown_timeout(Duration::from_secs(1));
            match played {
                Some(Played::Kept) => Ok(()),
                // Not by a macro, whose output a test that passes does not show.
                Some(Played::Skipped(why)) => {
                    drop(writeln!(std::io::stderr(), "skipped: {check}: {why}"));
                    Ok(())
                }
                Some(Played::Broken(why)) => Err(format!("{check} was broken: {why}")),
                None => Err(format!("the suite has no check {check}")),
            }
        });
    assert_eq!(played.err(), None, "{check}");
}

/// Checks that something is so.
pub(crate) fn holds(what: &str, is_so: bool) -> Verdict {
    if is_so {
        Ok(())
    } else {
        Err(format!("expected that {what}"))
    }
}

/// Checks that two values are equal.
pub(crate) fn equal<T: PartialEq + fmt::Debug>(what: &str, got: &T, want: &T) -> Verdict {
    if got == want {
        return Ok(());
    }
    Err(format!(
        "{what}: expected {}, got {}",
        short(want),
        short(got)
    ))
}

/// Checks that something succeeded; gives the value.
pub(crate) fn ok<T, E: Error>(what: &str, result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| format!("{what} failed: {}", chain(&error)))
}

/// Checks that something failed; gives the error.
pub(crate) fn fails<T, E: Error>(what: &str, result: Result<T, E>) -> Result<E, String> {
    result
        .err()
        .ok_or_else(|| format!("{what} succeeded, and must not"))
}

/// Checks that something ends soon.
pub(crate) async fn soon<T>(what: &str, coming: impl Future<Output = T>) -> Result<T, String> {
    let waited = tokio::time::timeout(PATIENCE / 4, coming).await;
    waited.map_err(|_| format!("{what} did not happen within {:?}", PATIENCE / 4))
}

/// Runs a waiting operation concurrently with the check; it has started to wait when this returns.
pub(crate) async fn waits<T: Send + 'static>(
    coming: impl Future<Output = T> + Send + 'static,
) -> Result<JoinHandle<T>, String> {
    let (tell, told) = oneshot::channel();
    let (mut coming, mut tell) = (Box::pin(coming), Some(tell));
    let task = tokio::spawn(std::future::poll_fn(move |cx| {
        let polled = coming.as_mut().poll(cx);
        // An error is as good: the check is over.
        let _ = tell.take().map(|tell| tell.send(()));
        polled
    }));
    told.await
        .map(|()| task)
        .map_err(|_| "what should wait panicked".to_owned())
}

/// Waits for a task that runs beside the check; a panic there breaks the check.
pub(crate) async fn join_task<T>(
    what: &str,
    task: JoinHandle<Result<T, String>>,
) -> Result<T, String> {
    task.await
        .map_err(|error| format!("{what} panicked: {error}"))?
}

fn short(value: &dyn fmt::Debug) -> String {
    let mut text = format!("{value:?}");
    if let Some((cut, _)) = text.char_indices().nth(600) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// Makes of a list: `CHECKS`, `check`, what the tests call, and the macro that makes a test of each check.
///
/// `$d` is a dollar sign, for the macro that this one writes.
macro_rules! checks {
    (
        $d:tt $suite:ident, $lab_text:literal, $stage:ident;
        $($module:ident :: $name:ident : $what:literal,)*
    ) => {
        /// Every promise, in the order in which they are checked.
        pub const CHECKS: &[Check<dyn Lab>] = &[$(
            Check {
                name: stringify!($name),
                what: $what,
                play: |lab| Box::pin(async move { $module::$name(&$stage::new(lab)).await }),
            },
        )*];

        /// Plays every check, one after the other, in one laboratory.
        pub async fn check(lab: &(impl Lab + 'static)) -> Report {
            let mut rows = Vec::new();
            for check in CHECKS {
                rows.push(Row { check: check.name, result: play(check, lab).await });
            }
            Report { rows }
        }

        async fn play(check: &Check<dyn Lab>, lab: &(dyn Lab + 'static)) -> Played {
            match lab.skips(check.name) {
                Some(why) => Played::Skipped(why),
                None => check.play(lab).await,
            }
        }

        /// Plays one check as a test; what the macro of the suite calls.
        ///
        /// # Panics
        /// If the promise was broken.
        #[doc(hidden)]
        pub fn test<L: Lab + 'static>(name: &str, lab: impl Future<Output = L>) {
            $crate::suite::test(name, async move {
                let check = CHECKS.iter().find(|check| check.name == name)?;
                Some(play(check, &lab.await).await)
            });
        }

        #[doc = concat!("Makes a test of each check of [`", stringify!($suite), "`](mod@crate::", stringify!($suite), ").")]
        ///
        #[doc = $lab_text]
        #[macro_export]
        macro_rules! $suite {
            ($d lab:expr) => {
                $(
                    #[test]
                    #[doc = $what]
                    fn $name() {
                        $crate::$suite::test(stringify!($name), async { $d lab });
                    }
                )*
            };
        }
    };
}

pub(crate) use checks;
