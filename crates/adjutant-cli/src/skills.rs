//! `adjutant skills`: lists the skills, shows their contents, and checks them against the specification.

use adjutant::skills::{Finding, Severity, Skill, Skills, check};
use serde_json::{Value, json};

use crate::{
    args::{self, CheckSkills, ListSkills, OfSkills, ShowSkill},
    consent::Trusting,
    exit::Exit,
    near, plain,
    problem::Problem,
    screen::{tell, write},
    taught,
};

/// Runs the subcommand.
pub(crate) fn skills(command: args::Skills) -> Result<Exit, Problem> {
    match command {
        args::Skills::List(args) => list(&args),
        args::Skills::Show(args) => show(&args),
        args::Skills::Check(args) => hold(&args),
    }
}

fn find(whose: &OfSkills) -> Result<Skills, Problem> {
    taught::find(&whose.taught, &whose.root, Trusting::Before)
}

fn list(args: &ListSkills) -> Result<Exit, Problem> {
    let skills = find(&args.whose)?;
    if skills.all().is_empty() && skills.findings().is_empty() {
        tell("there is no skill in the directories of the project and the user");
    }
    if args.whose.json {
        let lines = skills
            .all()
            .iter()
            .map(json_of)
            .chain(skills.findings().iter().map(json_of_finding));
        write(&lines.map(plain::json_line).collect::<String>())?;
        return Ok(Exit::Finished);
    }
    let rows: Vec<[String; 5]> = skills.all().iter().map(row).collect();
    let width = |at: usize| {
        rows.iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or_default()
    };
    let (name, scope, status, tokens) = (width(0), width(1), width(2), width(3));
    let text: String = rows
        .iter()
        .map(|[a, b, c, d, place]| {
            format!("{a:name$}  {b:scope$}  {c:status$}  {d:>tokens$} tokens  {place}\n")
        })
        .collect();
    write(&text)?;
    skills
        .findings()
        .iter()
        .for_each(|finding| tell(&taught::line(finding)));
    Ok(Exit::Finished)
}

fn row(skill: &Skill) -> [String; 5] {
    let tokens = match skill.is_inline() {
        true => skill.body_tokens().to_string(),
        false => format!("{}+{}", skill.listing_tokens(), skill.body_tokens()),
    };
    let place = plain::line(&skill.place().file);
    [
        skill.name().to_owned(),
        skill.scope().name().to_owned(),
        skill.status().name().to_owned(),
        tokens,
        place,
    ]
}

fn show(args: &ShowSkill) -> Result<Exit, Problem> {
    let skills = find(&args.whose)?;
    let named = || skills.all().iter().find(|skill| skill.name() == args.name);
    let Some(skill) = skills.get(&args.name).or_else(named) else {
        let problem = Problem::new(
            Exit::Usage,
            format!("no skill has this name: {}", args.name),
        );
        let near = near::near(&args.name, skills.all().iter().map(Skill::name));
        return Err(match near.is_empty() {
            true => problem.hint("`adjutant skills list` shows them"),
            false => problem.hint(format!("the nearest are {}", near.join(", "))),
        });
    };
    if args.whose.json {
        let mut value = json_of(skill);
        value["body"] = skill.body().into();
        let files = skill
            .files()
            .iter()
            .map(|file| json!({"path": &*file.path, "size": file.size}));
        value["files"] = files.collect();
        write(&plain::json_line(value))?;
        return Ok(Exit::Finished);
    }
    write(&text_of(skill))?;
    Ok(Exit::Finished)
}

/// Formats a skill for people.
fn text_of(skill: &Skill) -> String {
    let [name, scope, status, tokens, place] = row(skill);
    let mut text = format!(
        "name: {name}\nscope: {scope}\nstatus: {status}\ntokens: {tokens}\nplace: {place}\n"
    );
    let mut line = |what: &str, value: &str| text += &format!("{what}: {}\n", plain::line(value));
    match skill.description() {
        Some(description) => line("description", description),
        None => line("description", "none, so it is always at hand"),
    }
    skill
        .license()
        .into_iter()
        .for_each(|value| line("license", value));
    skill
        .compatibility()
        .into_iter()
        .for_each(|value| line("compatibility", value));
    skill
        .metadata()
        .iter()
        .for_each(|(key, value)| line("metadata", &format!("{key}={value}")));
    if !skill.allowed_tools().is_empty() {
        line(
            "allowed-tools",
            &format!(
                "{} (told by the skill, not granted)",
                skill.allowed_tools().join(", ")
            ),
        );
    }
    skill
        .files()
        .iter()
        .for_each(|file| line("file", &format!("{} ({} bytes)", file.path, file.size)));
    format!("{text}\n{}\n", plain::stream(skill.body()))
}

fn hold(args: &CheckSkills) -> Result<Exit, Problem> {
    let (mut text, mut errors, mut warnings, mut count) =
        (String::new(), 0_usize, 0_usize, 0_usize);
    for path in &args.paths {
        let checked = check(path).map_err(|error| taught::skill_problem(&error))?;
        count += checked.skills.len();
        for finding in &checked.findings {
            match finding.severity {
                Severity::Error => errors += 1,
                _ => warnings += 1,
            }
            match args.json {
                true => text += &plain::json_line(json_of_finding(finding)),
                false => text += &format!("{}\n", plain::line(&finding.to_string())),
            }
        }
    }
    if args.json {
        text += &plain::json_line(json!({"skills": count, "errors": errors, "warnings": warnings}));
    }
    write(&text)?;
    if !args.json {
        tell(&format!(
            "skills: {count}, errors: {errors}, warnings: {warnings}"
        ));
    }
    Ok(if errors == 0 {
        Exit::Finished
    } else {
        Exit::Failed
    })
}

/// Format: one JSON object per line.
fn json_of(skill: &Skill) -> Value {
    json!({
        "skill": skill.name(),
        "scope": skill.scope().name(),
        "status": skill.status().name(),
        "inline": skill.is_inline(),
        "description": skill.description(),
        "license": skill.license(),
        "compatibility": skill.compatibility(),
        "metadata": skill.metadata(),
        "allowed_tools": skill.allowed_tools(),
        "tokens": {"listing": skill.listing_tokens(), "body": skill.body_tokens()},
        "files": skill.files().len(),
        "place": &*skill.place().file,
    })
}

/// Format: one JSON object per line.
fn json_of_finding(finding: &Finding) -> Value {
    json!({
        "finding": finding.kind.name(),
        "severity": finding.severity.name(),
        "file": &*finding.place.file,
        "line": finding.place.line,
        "column": finding.place.column,
        "message": &*finding.message,
    })
}
