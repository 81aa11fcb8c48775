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

/// The skills that an agent may have.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Taught {
    /// Adds the skills of this directory, before those of the project and of the user; may be given several times.
    ///
    /// A skill is a directory with a SKILL.md. Without this option, skills are looked for in .adjutant/skills of the
    /// directory, and in $XDG_CONFIG_HOME/adjutant/skills, else $HOME/.config/adjutant/skills.
    #[arg(long = "skills", value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,

    /// Uses the configuration of the directory: the skills in .adjutant/skills, the agents in .adjutant/agents, the
    /// servers of .mcp.json, and the `allow` rules of .adjutant/rules.
    ///
    /// They speak to the model with your voice: read them before you trust them. Without it they are only listed.
    #[arg(long)]
    pub(crate) trust: bool,

    /// Uses the skills that came with the directory, in .adjutant/skills, and not its agents.
    #[arg(long)]
    pub(crate) trust_skills: bool,
}

/// Lists the skills: name, whose they are, whether they are used, tokens, and where they are.
///
/// The tokens are those of its line in the prompt and, after a plus, of its text when it is loaded. A skill without a
/// description is always in the prompt. Problems of a skill are written to standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct ListSkills {
    #[command(flatten)]
    pub(crate) whose: OfSkills,
}

/// Shows a skill: its description, the files in its directory, and its text as the model gets it.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowSkill {
    /// The skill.
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) whose: OfSkills,
}

/// Checks skills against the Agent Skills specification; every problem is shown as file:line:column.
///
/// The exit code is 1 if one of them breaks it.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckSkills {
    /// A skill, its SKILL.md, or a directory of skills.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// OfSkills skills are looked at.
#[derive(Debug, clap::Args)]
pub(crate) struct OfSkills {
    /// The directory whose .adjutant/skills is looked into.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,

    #[command(flatten)]
    pub(crate) taught: Taught,

    /// One JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}
