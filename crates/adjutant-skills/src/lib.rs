//! Skills for agents: folders with a `SKILL.md`, always at hand or loaded on demand.

#![doc = include_str!("../README.md")]

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
pub mod yaml;

pub use error::{Error, ErrorKind};
pub use finding::{Finding, FindingKind, Location, Severity};
pub use root::{Root, Scope, Trust, TrustAsk};
pub use skill::{Skill, SkillFile, Status};
pub use skills::{Checked, SkillTokens, Skills, check};
pub use tools::{LOAD_SKILL, READ_SKILL_FILE};
