//! What the command lines of the process drills ask for.

use std::time::{SystemTime, UNIX_EPOCH};

/// What the command line asks for.
#[derive(Debug)]
pub struct Asked {
    /// The kinds of storage.
    pub kinds: Vec<&'static str>,
    /// How many trials there are of each.
    pub times: u32,
    /// How many seconds they may take, if that is limited.
    pub seconds: Option<u64>,
    /// How many tasks a board has, if that is asked for.
    pub tasks: Option<usize>,
    /// What chance begins with.
    pub seed: u64,
}

impl Asked {
    /// Reads a kind, or `all`, and the options after it.
    ///
    /// # Errors
    /// The usage, if it is not understood.
    pub fn read(
        known: &[&'static str],
        kind: &str,
        options: &[&str],
        usage: &str,
    ) -> Result<Self, String> {
        let kinds: Vec<&'static str> = known
            .iter()
            .copied()
            .filter(|it| *it == kind || kind == "all")
            .collect();
        if kinds.is_empty() {
            return Err(usage.to_owned());
        }
        let chance = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |since| u64::from(since.subsec_nanos()));
        let mut asked = Self {
            kinds,
            times: u32::MAX,
            seconds: None,
            tasks: None,
            seed: chance,
        };
        for pair in options.chunks(2) {
            let [name, value] = pair else {
                return Err(usage.to_owned());
            };
            let value: u64 = value
                .parse()
                .map_err(|_| format!("{name} takes a number\n{usage}"))?;
            match *name {
                "--times" => asked.times = u32::try_from(value).unwrap_or(u32::MAX),
                "--seconds" => asked.seconds = Some(value),
                "--tasks" => asked.tasks = usize::try_from(value).ok().filter(|tasks| *tasks > 0),
                "--seed" => asked.seed = value,
                _ => return Err(usage.to_owned()),
            }
        }
        Ok(asked)
    }
}

/// An error and what caused it, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
