//! bubblewrap: new namespaces, which contain only the bound files. The filter of system calls is given to it too.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, File},
    io::{self, PipeWriter, Seek, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, OnceLock},
};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd},
};

use super::{
    Network,
    guard::Watch,
    places,
    secrets::{self, Opened},
    syscalls::{self, Sockets},
};

/// The paths of the program.
const PROGRAMS: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
/// The lowest number of a file descriptor that bubblewrap inherits.
const MIN_NUMBER: i32 = 10;
/// The largest file of settings that is copied into the sandbox, in bytes; larger ones are mounted.
const LARGEST: u64 = 64 << 10;

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
            network: &Network::None,
            has_network: false,
            watch: None,
            shared: None,
            root: Path::new("/"),
            home: None,
        };
        let mut files = Vec::new();
        let mut command = Command::new(&program);
        command
            .args(namespaces(&plan, &mut files)?)
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

/// The permissions of one call.
#[derive(Debug)]
pub(super) struct Bindings<'a> {
    pub(super) read: &'a [PathBuf],
    pub(super) write: &'a [PathBuf],
    pub(super) keep: &'a [PathBuf],
    pub(super) network: &'a Network,
    /// True if the command joins the network of its session.
    pub(super) has_network: bool,
    /// The protected names below the root, if it can be written.
    pub(super) watch: Option<&'a Watch>,
    /// The directory whose `tmp` and `shm` are `/tmp` and `/dev/shm`; without it these are empty.
    pub(super) shared: Option<&'a Path>,
    /// The directory that the command works with.
    pub(super) root: &'a Path,
    /// The home of the command, with copies of the user's settings.
    pub(super) home: Option<&'a Path>,
}

/// The arguments before the command's own. bubblewrap reads most of them from a pipe, and so starts nothing before they are
/// written there.
#[derive(Debug)]
pub(super) struct Arguments {
    pipe: PipeWriter,
    bytes: Vec<u8>,
    source: OwnedFd,
    /// Files that must be open until bubblewrap was started.
    _files: Vec<OwnedFd>,
}

impl Arguments {
    /// # Errors
    /// If there is no filter, or no memory for it.
    pub(super) fn new(plan: &Bindings<'_>) -> Result<Self, String> {
        let mut files = Vec::new();
        let mut words = namespaces(plan, &mut files)?;
        let sockets = match plan.network {
            Network::All => Sockets::Internet,
            Network::None | Network::Hosts(_) => Sockets::Own,
        };
        for filter in syscalls::filters(sockets, true)? {
            let file = filter_file(filter)
                .map_err(|error| format!("no room for the filter of system calls: {error}"))?;
            words.extend([
                "--add-seccomp-fd".into(),
                file.as_raw_fd().to_string().into(),
            ]);
            files.push(file);
        }
        let mut bytes = Vec::new();
        for word in words {
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(0);
        }
        let pipe = |error: io::Error| format!("no pipe for bubblewrap: {error}");
        let (source, writer) = io::pipe().map_err(pipe)?;
        let source = share(&source).map_err(pipe)?;
        Ok(Self {
            pipe: writer,
            bytes,
            source,
            _files: files,
        })
    }

    /// Returns the words of the command line that name the rest.
    pub(super) fn words(&self) -> [String; 2] {
        ["--args".to_owned(), self.source.as_raw_fd().to_string()]
    }

    /// Closes what only bubblewrap uses.
    pub(super) fn into_waiting(self) -> WaitingArguments {
        WaitingArguments {
            pipe: self.pipe,
            bytes: self.bytes,
        }
    }
}

/// The arguments of a bubblewrap that has been started and waits for them.
#[derive(Debug)]
pub(super) struct WaitingArguments {
    pipe: PipeWriter,
    bytes: Vec<u8>,
}

impl WaitingArguments {
    /// Lets bubblewrap start the command.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn hand_over(mut self) -> io::Result<()> {
        match self.pipe.write_all(&self.bytes) {
            // It has exited, and its output says why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }
}

/// Returns the words for the namespaces, and adds the files that they name by number.
fn namespaces(plan: &Bindings<'_>, files: &mut Vec<OwnedFd>) -> Result<Vec<OsString>, String> {
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
    if *plan.network == Network::All || plan.has_network {
        add(&["--share-net".as_ref()]);
    }
    add(&["--dev", "/dev", "--proc", "/proc"].map(AsRef::as_ref));
    let tools = places::tools();
    let bound = tools.iter().chain(plan.read).chain(plan.write);
    match plan.shared {
        None => add(&["--tmpfs", "/tmp"].map(AsRef::as_ref)),
        Some(shared) => {
            for (name, place) in [("tmp", "/tmp"), ("shm", "/dev/shm")] {
                let source = shared.join(name);
                add(&["--bind".as_ref(), source.as_os_str(), place.as_ref()]);
            }
            for place in mount_points(&shared.join("tmp"), bound.clone())? {
                add(&["--tmpfs".as_ref(), place.as_os_str()]);
            }
        }
    }
    // Each mount costs more than a link or a copy.
    for path in places::SYSTEM {
        match fs::read_link(path) {
            Ok(target) if is_system(&target) => {
                add(&["--symlink".as_ref(), target.as_os_str(), path.as_ref()]);
            }
            _ => add(&["--ro-bind-try", path, path].map(AsRef::as_ref)),
        }
    }
    add(&["--tmpfs", "/etc"].map(AsRef::as_ref));
    for path in places::settings() {
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let found = file.metadata();
        if found.is_ok_and(|found| found.is_file() && found.len() <= LARGEST)
            && let Ok(file) = share(&file)
        {
            let number = file.as_raw_fd().to_string();
            add(&["--perms", "0444", "--file", &number].map(AsRef::as_ref));
            add(&[path.as_os_str()]);
            files.push(file);
        } else {
            add(&["--ro-bind-try".as_ref(), path.as_os_str(), path.as_os_str()]);
        }
    }
    for path in tools.iter().chain(plan.read) {
        add(&["--ro-bind-try".as_ref(), path.as_os_str(), path.as_os_str()]);
    }
    // Files of the kernel belong to root, and root without any capability may still write its own.
    add(&["--remount-ro".as_ref(), "/proc".as_ref()]);
    for path in plan.write {
        add(&["--bind-try".as_ref(), path.as_os_str(), path.as_os_str()]);
    }
    // Open paths inside a hidden directory are bound before the protected files, which may be in it. They may be hidden too.
    let opened = Opened::new(bound, secrets::hidden(plan.root));
    let (outer, masks): (Vec<_>, Vec<_>) = opened
        .masks()
        .into_iter()
        .partition(|(_, open)| !open.is_empty());
    for (place, open) in outer {
        add(&["--tmpfs".as_ref(), place.as_os_str()]);
        for path in open {
            let is_writable = plan.write.iter().any(|write| write == path);
            let bind = if is_writable {
                "--bind-try"
            } else {
                "--ro-bind-try"
            };
            add(&[bind.as_ref(), path.as_os_str(), path.as_os_str()]);
        }
        add(&["--remount-ro".as_ref(), place.as_os_str()]);
    }
    if let Some(watch) = plan.watch {
        // A place that something is bound to cannot be renamed, and so nothing can stand in for it.
        for (place, source, is_open) in watch.binds() {
            let bind = if *is_open { "--bind" } else { "--ro-bind-try" };
            add(&[bind.as_ref(), source.as_os_str(), place.as_os_str()]);
        }
        for kept in &watch.kept {
            add(&["--ro-bind-try".as_ref(), kept.as_os_str(), kept.as_os_str()]);
        }
    }
    for (place, _) in masks {
        if place.is_dir() {
            add(&["--tmpfs".as_ref(), place.as_os_str()]);
            add(&["--remount-ro".as_ref(), place.as_os_str()]);
        } else {
            // A bound device cannot be opened.
            add(&[
                "--ro-bind".as_ref(),
                "/dev/null".as_ref(),
                place.as_os_str(),
            ]);
        }
    }
    for (copy, file) in plan.home.into_iter().flat_map(secrets::cargo_copies) {
        add(&["--ro-bind".as_ref(), copy.as_os_str(), file.as_os_str()]);
    }
    for kept in plan.keep {
        let is_below = plan
            .write
            .iter()
            .any(|path| path != kept && kept.starts_with(path));
        if is_below && !plan.write.contains(kept) && kept.exists() {
            add(&["--ro-bind-try".as_ref(), kept.as_os_str(), kept.as_os_str()]);
        }
    }
    let is_replaced = |path: &PathBuf| Path::new("/etc").starts_with(path);
    if !plan.read.iter().chain(plan.write).any(is_replaced) {
        add(&["--remount-ro", "/etc"].map(AsRef::as_ref));
    }
    Ok(words)
}

/// Returns true for the target of a link in `/` that leads to another directory of programs.
fn is_system(target: &Path) -> bool {
    let mut parts = target.components();
    target.starts_with("usr")
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && Path::new("/").join(target).is_dir()
}

/// Creates the entries of the shared `/tmp` below which something is bound, and returns the entries to hide under an empty directory.
///
/// Each of them has something mounted on it in every command of the session, so that no command can put a link in its place.
///
/// # Errors
/// If one of them is something else than it was created as.
fn mount_points<'a>(
    tmp: &Path,
    bound: impl Iterator<Item = &'a PathBuf> + Clone,
) -> Result<BTreeSet<PathBuf>, String> {
    let mut hidden = BTreeSet::new();
    for path in bound.clone() {
        let Some(first) = path
            .strip_prefix("/tmp")
            .ok()
            .and_then(|below| below.components().next())
        else {
            continue;
        };
        let (place, entry) = (Path::new("/tmp").join(first), tmp.join(first));
        let is_bound = bound.clone().any(|path| *path == place);
        if is_bound && place.is_file() {
            continue;
        }
        match fs::create_dir(&entry) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(format!("cannot create {}: {error}", entry.display()));
            }
            _ => {}
        }
        if !entry.symlink_metadata().is_ok_and(|entry| entry.is_dir()) {
            return Err(format!("{} is not a directory", entry.display()));
        }
        if !is_bound {
            hidden.insert(place);
        }
    }
    Ok(hidden)
}

/// The filter, in a sealed anonymous file: other commands inherit it while it is open, and none can change it.
fn filter_file(filter: &seccompiler::BpfProgram) -> io::Result<OwnedFd> {
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
    share(&file)
}

/// Returns a descriptor that the next program inherits. A shell uses low numbers, and must not close it.
fn share(file: impl AsFd) -> io::Result<OwnedFd> {
    let file = fcntl_dupfd_cloexec(file, MIN_NUMBER)?;
    fcntl_setfd(&file, FdFlags::empty())?;
    Ok(file)
}
