//! The folders that are searched for skills, and the trust in project folders.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A folder of skills.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    /// The directory that no link may lead out of, if there is one.
    within: Option<PathBuf>,
    scope: Scope,
    trust: Trust,
    is_required: bool,
    follows_links: bool,
    form: RootForm,
}

/// The form of a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootForm {
    /// Skills at any depth, read leniently.
    Free,
    /// The skills of a plugin: child directories with a `SKILL.md` that follow the specification.
    Plugin,
}

/// The owner of skills; of one name, the greater scope takes precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Scope {
    /// The user's own, for all projects.
    User,
    /// Skills of a project: untrusted until they are confirmed.
    Project,
    /// Skills of a folder that the user named for this use.
    Named,
}

/// The rule for the use of skills that came with a project.
///
/// A freshly cloned repository is untrusted text: its skills would address the model with the authority of the
/// application.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Trust {
    /// They are listed, and not used.
    #[default]
    Denied,
    /// They are used.
    Allowed,
    /// A function is called, once for each root that has skills.
    Ask(Arc<dyn Fn(&TrustAsk) -> bool + Send + Sync>),
}

/// The question before skills of a project are used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrustAsk {
    /// The folder.
    pub path: PathBuf,
    /// The names of the skills in it, sorted.
    pub names: Vec<Arc<str>>,
    /// The directories of the skills, in the order of the names.
    pub folders: Vec<PathBuf>,
}

impl Root {
    /// The user's own skills, for all projects; it need not exist.
    pub fn user(path: impl Into<PathBuf>) -> Self {
        Self::new(path, Scope::User, Trust::Allowed)
    }

    /// The skills of a project; it need not exist, and is not trusted by default.
    pub fn project(path: impl Into<PathBuf>) -> Self {
        Self::new(path, Scope::Project, Trust::Denied)
    }

    /// A folder that the user named: trusted, and it must exist.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        Self::new(path, Scope::Named, Trust::Allowed).required()
    }

    /// Sets whether its skills are used.
    #[must_use]
    pub fn trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Follows links to directories anywhere. Otherwise, links of a user's root are followed anywhere, links of a
    /// project's root inside the directory of [`within`](Self::within), and links of a named root are not followed.
    #[must_use]
    pub fn follow_links(self) -> Self {
        Self {
            follows_links: true,
            ..self
        }
    }

    /// Reads the root as the `skills` directory of a plugin: only child directories with a file named exactly
    /// `SKILL.md` are skills, and a skill that violates the specification is omitted.
    #[must_use]
    pub fn plugin(self) -> Self {
        Self {
            form: RootForm::Plugin,
            ..self
        }
    }

    /// Makes it an error if it does not exist.
    #[must_use]
    pub fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }

    /// Passes the root over if a link leads out of this directory, which it lies in.
    ///
    /// A repository may make its folder of skills a link to anywhere.
    #[must_use]
    pub fn within(self, directory: impl Into<PathBuf>) -> Self {
        Self {
            within: Some(directory.into()),
            ..self
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The owner of the skills.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The directory around it, and its path inside; `None` if it may be anywhere.
    pub(crate) fn place_within(&self) -> Option<(&Path, &Path)> {
        let directory = self.within.as_deref()?;
        // A root that does not lie there leads out by its path.
        Some((
            directory,
            self.path.strip_prefix(directory).unwrap_or(&self.path),
        ))
    }

    pub(crate) fn is_required(&self) -> bool {
        self.is_required
    }

    pub(crate) fn follows_links(&self) -> bool {
        self.follows_links || (self.scope == Scope::Project && self.within.is_some())
    }

    pub(crate) fn form(&self) -> RootForm {
        self.form
    }

    /// True if these skills of it, with their directories, are used.
    pub(crate) fn is_trusted(&self, mut skills: Vec<(Arc<str>, PathBuf)>) -> bool {
        match &self.trust {
            Trust::Denied => false,
            Trust::Allowed => true,
            Trust::Ask(_) if skills.is_empty() => false,
            Trust::Ask(ask) => {
                skills.sort();
                let (names, folders) = skills.into_iter().unzip();
                ask(&TrustAsk {
                    path: self.path.clone(),
                    names,
                    folders,
                })
            }
        }
    }

    fn new(path: impl Into<PathBuf>, scope: Scope, trust: Trust) -> Self {
        Self {
            path: path.into(),
            within: None,
            scope,
            trust,
            is_required: false,
            follows_links: scope == Scope::User,
            form: RootForm::Free,
        }
    }
}

impl Trust {
    /// Calls this function.
    pub fn ask(ask: impl Fn(&TrustAsk) -> bool + Send + Sync + 'static) -> Self {
        Trust::Ask(Arc::new(ask))
    }
}

impl Scope {
    /// Returns its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Named => "named",
        }
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trust::Denied => "Denied",
            Trust::Allowed => "Allowed",
            Trust::Ask(_) => "Ask",
        })
    }
}
