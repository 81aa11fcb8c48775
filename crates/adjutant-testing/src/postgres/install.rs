//! The binaries of PostgreSQL, who runs them, and a cluster that is made once and copied for every server.

use std::{
    env, fs,
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use super::Unavailable;

/// The settings that make a server small and quick; `fsync` is of no use to a cluster that ends with its test.
pub(super) const SETTINGS: [&str; 8] = [
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=32MB",
    "max_connections=120",
    "max_wal_size=256MB",
    "log_min_messages=warning",
    "log_checkpoints=off",
    "lc_messages=C",
];

/// The folder where distributions put the binaries that are not on the path.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The user that runs the server in place of root, which it refuses.
const USER: &str = "postgres";

/// The binaries, and who runs them.
#[derive(Debug, Clone)]
pub(super) struct Install {
    bin: PathBuf,
    run_as: Vec<&'static str>,
    base: PathBuf,
}

impl Install {
    pub(super) fn find() -> Result<Self, Unavailable> {
        let missing =
            "neither the path, nor pg_config, nor /usr/lib/postgresql has initdb and postgres";
        let bin = bin().ok_or_else(|| Unavailable::new(missing))?;
        let user = read_output(Command::new("id").arg("-u"))
            .ok_or_else(|| Unavailable::new("this user has no number"))?;
        let run_as = if user == "0" { run_as()? } else { Vec::new() };
        let base = env::temp_dir().join(format!("adjutant-postgres-{user}"));
        let install = Self { bin, run_as, base };
        install.done(
            install
                .command("mkdir")
                .args(["-p", "-m", "755"])
                .arg(&install.base),
        )?;
        Ok(install)
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// A program that is run by the server's user, apart from signals to this process and its group.
    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut words = self.run_as.iter().map(Path::new).chain([program.as_ref()]);
        let mut command = Command::new(words.next().unwrap_or(Path::new("sh")));
        command.args(words).current_dir("/").process_group(0);
        command
    }

    /// The name of a directory that is not there.
    pub(super) fn new_dir(&self) -> Result<PathBuf, Unavailable> {
        static DIRS: AtomicU32 = AtomicU32::new(1);
        let number = DIRS.fetch_add(1, Ordering::Relaxed);
        let dir = self.base.join(format!("{}-{number}", process::id()));
        // A process that had the same number once may have left one behind.
        self.done(self.command("rm").arg("-rf").arg(&dir))?;
        Ok(dir)
    }

    /// The cluster that the others are copies of; the first process that needs it makes it.
    pub(super) fn template(&self) -> Result<PathBuf, Unavailable> {
        let version = read_output(Command::new(self.program("postgres")).arg("--version"));
        let version =
            version.ok_or_else(|| Unavailable::new("the server does not tell its version"))?;
        let name: String = version
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let template = self.base.join(&name);
        let lock = env::temp_dir().join(format!(
            "{}.lock",
            self.base.file_name().unwrap_or_default().to_string_lossy()
        ));
        let lock = File::options().create(true).append(true).open(&lock);
        let lock =
            lock.map_err(|error| Unavailable::new(format!("the lock of its template: {error}")))?;
        lock.lock()
            .map_err(|error| Unavailable::new(format!("the lock of its template: {error}")))?;
        if !fs::exists(&template).unwrap_or(false) {
            self.make(&self.base.join(format!("{name}-new")), &template)?;
        }
        Ok(template)
    }

    fn make(&self, new: &Path, template: &Path) -> Result<(), Unavailable> {
        self.done(self.command("rm").arg("-rf").arg(new))?;
        let mut initdb = self.command(self.program("initdb"));
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        self.done(initdb.args(["--wal-segsize=1", "-D"]).arg(new))?;
        self.done(self.command("mv").arg(new).arg(template))
    }

    fn done(&self, command: &mut Command) -> Result<(), Unavailable> {
        let program = Path::new(command.get_program()).display().to_string();
        let failed =
            |why: &dyn std::fmt::Display| Unavailable::new(format!("{program} failed: {why}"));
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| failed(&error))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed(&String::from_utf8_lossy(&output.stderr).trim()))
    }
}

/// The directory of the binaries.
fn bin() -> Option<PathBuf> {
    let has_both = |dir: &PathBuf| dir.join("initdb").is_file() && dir.join("postgres").is_file();
    let path = env::var_os("PATH").unwrap_or_default();
    let told = read_output(Command::new("pg_config").arg("--bindir")).map(PathBuf::from);
    env::split_paths(&path)
        .chain(told)
        .chain(versions())
        .find(has_both)
}

/// The installed versions, the newest one first.
fn versions() -> Vec<PathBuf> {
    let dirs = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let number = |dir: &fs::DirEntry| dir.file_name().to_string_lossy().parse::<u32>().ok();
    let mut versions: Vec<(u32, PathBuf)> = dirs
        .filter_map(|dir| Some((number(&dir)?, dir.path().join("bin"))))
        .collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    versions.into_iter().map(|(_, dir)| dir).collect()
}

/// Finds the command with which root runs a program as the user that may run the server.
fn run_as() -> Result<Vec<&'static str>, Unavailable> {
    if read_output(Command::new("id").args(["-u", USER])).is_none() {
        return Err(Unavailable::new(
            "root may not run it, and there is no user called postgres",
        ));
    }
    let setpriv = vec![
        "setpriv",
        "--reuid=postgres",
        "--regid=postgres",
        "--init-groups",
        "--",
    ];
    let runuser = vec!["runuser", "-u", USER, "--"];
    let works = |words: &Vec<&str>| {
        let (program, args) = words.split_first().unwrap_or((&"false", &[]));
        read_output(Command::new(program).args(args).arg("id").arg("-u")).is_some()
    };
    let none = || Unavailable::new("root may not run it, and neither setpriv nor runuser is there");
    [setpriv, runuser].into_iter().find(works).ok_or_else(none)
}

/// Runs a program, and returns its output if it succeeds.
fn read_output(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
