//! The skills that are available to an agent, from several roots, with the findings.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_llm::Estimate;

use crate::{
    Error, Finding, FindingKind, Location, Root, Severity, Skill, Status,
    findings::{Findings, Strictness},
    limits::{MAX_INLINE_BYTES, MAX_LISTING_BYTES, MAX_SKILLS},
    scan::{FILES, scan},
};

/// Skills of several roots; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    /// Sorted by name; of equal names, the used one first.
    all: Arc<[Skill]>,
    findings: Arc<[Finding]>,
}

/// About how many tokens skills take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillTokens {
    /// The skills that are always at hand.
    pub inline: u64,
    /// The list of the skills that can be loaded.
    pub listing: u64,
    /// The tokens that would be added if all of those were loaded.
    pub on_demand: u64,
}

/// The result of [`check`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Checked {
    /// The skills that can be read.
    pub skills: Vec<Skill>,
    /// The findings: errors and remarks.
    pub findings: Vec<Finding>,
}

impl Skills {
    /// Reads the skills of these roots. An error in one skill does not affect the others.
    ///
    /// A folder with a `SKILL.md` or `skill.md` is a skill with the folder's name; a root that has one is itself a skill. Of
    /// several skills with one name, the greatest [`Scope`](crate::Scope) takes precedence, then the first root.
    /// Untrusted skills never replace others. This function reads files, so asynchronous code must call it on a
    /// thread that may block.
    ///
    /// # Errors
    /// For a root that must exist: `Missing` and `Invalid` if it does not, or is not a folder; `Io` if it cannot be
    /// opened.
    pub fn load(roots: impl IntoIterator<Item = Root>) -> Result<Self, Error> {
        let mut roots: Vec<Root> = roots.into_iter().collect();
        roots.sort_by_key(|root| std::cmp::Reverse(root.scope()));
        let mut findings = Findings::new(Strictness::Lenient);
        let mut all: Vec<Skill> = Vec::new();
        for root in &roots {
            let mut skills = scan(root, &mut findings)?;
            if !skills.is_empty() && !root.is_trusted(skills.iter().map(identify).collect()) {
                skills
                    .iter_mut()
                    .for_each(|skill| skill.status = Status::Untrusted);
                let place = Location::whole(root.path().display().to_string());
                let message = format!(
                    "nobody trusts the skills of this folder: {} not used",
                    skills.len()
                );
                findings.warn(FindingKind::Untrusted, place, message);
            }
            all.append(&mut skills);
        }
        settle(&mut all, &mut findings);
        all.sort_by(|one, other| {
            one.name()
                .cmp(other.name())
                .then(is_idle(one).cmp(&is_idle(other)))
        });
        Ok(Self {
            all: all.into(),
            findings: findings.into_list().into(),
        })
    }

    /// The skills that are used, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.all.iter().filter(|skill| !is_idle(skill))
    }

    /// Every skill that was read, including unused ones, sorted by name.
    pub fn all(&self) -> &[Skill] {
        &self.all
    }

    /// The skill of this name, if it is used.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.iter().find(|skill| skill.name() == name)
    }

    /// True if no skill is used.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the findings: refused skills, and remarks about others.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// About how many tokens the used skills take.
    pub fn tokens(&self) -> SkillTokens {
        self.tokens_by(&|text| Estimate.count(text))
    }

    /// Returns the number of tokens that the used skills take, by this counter.
    pub fn tokens_by(&self, counter: &dyn Fn(&str) -> u64) -> SkillTokens {
        let mut tokens = SkillTokens::default();
        for skill in self.iter() {
            let body = if skill.is_inline() {
                &mut tokens.inline
            } else {
                &mut tokens.on_demand
            };
            *body += skill.body_tokens_by(counter);
            tokens.listing += skill.listing_tokens_by(counter);
        }
        tokens
    }

    /// The tools that a used skill requests to use without approval; empty if there is no such skill.
    ///
    /// It is data, and grants nothing: an application that trusts a skill so far makes its own rule of it.
    pub fn allowed_tools(&self, name: &str) -> &[Arc<str>] {
        self.get(name).map(Skill::allowed_tools).unwrap_or_default()
    }
}

/// Holds skills against the specification: a skill, its `SKILL.md`, or a folder of skills.
///
/// Violations of the specification are errors, also where [`Skills::load`] is lenient. This function reads files, so
/// asynchronous code must call it on a thread that may block.
///
/// # Errors
/// `Missing` and `Invalid` if there is no such folder; `Io` if it cannot be opened.
pub fn check(path: &Path) -> Result<Checked, Error> {
    let folder = match path.parent() {
        Some(parent)
            if path
                .file_name()
                .is_some_and(|name| FILES.iter().any(|file| name == *file)) =>
        {
            parent
        }
        _ => path,
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let mut findings = Findings::new(Strictness::Strict);
    let mut skills = scan(&Root::named(folder), &mut findings)?;
    let mut findings = findings.into_list();
    if skills.is_empty()
        && findings
            .iter()
            .all(|finding| finding.severity != Severity::Error)
    {
        let place = Location::whole(path.display().to_string());
        findings.push(Finding::new(
            Severity::Error,
            FindingKind::Missing,
            place,
            "there is no skill",
        ));
    }
    skills.sort_by(|one, other| one.name().cmp(other.name()));
    Ok(Checked { skills, findings })
}

fn identify(skill: &Skill) -> (Arc<str>, PathBuf) {
    (Arc::clone(&skill.manifest.name), skill.directory())
}

fn is_idle(skill: &Skill) -> bool {
    skill.status != Status::Used
}

/// Selects the skills that are used, the greatest scope first.
fn settle(all: &mut [Skill], findings: &mut Findings) {
    let mut taken: BTreeMap<String, Skill> = BTreeMap::new();
    let (mut inline, mut listing) = (MAX_INLINE_BYTES, MAX_LISTING_BYTES);
    for skill in all.iter_mut().filter(|skill| !is_idle(skill)) {
        if let Some(other) = taken.get(skill.name()) {
            // Programs link one directory from several places.
            let real = |skill: &Skill| skill.directory().canonicalize().ok();
            if real(skill).is_none_or(|directory| real(other) != Some(directory)) {
                let message = format!(
                    "the skill {} is not used: the one of {} counts",
                    skill.name(),
                    other.place.file
                );
                findings.warn(FindingKind::Shadowed, skill.place.clone(), message);
            }
            skill.status = Status::Shadowed;
            continue;
        }
        let (room, size) = match skill.listing() {
            None => (&mut inline, skill.text().len() + skill.name().len() + 8),
            Some(line) => (&mut listing, line.len() + 1),
        };
        match room.checked_sub(size) {
            Some(left) if taken.len() < MAX_SKILLS => *room = left,
            _ => {
                let message = format!(
                    "the skill {} is not used: there is no room for more",
                    skill.name()
                );
                findings.refuse(FindingKind::TooMany, skill.place.clone(), message);
                skill.status = Status::LeftOut;
                continue;
            }
        }
        taken.insert(skill.name().to_owned(), skill.clone());
    }
}
