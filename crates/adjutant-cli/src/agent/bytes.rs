//! The provenance of an agent: the files that it runs.

use std::path::Path;

use adjutant::runtime::{Provenance, provenance::Finding};
use serde_json::json;

use super::place::AgentFolder;
use crate::{
    args::agent,
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write},
    trouble::runtime_problem,
};

/// Prints the files that an agent runs, and compares them with the disk if requested.
pub(super) async fn provenance(args: &agent::Provenance) -> Result<Exit, Problem> {
    let place = AgentFolder::new(&args.this.homed, Path::new("."));
    let entry = place.find(&args.this.name)?;
    let workspace = entry.workspace.clone();
    let provenance = Provenance::collect(&workspace).map_err(|error| {
        let start = place.command(&format!("agent start {}", plain::word(&entry.name)));
        runtime_problem(&error).hint(format!(
            "it is known once the agent was prepared: `{start}` does that"
        ))
    })?;
    let (pinned, verify) = (provenance.clone(), args.verify);
    let found = tokio::task::spawn_blocking(move || {
        if verify {
            pinned.verify(&workspace)
        } else {
            Vec::new()
        }
    })
    .await;
    let found = found
        .map_err(|error| Problem::new(Exit::Failed, "the comparison broke off").cause(&error))?;
    let text = if args.json {
        json_of(&entry.name, &provenance, &found, verify)
    } else {
        lines(&provenance)
    };
    write(&text)?;
    if !args.json {
        found
            .iter()
            .for_each(|finding| tell(&format!("changed: {}", plain::line(&finding.to_string()))));
        if verify && found.is_empty() {
            tell("all is as it was when the agent was prepared");
        }
    }
    // Includes differences that permit a start, such as changed data.
    Ok(if found.is_empty() {
        Exit::Finished
    } else {
        Exit::Failed
    })
}

fn lines(provenance: &Provenance) -> String {
    let line = |file: &adjutant::runtime::provenance::PinnedFile| {
        let path = plain::line(&file.path.to_string_lossy());
        format!("{}  {:12}  {path}\n", file.sha256, file.kind.word())
    };
    provenance.files.iter().map(line).collect()
}

fn json_of(name: &str, provenance: &Provenance, found: &[Finding], is_verified: bool) -> String {
    let mut value = json!({"agent": name, "provenance": provenance});
    if is_verified {
        let told: Vec<_> = found
            .iter()
            .map(|it| json!({"path": it.path, "what": it.to_string(), "forbids_start": it.forbids_start()}))
            .collect();
        value["findings"] = told.into();
    }
    plain::json_line(value)
}
