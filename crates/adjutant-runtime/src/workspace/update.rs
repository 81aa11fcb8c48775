//! An update of a workspace: made beside what runs, put in its place by the next start, taken back if that start fails.
//! Sessions, memories, boards and notes, and what else lies in the working folder, stay as they are.

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

/// The folder of an update that is made and not yet in its place.
const STAGED: &str = ".update";
/// What such a folder is called while it is deleted.
const DROPPED: &str = ".dropped";
/// The folder of what an update has taken the place of, until a start with it has succeeded.
const FORMER: &str = ".former";
/// The file in it that tells that it is put back.
const BACK: &str = "back";
/// The file that tells how the last update ended.
const TOLD: &str = "updated.json";

/// How the last update ended: `updated.json`.
///
/// Shape: `{"at_ms":1767225600000}`, `{"at_ms":1767225600000,"failed":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpdateFile {
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Why it was taken back; none if it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Arc<str>>,
}

/// An update that is made and not kept yet: dropped, nothing has changed. Nobody prepares or starts the agent meanwhile.
#[derive(Debug)]
pub struct MadeUpdate {
    workspace: Workspace,
    agent: AgentFile,
    changes: Changes,
    /// Where it was made; none if what it changes was not made yet either.
    making: Option<Workspace>,
    _life: Lock,
}

impl MadeUpdate {
    /// What it changes.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Has the next start put it in its place; one that was kept before is dropped. It is on the disk when this returns.
    ///
    /// # Errors
    /// `Storage` if it cannot be written: the one that was kept before holds.
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
        // What is left is deleted by whoever makes the next one.
        let _left = clear(&self.workspace);
    }
}

impl Workspace {
    /// Makes an update of an agent beside what runs, which does not know of it before it is kept.
    ///
    /// Blocks. What a crash has interrupted of another update is finished first.
    ///
    /// # Errors
    /// `Invalid` if it has another name, `Busy` if somebody prepares or starts the agent now, and as a workspace is made:
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
        let changes = Changes::of(&before.resolved, resolved, &[], &[]);
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
        // A file of data that is the same is the agent's, whatever it has made of it since.
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
        made.changes = Changes::of(
            &before.resolved,
            resolved,
            &known,
            &prepared.provenance.files,
        );
        made.making = Some(making);
        Ok(made)
    }

    /// Drops an update that is not in its place: it is there whole or not at all.
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

    /// Returns the workspace of an update that is not in its place, if there is one.
    pub fn update(&self) -> Option<Workspace> {
        let staged = self.file(STAGED);
        staged.is_dir().then(|| Workspace::at(staged))
    }

    /// Returns how the last update ended, if there was one.
    ///
    /// # Errors
    /// `Storage` if it cannot be read.
    pub fn last_update(&self) -> Result<Option<UpdateFile>, Error> {
        files::read_json_if_any(&self.file(TOLD))
    }

    /// Puts an update in its place; what was there is kept until it is proven. True if something has changed.
    ///
    /// Blocks. What a crash has interrupted is finished.
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
            // Programs that came along in a file have no place in an update: it names those that lie elsewhere.
            let goes = there(&new) || item == Path::new(TOOLS);
            // What is proven is kept, not what was put over it and never started.
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

    /// True if an update is in its place and no start has succeeded with it yet.
    pub fn is_on_trial(&self) -> bool {
        self.file(FORMER).is_dir()
    }

    /// An update has proven itself.
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

    /// An update has failed: what was there before is put back.
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

/// Returns the things that a folder holds and that are put in their place one by one: `agent.json` is the last.
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

/// Puts what is there aside. A file has both names until another one takes its own, so that it is there at any time.
fn kept(now: &Path, old: &Path) -> Result<(), Error> {
    if let Some(folder) = old.parent() {
        files::make_folder(folder)?;
    }
    fs::hard_link(now, old)
        .or_else(|_| fs::rename(now, old))
        .map_err(|error| storage("keep", now, error))
}

/// Puts a folder where another one may be, which is then in its place or gone: where the system can, in one step.
fn put_down(from: &Path, to: &Path) -> Result<(), Error> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    if rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    files::remove_folder(to)?;
    fs::rename(from, to).map_err(|error| storage("make", to, error))
}

/// Moves a file or a folder over whatever is there.
fn moved(from: &Path, to: &Path) -> Result<(), Error> {
    if to.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        files::remove_folder(to)?;
    }
    if let Some(folder) = to.parent() {
        files::make_folder(folder)?;
    }
    fs::rename(from, to).map_err(|error| storage("move", to, error))
}
