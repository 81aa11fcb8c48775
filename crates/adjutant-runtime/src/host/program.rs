//! Your own program as the host of agents: its `main`, and the names of its parts.

use std::{
    ffi::OsString,
    io::{Read, Write},
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::mpsc,
    time::Duration,
};

use super::HostOptions;
use crate::{Error, ErrorKind, PartNames, Parts, Workspace};

/// The argument that starts a program as a host.
const HOST: &str = "agent-host";
/// The argument that requests the names of a host's parts.
const PARTS: &str = "--parts";
/// The timeout for that request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of bytes of such an answer.
const MAX_NAMES: u64 = 1 << 20;

/// The `main` of a program whose agents have custom parts: call it first.
///
/// As `PROGRAM agent-host WORKSPACE` it runs an agent, as [`run`](super::run) does, and as `PROGRAM agent-host --parts`
/// it writes the names of the parts, for [`part_names`]. `None` if the program was called for anything else.
///
/// # Example
/// ```no_run
/// use adjutant_runtime::{Parts, host};
/// use adjutant_tool::Tools;
///
/// fn main() -> std::process::ExitCode {
///     let parts = || Parts::new().toolbox("weather", Tools::new("weather"));
///     host::main(parts).unwrap_or_else(|| {
///         eprintln!("this is a host of agents: name it by ADJUTANT_HOST");
///         std::process::ExitCode::from(2)
///     })
/// }
/// ```
pub fn main(parts: impl FnOnce() -> Parts) -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != HOST {
        return None;
    }
    let told = match (words.next(), words.next()) {
        (Some(word), None) if word == PARTS => tell(&parts().names()),
        (Some(workspace), None) => serve(&workspace, parts()),
        _ => Err(Error::new(
            ErrorKind::Invalid,
            format!("a host is begun as `{HOST} WORKSPACE` or `{HOST} {PARTS}`"),
        )),
    };
    Some(match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may have no reader.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    })
}

fn tell(names: &PartNames) -> Result<(), Error> {
    let text = serde_json::to_string(names)
        .map_err(|error| failed("the parts cannot be told").with_source(error))?;
    writeln!(std::io::stdout(), "{text}")
        .map_err(|error| failed("the parts cannot be told").with_source(error))
}

fn serve(workspace: &OsString, parts: Parts) -> Result<(), Error> {
    // One thread is enough: an agent mostly waits for models and tools, and there may be hundreds of such processes.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| failed("no runtime can be made").with_source(error))?;
    runtime.block_on(super::run(
        Workspace::at(workspace),
        HostOptions::new().parts(parts),
    ))
}

/// Queries a host for the names of its parts: runs `PROGRAM agent-host --parts`, and blocks up to 10 s.
///
/// # Errors
/// `Config` if it does not return them.
pub fn part_names(program: &Path) -> Result<PartNames, Error> {
    let wrong = |why: &str| {
        Error::new(
            ErrorKind::Config,
            format!("the host {} {why}", program.display()),
        )
    };
    let mut command = Command::new(program);
    command
        .args([HOST, PARTS])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    let mut child = command
        .spawn()
        .map_err(|error| wrong("cannot be started").with_source(error))?;
    let (sender, answer) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = String::new();
            let read = output.take(MAX_NAMES).read_to_string(&mut text);
            // The caller may have stopped waiting.
            let _ = sender.send(read.map(|_| text));
        });
    }
    let answer = answer.recv_timeout(TIMEOUT);
    // It has ended already, or must end.
    let _ = child.kill();
    let _ = child.wait();
    let text = answer.map_err(|_| wrong("did not tell its parts in 10 s"))?;
    let text = text.map_err(|error| wrong("did not tell its parts").with_source(error))?;
    serde_json::from_str(&text).map_err(|error| {
        wrong("told no names of parts; hint: its `main` calls `adjutant_runtime::host::main` first").with_source(error)
    })
}

fn failed(what: &str) -> Error {
    Error::new(ErrorKind::Init, what)
}
