//! Agents in a root of their own: a launcher that begins their processes by bubblewrap, without a network.
//!
//! `bubblewrap <folder>` creates an agent there and prompts it; the program is also its host and enters its sandbox.

#[path = "bubblewrap/launcher.rs"]
mod launcher;

use std::{error::Error, path::Path, process::ExitCode};

use adjutant::runtime::{
    Backend, Manifest, Overrides, Parts,
    backend::{Process, ProcessOptions},
    host,
    prompt::PromptRequest,
};
use launcher::Bubblewrap;

const MANIFEST: &str = "name: ada\nmodel: offline/planner\n";

fn main() -> ExitCode {
    if let Some(code) = launcher::inside().or_else(|| host::main(Parts::new)) {
        return code;
    }
    if !Bubblewrap::is_there() {
        println!("SKIPPED: this machine has no bubblewrap, or it may make no namespaces");
        return ExitCode::SUCCESS;
    }
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    match operate(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn operate(folder: &Path) -> Result<(), Box<dyn Error>> {
    let file = folder.join("adjutant.yaml");
    std::fs::write(&file, MANIFEST)?;
    let resolved = Manifest::load(&file, |_| None)?.resolve(Overrides::default())?;
    let options = ProcessOptions::new().launcher(Bubblewrap::new(std::env::current_exe()?, false));
    let backend = Process::new(folder.join("home"), None, options)?;
    let agent = backend.create(uuid::Uuid::new_v4(), resolved).await?;
    agent.start().await?;
    let reply = agent
        .prompter()
        .await?
        .prompt(PromptRequest::new("Hello!"))
        .await?;
    println!("{}: {}", agent.name(), reply.text);
    backend.destroy().await?;
    Ok(())
}
