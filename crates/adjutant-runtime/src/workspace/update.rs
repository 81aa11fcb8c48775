//! An update of a workspace: prepared next to the running version, applied by the next start, rolled back if that start
//! fails. Sessions, memories, boards and notes, and other files in the working directory, are unchanged.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_tool::Cancel;
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
use rustix::fs::{CWD, RenameFlags};
use serde::{Deserialize, Serialize};

use super::{
    AgentFile, Changes, Lock, TOOLS, Workspace,
    prepare::{clear, make},
};
use crate::{
    error::{Error, ErrorKind},
    files::{self, Sync, storage},
    manifest::Resolved,
    provenance::FileKind,
};

/// The directory of a prepared update that is not applied yet.
const STAGED: &str = ".update";
/// The name of that directory while it is deleted.
const DROPPED: &str = ".dropped";
/// The directory of the previous version, until a start of the update has succeeded.
const FORMER: &str = ".former";
/// The file in it that marks its restoration.
const BACK: &str = "back";
/// The file with the outcome of the last update.
const TOLD: &str = "updated.json";

/// The outcome of the last update: `updated.json`.
///
/// Format: `{"at_ms":1767225600000}`, `{"at_ms":1767225600000,"failed":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpdateFile {
    /// The time, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The reason why it was rolled back; `None` if it was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Arc<str>>,
}

/// A prepared update that is not stored yet: dropping it changes nothing. The agent cannot be prepared or started in
/// the meantime.
#[derive(Debug)]
pub struct MadeUpdate {
    workspace: Workspace,
    agent: AgentFile,
    changes: Changes,
    /// The temporary workspace; `None` if the agent was not prepared yet either.
    making: Option<Workspace>,
    _life: Lock,
}

impl MadeUpdate {
    /// Returns its changes.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Stores the update for the next start, replacing an earlier one. It is durable when this returns.
    ///
    /// # Errors
    /// `Storage` if it cannot be written: the earlier one stays.
    pub fn keep(&self) -> Result<(), Error> {
        match &self.making {
            None => files::write_json(&self.workspace.file("agent.json"), &self.agent, Sync::Disk),
            Some(making) => {
                put_down(making.root(), &self.workspace.file(STAGED))?;
                files::sync_folder(self.workspace.root())
            }
        }
    }
}

impl Drop for MadeUpdate {
    fn drop(&mut self) {
        // The next update deletes the remains.
        let _left = clear(&self.workspace);
    }
}

impl Workspace {
    /// Prepares an update of an agent next to the running version. It has no effect before it is stored.
    ///
    /// Blocks. An interrupted update is finished first.
    ///
    /// # Errors
    /// `Invalid` if the name differs, `Busy` if the agent is being prepared or started, and the errors of preparing;
    /// nothing has changed then.
    pub fn make_update(
        &self,
        resolved: &Resolved,
        host: &Path,
        now_ms: u64,
    ) -> Result<MadeUpdate, Error> {
        let life = Lock::take(&self.file("life.lock"))?;
        if self.is_on_trial() && !self.is_hosted()? {
            self.put_update()?;
        }
        let before = self.agent()?;
        let (old, new) = (&before.resolved.manifest.name, &resolved.manifest.name);
        if old != new {
            let message = format!("an update keeps the name of an agent: {old}, not {new}");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let agent = AgentFile {
            resolved: Arc::new(resolved.clone()),
            ..before.clone()
        };
        let changes = Changes::between(&before.resolved, resolved, &[], &[]);
        let mut made = MadeUpdate {
            workspace: self.clone(),
            agent,
            changes,
            making: None,
            _life: life,
        };
        if !self.is_prepared() {
            return Ok(made);
        }
        let (making, prepared) = make(self, resolved, host, now_ms, &Cancel::new())?;
        let known = self.prepared()?.provenance.files;
        // An unchanged data file is not copied again, because the agent may have changed its copy.
        for file in prepared
            .provenance
            .files
            .iter()
            .filter(|it| it.kind == FileKind::Data && known.contains(it))
        {
            fs::remove_file(making.file("").join(&file.path))
                .map_err(|error| storage("delete", &file.path, error))?;
        }
        files::write_json(&making.file("prepared.json"), &prepared, Sync::Disk)?;
        files::write_json(&making.file("agent.json"), &made.agent, Sync::Disk)?;
        made.changes = Changes::between(
            &before.resolved,
            resolved,
            &known,
            &prepared.provenance.files,
        );
        made.making = Some(making);
        Ok(made)
    }

    /// Deletes a prepared update that is not applied; it is either complete or gone.
    ///
    /// # Errors
    /// `Storage` if it cannot be deleted.
    pub fn drop_update(&self) -> Result<(), Error> {
        let (staged, dropped) = (self.file(STAGED), self.file(DROPPED));
        files::remove_folder(&dropped)?;
        if there(&staged) {
            fs::rename(&staged, &dropped).map_err(|error| storage("delete", &staged, error))?;
        }
        files::remove_folder(&dropped)
    }

    /// Returns the workspace of a prepared update, if there is one.
    pub fn update(&self) -> Option<Workspace> {
        let staged = self.file(STAGED);
        staged.is_dir().then(|| Workspace::at(staged))
    }

    /// Returns how the last update ended, if there was one.
    ///
    /// # Errors
    /// `Storage` if the file cannot be read.
    pub fn last_update(&self) -> Result<Option<UpdateFile>, Error> {
        files::read_json_if_any(&self.file(TOLD))
    }

    /// Applies an update; the previous version is kept until it is confirmed. True if something has changed.
    ///
    /// Blocks. An interrupted operation is finished.
    pub(crate) fn put_update(&self) -> Result<bool, Error> {
        let former = Workspace::at(self.file(FORMER));
        if former.file(BACK).exists() {
            self.put_back()?;
        }
        let Some(staged) = self.update() else {
            return Ok(false);
        };
        files::make_folder(former.root())?;
        for item in items(&staged)? {
            let (new, now, old) = (
                staged.file("").join(&item),
                self.file("").join(&item),
                former.file("").join(&item),
            );
            // Programs from a bundle are not part of an update, which names other programs.
            let goes = there(&new) || item == Path::new(TOOLS);
            // The confirmed version is kept, not its replacement, which never started.
            if there(&now) && goes && !there(&old) {
                kept(&now, &old)?;
            }
            if there(&new) {
                moved(&new, &now)?;
            }
        }
        files::sync_folder(self.root())?;
        self.drop_update()?;
        Ok(true)
    }

    /// True if an update is applied and no start has succeeded with it yet.
    pub fn is_on_trial(&self) -> bool {
        self.file(FORMER).is_dir()
    }

    /// Confirms an update.
    pub(crate) fn keep_update(&self, now_ms: u64) -> Result<(), Error> {
        files::write_json(
            &self.file(TOLD),
            &UpdateFile {
                at_ms: now_ms,
                failed: None,
            },
            Sync::Program,
        )?;
        files::remove_folder(&self.file(FORMER))
    }

    /// Rolls an update back: the previous version is restored.
    pub(crate) fn take_back(&self, why: &str, now_ms: u64) -> Result<(), Error> {
        let told = UpdateFile {
            at_ms: now_ms,
            failed: Some(why.into()),
        };
        files::write_json(&self.file(TOLD), &told, Sync::Program)?;
        files::write_bytes(&self.file(FORMER).join(BACK), b"", Sync::Disk)?;
        self.put_back()
    }

    fn put_back(&self) -> Result<(), Error> {
        let former = Workspace::at(self.file(FORMER));
        for item in items(&former)? {
            let (old, now) = (former.file("").join(&item), self.file("").join(&item));
            if there(&old) {
                moved(&old, &now)?;
            }
        }
        files::remove_folder(former.root())
    }
}

/// Returns the entries that are replaced one by one; `agent.json` is the last.
fn items(of: &Workspace) -> Result<Vec<PathBuf>, Error> {
    let mut items: Vec<PathBuf> = ["context", "skills", TOOLS].map(PathBuf::from).into();
    let mut folders = vec![PathBuf::from("work")];
    while let Some(folder) = folders.pop() {
        let path = of.file("").join(&folder);
        if !path.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path)
            .map_err(|error| storage("read", &path, error))?
            .flatten()
        {
            let item = folder.join(entry.file_name());
            if entry.file_type().is_ok_and(|it| it.is_dir()) {
                folders.push(item)
            } else {
                items.push(item)
            }
        }
    }
    items.extend(["prepared.json", "agent.json"].map(PathBuf::from));
    Ok(items)
}

fn there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Moves the current files aside. A file has both names until another one replaces it, so that it always exists.
fn kept(now: &Path, old: &Path) -> Result<(), Error> {
    if let Some(folder) = old.parent() {
        files::make_folder(folder)?;
    }
    fs::hard_link(now, old)
        .or_else(|_| fs::rename(now, old))
        .map_err(|error| storage("keep", now, error))
}

/// Replaces a directory, atomically if the system supports that. The previous one is then at `from` or deleted.
fn put_down(from: &Path, to: &Path) -> Result<(), Error> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    if rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    files::remove_folder(to)?;
    fs::rename(from, to).map_err(|error| storage("make", to, error))
}

/// Moves a file or a directory, replacing the destination.
fn moved(from: &Path, to: &Path) -> Result<(), Error> {
    if to.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        files::remove_folder(to)?;
    }
    if let Some(folder) = to.parent() {
        files::make_folder(folder)?;
    }
    fs::rename(from, to).map_err(|error| storage("move", to, error))
}
