//! Reads the text of a file that an option or a variable names, up to a maximum size.

use std::{fs::File, io::Read, path::Path};

use crate::{exit::Exit, problem::Problem};

/// The maximum number of bytes in such a file.
const MAX_BYTES: u64 = 4 * 1_024 * 1_024;

/// Reads a file; `what` describes its purpose in errors, for example `the schema`.
pub(crate) fn text(path: &Path, what: &str) -> Result<String, Problem> {
    let name = path.display();
    let wrong = |error: &dyn std::error::Error| {
        Problem::new(Exit::Usage, format!("cannot read {what}: {name}")).cause(error)
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(&error))?;
    file.take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| wrong(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Problem::new(
            Exit::Usage,
            format!("longer than the 4 MiB that {what} may have: {name}"),
        ));
    }
    Ok(text)
}
