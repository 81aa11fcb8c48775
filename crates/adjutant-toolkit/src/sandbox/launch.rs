//! One command: a thread starts it in the sandbox, reads it, and ends it with everything that it started.

use std::{
    fs::File,
    io::{self, PipeReader, PipeWriter, Read, Write, pipe},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use adjutant_tool::{ToolError, ToolErrorKind};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_setfl},
    process::{Pid, PidfdFlags, Signal, pidfd_open},
};
use tokio::sync::oneshot;

use super::{
    By, Network, Sandbox, bwrap,
    end::{self, CallMark, Census},
    guard::{Guard, Watch},
    helper,
    job::{Access, CommandEnd, CommandInput, CommandJob, CommandPipes, OnEnd, OutputPipe, Sink},
    landlock,
    limits::{CommandLimits, Limit, ReachedLimit},
    places,
    proxy::Proxy,
    repository::Repository,
    secrets,
    session::Session,
    usage::Usage,
    watcher::WatchedGroup,
};

/// The time between the request to end a command and its kill; shorter than the limit of a cancelled call.
const GRACE: Duration = Duration::from_millis(500);
/// The time that is spent on output that is left when everything was killed.
const DRAIN: Duration = Duration::from_millis(200);
/// The time to wait for a killed process to exit.
const GONE: Duration = Duration::from_secs(5);
/// The time between two looks at the number of its processes.
const TICK: Duration = Duration::from_millis(50);
/// The number of bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// The prefix of a command without bubblewrap. It waits for a line, so that its process is marked before the command runs.
const GATE: &str = "exec 3<&0; read -r _ <&3 || exit 126; ";
const BEGIN: &str = "exec \"$@\" </dev/null 3<&-";
/// The same, with the bytes after that line as the input of the command.
const BEGIN_WITH_INPUT: &str = "exec \"$@\" <&3 3<&-";

/// A command that runs; dropped, it is killed in the background.
#[derive(Debug)]
pub(crate) struct Running {
    /// Closed to stop it.
    _stop: PipeWriter,
}

impl Running {
    /// Starts a command.
    ///
    /// # Errors
    /// `Denied` if nothing can hold it, with the cure; `Failed` if it cannot be started.
    pub(crate) async fn start(
        sandbox: &Sandbox,
        mut job: CommandJob,
        mut sink: Sink,
        on_end: OnEnd,
    ) -> Result<Self, ToolError> {
        if let Some(why) = sandbox.refuses() {
            return Err(ToolError::new(
                ToolErrorKind::Denied,
                format!(
                    "no command runs without a sandbox: {why}; {}",
                    sandbox.cure()
                ),
            ));
        }
        if let (By::Landlock { .. }, Access::Write) = (&sandbox.by, job.access) {
            let write = sandbox.write.iter().chain([&job.root]);
            if let Some(path) = secrets::exposed(write) {
                let message = format!(
                    "no command runs: Landlock cannot hide {} below a directory that commands may change; hint: install bubblewrap \
                     (`bwrap`), or work in a directory without credentials",
                    path.display()
                );
                return Err(ToolError::new(ToolErrorKind::Denied, message));
            }
        }
        let failed = |error| ToolError::failed("the command cannot be started").with_source(error);
        let (wake, stop) = pipe().map_err(failed)?;
        let (started, is_started) = oneshot::channel();
        let sandbox = sandbox.clone();
        let work = move || match Live::start(&sandbox, &mut job, wake) {
            Err(why) => {
                let _ = started.send(Err(ToolError::failed(format!(
                    "the command cannot be started: {why}"
                ))));
            }
            Ok(live) => {
                let _ = started.send(Ok(()));
                let how = live.run(job.limit, &mut sink);
                drop(job);
                on_end(how);
            }
        };
        thread::Builder::new()
            .name("command".into())
            .spawn(work)
            .map_err(failed)?;
        // A thread that panicked sends nothing.
        is_started
            .await
            .map_err(|_| ToolError::failed("the command could not be started"))??;
        Ok(Self { _stop: stop })
    }
}

/// A command and what belongs to it, on its thread.
struct Live {
    child: Child,
    id: Pid,
    mark: Option<CallMark>,
    census: Census,
    usage: Usage,
    limits: CommandLimits,
    held: OwnedFd,
    output: Option<PipeReader>,
    errors: Option<PipeReader>,
    input: Option<Feed>,
    wake: PipeReader,
    began: Instant,
    /// Bubblewrap exits together with this program.
    _watched: Option<WatchedGroup>,
    /// The protected names below its root, if it can write there.
    watch: Option<Watch>,
    /// The way to the hosts of a list.
    _proxy: Option<Proxy>,
}

impl Live {
    fn start(sandbox: &Sandbox, job: &mut CommandJob, wake: PipeReader) -> Result<Self, String> {
        let (output, writer) = pipe().map_err(told)?;
        let (errors, error_writer) = if job.is_split {
            let (errors, writer) = pipe().map_err(told)?;
            (Some(errors), writer)
        } else {
            (None, writer.try_clone().map_err(told)?)
        };
        let (stdin, input) = input(sandbox, &job.input).map_err(told)?;
        let began = Instant::now();
        let repository = Repository::find(&job.root);
        let is_streamed = matches!(job.input, CommandInput::Streamed(_));
        let watch = match job.access {
            Access::Read => None,
            Access::Write if matches!(sandbox.by, By::Danger) => None,
            Access::Write if is_streamed && matches!(sandbox.by, By::Landlock { .. }) => None,
            Access::Write => {
                let guard = match &job.session {
                    Some(session) => Arc::clone(session.guard()),
                    None => Guard::new(&job.root),
                };
                let has_mounts = matches!(sandbox.by, By::Bwrap { .. });
                let mut watch = guard.watch(repository.as_ref(), &job.writes, has_mounts)?;
                watch.is_judging = !is_streamed;
                Some(watch)
            }
        };
        let places = written_places(sandbox, job, repository.as_ref());
        let place = Place {
            repository,
            watch: watch.as_ref(),
        };
        let (child, arguments) = spawn(sandbox, job, &place, stdin, (writer, error_writer))?;
        let id = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or("it has no number")?;
        let held = pidfd_open(id, PidfdFlags::empty()).map_err(|error| told(error.into()))?;
        let mark = CallMark::set(id);
        end::lower_limits(id, &sandbox.limits);
        let is_own = matches!(sandbox.by, By::Bwrap { .. });
        let watched = if is_own {
            None
        } else {
            Some(WatchedGroup::new(id, mark.as_ref()).map_err(told)?)
        };
        let proxy = match (&sandbox.network, &input) {
            (Network::Hosts(hosts), Some(socket)) => {
                let socket = UnixStream::from(socket.try_clone().map_err(told)?);
                Some(Proxy::start(hosts.clone(), socket).map_err(told)?)
            }
            _ => None,
        };
        // From here on the command runs.
        match (arguments, &input) {
            (Some(arguments), _) => arguments.hand_over().map_err(told)?,
            (None, Some(gate)) => drop(rustix::io::write(gate, b"\n")),
            (None, None) => {}
        }
        let (mut output, mut feed) = (Some(output), None);
        match (std::mem::take(&mut job.input), input) {
            (CommandInput::None, _) | (_, None) => {}
            (CommandInput::Bytes(bytes), Some(input)) => {
                feed = Some(Feed::new(input.into(), bytes).map_err(told)?);
            }
            (CommandInput::Streamed(to), Some(input)) => {
                let pipes = output.take().map(|output| CommandPipes {
                    input,
                    output: output.into(),
                });
                // The caller may be gone: then the pipes are closed, and the command ends with the call.
                let _ = pipes.map(|pipes| to.send(pipes));
            }
        }
        let census = Census::new(id, began, sandbox.limits.processes);
        let usage = Usage::new(id, *sandbox.limits, places);
        let (_watched, _proxy) = (watched, proxy);
        Ok(Self {
            child,
            id,
            mark,
            census,
            usage,
            limits: *sandbox.limits,
            held,
            output,
            errors,
            input: feed,
            wake,
            began,
            _watched,
            watch,
            _proxy,
        })
    }

    fn run(mut self, limit: Duration, sink: &mut Sink) -> CommandEnd {
        let late = self.began.checked_add(limit);
        let seen = self.look(late, true, sink);
        if matches!(seen, Seen::Late | Seen::Stopped) {
            end::kill_group(self.id, Signal::TERM);
            self.look(Instant::now().checked_add(GRACE), false, sink);
        }
        end::kill_group(self.id, Signal::KILL);
        if let Some(mark) = self.mark.take() {
            mark.kill_all(self.id, self.began);
        }
        self.input = None;
        let over = Instant::now() + DRAIN;
        while (self.output.is_some() || self.errors.is_some()) && Instant::now() < over {
            for source in self.ready(
                &[Awaited::Output, Awaited::Errors],
                over.saturating_duration_since(Instant::now()),
            ) {
                self.serve(source, sink);
            }
        }
        (self.output, self.errors) = (None, None);
        // A process that cannot be killed is not waited for any longer.
        let is_gone = self.look(Instant::now().checked_add(GONE), false, sink) == Seen::Exited;
        let status = if is_gone {
            self.child.wait().ok()
        } else {
            None
        };
        // The notes about protected files are part of the output for every caller.
        for note in self.watch.take().map(Watch::finish).unwrap_or_default() {
            sink(OutputPipe::Errors, format!("[{note}]\n").as_bytes());
        }
        let limits = self.limits;
        match (seen, status) {
            (_, None) => CommandEnd::Lost,
            (Seen::Exited, Some(status)) if limits.file.is_some() && is_file_limit(status) => {
                let limit = Limit::File;
                CommandEnd::Limited(ReachedLimit { limit, limits })
            }
            (Seen::Exited, Some(status)) => CommandEnd::Exited(status),
            (Seen::Late, _) => CommandEnd::Late,
            (Seen::Stopped, _) => CommandEnd::Stopped,
            (Seen::Limited(limit), _) => CommandEnd::Limited(ReachedLimit { limit, limits }),
        }
    }

    /// Reads and writes until the command exits, the time is up, a stop is requested, or the command has reached a
    /// limit.
    fn look(&mut self, until: Option<Instant>, is_stoppable: bool, sink: &mut Sink) -> Seen {
        // `Wake` stays ready after a stop, so it is not polled again.
        let all = [
            Awaited::Output,
            Awaited::Errors,
            Awaited::Input,
            Awaited::Child,
            Awaited::Wake,
        ];
        let asked = if is_stoppable { &all[..] } else { &all[..4] };
        let mut next = Instant::now();
        loop {
            let left = until.map_or(TICK, |until| {
                until.saturating_duration_since(Instant::now()).min(TICK)
            });
            let ready = self.ready(asked, left);
            ready.iter().for_each(|source| self.serve(*source, sink));
            if ready.contains(&Awaited::Child) {
                return Seen::Exited;
            }
            if ready.contains(&Awaited::Wake) {
                return Seen::Stopped;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Seen::Late;
            }
            if Instant::now() >= next {
                next = Instant::now() + TICK;
                if let Some(watch) = &mut self.watch {
                    watch.look();
                }
                let Some(mark) = &self.mark else { continue };
                if self.census.is_over(mark) {
                    return Seen::Limited(Limit::Processes);
                }
                if let Some(limit) = self.usage.exceeded(mark) {
                    return Seen::Limited(limit);
                }
            }
        }
    }

    /// Returns the sources that are ready within this time.
    fn ready(&self, asked: &[Awaited], within: Duration) -> Vec<Awaited> {
        let open: Vec<(Awaited, PollFd<'_>)> = asked
            .iter()
            .filter_map(|source| Some((*source, self.polled(*source)?)))
            .collect();
        let (sources, mut fds): (Vec<Awaited>, Vec<PollFd<'_>>) = open.into_iter().unzip();
        if !wait(&mut fds, within) {
            return Vec::new();
        }
        sources
            .into_iter()
            .zip(&fds)
            .filter(|(_, fd)| !fd.revents().is_empty())
            .map(|(source, _)| source)
            .collect()
    }

    fn polled(&self, source: Awaited) -> Option<PollFd<'_>> {
        let (fd, flags) = match source {
            Awaited::Output => (self.output.as_ref()?.as_fd(), PollFlags::IN),
            Awaited::Errors => (self.errors.as_ref()?.as_fd(), PollFlags::IN),
            Awaited::Input => (self.input.as_ref()?.pipe.as_fd(), PollFlags::OUT),
            Awaited::Child => (self.held.as_fd(), PollFlags::IN),
            Awaited::Wake => (self.wake.as_fd(), PollFlags::IN),
        };
        Some(PollFd::from_borrowed_fd(fd, flags))
    }

    /// Reads or writes once, where it is ready.
    fn serve(&mut self, source: Awaited, sink: &mut Sink) {
        let (pipe, from) = match source {
            Awaited::Output => (&mut self.output, OutputPipe::Output),
            Awaited::Errors => (&mut self.errors, OutputPipe::Errors),
            Awaited::Input => {
                self.input = self.input.take().and_then(Feed::go_on);
                return;
            }
            Awaited::Child | Awaited::Wake => return,
        };
        let mut chunk = vec![0; CHUNK];
        match pipe.as_mut().map(|pipe| pipe.read(&mut chunk)) {
            Some(Ok(read)) if read > 0 => sink(from, chunk.get(..read).unwrap_or_default()),
            _ => *pipe = None,
        }
    }
}

/// The rest of the input of a command.
struct Feed {
    pipe: File,
    bytes: Vec<u8>,
    written: usize,
}

impl Feed {
    /// It is written without blocking: a command may never read its input.
    fn new(pipe: File, bytes: Vec<u8>) -> io::Result<Self> {
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Self {
            pipe,
            bytes,
            written: 0,
        })
    }

    /// Writes a part of the rest; returns `None` if nothing is left, or if the command has closed its input.
    fn go_on(mut self) -> Option<Self> {
        match self.pipe.write(self.bytes.get(self.written..)?) {
            Ok(written) => self.written += written,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => return None,
        }
        (self.written < self.bytes.len()).then_some(self)
    }
}

/// The events of a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Output,
    Errors,
    Input,
    Child,
    Wake,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Exited,
    Late,
    Stopped,
    Limited(Limit),
}

/// Returns true for the status of a program that was ended because a file became too large, or of a shell that reports that.
fn is_file_limit(status: ExitStatus) -> bool {
    let signal = Signal::XFSZ.as_raw();
    status.signal() == Some(signal) || status.code() == Some(128 + signal)
}

/// Returns the places that a command can fill.
fn written_places(
    sandbox: &Sandbox,
    job: &CommandJob,
    repository: Option<&Repository>,
) -> Vec<PathBuf> {
    let mut places = vec![job.home.clone(), job.tmp.clone()];
    places.extend(
        job.session
            .iter()
            .map(|session| session.folder().to_owned()),
    );
    if job.access == Access::Write {
        places.push(job.root.clone());
        places.extend(sandbox.write.iter().cloned());
        places.extend(repository.map(|repository| repository.common.clone()));
    }
    places
}

fn told(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            "its arguments are longer than a command line can be".to_owned()
        }
        _ => error.to_string(),
    }
}

/// True if one of these is ready within this time.
pub(super) fn wait(fds: &mut [PollFd<'_>], within: Duration) -> bool {
    let within = Timespec::try_from(within).ok();
    poll(fds, within.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Returns the standard input of a command, and the end that leads to it if something is written there: the bytes for the
/// command, the line that a command without bubblewrap waits for, or the port of a command with a list of hosts.
fn input(sandbox: &Sandbox, input: &CommandInput) -> io::Result<(Stdio, Option<OwnedFd>)> {
    if sandbox.has_hosts() {
        let (inside, outside) = UnixStream::pair()?;
        return Ok((OwnedFd::from(inside).into(), Some(outside.into())));
    }
    match (&sandbox.by, input) {
        (By::Bwrap { .. }, CommandInput::None) => Ok((Stdio::null(), None)),
        _ => {
            let (reader, writer) = pipe()?;
            Ok((reader.into(), Some(writer.into())))
        }
    }
}

pub(super) fn has_helper() -> bool {
    helper::is_called()
}

/// Commands start one at a time, so that no command inherits an open file meant for another.
static START: Mutex<()> = Mutex::new(());

/// The surroundings of a command.
struct Place<'a> {
    repository: Option<Repository>,
    watch: Option<&'a Watch>,
}

fn spawn(
    sandbox: &Sandbox,
    job: &CommandJob,
    place: &Place<'_>,
    stdin: Stdio,
    (output, errors): (PipeWriter, PipeWriter),
) -> Result<(Child, Option<bwrap::WaitingArguments>), String> {
    let mut read = sandbox.read.clone();
    let mut write = sandbox.write.clone();
    if let Some(repository) = &place.repository {
        // git looks at all files of the repository, also from a directory below its top.
        read.push(repository.top.clone());
        match job.access {
            Access::Read => &mut read,
            Access::Write => &mut write,
        }
        .extend([repository.common.clone(), repository.git.clone()]);
    }
    match job.access {
        Access::Read => read.push(job.root.clone()),
        Access::Write => write.push(job.root.clone()),
    }
    write.extend([job.home.clone(), job.tmp.clone()]);
    let has_input = !matches!(job.input, CommandInput::None);
    let _one = START.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tmp = job.tmp.as_path();
    let mut proxied = Vec::new();
    let mut arguments = None;
    let mut command = match &sandbox.by {
        By::Bwrap { program } => {
            let (keep, network) = (&sandbox.keep, &sandbox.network);
            let joined = match (&job.session, network) {
                (Some(session), Network::None) => session.network().join(program),
                _ => None,
            };
            let plan = bwrap::Bindings {
                read: &read,
                write: &write,
                keep,
                network,
                has_network: joined.is_some(),
                watch: place.watch,
                shared: job.session.as_deref().map(Session::folder),
                root: &job.root,
                home: Some(&job.home),
            };
            if job.session.is_some() {
                tmp = Path::new("/tmp");
            }
            let hosts = if let Network::Hosts(hosts) = network {
                Some(hosts)
            } else {
                None
            };
            proxied = hosts.map(places::proxied).unwrap_or_default();
            let mut before = joined.unwrap_or_default();
            if hosts.is_some() {
                before = helper::BEGIN.map(str::to_owned).into();
            }
            before.push(program.display().to_string());
            let (first, rest) = before.split_first().ok_or("it has no program")?;
            let mut command = Command::new(first);
            let all = arguments.insert(bwrap::Arguments::new(&plan)?);
            command.args(rest).args(all.words()).arg("--chdir");
            command.arg(&job.cwd).arg("--");
            if hosts.is_some() {
                command.args(helper::words(has_input));
            } else if !job.words.first().is_some_and(places::is_program) {
                // A shell reports a missing program as every shell does.
                command.args(["/bin/sh", "-c", "exec \"$@\"", "sh"]);
            }
            command
        }
        By::Landlock { .. } | By::Danger | By::Refusing { .. } => {
            let begin = if has_input { BEGIN_WITH_INPUT } else { BEGIN };
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &[GATE, begin].concat(), "sh"]);
            command
        }
    };
    command
        .args(&job.words)
        .current_dir(&job.cwd)
        .process_group(0);
    command.env_clear();
    if job.has_usual {
        command.envs(places::environment(&job.home, tmp, &sandbox.network));
        let copied = secrets::copied_cargo_home(&job.home);
        if let (By::Landlock { .. }, Some(copied)) = (&sandbox.by, copied) {
            command.env("CARGO_HOME", copied);
        }
    }
    command.envs(job.environment.iter().cloned()).envs(proxied);
    command.stdin(stdin).stdout(output).stderr(errors);
    let child = match &sandbox.by {
        By::Landlock { abi } => {
            let plan = landlock::ThreadRules {
                abi: *abi,
                read,
                write,
                network: sandbox.network.clone(),
                root: job.root.clone(),
            };
            // The rules are for ever, so the thread is of this one start.
            let start =
                move || landlock::restrict(&plan).and_then(|()| command.spawn().map_err(told));
            let thread = thread::Builder::new().spawn(start).map_err(told)?;
            thread
                .join()
                .map_err(|_| "its thread broke down".to_owned())??
        }
        By::Bwrap { .. } | By::Danger | By::Refusing { .. } => command.spawn().map_err(told)?,
    };
    Ok((child, arguments.map(bwrap::Arguments::into_waiting)))
}
