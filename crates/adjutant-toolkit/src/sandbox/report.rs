//! The guarantees of a sandbox on this machine, for people.

use std::{collections::BTreeSet, fmt, path::Path};

use super::{By, Network, ReachedLimit, Sandbox, limits::Limit};
use crate::obeyed::is_obeyed;

/// The guarantees of a sandbox on this machine, and the missing ones; its `Display` is for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The name of what holds commands: `landlock`, `bwrap`, `none`, or `refused` where nothing runs.
    pub by: &'static str,
    /// The enforced limits.
    pub enforced: Vec<&'static str>,
    /// The limits that are not enforced, with remedies.
    pub missing: Vec<String>,
}

/// The first interfaces of Landlock that know TCP, devices, and signals.
const TCP: u8 = 4;
const DEVICES: u8 = 5;
const SIGNALS: u8 = 6;

impl Report {
    pub(super) fn from_sandbox(sandbox: &Sandbox) -> Self {
        let mut missing = Vec::new();
        let network = match &sandbox.network {
            Network::None if matches!(sandbox.by, By::Bwrap { .. }) => {
                "no network but its own loopback"
            }
            Network::None => "no network",
            Network::All => "of sockets those of the internet alone",
            Network::Hosts(_) => "no network but the hosts of its list",
        };
        let both = [
            "files",
            network,
            "no sockets of the machine",
            "no new privileges",
            "no way into other processes",
            "no credentials of the user",
        ];
        #[cfg_attr(
            not(target_os = "linux"),
            allow(unused_mut, reason = "more is held on Linux alone")
        )]
        let (by, mut enforced) = match &sandbox.by {
            _ if sandbox.refuses().is_some() => {
                missing.push(format!(
                    "no command runs: {}; {}",
                    sandbox.refuses().unwrap_or_default(),
                    sandbox.cure()
                ));
                ("refused", Vec::new())
            }
            By::Landlock { abi } => {
                let mut enforced = both.to_vec();
                let mut since = |first: u8, what: &'static str, otherwise: &str| {
                    if *abi >= first {
                        enforced.push(what);
                    } else {
                        missing.push(format!(
                            "{otherwise}: this kernel's Landlock has version {abi}, not {first}"
                        ));
                    }
                };
                since(TCP, "TCP by two locks", "TCP by two locks");
                since(DEVICES, "requests to devices", "requests to devices");
                since(
                    SIGNALS,
                    "no signals outside",
                    "signals to processes outside",
                );
                missing.push("mode and times of files outside that this user owns can be changed, their content not; bwrap holds it".into());
                missing.push(
                    "whether a file outside is there, its size, where a link leads, and when it is used can be seen where its path is known; bwrap holds it".into(),
                );
                missing.push(
                    "files that other programs obey, as those of git, can be changed while a command runs, and are restored when it has ended; bwrap keeps them".into(),
                );
                missing.push("no loopback network, no Unix sockets, no `/tmp` and no `/dev/shm` for servers and process pools; bwrap has them".into());
                missing.push("a process that left its group survives if this program is killed; bwrap ends it".into());
                ("landlock", enforced)
            }
            By::Bwrap { .. } => {
                let more = [
                    "no signals outside",
                    "no files outside, not even their names",
                    "no change of files that other programs obey",
                    "a process tree of its own",
                ];
                #[cfg(target_os = "linux")]
                if sandbox.network == Network::None && super::holder::program().is_none() {
                    missing.push(
                        "a loopback network that commands share: install `nsenter` (util-linux)"
                            .into(),
                    );
                }
                ("bwrap", [&both[..], &more[..]].concat())
            }
            By::Danger => {
                missing.push("everything: commands have all rights of this process".into());
                ("none", Vec::new())
            }
            By::Refusing { .. } => ("refused", Vec::new()),
        };
        #[cfg(target_os = "linux")]
        {
            if sandbox.refuses().is_none() {
                match super::end::is_marked() {
                    true => enforced.extend(["every process of a call ends with it", "limits of memory, disk, CPU time and processes of a call"]),
                    false => missing.push(
                        "limits of memory, disk, CPU time and processes of a call, and the end of one that leaves its group: /proc shows no limits"
                            .into(),
                    ),
                }
            }
        }
        Self {
            by,
            enforced,
            missing,
        }
    }
}

/// Messages of programs about a refused system call.
const REFUSALS: [&str; 4] = [
    "Operation not permitted",
    "Permission denied",
    "EACCES",
    "EPERM",
];

/// Messages of programs about a file that has reached its limit.
const LARGE: [&str; 2] = ["File too large", "File size limit exceeded"];
/// Messages of programs about a file on a read-only mount.
const KEPT: [&str; 2] = ["Read-only file system", "Device or resource busy"];
/// Messages of programs about a file that is not in the sandbox.
#[cfg(target_os = "linux")]
const CLOSED: [&str; 2] = ["Permission denied", "No such file or directory"];
/// Directories that are different ones in a sandbox.
#[cfg(target_os = "linux")]
const OWN: [&str; 4] = ["/dev", "/proc", "/sys", "/etc"];
/// The directory of temporary files, of which a session has its own.
#[cfg(target_os = "linux")]
const TMP: &str = "/tmp";
/// Messages of programs about a missing network.
const OFFLINE: [&str; 5] = [
    "Could not resolve",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "EAI_AGAIN",
];
/// The largest number of paths in a note.
const NAMED: usize = 10;

/// True for a sign that ends a path in a message.
fn is_end(sign: char) -> bool {
    sign.is_whitespace() || "'\"`‘’“”:;,()".contains(sign)
}

/// Returns the protected paths that a program could not change, by its messages.
fn protected_in(output: &str) -> BTreeSet<&str> {
    let lines = output
        .lines()
        .filter(|line| KEPT.iter().any(|kept| line.contains(kept)));
    lines
        .flat_map(|line| line.split(is_end))
        .map(|word| word.strip_prefix("./").unwrap_or(word))
        .filter(|word| is_obeyed(Path::new(word)))
        .take(NAMED)
        .collect()
}

/// Returns a note about a path outside that a program could not open or change, by its messages.
#[cfg(target_os = "linux")]
fn closed_in(sandbox: &Sandbox, output: &str, root: &Path) -> Option<String> {
    use super::{places, secrets};
    let has = |line: &str, messages: &[&str]| messages.iter().any(|text| line.contains(text));
    let is_named = |word: &&str| {
        let path = Path::new(word);
        let is_own = path.starts_with(root) || OWN.iter().any(|own| path.starts_with(own));
        path.is_absolute() && !is_own
    };
    let mut hidden = None;
    for line in output.lines() {
        let option = match has(line, &KEPT) {
            true => "--allow-write",
            false if has(line, &CLOSED) => "--allow-read",
            false => continue,
        };
        for word in line.split(is_end).filter(is_named) {
            let path = Path::new(word);
            let hidden = hidden.get_or_insert_with(|| secrets::hidden(root));
            if hidden.iter().any(|hidden| path.starts_with(hidden)) {
                return Some(format!(
                    "{word:?} holds credentials of the user, so no command can open it; hint: the user can name it with --allow-read"
                ));
            }
            let opened = sandbox.read.iter().chain(&sandbox.write);
            let is_open = places::SYSTEM
                .iter()
                .map(Path::new)
                .chain(opened.map(|path| path.as_path()))
                .any(|open| path.starts_with(open));
            if path.exists() && (!is_open || option == "--allow-write") {
                return Some(format!(
                    "{word:?} is outside of the sandbox; hint: the user can allow it with {option} {word}"
                ));
            }
            // A new file in a directory that commands do not see.
            if let Some(folder) = path.parent()
                && !is_open
                && folder.is_dir()
                && folder.parent().is_some()
                && folder != Path::new(TMP)
            {
                let folder = folder.display();
                return Some(format!(
                    "{folder} is outside of the sandbox; hint: the user can allow it with --allow-write {folder}"
                ));
            }
        }
    }
    None
}

/// Returns a note for the result of a command whose output shows that something was refused: what this sandbox lacks, and what
/// helps.
pub(super) fn explain(sandbox: &Sandbox, output: &str, root: &Path) -> Option<String> {
    if !sandbox.holds() {
        return None;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = root;
    if sandbox.limits.file.is_some() && LARGE.iter().any(|large| output.contains(large)) {
        let (limit, limits) = (Limit::File, *sandbox.limits);
        return Some(ReachedLimit { limit, limits }.to_string());
    }
    let protected = protected_in(output);
    if !protected.is_empty() && matches!(sandbox.by, By::Bwrap { .. }) {
        let list: Vec<String> = protected.iter().map(|path| format!("{path:?}")).collect();
        return Some(format!(
            "other programs obey {0}, so commands cannot change it; hint: repeat the call with `writes: [{0}]`, which asks the user",
            list.join(", ")
        ));
    }
    #[cfg(target_os = "linux")]
    if let Some(note) = closed_in(sandbox, output, root) {
        return Some(note);
    }
    if sandbox.network == Network::None && OFFLINE.iter().any(|text| output.contains(text)) {
        return Some(
            "commands have no network; hint: the user can allow it with --network HOST, or --network all".to_owned(),
        );
    }
    let is_refused = || REFUSALS.iter().any(|refusal| output.contains(refusal));
    match &sandbox.by {
        By::Landlock { .. } if is_refused() => Some(
            "this sandbox is Landlock: commands have no loopback network, no Unix sockets, no /tmp and no /dev/shm, but $TMPDIR; \
             hint: install bubblewrap (`bwrap`), where they have all of these"
                .to_owned(),
        ),
        #[cfg(target_os = "linux")]
        By::Bwrap { .. }
            if output.contains("Permission denied")
                && rustix::process::geteuid().is_root() =>
        {
            Some(
                "commands have no capabilities of root, so files of other users keep their modes; \
                 hint: start adjutant as the user who owns the files"
                    .to_owned(),
            )
        }
        _ => None,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "sandbox: {}", self.by)?;
        self.enforced
            .iter()
            .try_for_each(|what| writeln!(f, "enforced: {what}"))?;
        self.missing
            .iter()
            .try_for_each(|what| writeln!(f, "not enforced: {what}"))
    }
}
