//! A PostgreSQL server of a test's own, from the binaries that are installed; it ends with the process that started it.

mod install;
mod talk;

use std::{
    fmt, fs, io,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Stdio},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use self::install::Install;

/// The longest time that a server may take until it accepts connections.
const START: Duration = Duration::from_secs(60);

/// The number of times that a start is tried: another program may take the server's address in between.
const TRIES: u32 = 5;

/// Copies the cluster if it does not exist, starts the server, and stops it on request, or when there are no more
/// processes to request it: then the copy is deleted too. A starting server ignores the signal: it is sent until it
/// works.
const KEEPER: &str = r#"
trap '' INT TERM HUP
template=$1 dir=$2; shift 2
[ -d "$dir" ] || cp -a "$template" "$dir" || exit 1
"$@" </dev/null &
server=$!
exec >/dev/null 2>&1
read -r word
told=$?
while kill -QUIT "$server"; do sleep 0.05; done
wait "$server"
[ "$told" = 0 ] || rm -rf "$dir"
"#;

/// A PostgreSQL server on 127.0.0.1 and on a unix socket in its directory, which lets in everybody.
///
/// It never outlives the process that started it, except for its files if it was [stopped](PostgresServer::stop) at
/// that moment. It does not wait for the disk: its data survives a crash of the server, not of the machine.
#[derive(Debug)]
pub struct PostgresServer {
    install: Install,
    template: PathBuf,
    dir: PathBuf,
    port: u16,
    databases: AtomicU32,
    running: Mutex<Option<Keeper>>,
}

/// The reason why there is no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    why: String,
}

/// The program that runs the server; closing its input ends both.
#[derive(Debug)]
struct Keeper {
    child: Child,
    input: ChildStdin,
}

impl PostgresServer {
    /// Starts a server of one's own; returns when it accepts connections.
    ///
    /// # Errors
    /// If the server's binaries are not installed, cannot be run by this user, or do not start.
    pub fn start() -> Result<Self, Unavailable> {
        let install = Install::find()?;
        let mut failed = Unavailable::new("it was not tried");
        for _ in 0..TRIES {
            match Self::start_once(&install) {
                Ok(server) => return Ok(server),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// The server that all tests of this process share.
    ///
    /// # Errors
    /// Like [`start`](PostgresServer::start).
    pub fn shared() -> Result<&'static Self, &'static Unavailable> {
        static SHARED: OnceLock<Result<PostgresServer, Unavailable>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// The shared server, or, visibly on the error stream: `skipped: <test>: <why>`.
    pub fn for_test(test: &str) -> Option<&'static Self> {
        match Self::shared() {
            Ok(server) => Some(server),
            Err(why) => {
                why.skips(test);
                None
            }
        }
    }

    /// Returns the URL of a database of this server.
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates an unused database, and returns its URL.
    ///
    /// # Errors
    /// If the server is stopped, or refuses.
    pub fn database(&self) -> io::Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("create database {name}"))?;
        Ok(self.url(&name))
    }

    /// Runs statements in a database, whatever they give.
    ///
    /// # Errors
    /// If the server is stopped, or refuses.
    pub fn execute(&self, database: &str, sql: &str) -> io::Result<()> {
        talk::Talk::to(self.port, database)?.execute(sql)
    }

    /// Ends the server at once, as if it had crashed; its files stay. Does nothing if it is stopped.
    pub fn stop(&self) {
        if let Some(mut keeper) = self.running().take() {
            // The server ends in both cases: the keeper reads the word, or the end of its input.
            let _ = keeper.input.write_all(b"stop\n");
            let _ = keeper.child.wait();
        }
    }

    /// Stops the server, and starts it again at the same place; returns when it accepts connections.
    ///
    /// # Errors
    /// If it does not start.
    pub fn restart(&self) -> Result<(), Unavailable> {
        self.stop();
        *self.running() = Some(self.launch()?);
        Ok(())
    }

    fn start_once(install: &Install) -> Result<Self, Unavailable> {
        let server = Self {
            install: install.clone(),
            template: install.template()?,
            dir: install.new_dir()?,
            port: free_port()?,
            databases: AtomicU32::new(1),
            running: Mutex::new(None),
        };
        *server.running() = Some(server.launch()?);
        Ok(server)
    }

    fn launch(&self) -> Result<Keeper, Unavailable> {
        let mut command = self.install.command("sh");
        command
            .args(["-c", KEEPER, "sh"])
            .arg(&self.template)
            .arg(&self.dir)
            .arg(self.install.program("postgres"))
            .arg("-D")
            .arg(&self.dir);
        command
            .arg("-k")
            .arg(&self.dir)
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        for setting in install::SETTINGS {
            command.args(["-c", setting]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| Unavailable::new(format!("the server cannot be run: {error}")))?;
        let (Some(input), Some(log)) = (child.stdin.take(), child.stderr.take()) else {
            return Err(Unavailable::new("the server has no streams"));
        };
        let mut keeper = Keeper { child, input };
        let lines = follow(BufReader::new(log));
        match self.wait(&lines) {
            Ok(()) => Ok(keeper),
            Err(why) => {
                let _ = keeper.input.write_all(b"stop\n");
                let _ = keeper.child.wait();
                Err(why)
            }
        }
    }

    /// Waits until the server accepts a connection: each line of its output triggers an attempt.
    fn wait(&self, lines: &mpsc::Receiver<String>) -> Result<(), Unavailable> {
        let until = Instant::now() + START;
        let mut said = String::new();
        loop {
            if talk::Talk::to(self.port, "postgres").is_ok() {
                return Ok(());
            }
            match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => said = line,
                Err(_) => {
                    return Err(Unavailable::new(format!(
                        "the server does not start; it said last: {said:?}"
                    )));
                }
            }
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Keeper>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
        remove(&self.dir);
    }
}

impl Unavailable {
    /// Reports on the error stream that a test is skipped: `skipped: <test>: <why>`.
    pub fn skips(&self, test: &str) {
        // Not through the macro, whose output a test harness may hide.
        let _ = writeln!(io::stderr(), "skipped: {test}: {self}");
    }

    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no PostgreSQL server: {}", self.why)
    }
}

impl std::error::Error for Unavailable {}

/// Returns the server's log, line by line; the log is read to its end, so that the server never waits for a reader.
fn follow(log: impl BufRead + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in log.lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

fn free_port() -> Result<u16, Unavailable> {
    let port =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    port.map(|addr| addr.port())
        .map_err(|error| Unavailable::new(format!("no port is free: {error}")))
}

fn remove(dir: &Path) {
    // A folder that cannot be removed stays among the temporary files.
    let _ = fs::remove_dir_all(dir);
}
