//! The cassette that is replayed instead of a model.

use std::{fs::File, io::BufReader, path::Path};

use adjutant::llm::{Cassette, Replay};

use crate::{exit::Exit, problem::Problem};

/// Reads the cassette of a file.
pub(crate) fn open(path: &Path) -> Result<Replay, Problem> {
    let problem = |what: &str, error: &dyn std::error::Error| {
        Problem::new(
            Exit::Usage,
            format!("cannot {what} the cassette: {}", path.display()),
        )
        .cause(error)
    };
    let file = File::open(path).map_err(|error| problem("open", &error))?;
    let cassette = Cassette::read(BufReader::new(file)).map_err(|error| problem("play", &error))?;
    Ok(Replay::new(cassette))
}
