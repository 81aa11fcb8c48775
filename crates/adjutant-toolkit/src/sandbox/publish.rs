//! Ports of a session's network that the user reaches on the loopback address of this machine.

use std::{
    io::{self, PipeWriter, pipe},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Weak},
    thread::{self, JoinHandle},
};

use super::{
    By, Network, Sandbox, helper, holder,
    proxy::{self, Shared},
    session::Session,
};

/// A published port. Dropped, it is closed, and its connections end.
#[derive(Debug)]
pub(crate) struct Published {
    /// Closed to end the thread.
    end: Option<PipeWriter>,
    listening: Option<JoinHandle<()>>,
}

/// The port of a session's network. The session ends although a port of it is published.
struct Target {
    bwrap: PathBuf,
    session: Weak<Session>,
    port: u16,
}

impl Published {
    /// Listens on the loopback address, and forwards each connection to the same port of the session's network.
    ///
    /// # Errors
    /// The reason if commands do not share a network, or if the port is in use.
    pub(crate) fn open(
        sandbox: &Sandbox,
        session: &Arc<Session>,
        port: u16,
    ) -> Result<Self, String> {
        let bwrap = match (&sandbox.by, &sandbox.network) {
            (_, Network::All) => {
                return Err("with the network `all` the ports of commands are already open".into());
            }
            (By::Bwrap { program }, Network::None) => program.clone(),
            (By::Bwrap { .. }, Network::Hosts(_)) => {
                return Err("with a list of hosts each command has its own network".into());
            }
            _ => {
                return Err(
                    "commands have no network of their own; hint: install bubblewrap".into(),
                );
            }
        };
        if holder::program().is_none() {
            return Err(
                "each command has its own network; hint: install `nsenter` (util-linux)".into(),
            );
        }
        if !helper::is_called() {
            return Err("hint: call `adjutant_toolkit::sandbox_helper()` first in `main`".into());
        }
        let listen = || -> io::Result<Self> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            let (end, own) = pipe()?;
            let target = Target {
                bwrap,
                session: Arc::downgrade(session),
                port,
            };
            let shared = Arc::new(Shared { target, end });
            let listening = thread::Builder::new()
                .name("publish".into())
                .spawn(move || proxy::accept(&shared, &listener, serve, |_| ()))?;
            Ok(Self {
                end: Some(own),
                listening: Some(listening),
            })
        };
        listen().map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => "another program uses it".to_owned(),
            _ => error.to_string(),
        })
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.end = None;
        // The next session can use the port at once.
        let _ = self.listening.take().map(JoinHandle::join);
    }
}

/// Forwards a connection. It is closed if no server listens inside.
fn serve(shared: &Shared<Target>, client: &TcpStream) {
    if let Some(server) = connect(shared) {
        // A broken connection has no client to notify.
        let _ = proxy::relay(shared, (client, &server), (Vec::new(), Vec::new()));
    }
}

fn connect(shared: &Shared<Target>) -> Option<TcpStream> {
    let Target {
        bwrap,
        session,
        port,
    } = &shared.target;
    let joined = session.upgrade()?.network().join(bwrap)?;
    let (from, to) = UnixStream::pair().ok()?;
    let [starter, begin @ ..] = helper::BEGIN;
    let child = Command::new(starter)
        .args(begin)
        .args(joined)
        .args(helper::connect_words(*port))
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(to))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let server = shared.receive(&from).map(TcpStream::from);
    // It exits once it has sent the connection.
    let _ = child.ok()?.wait();
    server
}
