//! A proxy for the commands of one call: it connects to hosts of a list and to no other, and ends with the call.
//!
//! It supports `CONNECT host:port` and requests for `http://…`. Data of a connection to an allowed host is not
//! inspected.

use std::{
    io::{self, IoSliceMut, PipeReader, PipeWriter, Read, Write, pipe},
    mem::MaybeUninit,
    net::{IpAddr, Shutdown, TcpListener, TcpStream, ToSocketAddrs},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
};

use super::{
    hosts::{self, Hosts},
    launch::wait,
};

/// The most connections at a time.
const CONNECTIONS: usize = 64;
/// The longest head of a request, in bytes, and the time in which it comes.
const HEAD: usize = 16 << 10;
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The time in which a host is connected to, for each of the first few of its addresses.
const CONNECT_TIME: Duration = Duration::from_secs(10);
const ADDRESSES: usize = 4;
/// The time after which a connection that carries nothing is closed.
const IDLE: Duration = Duration::from_secs(600);
/// The bytes that are held for each direction of a connection.
const CHUNK: usize = 16 << 10;
/// The data that is read and discarded after a refusal, so that the client can read the reason.
const REST: usize = 64 << 10;
const REST_TIME: Duration = Duration::from_secs(1);

/// A proxy; dropped, all its connections end.
#[derive(Debug)]
pub(super) struct Proxy {
    _end: PipeWriter,
}

/// The shared state of the connections of a listener, with the target of all of them.
pub(super) struct Shared<T> {
    pub(super) target: T,
    /// Ready when the listener was dropped.
    pub(super) end: PipeReader,
}

impl Proxy {
    /// Starts a proxy on the port that comes through this socket.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(super) fn start(hosts: Hosts, from: UnixStream) -> io::Result<Self> {
        let (end, own) = pipe()?;
        let shared = Arc::new(Shared { target: hosts, end });
        thread::Builder::new().name("proxy".into()).spawn(move || {
            // Without a port the helper has reported the reason, and the command did not start.
            if let Some(port) = shared.receive(&from) {
                drop(from);
                accept(&shared, &port.into(), serve, refuse_more);
            }
        })?;
        Ok(Self { _end: own })
    }
}

/// Serves connections until the end, each on its own thread; those above the limit are refused.
pub(super) fn accept<T: Send + Sync + 'static>(
    shared: &Arc<Shared<T>>,
    port: &TcpListener,
    serve: fn(&Shared<T>, &TcpStream),
    refuse: fn(&TcpStream),
) {
    if port.set_nonblocking(true).is_err() {
        return;
    }
    while shared.waits(&[(port, PollFlags::IN)], None) != Woken::Over {
        // The client is gone, or there is no free descriptor: try again shortly.
        let Ok((client, _)) = port.accept() else {
            shared.waits::<TcpStream>(&[], Some(Duration::from_millis(50)));
            continue;
        };
        // This thread holds one, and so does each connection.
        if Arc::strong_count(shared) > CONNECTIONS {
            refuse(&client);
            continue;
        }
        let shared = Arc::clone(shared);
        // Without a thread the connection is closed.
        let _ = thread::Builder::new()
            .name("proxy".into())
            .spawn(move || serve(&shared, &client));
    }
}

fn refuse_more(client: &TcpStream) {
    let why = format!("commands have {CONNECTIONS} connections at a time");
    refuse(client, &(503, why), false);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    Ready,
    Late,
    Over,
}

impl<T> Shared<T> {
    /// Waits for one of these, the end of the call, or the end of this time.
    fn waits<F: AsFd>(&self, what: &[(&F, PollFlags)], within: Option<Duration>) -> Woken {
        let mut fds = vec![PollFd::new(&self.end, PollFlags::IN)];
        fds.extend(what.iter().map(|(fd, flags)| PollFd::new(*fd, *flags)));
        let is_ready = wait(&mut fds, within.unwrap_or(IDLE));
        match fds.first().is_some_and(|end| !end.revents().is_empty()) {
            true => Woken::Over,
            false if is_ready => Woken::Ready,
            false => Woken::Late,
        }
    }

    /// Receives a socket that the helper hands out of the sandbox.
    pub(super) fn receive(&self, from: &UnixStream) -> Option<OwnedFd> {
        if self.waits(&[(from, PollFlags::IN)], None) != Woken::Ready {
            return None;
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        recvmsg(
            from,
            &mut [IoSliceMut::new(&mut [0])],
            &mut message,
            RecvFlags::CMSG_CLOEXEC,
        )
        .ok()?;
        message.drain().find_map(|part| match part {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        })
    }
}

/// A status, and the reason for people.
type RefusedRequest = (u16, String);

/// A client's request: a host, and the bytes for it.
struct Wanted {
    host: String,
    port: u16,
    is_tunnel: bool,
    /// The bytes that the host gets first.
    first: Vec<u8>,
}

fn serve(shared: &Shared<Hosts>, client: &TcpStream) {
    if let Err(why) = forward(shared, client) {
        refuse(client, &why, true);
    }
}

fn forward(shared: &Shared<Hosts>, client: &TcpStream) -> Result<(), RefusedRequest> {
    let Some(wanted) = head(shared, client)? else {
        return Ok(());
    };
    let resolve = |name: &str| {
        Ok((name, 0)
            .to_socket_addrs()?
            .map(|it| it.ip())
            .collect::<Vec<IpAddr>>())
    };
    let addresses = shared
        .target
        .addresses(&wanted.host, wanted.port, resolve)?;
    let mut why = None;
    for address in addresses.into_iter().take(ADDRESSES) {
        if shared.waits::<TcpStream>(&[], Some(Duration::ZERO)) == Woken::Over {
            return Ok(());
        }
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Err(error) => why = Some(error),
            Ok(server) => {
                let answer: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
                let down = if wanted.is_tunnel {
                    answer.to_vec()
                } else {
                    Vec::new()
                };
                // A broken connection has no client to notify.
                let _ = relay(shared, (client, &server), (wanted.first, down));
                return Ok(());
            }
        }
    }
    let why = why.map_or_else(|| "it has no address".to_owned(), |error| error.to_string());
    Err((
        502,
        format!("{}:{} cannot be reached: {why}", wanted.host, wanted.port),
    ))
}

/// Reads the head of a request; none if the client is gone, or the call.
fn head(shared: &Shared<Hosts>, mut client: &TcpStream) -> Result<Option<Wanted>, RefusedRequest> {
    let until = Instant::now() + HEAD_TIME;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4 << 10];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match shared.waits(&[(client, PollFlags::IN)], Some(left)) {
            Woken::Over => return Ok(None),
            Woken::Late => return Err((408, "the head of the request took too long".into())),
            Woken::Ready => {}
        }
        match client.read(&mut chunk) {
            Ok(0) | Err(_) => return Ok(None),
            Ok(read) => bytes.extend_from_slice(chunk.get(..read).unwrap_or_default()),
        }
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let rest = bytes.split_off(at + 4);
            return Wanted::read(&bytes, rest).map(Some);
        }
        if bytes.len() > HEAD {
            return Err((
                431,
                format!("the head of the request is longer than {HEAD} bytes"),
            ));
        }
    }
}

impl Wanted {
    fn read(head: &[u8], rest: Vec<u8>) -> Result<Self, RefusedRequest> {
        let wrong = |why: &str| {
            (
                400,
                format!("{why}; this proxy takes CONNECT and requests for http://"),
            )
        };
        let text =
            str::from_utf8(head).map_err(|_| wrong("the head of the request is not text"))?;
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, version @ ("HTTP/1.1" | "HTTP/1.0")] = first[..] else {
            return Err(wrong("there is no request of HTTP/1.1"));
        };
        if text.chars().any(|c| c == '\0') || text.replace("\r\n", "").contains(['\r', '\n']) {
            return Err(wrong(
                "the head of the request has characters that cannot be in it",
            ));
        }
        if method == "CONNECT" {
            let (host, port) =
                hosts::split(target).ok_or_else(|| wrong("CONNECT names no host"))?;
            let port = port.ok_or_else(|| wrong("CONNECT names no port"))?;
            return Ok(Self {
                host: host.to_owned(),
                port,
                is_tunnel: true,
                first: rest,
            });
        }
        let is_http = target
            .get(..7)
            .is_some_and(|it| it.eq_ignore_ascii_case("http://"));
        let target = target
            .get(7..)
            .filter(|_| is_http)
            .ok_or_else(|| wrong("the request names no host"))?;
        let end = target.find(['/', '?', '#']).unwrap_or(target.len());
        let (authority, path) = target.split_at(end);
        let (host, port) =
            hosts::split(authority).ok_or_else(|| wrong("the request names no host"))?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        // One request for each connection: the next one can be for another host, and is checked separately.
        let mut first = format!(
            "{method} {slash}{path} {version}\r\nHost: {authority}\r\nConnection: close\r\n"
        );
        for line in lines {
            let name = line
                .split(':')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            if name.is_empty() || name.contains([' ', '\t']) {
                return Err(wrong("a field of the request has no name"));
            }
            if !matches!(&*name, "host" | "connection" | "keep-alive" | "upgrade")
                && !name.starts_with("proxy-")
            {
                first.extend([line, "\r\n"]);
            }
        }
        first.push_str("\r\n");
        let first = [first.into_bytes(), rest].concat();
        Ok(Self {
            host: host.to_owned(),
            port: port.unwrap_or(80),
            is_tunnel: false,
            first,
        })
    }
}

/// Answers a client that gets nothing else.
fn refuse(mut client: &TcpStream, (status, why): &RefusedRequest, is_read: bool) {
    let name = match status {
        403 => "Forbidden",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Bad Request",
    };
    let length = why.len() + 1;
    let head = format!(
        "HTTP/1.1 {status} {name}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n"
    );
    // The client may be gone.
    let _ = client.write_all(format!("{head}Connection: close\r\n\r\n{why}\n").as_bytes());
    let _ = client.shutdown(Shutdown::Write);
    let mut left = if is_read && client.set_read_timeout(Some(REST_TIME)).is_ok() {
        REST
    } else {
        0
    };
    while left > 0 {
        match client.read(&mut [0; 4 << 10]) {
            Ok(read) if read > 0 => left = left.saturating_sub(read),
            Ok(_) | Err(_) => return,
        }
    }
}

/// One direction of a connection.
struct Way {
    bytes: Vec<u8>,
    /// The number of bytes already written.
    at: usize,
    is_open: bool,
}

impl Way {
    fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            at: 0,
            is_open: true,
        }
    }

    fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The events to wait for on both sides.
    fn wants(&self) -> (PollFlags, PollFlags) {
        match (self.is_empty(), self.is_open) {
            (false, _) => (PollFlags::empty(), PollFlags::OUT),
            (true, true) => (PollFlags::IN, PollFlags::empty()),
            (true, false) => (PollFlags::empty(), PollFlags::empty()),
        }
    }

    /// Carries what can be carried without waiting.
    fn carry(&mut self, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
        if self.is_empty() && self.is_open {
            self.at = 0;
            self.bytes.resize(CHUNK, 0);
            let read = unless_blocked(from.read(&mut self.bytes));
            self.bytes
                .truncate(read.as_ref().map_or(0, |read| read.unwrap_or(0)));
            if read? == Some(0) {
                self.is_open = false;
                to.shutdown(Shutdown::Write)?;
            }
        }
        if !self.is_empty() {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            self.at += unless_blocked(to.write(rest))?.unwrap_or(0);
        }
        Ok(())
    }
}

/// The result, or `None` if the operation would block.
fn unless_blocked(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Carries data in both directions until one side is broken, both are closed, or the listener is dropped.
pub(super) fn relay<T>(
    shared: &Shared<T>,
    (client, server): (&TcpStream, &TcpStream),
    (up, down): (Vec<u8>, Vec<u8>),
) -> io::Result<()> {
    client.set_nonblocking(true)?;
    server.set_nonblocking(true)?;
    let (mut up, mut down) = (Way::new(up), Way::new(down));
    while up.is_open || down.is_open || !up.is_empty() || !down.is_empty() {
        let ((from_client, to_server), (from_server, to_client)) = (up.wants(), down.wants());
        let both = [
            (client, from_client | to_client),
            (server, from_server | to_server),
        ];
        // A connection without requested events may be broken, and would wake the loop constantly.
        let wanted: Vec<_> = both
            .into_iter()
            .filter(|(_, flags)| !flags.is_empty())
            .collect();
        if shared.waits(&wanted, Some(IDLE)) != Woken::Ready {
            break;
        }
        up.carry(client, server)?;
        down.carry(server, client)?;
    }
    Ok(())
}
