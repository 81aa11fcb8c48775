//! bubblewrap: namespaces of its own, in which nothing is but what is bound in. The filter of system calls is given to it too.

use std::{
    ffi::OsString,
    fs::File,
    io::{Seek, Write},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, OnceLock},
};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::{Network, places, syscalls};

/// Where the program is looked for.
const PROGRAMS: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
/// What git runs or obeys later, outside, is not changed from inside.
const KEPT: [&str; 3] = [".git/hooks", ".git/config", ".adjutant"];

/// The program, tried once.
///
/// # Errors
/// Why nothing can be held.
pub(super) fn probe() -> Result<PathBuf, Arc<str>> {
    static FOUND: OnceLock<Result<PathBuf, Arc<str>>> = OnceLock::new();
    let probe = || {
        let program = PROGRAMS
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.is_file());
        let program = program.ok_or_else(|| Arc::<str>::from("bubblewrap is not installed"))?;
        let plan = Bindings {
            read: &[],
            write: &[],
            keep: &[],
            root: Path::new("/"),
            network: &Network::None,
        };
        let mut command = Command::new(&program);
        command
            .args(namespaces(&plan))
            .arg("/bin/true")
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        match command.output() {
            Ok(output) if output.status.success() => Ok(program),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!(
                    "bubblewrap cannot work here: {}",
                    said.lines().next().unwrap_or_default()
                )
                .into())
            }
            Err(error) => Err(format!("bubblewrap cannot be started: {error}").into()),
        }
    };
    FOUND.get_or_init(probe).clone()
}

/// What one call may do.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    pub(super) read: &'a [PathBuf],
    pub(super) write: &'a [PathBuf],
    pub(super) keep: &'a [PathBuf],
    pub(super) root: &'a Path,
    pub(super) network: &'a Network,
}

/// The arguments before the command's own, and files that must be open until it was started.
///
/// # Errors
/// If there is no filter, or no memory for it.
pub(super) fn arguments(plan: &Bindings<'_>) -> Result<(Vec<OsString>, Vec<File>), String> {
    let mut arguments = namespaces(plan);
    let mut files = Vec::new();
    for filter in syscalls::filters(plan.network)? {
        let file = filter_file(filter)
            .map_err(|error| format!("no room for the filter of system calls: {error}"))?;
        arguments.extend([
            "--add-seccomp-fd".into(),
            file.as_raw_fd().to_string().into(),
        ]);
        files.push(file);
    }
    Ok((arguments, files))
}

fn namespaces(plan: &Bindings<'_>) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut add =
        |parts: &[&std::ffi::OsStr]| words.extend(parts.iter().map(|part| (*part).to_owned()));
    add(&[
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    .map(AsRef::as_ref));
    if *plan.network == Network::All {
        add(&["--share-net".as_ref()]);
    }
    add(&["--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc"].map(AsRef::as_ref));
    // A link such as /lib is bound as what it leads to: there the programs look for it.
    let system = places::SYSTEM
        .iter()
        .chain(places::SETTINGS)
        .map(PathBuf::from)
        .chain(places::tools());
    for path in system.chain(plan.read.iter().cloned()) {
        add(&["--ro-bind-try".as_ref(), path.as_os_str(), path.as_os_str()]);
    }
    // Files of the kernel belong to root, and root without any capability may still write its own.
    add(&["--remount-ro".as_ref(), "/proc".as_ref()]);
    for path in plan.write {
        add(&["--bind-try".as_ref(), path.as_os_str(), path.as_os_str()]);
    }
    // A place that something is bound to cannot be renamed, and so nothing can stand in for it.
    let repository = plan.root.join(".git");
    if plan.write.iter().any(|path| path == plan.root) && repository.exists() {
        add(&[
            "--bind-try".as_ref(),
            repository.as_os_str(),
            repository.as_os_str(),
        ]);
    }
    for kept in KEPT
        .map(|kept| plan.root.join(kept))
        .iter()
        .chain(plan.keep)
    {
        let is_below = plan
            .write
            .iter()
            .any(|path| path != kept && kept.starts_with(path));
        if is_below && !plan.write.contains(kept) && kept.exists() {
            add(&["--ro-bind-try".as_ref(), kept.as_os_str(), kept.as_os_str()]);
        }
    }
    words
}

/// The filter in a sealed file without a name: other commands inherit it too while it is open, and nobody can change it.
fn filter_file(filter: &seccompiler::BpfProgram) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("filter", MemfdFlags::ALLOW_SEALING)?);
    let bytes = filter.iter().flat_map(|step| {
        let [a, b] = step.code.to_ne_bytes();
        let [c, d, e, f] = step.k.to_ne_bytes();
        [a, b, step.jt, step.jf, c, d, e, f]
    });
    file.write_all(&bytes.collect::<Vec<u8>>())?;
    file.rewind()?;
    fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )?;
    Ok(file)
}
