//! Tapes: what was asked and what came, as files that tests can play again.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use adjutant_llm::Error;

use crate::{Exchange, Observe, Outgoing, Rewrite};

/// How many bytes of one answer are kept.
const MAX_TAPE: usize = 64 * 1024 * 1024;

/// Writes every exchange of a model into a folder: `<number>.request.json` and `<number>.sse`, without keys.
///
/// The first number is the lowest that the folder has no file of. An answer is written when it has ended; one of more
/// than 64 MiB is cut there, and its file says so in a comment. A file that cannot be written is counted, not retried:
/// a tape must not break what it watches.
///
/// Shape of an answer: one event after the other, each as `event: <name>` if it has a name, `data: <data>`, and an empty
/// line. Lines that begin with `:` are remarks: the status, the headers that matter, and the error it ended in.
pub struct Tape {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: BTreeMap<u64, Running>,
    next: u64,
    lost: u64,
}

#[derive(Default)]
struct Running {
    number: u64,
    request: Vec<u8>,
    answer: String,
    cut: bool,
}

impl Tape {
    /// A tape in this folder, which is made if it is not there.
    ///
    /// # Errors
    /// If the folder cannot be made or read.
    pub fn new(folder: impl AsRef<Path>) -> io::Result<Self> {
        let folder = folder.as_ref().to_owned();
        fs::create_dir_all(&folder)?;
        let mut next = 0;
        for file in fs::read_dir(&folder)? {
            let name = file?.file_name();
            let number = name.to_str().and_then(|name| name.split('.').next()?.parse::<u64>().ok());
            next = number.map_or(next, |number| next.max(number + 1));
        }
        Ok(Self { folder, state: Mutex::new(State { next, ..State::default() }) })
    }

    /// How many files could not be written.
    pub fn lost(&self) -> u64 {
        self.state().lost
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, running: &Running) -> u64 {
        let file = |extension: &str| self.folder.join(format!("{}.{extension}", running.number));
        let request = fs::write(file("request.json"), &running.request);
        let answer = fs::write(file("sse"), &running.answer);
        u64::from(request.is_err()) + u64::from(answer.is_err())
    }
}

impl Observe for Tape {
    fn request(&self, exchange: &Exchange, request: &Outgoing<'_>) -> Rewrite {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.running.insert(exchange.number, Running { number, request: request.body.to_vec(), ..Running::default() });
        Rewrite::Keep
    }

    fn response(&self, exchange: &Exchange, status: u16, headers: &[(&str, &str)]) {
        let mut state = self.state();
        let Some(running) = state.running.get_mut(&exchange.number) else { return };
        running.answer.push_str(&format!(": status {status}\n"));
        for (name, value) in headers.iter().filter(|(name, _)| matters(name)) {
            running.answer.push_str(&format!(": {name}: {value}\n"));
        }
        running.answer.push('\n');
    }

    fn frame(&self, exchange: &Exchange, event: &str, data: &str) {
        let mut state = self.state();
        let Some(running) = state.running.get_mut(&exchange.number) else { return };
        if running.answer.len() + event.len() + data.len() > MAX_TAPE {
            if !std::mem::replace(&mut running.cut, true) {
                running.answer.push_str(": the rest was cut\n\n");
            }
            return;
        }
        if !event.is_empty() {
            running.answer.push_str(&format!("event: {event}\n"));
        }
        for line in data.split('\n') {
            running.answer.push_str("data: ");
            running.answer.push_str(line);
            running.answer.push('\n');
        }
        running.answer.push('\n');
    }

    fn ended(&self, exchange: &Exchange, error: Option<&Error>) {
        let Some(mut running) = self.state().running.remove(&exchange.number) else { return };
        if let Some(error) = error {
            let text = error.to_string().replace(['\n', '\r'], " ");
            running.answer.push_str(&format!(": ended in {:?}: {text}\n\n", error.kind()));
            if let Some(body) = error.body() {
                let lines = body.lines().map(|line| format!(": {line}\n"));
                running.answer.extend(lines);
            }
        }
        let lost = self.write(&running);
        self.state().lost += lost;
    }
}

/// Whether a header says something about the answer rather than about the account.
fn matters(name: &str) -> bool {
    name == "content-type" || name.starts_with("retry-after") || name.contains("ratelimit") || name == "x-should-retry"
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape").field("folder", &self.folder).finish_non_exhaustive()
    }
}
