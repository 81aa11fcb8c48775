//! Loads a validated manifest from a file, and resolves it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

use super::{
    Manifest, ModelChoice, Overrides, PartNames, Resolved, check,
    check::Around,
    file, needs,
    node::{Mark, Node, Source},
    problem::{Problem, Problems},
    read, set, shape,
    vars::Lookup,
};

/// A validated manifest.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Loaded {
    /// The manifest after `extends`, includes and variables, with absolute paths.
    pub manifest: Manifest,
    /// Its files with links resolved: the manifest first, then its parents, then agents.
    pub sources: Vec<PathBuf>,
    /// Warnings.
    pub warnings: Vec<Problem>,
    tree: Node,
    around: Around,
}

impl Manifest {
    /// Reads a manifest with everything that it extends and includes.
    ///
    /// `lookup` returns the values of variables: `${NAME}` in the manifest, `PATH`, and the addresses of providers.
    /// This function reads files, so asynchronous code must call it on a thread that may block.
    ///
    /// # Errors
    /// All errors with file, line and column, at most fifty.
    pub fn load(
        path: impl AsRef<Path>,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Loaded, Problems> {
        load(path.as_ref(), None, &lookup, &PartNames::default())
    }

    /// Reads a manifest that can name these parts of the program that will run it.
    ///
    /// That program validates the parameters of effects when it starts.
    ///
    /// # Errors
    /// Like [`Manifest::load`].
    pub fn load_with(
        path: impl AsRef<Path>,
        lookup: impl Fn(&str) -> Option<String>,
        names: &PartNames,
    ) -> Result<Loaded, Problems> {
        load(path.as_ref(), None, &lookup, names)
    }

    /// Parses a manifest from a text for this file.
    ///
    /// # Errors
    /// Like [`Manifest::load`].
    pub fn parse(
        text: &str,
        path: impl AsRef<Path>,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Loaded, Problems> {
        load(path.as_ref(), Some(text), &lookup, &PartNames::default())
    }

    /// Returns the agent that receives prompts.
    pub fn entry(&self) -> Option<&super::AgentSpec> {
        self.agents
            .iter()
            .find(|agent| agent.name == self.entry_agent)
    }
}

fn load(
    path: &Path,
    text: Option<&str>,
    lookup: Lookup<'_>,
    names: &PartNames,
) -> Result<Loaded, Problems> {
    let mut problems = Problems::default();
    let Some(file::ManifestTree {
        mut root,
        mut sources,
    }) = file::load(path, text, lookup, &mut problems)
    else {
        return Err(problems.sorted());
    };
    shape::normalise(&mut root, &mut sources, &mut problems);
    let around = |manifest: &Manifest| Around::new(manifest, lookup, names);
    let (manifest, around, warnings) = meant(root.clone(), around, problems)?;
    Ok(Loaded {
        manifest,
        sources,
        warnings: warnings.sorted().into_list(),
        tree: root,
        around,
    })
}

/// Sets single fields of a loaded manifest, by their dotted paths. The result is not validated again: that happens
/// when it is run.
///
/// # Errors
/// An unknown field, or an invalid value.
pub(crate) fn with_fields(
    manifest: &Manifest,
    set: &BTreeMap<String, Value>,
) -> Result<Manifest, Problems> {
    let source = Source {
        shown: "manifest".into(),
        folder: PathBuf::new(),
    };
    let mark = Mark::whole(&Arc::new(source));
    let mut problems = Problems::default();
    let value =
        serde_json::to_value(manifest).map_err(|error| Problem::new(&mark, error.to_string()))?;
    let mut root = Node::from_json(&mark, &value);
    set::overrides(
        &mut root,
        &Overrides {
            set: set.clone(),
            ..Overrides::default()
        },
        &mut problems,
    );
    let found = read::all::<Manifest>(&mut root, &shape::fields(), &mut problems);
    match found {
        Some(found) if problems.is_empty() => Ok(found.value),
        _ => Err(problems.sorted()),
    }
}

/// Converts the tree of a manifest, and validates the readable parts.
fn meant(
    mut root: Node,
    around: impl FnOnce(&Manifest) -> Around,
    mut problems: Problems,
) -> Result<(Manifest, Around, Problems), Problems> {
    let mut warnings = Problems::default();
    let Some(found) = read::all::<Manifest>(&mut root, &shape::fields(), &mut problems) else {
        return Err(problems.sorted());
    };
    let mut manifest = found.value;
    let around = around(&manifest);
    // An omitted part would cause errors wherever it is named.
    if found.is_whole {
        check::check(&mut manifest, &root, &around, &mut problems, &mut warnings);
    }
    if problems.is_empty() {
        Ok((manifest, around, warnings))
    } else {
        Err(problems.sorted())
    }
}

impl Loaded {
    /// Returns the resolved configuration: the manifest with these overrides.
    ///
    /// # Errors
    /// All errors of the manifest with the overrides. Their position is `override` and a name.
    pub fn resolve(&self, overrides: Overrides) -> Result<Resolved, Problems> {
        let mut problems = Problems::default();
        let mut root = self.tree.clone();
        set::overrides(&mut root, &overrides, &mut problems);
        let (manifest, _, _) = meant(root, |_| self.around.clone(), problems)?;
        let needs = needs::find_variables(&manifest);
        Ok(Resolved {
            manifest,
            sources: self.sources.clone(),
            overrides,
            needs,
        })
    }
}

impl ModelChoice {
    /// Returns the possible models, the first one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (first, rest) = match self {
            Self::Name(name) => (name, &[][..]),
            Self::Spec(spec) => (&spec.name, spec.fallbacks.as_slice()),
        };
        [first].into_iter().chain(rest).map(|name| &**name)
    }
}
