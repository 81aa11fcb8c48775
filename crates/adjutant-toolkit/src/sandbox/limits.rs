//! The limits of one call of a command, and the message when one is reached.

use std::{fmt, time::Duration};

/// The maximum number of threads of a call.
pub(super) const THREADS: u64 = 8_192;
const GIB: u64 = 1 << 30;
/// The units of sizes, the largest first.
const SIZES: [(&str, u64); 4] = [("T", 1 << 40), ("G", GIB), ("M", 1 << 20), ("K", 1 << 10)];
const TIMES: [(&str, u64); 3] = [("h", 3_600), ("m", 60), ("s", 1)];

/// The limits of one call of a command. A call that reaches one is killed with all its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandLimits {
    /// The memory of all its processes, in bytes. Half of the machine's memory by default, at least 4 GiB where that exists.
    pub memory: Option<u64>,
    /// The bytes of the files that it writes and leaves on disk or in memory file systems; 20 GiB by default.
    pub disk: Option<u64>,
    /// The size of each file that it writes, in bytes; 10 GiB by default. The process that exceeds it receives an error
    /// or a signal.
    pub file: Option<u64>,
    /// The CPU time of all its processes; unlimited by default.
    pub cpu: Option<Duration>,
    /// The number of its processes; 512 by default.
    pub processes: usize,
}

/// A kind of limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Memory,
    Disk,
    File,
    Cpu,
    Processes,
}

/// A limit that a call has reached. Its `Display` names the limit, its value and the option that raises it.
#[derive(Debug, Clone, Copy)]
pub struct ReachedLimit {
    pub(super) limit: Limit,
    pub(super) limits: CommandLimits,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self {
            memory: machine_memory().map(|all| all.min((all / 2).max(4 * GIB))),
            disk: Some(20 * GIB),
            file: Some(10 * GIB),
            cpu: None,
            processes: 512,
        }
    }
}

impl CommandLimits {
    /// Sets a limit from text: `memory=4G`, `disk=50G`, `file=20G`, `cpu=10m` or `processes=1000`. `none` removes a limit,
    /// except of processes.
    ///
    /// # Errors
    /// The reason, if there is no such limit or value.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let (name, value) = (name.trim(), value.trim());
        let wrong = |example: &str| {
            format!("{value:?} is not a value of the limit `{name}`; hint: use {example}")
        };
        let number = |units: &[(&str, u64)], example: &str| {
            if value == "none" {
                return Ok(None);
            }
            let unit = units.iter().find(|(unit, _)| value.ends_with(unit));
            let (unit, factor) = unit.copied().unwrap_or(("", 1));
            let digits = value.strip_suffix(unit).unwrap_or(value);
            let number = digits
                .parse()
                .ok()
                .and_then(|number: u64| number.checked_mul(factor));
            number
                .filter(|number| *number > 0)
                .map(Some)
                .ok_or_else(|| wrong(example))
        };
        match name {
            "memory" => self.memory = number(&SIZES, "8G or none")?,
            "disk" => self.disk = number(&SIZES, "50G or none")?,
            "file" => self.file = number(&SIZES, "20G or none")?,
            "cpu" => self.cpu = number(&TIMES, "600s, 10m, 2h or none")?.map(Duration::from_secs),
            "processes" => {
                let most = number(&[], "1000")?.ok_or_else(|| wrong("1000"))?;
                self.processes = usize::try_from(most).unwrap_or(usize::MAX);
            }
            _ => {
                return Err(format!(
                    "there is no limit {name:?}; hint: there are memory, disk, file, cpu and processes"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = &self.limits;
        let bytes = |limit: Option<u64>| shorten(limit.unwrap_or_default(), &SIZES);
        let double =
            |limit: Option<u64>| shorten(limit.unwrap_or_default().saturating_mul(2), &SIZES);
        let (what, name, more) = match self.limit {
            Limit::Memory => (
                format!("it used more than {}iB of memory", bytes(limits.memory)),
                "memory",
                double(limits.memory),
            ),
            Limit::Disk => (
                format!("it wrote more than {}iB of files", bytes(limits.disk)),
                "disk",
                double(limits.disk),
            ),
            Limit::File => (
                format!("one of its files reached {}iB", bytes(limits.file)),
                "file",
                double(limits.file),
            ),
            Limit::Cpu => {
                let seconds = limits.cpu.unwrap_or_default().as_secs();
                let more = shorten(seconds.saturating_mul(2), &TIMES);
                (
                    format!("it used more than {seconds} s of CPU time"),
                    "cpu",
                    more,
                )
            }
            Limit::Processes => (
                format!(
                    "it had more than {} processes or {THREADS} threads",
                    limits.processes
                ),
                "processes",
                limits.processes.saturating_mul(2).to_string(),
            ),
        };
        write!(
            f,
            "{what}; hint: use less, or ask the user to raise the limit with `--limit {name}={more}` or with \
             `limits: {{{name}: {more}}}` of `sandbox` in settings.yaml"
        )
    }
}

/// Writes a number with the largest unit that divides it.
fn shorten(number: u64, units: &[(&str, u64)]) -> String {
    match units
        .iter()
        .find(|(_, factor)| number > 0 && number.is_multiple_of(*factor))
    {
        Some((unit, factor)) => format!("{}{unit}", number / factor),
        None => number.to_string(),
    }
}

/// Returns the memory of the machine in bytes. Source: proc_meminfo(5).
fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_or_refused_with_the_name() {
        let mut limits = CommandLimits::default();
        for text in [
            "memory=512M",
            "disk=none",
            "file = 3G",
            "cpu=2m",
            "processes=7",
        ] {
            assert_eq!(limits.set(text), Ok(()), "{text}");
        }
        let expect = CommandLimits {
            memory: Some(512 << 20),
            disk: None,
            file: Some(3 * GIB),
            cpu: Some(Duration::from_secs(120)),
            processes: 7,
        };
        assert_eq!(limits, expect);
        for text in [
            "memory",
            "memory=",
            "memory=0",
            "memory=-1",
            "memory=4X",
            "cpu=99999999999999999h",
            "processes=none",
            "swap=1G",
        ] {
            let why = CommandLimits::default().set(text).expect_err(text);
            assert!(why.contains("hint: "), "{text}: {why}");
        }
    }

    #[test]
    fn message_names_limit_value_and_option() {
        let limits = CommandLimits {
            memory: Some(4 * GIB),
            cpu: Some(Duration::from_secs(60)),
            ..CommandLimits::default()
        };
        let text = |limit| ReachedLimit { limit, limits }.to_string();
        assert_eq!(
            text(Limit::Memory),
            "it used more than 4GiB of memory; hint: use less, or ask the user to raise the limit with `--limit memory=8G` or with \
             `limits: {memory: 8G}` of `sandbox` in settings.yaml"
        );
        assert!(text(Limit::Cpu).starts_with("it used more than 60 s of CPU time; hint: "));
        assert!(text(Limit::Cpu).contains("--limit cpu=2m"));
    }
}
