//! Validates a manifest: names, ranges and consistency. Paths become absolute.

mod agent;
mod agents;
mod form;
mod model;
mod place;
mod server;
mod skill;
mod tool;

#[cfg(feature = "mcp")]
pub(crate) use form::is_line;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use adjutant_agent::effects::EffectRegistry;
use adjutant_providers::{Chooser, Provider};

use super::{
    Manifest, PartNames, VERSION, near,
    node::{At, Mark, Node},
    path::{self, Kind},
    problem::{Problem, Problems, quoted},
    vars::Lookup,
};

/// The environment of the validation.
#[derive(Debug, Clone, Default)]
pub(super) struct Around {
    /// The address variables that are set: a provider at a custom address may have any model.
    addresses: BTreeSet<String>,
    /// The additional parts of the program that will run it.
    parts: PartNames,
    /// The directories in which programs are searched.
    path: Option<String>,
}

/// The state of a validation, and its findings.
struct Check<'a> {
    around: &'a Around,
    problems: &'a mut Problems,
    warnings: &'a mut Problems,
    effects: EffectRegistry,
    /// `None` if the providers or models of the manifest are invalid.
    chooser: Option<Chooser>,
    skills: Option<skill::FoundSkills>,
}

/// Validates a manifest against the tree from which it was read, and makes its paths absolute.
pub(super) fn check(
    manifest: &mut Manifest,
    tree: &Node,
    around: &Around,
    problems: &mut Problems,
    warnings: &mut Problems,
) {
    let at = At::root(tree);
    let mut check = Check {
        around,
        problems,
        warnings,
        effects: adjutant_context::register(EffectRegistry::default()),
        chooser: None,
        skills: None,
    };
    if manifest.adjutant.is_some_and(|version| version != VERSION) {
        check.tell(
            at.key("adjutant"),
            format!("this version of the format is not known: it is {VERSION}"),
        );
    }
    check.name(&manifest.name, at, "name");
    check.chooser = model::chooser(&mut check, manifest, at);
    check.skills = skill::find(&mut check, manifest, at);
    place::secrets(&mut check, tree);
    place::check(&mut check, manifest, at);
    tool::check(&mut check, manifest, at);
    server::check(&mut check, manifest, at);
    agent::check(&mut check, manifest, at);
    agents::check(&mut check, manifest, at);
}

impl Around {
    /// Reads the variables that these providers, and the built-in ones, depend on.
    pub(super) fn new(manifest: &Manifest, lookup: Lookup<'_>, parts: &PartNames) -> Self {
        let own = manifest
            .providers
            .iter()
            .filter_map(|it| Some(it.get("base_url_variable")?.as_str()?.to_owned()));
        let names = Provider::all().map(|it| it.base_url_variable).chain(own);
        let is_set = |name: &String| {
            !name.is_empty() && lookup(name).is_some_and(|it| !it.trim().is_empty())
        };
        Self {
            addresses: names.filter(is_set).collect(),
            path: lookup("PATH"),
            parts: parts.clone(),
        }
    }
}

impl Check<'_> {
    fn tell(&mut self, at: At<'_>, message: impl Into<String>) {
        self.problems.tell(at.mark, message);
    }

    fn tell_hint(
        &mut self,
        at: At<'_>,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.problems
            .push(Problem::new(at.mark, message).hint(hint));
    }

    fn warn(&mut self, mark: &Mark, message: impl Into<String>) {
        self.warnings.tell(mark, message);
    }

    /// Reports an error unless the condition holds.
    fn must(&mut self, holds: bool, at: At<'_>, message: impl Into<String>) {
        if !holds {
            self.tell(at, message);
        }
    }

    /// Checks a required name.
    fn name(&mut self, name: &str, at: At<'_>, field: &str) {
        if name.is_empty()
            && at
                .node()
                .and_then(|node| node.as_map()?.get(field))
                .is_none()
        {
            if !at.is_spoiled(field) {
                self.tell(at, format!("`{field}` is missing"));
            }
        } else if !form::is_name(name) {
            let message = format!(
                "a name has 1 to 64 letters, digits, `_` and `-`, and not {}",
                quoted(name)
            );
            self.tell(at.key(field), message);
        }
    }

    /// Requires one of these names; `what` describes them.
    fn known<'n>(
        &mut self,
        name: &str,
        names: impl IntoIterator<Item = &'n str>,
        at: At<'_>,
        what: &str,
    ) -> bool {
        let names: Vec<&str> = names.into_iter().collect();
        if names.contains(&name) {
            return true;
        }
        self.tell_hint(
            at,
            format!("there is no {what} {}", quoted(name)),
            near::hint(name, &names),
        );
        false
    }

    /// Requires names that differ in more than case.
    fn differ<'n>(&mut self, names: impl Iterator<Item = (&'n str, At<'n>)>, what: &str) {
        let mut seen: BTreeMap<String, &Mark> = BTreeMap::new();
        for (name, at) in names.filter(|(name, _)| !name.is_empty()) {
            match seen.get(&name.to_lowercase()) {
                Some(first) => {
                    let place = if first.source == at.mark.source {
                        format!("line {}", first.line)
                    } else {
                        format!("{}:{}", first.source.shown, first.line)
                    };
                    self.tell(
                        at,
                        format!("{} is {what} already: in {place}", quoted(name)),
                    );
                }
                None => {
                    seen.insert(name.to_lowercase(), at.mark);
                }
            }
        }
    }

    /// Checks a path in the manifest's directory, and makes it absolute.
    fn contained(&mut self, path: &mut std::path::PathBuf, at: At<'_>, kind: Kind) {
        match path::contained(&at.mark.source.folder, path, kind) {
            Ok(real) => *path = real,
            Err(message) => self.tell(at, format!("{}: {message}", shown(path))),
        }
    }

    /// Checks a path in a directory of the workspace.
    fn within(&mut self, path: &Path, at: At<'_>) {
        if let Err(message) = path::within(path) {
            self.tell(at, format!("{}: {message}", shown(path)));
        }
    }
}

fn shown(path: &Path) -> String {
    quoted(&path.display().to_string())
}
