//! A table of commands that only read: inside the sandbox they need no approval.
//!
//! A harmless command runs with a read-only root and without network, so the table only decides whether an approval is
//! needed.

use std::{env, fs, path::Path};

use super::{
    about::{places, split_paths},
    line::{Line, Simple},
    programs::is_option,
};

/// Programs that only read, and the options with which they do more.
///
/// Sources: the manuals of GNU coreutils, findutils, grep, diffutils, ripgrep, fd, tree and jq (2026-11).
const READERS: &[(&str, &str)] = &[
    (
        "ls dir cat tac head nl od hexdump cut tr paste join comm fold fmt expand unexpand rev seq stat pwd echo true \
         false basename dirname realpath readlink cmp sum cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum \
         b2sum uniq uname whoami id groups nproc arch tty which df printenv egrep fgrep grep free uptime ps strings \
         base64 base32 cd :",
        "",
    ),
    ("wc du", "--files0-from"),
    ("tail", "-f -F --follow --retry"),
    ("printf test [", "-v"),
    ("column", ""),
    ("file", "-C --compile -m --magic-file -z -Z -S --no-sandbox"),
    ("date", "-s --set -f --file"),
    ("diff", "-l --paginate --output -o"),
    (
        "sort",
        "-o --output -T --temporary-directory --compress-program --files0-from --random-source",
    ),
    (
        "find",
        "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from",
    ),
    (
        "rg",
        "--pre --pre-glob --hostname-bin -z --search-zip --ignore-file",
    ),
    ("fd fdfind", "-x -X --exec --exec-batch"),
    ("tree", "-o -R --fromfile --output"),
    (
        "jq",
        "-L --library-path -f --from-file --rawfile --slurpfile",
    ),
];
/// Subcommands of git that only read, and the options with which they do more.
///
/// A repository's settings can name programs for external diffs, text conversion, pagers, filters, fsmonitor and hooks.
/// A repository with any of them needs an approval.
const GIT: &[(&str, &str)] = &[
    ("status", "-c -C"),
    (
        "diff log show whatchanged",
        "--ext-diff --textconv --output --show-signature --no-index -O --open-files-in-pager",
    ),
    (
        "rev-parse rev-list merge-base name-rev ls-files ls-tree describe cherry",
        "--exec-path --path-format",
    ),
    ("blame shortlog", "--contents --output -S"),
    ("cat-file", "--textconv --filters --batch-command"),
    ("grep", "-O --open-files-in-pager --textconv --no-index -f"),
];
/// Subcommands of git that only list, if no further words than these follow.
const GIT_LISTS: &[(&str, &str)] = &[
    (
        "branch",
        "-a -r -v -vv --all --remotes --list --show-current --verbose",
    ),
    ("tag", "-l --list"),
    ("remote", "-v --verbose"),
    ("stash", "list"),
    ("worktree", "list"),
    ("reflog", "show"),
];
/// Settings of a repository with which git runs programs or reads other settings; each is a part of a section or of a
/// name.
const GIT_SETTINGS: [&str; 16] = [
    "include",
    "filter",
    "textconv",
    "external",
    "command",
    "fsmonitor",
    "pager",
    "program",
    "hookspath",
    "alias",
    "editor",
    "helper",
    "worktreeconfig",
    "attributesfile",
    "trustctime",
    "promisor",
];
/// The maximum size of a repository's settings.
const MAX_SETTINGS: u64 = 64 << 10;
/// Programs that print their version.
const VERSIONS: &str = "rustc cargo rustup python python3 pip pip3 uv node npm pnpm yarn deno bun go gofmt gcc g++ cc \
                        clang make cmake ninja java javac mvn gradle ruby gem perl php git bash rg fd jq docker tsc ruff";
/// Builtin commands of bash.
const BUILTINS: [&str; 10] = [
    "cd", "echo", "pwd", "true", "false", "test", "[", "printf", ":", "command",
];

/// Variables that disable programs from git's settings, for harmless commands.
#[cfg(all(feature = "shell", unix))]
pub(crate) const GIT_VARIABLES: [(&str, &str); 14] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_CONFIG_COUNT", "5"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "diff.external"),
    ("GIT_CONFIG_VALUE_2", ""),
    ("GIT_CONFIG_KEY_3", "log.showSignature"),
    ("GIT_CONFIG_VALUE_3", "false"),
    ("GIT_CONFIG_KEY_4", "core.pager"),
    ("GIT_CONFIG_VALUE_4", "cat"),
];

/// True if all commands of a line only read files below the root.
pub(super) fn is_harmless(line: &Line, cwd: &Path, root: &Path) -> bool {
    line.unclear.is_none()
        && !line.commands.is_empty()
        && line
            .commands
            .iter()
            .all(|command| reads(command, cwd, root))
        && line
            .commands
            .iter()
            .filter(|it| it.program() == "cd")
            .count()
            <= 1
}

fn reads(command: &Simple, cwd: &Path, root: &Path) -> bool {
    let Some((program, rest)) = command.words.split_first() else {
        return false;
    };
    let has_files = !command.writes.is_empty() || !command.reads.is_empty();
    if has_files
        || !command.assigns.is_empty()
        || program.contains('/')
        || !is_outside(program, root)
    {
        return false;
    }
    let has = |row: &str| row.split_whitespace().any(|name| name == program);
    if has(VERSIONS)
        && matches!(rest, [word] if matches!(word.as_str(), "--version" | "-V" | "version"))
    {
        return true;
    }
    if program == "command" {
        return matches!(rest, [option, _] if option == "-v" || option == "-V");
    }
    if program == "git" {
        return git_reads(rest, command, cwd, root);
    }
    let Some((_, options)) = READERS.iter().find(|(names, _)| has(names)) else {
        return false;
    };
    let prints = matches!(program.as_str(), "echo" | "printf");
    (options.is_empty() || command.globs.is_empty())
        && !rest.iter().any(|word| is_any(word, options))
        && (prints || rest.iter().all(|word| is_below(word, cwd, root)))
        && (program != "uniq" || rest.iter().filter(|it| !it.starts_with('-')).count() <= 1)
        && (program != "cd" || matches!(rest, [folder] if !folder.starts_with(['-', '+'])))
}

fn git_reads(words: &[String], command: &Simple, cwd: &Path, root: &Path) -> bool {
    let words = match words.first().map(String::as_str) {
        Some("--no-pager" | "-P") => &words[1..],
        _ => words,
    };
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    let has = |row: &str| row.split_whitespace().any(|known| known == name);
    let only_reads = |(_, options): &(&str, &str)| !rest.iter().any(|word| is_any(word, options));
    let only_lists = |(_, words): &(&str, &str)| {
        rest.iter()
            .all(|word| words.split_whitespace().any(|known| known == word))
    };
    let is_listed = match name.as_str() {
        "stash" | "worktree" | "reflog" => !rest.is_empty(),
        _ => true,
    };
    let is_known = GIT.iter().filter(|(names, _)| has(names)).any(only_reads)
        || (is_listed
            && GIT_LISTS
                .iter()
                .filter(|(names, _)| has(names))
                .any(only_lists));
    is_known
        && command.globs.is_empty()
        && !rest.iter().any(|word| word.contains("%G"))
        && rest.iter().all(|word| is_below(word, cwd, root))
        && is_plain_repository(&root.join(cwd), root)
}

fn is_any(word: &str, options: &str) -> bool {
    options
        .split_whitespace()
        .any(|option| is_option(word, option))
}

/// True if a word names no path outside of the root.
fn is_below(word: &str, cwd: &Path, root: &Path) -> bool {
    if word.starts_with('~') || word.contains("$") {
        return false;
    }
    // A value may be joined to an option of several letters, so a path may begin at any letter.
    let joined = word
        .find(['/', '.'])
        .filter(|_| word.starts_with('-'))
        .and_then(|at| word.get(at..));
    split_paths(word)
        .chain(joined)
        .filter(|path| *path != "/dev/null")
        .all(|path| places(root, cwd, path).iter().all(Option::is_some))
}

/// True if a program's name resolves to a file outside of the root, or to a builtin of bash.
fn is_outside(program: &str, root: &Path) -> bool {
    if BUILTINS.contains(&program) {
        return true;
    }
    let path = env::var_os("PATH").unwrap_or_default();
    for folder in env::split_paths(&path) {
        if !folder.is_absolute() {
            return false;
        }
        let file = folder.join(program);
        if file.is_file() {
            let real = file.canonicalize().unwrap_or_else(|_| file.clone());
            return !real.starts_with(root) && !file.starts_with(root);
        }
    }
    false
}

/// True if the settings of a directory's repository name no programs.
fn is_plain_repository(folder: &Path, root: &Path) -> bool {
    let Some(git) = folder
        .ancestors()
        .take_while(|above| above.starts_with(root))
        .map(|above| above.join(".git"))
        .find(|git| git.symlink_metadata().is_ok())
    else {
        return false;
    };
    // The settings of a worktree are in another directory.
    let is_folder = git.symlink_metadata().is_ok_and(|found| found.is_dir());
    let is_plain = |name: &str| match fs::symlink_metadata(git.join(name)) {
        Ok(found) if found.is_file() && found.len() <= MAX_SETTINGS => fs::read(git.join(name))
            .is_ok_and(|text| {
                let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
                !GIT_SETTINGS.iter().any(|setting| text.contains(setting))
            }),
        Ok(_) => false,
        Err(_) => name != "config",
    };
    is_folder
        && is_plain("config")
        && is_plain("config.worktree")
        && !git.join("commondir").exists()
}
