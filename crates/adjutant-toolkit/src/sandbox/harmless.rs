//! Makes a repository that a command created harmless: git must not run a program because of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    git_settings::{line, program},
    stamp::HeldFolder,
};

/// The settings that git and its usual commands write and that run no program. A `*` is any name in the middle.
/// Source: git-config(1), git 2.52, November 2026.
const SETTINGS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.quotepath",
    "core.compression",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "commit.gpgsign",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.partialclone",
    "gc.auto",
    "index.version",
    "init.defaultbranch",
    "pull.ff",
    "pull.rebase",
    "push.default",
    "receive.denycurrentbranch",
    "user.email",
    "user.name",
    "branch.*.merge",
    "branch.*.rebase",
    "branch.*.remote",
    "remote.*.fetch",
    "remote.*.mirror",
    "remote.*.partialclonefilter",
    "remote.*.promisor",
    "remote.*.prune",
    "remote.*.pushurl",
    "remote.*.tagopt",
    "remote.*.url",
    "submodule.*.active",
    "submodule.*.url",
];

/// The number of submodules inside each other, and of parts of their names, that are searched.
const DEEPEST: u32 = 6;

/// Makes a repository harmless. Returns the paths that were moved out of the way; the caller reports them.
pub(super) fn disarm(dir: &Path, root: &Path) -> Vec<PathBuf> {
    disarm_nested(dir, root, 0)
}

fn disarm_nested(dir: &Path, root: &Path, depth: u32) -> Vec<PathBuf> {
    let is_module = depth > 0;
    let Ok(folder) = HeldFolder::new(dir) else {
        return Vec::new();
    };
    let mut moved = Vec::new();
    let mut block = |below: &str| {
        let path = Path::new(below);
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().map(Path::new).unwrap_or(path);
        let Ok(held) = folder.below(parent) else {
            // A directory that is a link is itself moved away.
            if !parent.as_os_str().is_empty()
                && folder.entry(parent).symlink_metadata().is_ok()
                && folder.block(parent).is_ok()
            {
                moved.push(dir.join(parent));
            }
            return;
        };
        if held.entry(name).symlink_metadata().is_ok() && held.block(name).is_ok() {
            moved.push(dir.join(path));
        }
    };
    for name in [
        "commondir",
        "gitdir",
        "config.worktree",
        "info/attributes",
        "worktrees",
    ] {
        block(name);
    }
    let hooks = folder.entry("hooks");
    let has_hooks = hooks.symlink_metadata().is_ok_and(|it| !it.is_dir())
        || fs::read_dir(&hooks)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| {
                Path::new(&entry.file_name())
                    .extension()
                    .is_none_or(|end| end != "sample")
            });
    if has_hooks {
        block("hooks");
    }
    match settings(&folder, root, is_module) {
        Settings::Harmless => {}
        Settings::Unknown => block("config"),
        Settings::Cleaned(text) => {
            block("config");
            // Without the file git takes the directory for no repository, which is harmless.
            let _ = fs::write(folder.entry("config"), text);
        }
    }
    moved.extend(disarm_modules(&dir.join("modules"), root, depth + 1));
    moved
}

/// Makes the submodules in a directory harmless. Their names may contain slashes.
fn disarm_modules(modules: &Path, root: &Path, depth: u32) -> Vec<PathBuf> {
    let Ok(folder) = HeldFolder::new(modules) else {
        return Vec::new();
    };
    let mut moved = Vec::new();
    for entry in fs::read_dir(folder.entry("."))
        .into_iter()
        .flatten()
        .flatten()
    {
        let (name, path) = (entry.file_name(), modules.join(entry.file_name()));
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < DEEPEST {
            if path.join("HEAD").symlink_metadata().is_ok() {
                moved.extend(disarm_nested(&path, root, depth));
            } else {
                moved.extend(disarm_modules(&path, root, depth + 1));
            }
        } else if is_folder && folder.block(Path::new(&name)).is_ok() {
            // Deeper ones cannot be checked.
            moved.push(path);
        }
    }
    moved
}

enum Settings {
    Harmless,
    /// The harmless ones of them.
    Cleaned(String),
    Unknown,
}

fn settings(folder: &HeldFolder, root: &Path, is_module: bool) -> Settings {
    let file = match folder.entry("config").symlink_metadata() {
        Err(_) => return Settings::Harmless,
        Ok(_) => folder.open(Path::new("config")),
    };
    let (Ok(file), Some(git)) = (file, program(root)) else {
        return Settings::Unknown;
    };
    let output = Command::new(git)
        .args(["config", "--file", "-", "--no-includes", "--null", "--list"])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(file))
        .stderr(Stdio::null())
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return Settings::Unknown;
    };
    let Ok(text) = String::from_utf8(output.stdout) else {
        return Settings::Unknown;
    };
    let (mut clean, mut is_harmless) = (String::new(), true);
    for setting in text.split('\0').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('\n').unwrap_or((setting, "true"));
        let is_place = is_module && name == "core.worktree" && value.starts_with("../");
        if !is_place && !is_known(name, value) {
            is_harmless = false;
        } else if let Some(line) = line(name, value) {
            clean.push_str(&line);
        }
    }
    match is_harmless {
        true => Settings::Harmless,
        false => Settings::Cleaned(clean),
    }
}

fn is_known(name: &str, value: &str) -> bool {
    let Some((section, rest)) = name.split_once('.') else {
        return false;
    };
    let general = match rest.rsplit_once('.') {
        Some((_, key)) => format!("{section}.*.{key}"),
        None => name.to_owned(),
    };
    // `ext::` and other helpers of transport are programs.
    SETTINGS.contains(&&*general) && !value.contains("::")
}
