//! Which processes of a folder of agents there are: by their command, by the variables that mark them, by their groups.

use std::{collections::BTreeSet, fs, path::Path};

/// The variable that marks the processes of an agent.
const MARK: &[u8] = b"ADJUTANT_AGENT=";

/// The processes of these agents, as far as the system shows them: those whose command names the folder, whose environment
/// names an agent, or that belong to the group of a host.
///
/// Zombies are none: they have ended, and wait for whoever counts them.
pub(super) fn processes(
    home: &Path,
    ids: &BTreeSet<String>,
    groups: &BTreeSet<u32>,
) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let Ok(all) = fs::read_dir("/proc") else {
        return found;
    };
    let home = home.to_string_lossy().into_owned();
    for pid in all
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    {
        let folder = Path::new("/proc").join(pid.to_string());
        let Some((state, group)) = state(&folder) else {
            continue;
        };
        if state == 'Z' || state == 'X' {
            continue;
        }
        let command = fs::read(folder.join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let is_host = command.contains("agent-host") && command.contains(&home);
        if is_host || groups.contains(&group) || is_marked(&folder, ids) {
            found.push((pid, command));
        }
    }
    found
}

/// The state of a process and its group.
///
/// Source: proc_pid_stat(5): after the command in parentheses come the state, the parent and the group.
fn state(folder: &Path) -> Option<(char, u32)> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

fn is_marked(folder: &Path, ids: &BTreeSet<String>) -> bool {
    // Those of others cannot be read.
    let environment = fs::read(folder.join("environ")).unwrap_or_default();
    let mut values = environment
        .split(|byte| *byte == 0)
        .filter_map(|it| it.strip_prefix(MARK));
    values.any(|id| std::str::from_utf8(id).is_ok_and(|id| ids.contains(id)))
}

/// The resident memory of a process in KiB: all of it, and its share of what it has in common with others.
pub(super) fn memory(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let field = |name: &str| {
        text.lines().find_map(|line| {
            line.strip_prefix(name)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
    };
    Some((field("Rss:")?, field("Pss:")?))
}
