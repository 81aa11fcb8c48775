//! The prompt: from the command line, standard input and files, in this order.

use std::{
    fs::File,
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use rustix::fs::FileType;

use crate::{exit::Exit, problem::Problem, screen::tell};

/// The maximum number of bytes of a prompt in total.
const MAX_PROMPT: u64 = 1_024 * 1_024;

/// The time after which a command reports that it waits for standard input.
const REPORTED_AFTER: Duration = Duration::from_secs(2);

/// Reads the parts of the prompt and joins them with an empty line between them. Next to a prompt or files, standard
/// input is read if it is a pipe or a file, unless `no_stdin`.
pub(crate) fn read(
    prompt: Option<&str>,
    files: &[PathBuf],
    no_stdin: bool,
) -> Result<String, Problem> {
    let mut parts = Vec::new();
    match prompt {
        Some("-") => parts.push(stdin()?),
        Some(text) => parts.push(text.to_owned()),
        None if !files.is_empty() => {}
        None if no_stdin || io::stdin().is_terminal() => {
            let hint = "give it as an argument, by --file, or on standard input";
            return Err(Problem::new(Exit::Usage, "there is no prompt").hint(hint));
        }
        None => parts.push(stdin()?),
    }
    let is_read = prompt == Some("-") || (prompt.is_none() && files.is_empty());
    if !is_read && !no_stdin && is_pipe_or_file() {
        parts.push(stdin()?);
    }
    for file in files {
        parts.push(text_of(file)?);
    }
    let parts: Vec<&str> = parts
        .iter()
        .map(|part| part.trim_end())
        .filter(|part| !part.is_empty())
        .collect();
    let prompt = parts.join("\n\n");
    if prompt.trim().is_empty() {
        return Err(
            Problem::new(Exit::Usage, "the prompt is empty").hint("give the agent a prompt")
        );
    }
    if prompt.len() as u64 > MAX_PROMPT {
        return Err(too_long("the prompt"));
    }
    Ok(prompt)
}

/// True if standard input is a pipe or a file: a socket, a device or a terminal may never end.
fn is_pipe_or_file() -> bool {
    let kind = rustix::fs::fstat(io::stdin()).map(|found| FileType::from_raw_mode(found.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile))
}

fn stdin() -> Result<String, Problem> {
    let (read, is_read) = mpsc::channel::<()>();
    thread::spawn(move || {
        if is_read.recv_timeout(REPORTED_AFTER) == Err(RecvTimeoutError::Timeout) {
            tell("waiting for standard input to end; --no-stdin leaves it out");
        }
    });
    let text = bounded(io::stdin().lock(), "standard input");
    drop(read);
    text
}

fn text_of(path: &Path) -> Result<String, Problem> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| {
        Problem::new(
            Exit::Usage,
            format!("cannot open the file of the prompt: {name}"),
        )
        .cause(&error)
    })?;
    bounded(file, &name)
}

fn bounded(source: impl Read, name: &str) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    source
        .take(MAX_PROMPT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            Problem::new(Exit::Usage, format!("cannot read the prompt: {name}")).cause(&error)
        })?;
    if bytes.len() as u64 > MAX_PROMPT {
        return Err(too_long(name));
    }
    String::from_utf8(bytes)
        .map_err(|_| Problem::new(Exit::Usage, format!("the prompt is no UTF-8 text: {name}")))
}

fn too_long(name: &str) -> Problem {
    let hint = "put the text into the directory, and ask about it";
    Problem::new(
        Exit::Usage,
        format!("longer than the 1 MiB that a prompt may have: {name}"),
    )
    .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_refuses_when_there_is_too_much_or_no_text() {
        assert_eq!(bounded(&b"hi\n"[..], "x"), Ok("hi\n".to_owned()));
        assert_eq!(bounded(io::repeat(b'a'), "x"), Err(too_long("x")));
        assert_eq!(
            bounded(&b"\xff"[..], "x"),
            Err(Problem::new(Exit::Usage, "the prompt is no UTF-8 text: x"))
        );
    }
}
