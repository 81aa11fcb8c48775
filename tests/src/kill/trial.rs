//! One trial: the process is started and killed until it comes to its end.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use adjutant_testing::Loopback;

use super::{ANSWER, Course, Place, Rng, inspect::inspect, team};

/// How long the process lives at most before it is killed; a whole run takes longer than that.
const LIFE_MS: u64 = 260;
/// The same with a server, where it first has to connect and to wait for the lease of the process before it.
const LIFE_WITH_SERVER_MS: u64 = 450;
/// How often a process is killed at most: after that it is left alone, and must come to its end.
const MAX_KILLS: u32 = 60;

/// What is needed for trials.
#[derive(Debug)]
pub struct Trial {
    /// The program that is killed: it takes a place, a session, an address and a directory.
    pub program: PathBuf,
    /// Where the log is kept.
    pub place: Place,
    /// The session.
    pub session: String,
    /// A directory of its own.
    pub files: PathBuf,
    /// Who is killed.
    pub who: Victim,
}

/// Who is killed in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// One agent that goes thirty steps.
    Alone,
    /// A lead with members and background tasks.
    Lead,
}

/// What came of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often the process was killed.
    pub kills: u32,
    /// How many calls ended with an outcome that nobody knows.
    pub unknown: usize,
    /// How many requests the provider had.
    pub requests: usize,
}

impl Victim {
    /// The word that begins such a process.
    pub fn word(self) -> &'static str {
        match self {
            Victim::Alone => "victim",
            Victim::Lead => "lead",
        }
    }
}

impl Trial {
    /// Runs the trial.
    ///
    /// # Errors
    /// The first promise that was broken, in words.
    pub async fn run(&self, rng: &mut Rng) -> Result<Seen, String> {
        let server = Loopback::setup(Course::default())
            .delay(Duration::from_millis(1))
            .forget_requests()
            .start_blocking();
        let server = server.map_err(|error| format!("the provider does not start: {error}"))?;
        let most = if matches!(self.place, Place::Postgres(_)) {
            LIFE_WITH_SERVER_MS
        } else {
            LIFE_MS
        };
        let mut kills = 0;
        loop {
            let life = if kills < MAX_KILLS {
                Some(Duration::from_millis(1 + rng.below(most)))
            } else {
                None
            };
            if self.live(&server.anthropic_base_url(), life)? {
                break;
            }
            kills += 1;
        }
        let journal = self
            .place
            .open()
            .await
            .map_err(|error| format!("the journal does not open: {error}"))?;
        let unknown = match self.who {
            Victim::Alone => inspect(&journal, &self.session, &self.files).await?,
            Victim::Lead => team::inspect(&journal, &self.session, &self.files).await?,
        };
        Ok(Seen {
            kills,
            unknown,
            requests: server.request_count(),
        })
    }

    /// Starts the process and kills it after a while; whether it came to its end before.
    fn live(&self, address: &str, life: Option<Duration>) -> Result<bool, String> {
        let told = |error: std::io::Error| format!("the process cannot be used: {error}");
        let mut process = Command::new(&self.program)
            .args([
                self.who.word(),
                &self.place.to_string(),
                &self.session,
                address,
            ])
            .arg(&self.files)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(told)?;
        let killed = match life {
            Some(life) => {
                std::thread::sleep(life);
                let ended = process.try_wait().map_err(told)?;
                if ended.is_none() {
                    process.kill().map_err(told)?;
                }
                ended.is_none()
            }
            None => false,
        };
        let (mut said, mut complained) = (String::new(), String::new());
        process
            .stdout
            .take()
            .map(|mut it| it.read_to_string(&mut said))
            .transpose()
            .map_err(told)?;
        process
            .stderr
            .take()
            .map(|mut it| it.read_to_string(&mut complained))
            .transpose()
            .map_err(told)?;
        let status = process.wait().map_err(told)?;
        if status.success() {
            return if said.trim() == ANSWER {
                Ok(true)
            } else {
                Err(format!("the process said {said:?}"))
            };
        }
        if killed {
            Ok(false)
        } else {
            Err(format!("the process failed by itself: {complained}"))
        }
    }

    /// Where a trial may put its files.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub fn directory(root: &Path, number: u32) -> std::io::Result<PathBuf> {
        let directory = root.join(format!("trial-{number}"));
        std::fs::create_dir_all(&directory)?;
        Ok(directory)
    }
}
