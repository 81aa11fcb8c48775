//! `adjutant agents`: lists agents, and checks their files.

use std::path::Path;

use adjutant::orchestration::Definition;
use serde_json::{Value, json};

use crate::{
    agent_files::{self, AgentFiles},
    args::{self, AgentChoice, CheckAgents, ListAgents},
    consent::Trusting,
    exit::Exit,
    file, plain,
    problem::Problem,
    run_manifest,
    screen::{tell, write},
    servers::Servers,
    store::Store,
    under,
    work::work,
};

/// Runs the subcommand.
pub(crate) fn agents(command: args::Agents) -> Result<Exit, Problem> {
    match command {
        args::Agents::List(args) => match &args.session {
            Some(name) => work(at_work(&args, name)),
            None => list(&args),
        },
        args::Agents::Check(args) => check(&args),
    }
}

async fn at_work(args: &ListAgents, name: &str) -> Result<Exit, Problem> {
    under::list(&Store::find(&args.at).await?, name, args.json).await
}

fn list(args: &ListAgents) -> Result<Exit, Problem> {
    let choice = AgentChoice {
        agents: args.agents.clone(),
        ..AgentChoice::default()
    };
    let mut files = AgentFiles::find(&choice, &args.taught, &args.root)?;
    let used = files.used.iter().map(|it| (it, "used"));
    let mut all: Vec<(&Definition, &str)> = used
        .chain(files.untrusted.iter().map(|it| (it, "untrusted")))
        .collect();
    all.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    let servers = Servers::find(&args.root, Trusting::Before)?;
    let wrong = all
        .iter()
        .filter_map(|(it, _)| run_manifest::unknown(it, &servers))
        .map(|problem| problem.line());
    let wrong: Vec<String> = wrong.map(|line| format!("agents: {line}")).collect();
    let text = if args.json {
        all.iter().map(|(it, status)| json_of(it, status)).collect()
    } else {
        table(&all)
    };
    files.findings.extend(wrong);
    if text.is_empty() && files.findings.is_empty() {
        tell("there is no agent in .adjutant/agents");
    }
    write(&text)?;
    files.findings.iter().for_each(|finding| tell(finding));
    Ok(Exit::Finished)
}

fn table(all: &[(&Definition, &str)]) -> String {
    let rows: Vec<[String; 6]> = all.iter().map(|(it, status)| row(it, status)).collect();
    let width = |at: usize| {
        rows.iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or_default()
    };
    let (name, status, model, boxes) = (width(0), width(1), width(2), width(3));
    let line = |[a, b, c, d, depth, about]: &[String; 6]| {
        format!("{a:name$}  {b:status$}  {c:model$}  {d:boxes$}  depth {depth}  {about}\n")
    };
    rows.iter().map(line).collect()
}

fn row(it: &Definition, status: &str) -> [String; 6] {
    let boxes = if it.toolboxes.is_empty() {
        "-".to_owned()
    } else {
        it.toolboxes.join(",")
    };
    let (model, about) = (
        it.model.as_deref().unwrap_or("-"),
        plain::line(&it.description),
    );
    [
        it.name.to_string(),
        status.to_owned(),
        plain::line(model),
        plain::line(&boxes),
        it.depth.to_string(),
        about,
    ]
}

/// Format: one JSON object per line.
fn json_of(it: &Definition, status: &str) -> String {
    let value = json!({
        "agent": &*it.name,
        "status": status,
        "description": &*it.description,
        "model": it.model,
        "toolboxes": it.toolboxes,
        "skills": it.skills,
        "max_turns": it.max_turns,
        "depth": it.depth,
        "handoffs": it.handoffs,
        "expertise": it.expertise,
        "estimated_cost": it.estimated_cost,
        "max_concurrency": it.max_concurrency,
        "prefix": it.prefix,
    });
    plain::json_line(value)
}

fn check(args: &CheckAgents) -> Result<Exit, Problem> {
    let (mut text, mut count, mut errors) = (String::new(), 0_usize, 0_usize);
    let servers = Servers::find(Path::new("."), Trusting::Before)?;
    for path in &args.paths {
        let (read, mut wrong) = read(path)?;
        wrong.extend(
            read.iter()
                .filter_map(|it| run_manifest::unknown(it, &servers))
                .map(|problem| problem.line()),
        );
        (count, errors) = (count + read.len(), errors + wrong.len());
        for line in wrong {
            let object: Value = json!({"severity": "error", "message": line});
            text += &if args.json {
                plain::json_line(object)
            } else {
                format!("{line}\n")
            };
        }
    }
    if args.json {
        text += &plain::json_line(json!({"agents": count, "errors": errors}));
    }
    write(&text)?;
    if !args.json {
        tell(&format!("agents: {count}, errors: {errors}"));
    }
    Ok(if errors == 0 {
        Exit::Finished
    } else {
        Exit::Failed
    })
}

/// Reads the agents of a path; also returns the errors of invalid ones.
fn read(path: &Path) -> Result<(Vec<Definition>, Vec<String>), Problem> {
    if !path.is_file() {
        let (read, problems) =
            Definition::folder(path).map_err(|error| Problem::from_error(Exit::Usage, &error))?;
        return Ok((read, problems.iter().map(agent_files::line).collect()));
    }
    Ok(
        match Definition::parse(&file::text(path, "the agent")?, path) {
            Ok(one) => (vec![one], Vec::new()),
            Err(error) => (Vec::new(), vec![agent_files::line(&error)]),
        },
    )
}
