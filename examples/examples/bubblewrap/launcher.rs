//! Begins agents in a root of their own, by bubblewrap: they see the system's programs, their folder, and no network.

use std::{
    collections::HashMap,
    env,
    ffi::OsString,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use adjutant::runtime::{
    Error, ErrorKind, Workspace,
    backend::Launcher,
    host::{HostFile, PORT_VARIABLE},
};
use async_trait::async_trait;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    task::JoinSet,
};

/// The argument by which this program is begun in the sandbox, before the words of the host.
const INSIDE: &str = "inside";
/// The visible parts of the machine, if they exist. All are read-only.
const SHOWN: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/localtime",
];

/// Begins hosts by `bwrap`.
pub(crate) struct Bubblewrap {
    program: PathBuf,
    shares_network: bool,
    memory_kib: u64,
    open_files: u64,
    /// By the folder of an agent: the address that leads to it, and the task that serves there.
    bridges: Mutex<HashMap<PathBuf, (SocketAddr, JoinSet<()>)>>,
}

impl Bubblewrap {
    /// 16 GiB of addresses and 1,024 open files for each process; the machine's network only if it is shared, which
    /// agents with a remote model need. `program` must call [`inside`] first in its `main`.
    pub(crate) fn new(program: PathBuf, shares_network: bool) -> Self {
        Self {
            program,
            shares_network,
            memory_kib: 16 << 20,
            open_files: 1_024,
            bridges: Mutex::default(),
        }
    }

    /// True if this machine can begin anything in it.
    pub(crate) fn is_there() -> bool {
        let mut command = std::process::Command::new("bwrap");
        let told = command
            .args([
                "--unshare-all",
                "--ro-bind",
                "/",
                "/",
                "--proc",
                "/proc",
                "--",
                "true",
            ])
            .output();
        told.is_ok_and(|told| told.status.success())
    }
}

#[async_trait]
impl Launcher for Bubblewrap {
    fn command(&self, workspace: &Workspace, host: Vec<OsString>) -> Result<Vec<OsString>, Error> {
        // `bwrap` passes no signal on, and would end before the host does: the signal to end is for the host, by the group.
        let limits = format!(
            "ulimit -v {} && ulimit -n {}",
            self.memory_kib, self.open_files
        );
        let limits = format!("trap '' TERM && {limits} && exec \"$0\" \"$@\"");
        let mut words = ["/bin/sh", "-c", &limits, "bwrap", "--unshare-all"]
            .map(OsString::from)
            .to_vec();
        if self.shares_network {
            words.push("--share-net".into());
        } else {
            // A free port of the sandbox's loopback may be in use on this one: the port is chosen here.
            let former = HostFile::read(workspace).ok().map(|former| former.address);
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let address = self.bridge(
                workspace,
                &former.into_iter().chain([any]).collect::<Vec<_>>(),
            )?;
            words.extend(
                ["--setenv", PORT_VARIABLE, &address.port().to_string()].map(OsString::from),
            );
        }
        for path in SHOWN.map(Path::new) {
            // On many systems `/bin` is a link into `/usr`, and stays one.
            match fs::read_link(path) {
                Ok(target) => words.extend(["--symlink".into(), target.into(), path.into()]),
                Err(_) => words.extend(["--ro-bind-try".into(), path.into(), path.into()]),
            }
        }
        words.extend(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"].map(OsString::from));
        let host_program = host.first().cloned().unwrap_or_default();
        for program in [host_program, self.program.clone().into()] {
            words.extend(["--ro-bind".into(), program.clone(), program]);
        }
        let (root, work) = (workspace.root(), workspace.work());
        words.extend([
            "--bind".into(),
            root.into(),
            root.into(),
            "--chdir".into(),
            work.into(),
            "--".into(),
        ]);
        if !self.shares_network {
            words.extend([self.program.clone().into(), INSIDE.into()]);
        }
        words.extend(host);
        Ok(words)
    }

    /// Without a network, a host listens on its own loopback: a socket in its folder connects it.
    async fn reach(&self, workspace: &Workspace, listens: SocketAddr) -> Result<SocketAddr, Error> {
        if self.shares_network {
            return Ok(listens);
        }
        self.bridge(workspace, &[listens])
    }
}

impl Bubblewrap {
    /// Forwards the first free one of these addresses to the socket of the agent, and returns it; an existing
    /// forwarding stays.
    fn bridge(&self, workspace: &Workspace, addresses: &[SocketAddr]) -> Result<SocketAddr, Error> {
        let mut bridges = self.bridges.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((address, _)) = bridges
            .get(workspace.root())
            .filter(|(address, _)| addresses.contains(address))
        {
            return Ok(*address);
        }
        let failed = |error: io::Error| {
            Error::new(
                ErrorKind::Connection,
                format!("no bridge from {addresses:?}: {error}"),
            )
        };
        let listener = std::net::TcpListener::bind(addresses).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let (listener, socket) = (
            TcpListener::from_std(listener).map_err(failed)?,
            socket(workspace),
        );
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((mut from, _)) = listener.accept().await {
                let socket = socket.clone();
                open.spawn(async move {
                    let mut to = UnixStream::connect(socket).await?;
                    copy_bidirectional(&mut from, &mut to).await
                });
                while open.try_join_next().is_some() {}
            }
        });
        bridges.insert(workspace.root().to_owned(), (address, serving));
        Ok(address)
    }
}

/// The socket that leads into the sandbox.
fn socket(workspace: &Workspace) -> PathBuf {
    workspace.tmp().join("host.sock")
}

/// The part of this program in the sandbox: it runs the host, and forwards the socket to the host's address. `None`
/// if the program was called for another purpose.
pub(crate) fn inside() -> Option<ExitCode> {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let [word, host, argument, folder] = &words[..] else {
        return None;
    };
    if word != INSIDE {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let run = async {
        let workspace = Workspace::at(folder);
        // The one of the start before.
        let _ = fs::remove_file(socket(&workspace));
        let listener = UnixListener::bind(socket(&workspace))?;
        let mut host = tokio::process::Command::new(host)
            .arg(argument)
            .arg(folder)
            .spawn()?;
        loop {
            tokio::select! {
                ended = host.wait() => return ended,
                came = listener.accept() => {
                    let (mut from, _) = came?;
                    let told = HostFile::read(&workspace);
                    tokio::spawn(async move {
                        let address = told.map_err(io::Error::other)?.address;
                        copy_bidirectional(&mut from, &mut TcpStream::connect(address).await?).await
                    });
                }
            }
        }
    };
    let ended = runtime.and_then(|runtime| runtime.block_on(run));
    Some(match ended {
        Ok(status) => ExitCode::from(
            status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(1),
        ),
        Err(error) => {
            eprintln!("the host cannot be run in its sandbox: {error}");
            ExitCode::FAILURE
        }
    })
}
