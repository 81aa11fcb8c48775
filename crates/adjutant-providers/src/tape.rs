//! Tapes: requests and answers, as files that tests can replay.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use adjutant_llm::{Error, private};

use crate::{Exchange, Observe, Outgoing, Rewrite};

/// The largest number of bytes of one answer that are kept.
const MAX_TAPE: usize = 64 * 1024 * 1024;
/// The largest number of attempts to find a free file number for a request.
const MAX_TRIES: u64 = 1_000;

/// Writes every exchange of a model into a folder: `<number>.request.json` and `<number>.sse`, without keys.
///
/// Numbers continue after the highest number in the directory. Tapes in the same directory, also of other programs,
/// do not overwrite each other. A request is written before it is sent, and an answer after it has ended or its
/// stream was dropped. An answer of more than 64 MiB is cut there, with a comment in its file. A file that cannot be
/// written is counted, not retried: a tape must not break the exchange it observes.
///
/// Shape of an answer: one event after the other, each as `event: <name>` if it has a name, `data: <data>`, and an empty
/// line. Lines that begin with `:` are remarks: the status, the headers that matter, and the error it ended in.
pub struct Tape {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: BTreeMap<u64, PlayedAnswer>,
    next: u64,
    lost: u64,
}

#[derive(Default)]
struct PlayedAnswer {
    number: u64,
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
        private::folder(&folder)?;
        let mut next = 0;
        for file in fs::read_dir(&folder)? {
            let name = file?.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.split('.').next()?.parse::<u64>().ok());
            next = number.map_or(next, |number| next.max(number.saturating_add(1)));
        }
        Ok(Self {
            folder,
            state: Mutex::new(State {
                next,
                ..State::default()
            }),
        })
    }

    /// Returns the number of files that could not be written.
    pub fn write_failures(&self) -> u64 {
        self.state().lost
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a request under the first free number from this one on, and returns that number.
    fn write_request(&self, first: u64, body: &[u8]) -> io::Result<u64> {
        for number in (first..u64::MAX).take(MAX_TRIES as usize) {
            let path = self.folder.join(format!("{number}.request.json"));
            match private::file(OpenOptions::new().write(true).create_new(true)).open(path) {
                Ok(mut file) => return file.write_all(body).map(|()| number),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Observe for Tape {
    fn request(&self, exchange: &Exchange, request: &Outgoing<'_>) -> Rewrite {
        let mut state = self.state();
        match self.write_request(state.next, request.body) {
            Ok(number) => {
                state.next = number.saturating_add(1);
                state.running.insert(
                    exchange.number,
                    PlayedAnswer {
                        number,
                        ..PlayedAnswer::default()
                    },
                );
            }
            // An answer without its request would have no meaning.
            Err(_) => state.lost += 2,
        }
        Rewrite::Keep
    }

    fn response(&self, exchange: &Exchange, status: u16, headers: &[(&str, &str)]) {
        let mut state = self.state();
        let Some(running) = state.running.get_mut(&exchange.number) else {
            return;
        };
        running.answer.push_str(&format!(": status {status}\n"));
        for (name, value) in headers.iter().filter(|(name, _)| matters(name)) {
            running.answer.push_str(&format!(": {name}: {value}\n"));
        }
        running.answer.push('\n');
    }

    fn frame(&self, exchange: &Exchange, event: &str, data: &str) {
        let mut state = self.state();
        let Some(running) = state.running.get_mut(&exchange.number) else {
            return;
        };
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

    fn finish(&self, exchange: &Exchange, error: Option<&Error>) {
        let Some(mut running) = self.state().running.remove(&exchange.number) else {
            return;
        };
        if let Some(error) = error {
            let text = error.to_string().replace(['\n', '\r'], " ");
            running
                .answer
                .push_str(&format!(": ended in {:?}: {text}\n\n", error.kind()));
            if let Some(body) = error.details().body.as_deref() {
                running
                    .answer
                    .extend(body.split(['\n', '\r']).map(|line| format!(": {line}\n")));
                running.answer.push('\n');
            }
        }
        let path = self.folder.join(format!("{}.sse", running.number));
        let file =
            private::file(OpenOptions::new().write(true).create(true).truncate(true)).open(path);
        if file
            .and_then(|mut file| file.write_all(running.answer.as_bytes()))
            .is_err()
        {
            self.state().lost += 1;
        }
    }
}

/// True if a header describes the answer and not the account.
fn matters(name: &str) -> bool {
    name == "content-type"
        || name.starts_with("retry-after")
        || name.contains("ratelimit")
        || name == "x-should-retry"
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn answer_is_cut_when_it_is_too_long() {
        let folder = std::env::temp_dir().join(format!("adjutant-tape-{}", std::process::id()));
        let tape = Tape::new(&folder).expect("a folder");
        let exchange = Exchange {
            number: 3,
            model: "x/y".into(),
            turn: 1,
            attempt: 0,
        };
        let outgoing = Outgoing {
            url: "http://a",
            headers: Vec::new(),
            body: &Bytes::from_static(b"{}"),
        };
        assert_eq!(tape.request(&exchange, &outgoing), Rewrite::Keep);
        let quarter = "x".repeat(MAX_TAPE / 4);
        (0..6).for_each(|_| tape.frame(&exchange, "", &quarter));
        tape.finish(&exchange, None);
        let answer = fs::read_to_string(folder.join("0.sse")).expect("an answer");
        fs::remove_dir_all(&folder).expect("it is removed");
        assert!(answer.len() <= MAX_TAPE, "{}", answer.len());
        assert_eq!(answer.matches("data: ").count(), 3);
        assert!(answer.ends_with("x\n\n: the rest was cut\n\n"));
        assert_eq!((tape.write_failures(), tape.state().running.len()), (0, 0));
    }

    #[test]
    fn files_are_counted_when_they_cannot_be_written() {
        let folder = std::env::temp_dir().join(format!("adjutant-lost-{}", std::process::id()));
        let tape = Tape::new(&folder).expect("a folder");
        fs::remove_dir_all(&folder).expect("it is removed");
        let exchange = Exchange {
            number: 3,
            model: "x/y".into(),
            turn: 1,
            attempt: 0,
        };
        let outgoing = Outgoing {
            url: "http://a",
            headers: Vec::new(),
            body: &Bytes::from_static(b"{}"),
        };
        tape.request(&exchange, &outgoing);
        tape.finish(&exchange, None);
        assert_eq!((tape.write_failures(), tape.state().running.len()), (2, 0));
    }
}
