//! The first process of a command that has a list of hosts: it opens a port in the command's own network, hands that out of the
//! sandbox to who started it, and becomes the command.
//!
//! The network is of a namespace that belongs to bubblewrap's user namespace. Only a process of a single thread can enter that,
//! so no thread of the program can: it is the program itself, started a second time, that does.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, IoSlice, Write},
    mem::MaybeUninit,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// The port that is opened: the network is new, and nothing else is in it.
pub(super) const PORT: u16 = 3_128;
/// The first argument of such a process, without and with an input for the command.
const WORDS: [&str; 2] = [
    "adjutant-sandbox-helper",
    "adjutant-sandbox-helper-with-input",
];
/// The first argument of a process that connects to a port, which is the next one.
const CONNECT: &str = "adjutant-sandbox-connect";
/// The words before bubblewrap: a shell opens this program as descriptor 4.
pub(super) const BEGIN: [&str; 4] = ["/bin/sh", "-c", "exec \"$@\" 4<\"/proc/$PPID/exe\"", "sh"];
/// The program as it is seen from inside.
const PROGRAM: &str = "/proc/self/fd/4";
/// Takes the descriptor away and becomes the command.
const COMMAND: &str = "exec \"$@\" 4<&-";

static IS_CALLED: AtomicBool = AtomicBool::new(false);

/// Lets a sandbox start this program once more, as the first process of a command that has a list of hosts.
///
/// Call it first in `main`. In such a process it does not return; in every other one it does nothing. Without it,
/// [`Network::Hosts`](super::Network::Hosts) refuses to run commands.
pub fn sandbox_helper() {
    IS_CALLED.store(true, Ordering::Relaxed);
    let mut words = env::args_os().skip(1);
    let first = words.next();
    if first.as_deref() == Some(OsStr::new(CONNECT)) {
        let port = words.next().and_then(|port| port.to_str()?.parse().ok());
        // Without a socket the connection is closed.
        std::process::exit(i32::from(port.is_none_or(|port| connect(port).is_err())));
    }
    if let Some(has_input) = WORDS
        .iter()
        .position(|word| first.as_deref() == Some(OsStr::new(word)))
    {
        let error = become_command(words.collect(), has_input == 1);
        // There is no other way to report it.
        let _ = writeln!(
            io::stderr(),
            "the helper of the sandbox cannot work: {error}"
        );
        std::process::exit(126);
    }
}

/// True if this program can be started as a helper.
pub(super) fn is_called() -> bool {
    IS_CALLED.load(Ordering::Relaxed)
}

/// The arguments before those of the command.
pub(super) fn words(has_input: bool) -> [&'static OsStr; 2] {
    [PROGRAM, WORDS[usize::from(has_input)]].map(OsStr::new)
}

/// The arguments of a process that connects to a port.
pub(super) fn connect_words(port: u16) -> [String; 3] {
    [PROGRAM.to_owned(), CONNECT.to_owned(), port.to_string()]
}

/// Its input is the socket that transferred the port: data after the gate's line belongs to the command.
fn become_command(words: Vec<OsString>, has_input: bool) -> io::Error {
    let stdin = if has_input {
        Stdio::inherit()
    } else {
        Stdio::null()
    };
    match hand_out_port() {
        // A manual start has no socket for the port, and runs nothing.
        Err(error) => error,
        Ok(()) => Command::new("/bin/sh")
            .args(["-c", COMMAND, "sh"])
            .args(words)
            .stdin(stdin)
            .exec(),
    }
}

fn hand_out_port() -> io::Result<()> {
    hand_out(&TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?)
}

/// Connects to a server of the session's network. Some listen only on the address of version 6.
fn connect(port: u16) -> io::Result<()> {
    let addresses = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    hand_out(&TcpStream::connect(
        &addresses.map(|address| SocketAddr::new(address, port))[..],
    )?)
}

/// Sends a socket over this process's input.
fn hand_out(socket: &impl AsFd) -> io::Result<()> {
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&sockets));
    sendmsg(
        io::stdin(),
        &[IoSlice::new(b"\n")],
        &mut message,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}
