//! Creates the chooser of models from the environment, and from the file that it may name.

use std::path::Path;

use adjutant::providers::{Chooser, Origin};

use crate::{exit::Exit, file, problem::Problem};

/// The variable that names a file of providers and models.
const PROVIDERS: &str = "ADJUTANT_PROVIDERS";

/// Returns the chooser for this environment.
pub(crate) fn chooser() -> Result<Chooser, Problem> {
    let chooser = Chooser::new(|name| std::env::var(name).ok()).user_cache();
    match std::env::var_os(PROVIDERS).filter(|path| !path.is_empty()) {
        Some(path) => configured(chooser, Path::new(&path)),
        None => Ok(chooser),
    }
}

fn configured(chooser: Chooser, path: &Path) -> Result<Chooser, Problem> {
    let json = file::text(path, "the providers")?;
    chooser
        .configuration_of(Origin::Environment, &json)
        .map_err(|error| {
            let problem = Problem::new(
                Exit::Usage,
                format!("cannot use the providers: {}", path.display()),
            );
            problem.cause(&error).hint(format!(
                "{PROVIDERS} names this file; `adjutant run --help` says what it holds"
            ))
        })
}

/// Returns warnings about keys that are sent to other hosts than their vendors', each once.
pub(crate) fn detours<'a>(
    chooser: &Chooser,
    models: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for detour in models.into_iter().filter_map(|name| chooser.detour(name)) {
        let line = format!(
            "warning: the key in {} goes to {}, which is not its vendor's",
            detour.variable, detour.host
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}
