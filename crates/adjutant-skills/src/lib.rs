//! Skills for agents: folders with a `SKILL.md`, always at hand or loaded on demand.
//!
//! The format is that of the open Agent Skills specification, read with leniency: what is wrong with a skill is told as a
//! [`Finding`], and the others are read all the same.
//!
//! ```
//! use adjutant_agent::Agent;
//! use adjutant_llm::{Script, ScriptedModel};
//! use adjutant_skills::{Root, Skills};
//!
//! # let folder = tempfile::tempdir()?;
//! # std::fs::create_dir(folder.path().join("commit-messages"))?;
//! # let text = "---\nname: commit-messages\ndescription: How to write commit messages.\n---\nBe brief.\n";
//! # std::fs::write(folder.path().join("commit-messages/SKILL.md"), text)?;
//! let skills = Skills::load([Root::user(folder.path()), Root::project(".adjutant/skills")])?;
//! for finding in skills.findings() {
//!     eprintln!("{finding}");
//! }
//! let script = [Script::new().call("load_skill", serde_json::json!({"name": "commit-messages"}))];
//! let agent = skills.install(Agent::new(ScriptedModel::new(script)));
//! assert_eq!(skills.tokens().inline, 0);
//! # drop(agent);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod finding;
mod findings;
mod folder;
mod front;
mod install;
pub mod limits;
mod loaded;
mod manifest;
mod name;
mod root;
mod scan;
mod skill;
mod skills;
mod tools;

pub use error::{Error, ErrorKind};
pub use finding::{Finding, FindingKind, Location, Severity};
pub use root::{Root, Scope, Trust, TrustAsk};
pub use skill::{Skill, SkillFile, Status};
pub use skills::{Checked, SkillTokens, Skills, check};
pub use tools::{LOAD_SKILL, READ_SKILL_FILE};
