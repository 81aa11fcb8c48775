//! The arguments of `adjutant skills`, and the options of runs that concern skills.

use std::path::PathBuf;

use clap::Subcommand;

/// The commands for skills.
#[derive(Debug, Subcommand)]
pub(crate) enum Skills {
    List(ListSkills),
    Show(ShowSkill),
    Check(CheckSkills),
}

/// The skills of an agent.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Taught {
    /// Adds the skills of this directory, before the project's and the user's; can be repeated.
    ///
    /// A skill is a directory with a SKILL.md. Skills are also searched in .adjutant/skills, .agents/skills,
    /// .claude/skills and .codex/skills of the project, in the same three directories of the home, in
    /// $XDG_CONFIG_HOME/adjutant/skills, else $HOME/.config/adjutant/skills, and in the plugins in .agents/plugins.
    #[arg(long = "skills", value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,

    /// Uses the configuration of the directory: its skills and plugins, the agents in .adjutant/agents, the servers of
    /// .mcp.json, and the `allow` rules of .adjutant/rules.
    ///
    /// They control the model with your authority: read them before you trust them. Without this option they are only
    /// listed.
    #[arg(long)]
    pub(crate) trust: bool,

    /// Uses the skills of the project, but not its agents.
    #[arg(long)]
    pub(crate) trust_skills: bool,
}

/// Lists the skills: name, owner, whether they are used, tokens, and location.
///
/// The tokens are for its line in the prompt and, after a plus, for its text when it is loaded. A skill without a
/// description is always in the prompt. Errors of a skill are written to standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct ListSkills {
    #[command(flatten)]
    pub(crate) whose: OfSkills,
}

/// Shows a skill: its description, the files in its directory, and its text as the model receives it.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowSkill {
    /// The skill.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) whose: OfSkills,
}

/// Checks skills against the Agent Skills specification, and prints every error as file:line:column.
///
/// The exit code is 1 if a skill violates it.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckSkills {
    /// A skill, its SKILL.md, or a directory of skills.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The choice of skills.
#[derive(Debug, clap::Args)]
pub(crate) struct OfSkills {
    /// The project, whose .adjutant/skills is read.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,

    #[command(flatten)]
    pub(crate) taught: Taught,

    /// Prints one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}
