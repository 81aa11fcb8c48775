//! The user's git settings for the home of the commands: name, address and formats, but no programs and no credentials.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::sandbox::git_settings;

/// The settings that are copied: whole names, or a section whose every setting is harmless. None of them names a program.
const COPIED: &[&str] = &[
    "apply.whitespace",
    "author.",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "branch.sort",
    "column.",
    "commit.cleanup",
    "commit.status",
    "commit.verbose",
    "committer.",
    "core.abbrev",
    "core.autocrlf",
    "core.commentchar",
    "core.eol",
    "core.precomposeunicode",
    "core.quotepath",
    "core.safecrlf",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "fetch.prune",
    "i18n.",
    "init.defaultbranch",
    "log.date",
    "log.decorate",
    "log.follow",
    "merge.conflictstyle",
    "merge.directoryrenames",
    "merge.ff",
    "merge.log",
    "merge.renamelimit",
    "merge.renames",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "rebase.abbreviatecommands",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.updaterefs",
    "rerere.",
    "safe.directory",
    "status.",
    "tag.sort",
    "user.email",
    "user.name",
    "user.useconfigonly",
];
/// The longest list of ignored files that is copied, in bytes.
const LONGEST: u64 = 1 << 20;

/// Copies the settings into a home. Without git or settings nothing is written; `root` selects conditional files
/// (`includeIf "gitdir:…"`).
pub(super) fn copy_settings(root: &Path, home: &Path) {
    let Some((text, ignored)) = read(root) else {
        return;
    };
    // Without these files git reports that the name is unknown.
    let _ = fs::write(home.join(".gitconfig"), text);
    let own = env::home_dir().unwrap_or_default();
    let ignored = ignored.unwrap_or_else(|| config_home(&own).join("git/ignore"));
    let is_short = ignored
        .metadata()
        .is_ok_and(|it| it.is_file() && it.len() <= LONGEST);
    let folder = home.join(".config/git");
    if is_short && fs::create_dir_all(&folder).is_ok() {
        let _ = fs::copy(ignored, folder.join("ignore"));
    }
}

fn config_home(home: &Path) -> PathBuf {
    env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .unwrap_or_else(|| home.join(".config"))
}

/// Returns the settings as a file, and the file of patterns that are ignored everywhere.
fn read(root: &Path) -> Option<(String, Option<PathBuf>)> {
    let own = env::home_dir()?;
    let mut command = Command::new(git_settings::program(root)?);
    command
        .args(["config", "--null", "--list", "--show-scope", "--includes"])
        .current_dir(root)
        .env_clear()
        .env("HOME", &own)
        .env("XDG_CONFIG_HOME", config_home(&own))
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut settings, mut ignored) = (String::new(), None);
    let mut parts = text.split('\0');
    while let (Some(scope), Some(setting)) = (parts.next(), parts.next()) {
        let (name, value) = setting.split_once('\n').unwrap_or((setting, "true"));
        if scope != "global" {
            continue;
        }
        if name == "core.excludesfile" {
            ignored = Some(match value.strip_prefix("~/") {
                Some(below) => own.join(below),
                None => PathBuf::from(value),
            });
        }
        if let Some(line) = git_settings::line(name, value)
            && is_copied(name)
        {
            settings.push_str(&line);
        }
    }
    Some((settings, ignored))
}

fn is_copied(name: &str) -> bool {
    // A name with a subsection has a second dot.
    name.matches('.').count() == 1
        && COPIED
            .iter()
            .any(|copied| name == *copied || copied.ends_with('.') && name.starts_with(copied))
}
