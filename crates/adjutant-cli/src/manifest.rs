//! `adjutant manifest`: the errors of a manifest, its resolved form, and its schema.

use std::{env, path::Path};

use adjutant::runtime::{
    Manifest, Overrides,
    manifest::{self, Loaded, Problem as Finding, Problems},
};
use serde_json::{Value, json};

use crate::{
    args::{self, CheckManifest, ShowManifest},
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write},
};

/// Runs the subcommand.
pub(crate) fn manifest(command: args::ManifestCommand) -> Result<Exit, Problem> {
    match command {
        args::ManifestCommand::Check(args) => check(&args),
        args::ManifestCommand::Show(args) => show(&args),
        args::ManifestCommand::Schema => {
            write(&format!("{:#}\n", manifest::schema()))?;
            Ok(Exit::Finished)
        }
    }
}

fn load(file: &Path) -> Result<Loaded, Problems> {
    Manifest::load(file, |name| env::var(name).ok())
}

fn check(args: &CheckManifest) -> Result<Exit, Problem> {
    let loaded = load(&args.file);
    let (problems, untold, warnings): (Vec<Finding>, usize, Vec<Finding>) = match loaded {
        Ok(loaded) => (Vec::new(), 0, loaded.warnings),
        Err(problems) => (
            problems.iter().cloned().collect(),
            problems.untold(),
            Vec::new(),
        ),
    };
    let severities = [("error", &problems), ("warning", &warnings)];
    let lines = severities
        .iter()
        .flat_map(|(severity, list)| list.iter().map(move |it| (*severity, it)));
    let mut text: String = lines
        .map(|(severity, it)| line(severity, it, args.json))
        .collect();
    let (errors, noteworthy) = (problems.len() + untold, warnings.len());
    if args.json {
        text += &plain::json_line(json!({"errors": errors, "warnings": noteworthy}));
    }
    write(&text)?;
    if !args.json {
        tell(&format!("errors: {errors}, warnings: {noteworthy}"));
    }
    Ok(if problems.is_empty() {
        Exit::Finished
    } else {
        Exit::Usage
    })
}

fn line(severity: &str, it: &Finding, is_json: bool) -> String {
    if is_json {
        return plain::json_line(json_of(severity, it));
    }
    let mark = if severity == "warning" {
        "warning: "
    } else {
        ""
    };
    format!("{mark}{}\n", plain::line(&it.to_string()))
}

/// Format: one JSON object per line.
fn json_of(severity: &str, it: &Finding) -> Value {
    json!({
        "severity": severity,
        "file": &*it.file,
        "line": it.line,
        "column": it.column,
        "message": it.message,
        "hint": it.hint,
    })
}

fn show(args: &ShowManifest) -> Result<Exit, Problem> {
    let resolved = match load(&args.file).and_then(|loaded| loaded.resolve(Overrides::default())) {
        Ok(resolved) => resolved,
        Err(problems) => return Ok(report(&problems)),
    };
    let text = if args.json {
        let value = serde_json::to_value(&resolved);
        let value = value.map_err(|error| {
            Problem::new(Exit::Usage, "what was resolved cannot be written").cause(&error)
        })?;
        plain::json_line(value)
    } else {
        resolved
            .to_yaml()
            .map_err(|error| Problem::from_error(Exit::Usage, &error))?
    };
    write(&text)?;
    Ok(Exit::Finished)
}

/// Prints the errors of a manifest to standard error.
fn report(problems: &Problems) -> Exit {
    problems
        .iter()
        .for_each(|problem| tell(&format!("error: {}", plain::line(&problem.to_string()))));
    Exit::Usage
}
