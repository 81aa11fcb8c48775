//! What models are chosen from: the environment, and the file that it may name.

use std::path::Path;

use adjutant::providers::Chooser;

use crate::{exit::Exit, file, problem::Problem};

/// The variable that names a file of providers and models.
const PROVIDERS: &str = "ADJUTANT_PROVIDERS";

/// The chooser of this environment.
pub(crate) fn chooser() -> Result<Chooser, Problem> {
    let chooser = Chooser::new(|name| std::env::var(name).ok());
    match std::env::var_os(PROVIDERS).filter(|path| !path.is_empty()) {
        Some(path) => configured(chooser, Path::new(&path)),
        None => Ok(chooser),
    }
}

fn configured(chooser: Chooser, path: &Path) -> Result<Chooser, Problem> {
    let json = file::text(path, "the providers")?;
    chooser.configuration(&json).map_err(|error| {
        let problem = Problem::new(Exit::Usage, format!("cannot use the providers: {}", path.display()));
        problem.cause(&error).hint(format!("{PROVIDERS} names this file; `adjutant run --help` says what it holds"))
    })
}
