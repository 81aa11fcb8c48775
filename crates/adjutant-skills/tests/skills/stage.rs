//! A folder of skills for a test, and what loading says of it in short.

use std::{fs, path::PathBuf, sync::Arc};

use adjutant_agent::Agent;
use adjutant_llm::{CallResult, Request, Script, ScriptedModel};
use adjutant_skills::{Finding, FindingKind, Root, Severity, Skills};
use serde_json::Value;
use tempfile::TempDir;

/// Folders of skills that end with the test.
pub(crate) struct Den {
    folder: TempDir,
}

impl Den {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file and the folders above it.
    pub(crate) fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it has a folder"))
            .expect("the folder can be made");
        fs::write(path, bytes).expect("the file can be written");
        self
    }

    /// Writes the `SKILL.md` of a folder.
    pub(crate) fn skill(self, folder: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.file(&format!("{folder}/SKILL.md"), bytes)
    }

    /// A skill with a description and this body.
    pub(crate) fn plain(self, folder: &str, body: &str) -> Self {
        let name = folder.rsplit('/').next().unwrap_or(folder).to_owned();
        self.skill(
            folder,
            format!("---\nname: {name}\ndescription: About {name}.\n---\n{body}\n"),
        )
    }

    /// The skills of `skills/`, as a user's.
    pub(crate) fn load(&self) -> Skills {
        Skills::load([Root::user(self.path("skills"))]).expect("the root can be read")
    }

    /// The findings of a load, in short: where below `skills/`, and what.
    pub(crate) fn told(&self, skills: &Skills) -> Vec<(String, Severity, FindingKind)> {
        skills
            .findings()
            .iter()
            .map(|finding| (self.at(finding), finding.severity, finding.kind))
            .collect()
    }

    /// Where a finding is, relative to the den.
    pub(crate) fn at(&self, finding: &Finding) -> String {
        let place = finding.place.to_string();
        let root = format!("{}/", self.folder.path().display());
        place.strip_prefix(&root).unwrap_or(&place).to_owned()
    }
}

pub(crate) fn names(skills: &Skills) -> Vec<&str> {
    skills.iter().map(|skill| skill.name()).collect()
}

/// What calls of an agent with these skills come to, one turn each, and what the model was asked.
pub(crate) async fn run(
    skills: &Skills,
    calls: &[(&str, Value)],
) -> (Vec<CallResult>, Vec<Request>) {
    let scripts = calls
        .iter()
        .map(|(tool, args)| Script::new().call(*tool, args.clone()));
    let model = Arc::new(ScriptedModel::new(
        scripts.chain([Script::new().text("Done.")]),
    ));
    let agent = skills.install(Agent::new(Arc::clone(&model)));
    let result = agent.run("Go.").await.expect("it answers");
    (
        result
            .calls
            .iter()
            .map(|call| CallResult::clone(&call.result))
            .collect(),
        model.requests(),
    )
}
