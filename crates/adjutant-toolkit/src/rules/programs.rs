//! Programs that run others, and options by which programs do more than they seem to.

use super::line::Simple;

/// Programs whose arguments are commands, or code.
const RUNNERS: [&str; 84] = [
    "sudo",
    "doas",
    "su",
    "runuser",
    "env",
    "xargs",
    "parallel",
    "nice",
    "ionice",
    "nohup",
    "timeout",
    "time",
    "watch",
    "setsid",
    "stdbuf",
    "strace",
    "ltrace",
    "gdb",
    "perf",
    "valgrind",
    "chroot",
    "unshare",
    "nsenter",
    "bwrap",
    "firejail",
    "flatpak",
    "ssh",
    "rsync",
    "docker",
    "podman",
    "kubectl",
    "busybox",
    "toybox",
    "command",
    "builtin",
    "exec",
    "eval",
    "source",
    ".",
    "trap",
    "alias",
    "coproc",
    "bash",
    "sh",
    "zsh",
    "dash",
    "ash",
    "ksh",
    "fish",
    "csh",
    "tcsh",
    "pwsh",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "deno",
    "bun",
    "php",
    "lua",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "ed",
    "ex",
    "vi",
    "vim",
    "emacs",
    "expect",
    "script",
    "m4",
    "sed",
    "flock",
    "taskset",
    "setpriv",
    "chrt",
    "split",
    "tclsh",
    "wish",
    "entr",
    "prlimit",
    "systemd-run",
];
/// Options of programs that make them run others, or write where they should only look.
const OPTIONS: [(&str, &[&str]); 13] = [
    (
        "find",
        &[
            "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf",
            "-fls",
        ],
    ),
    (
        "git",
        &[
            "-c",
            "-C",
            "--config-env",
            "--exec-path",
            "--git-dir",
            "--work-tree",
            "--output",
            "--ext-diff",
            "--textconv",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "-x",
            "-O",
            "--open-files-in-pager",
            "--paginate",
            "-p",
            "--no-pager",
            "-P",
            "--extcmd",
            "--tree-filter",
            "config",
            "bisect",
            "submodule",
            "filter-branch",
            "difftool",
            "mergetool",
        ],
    ),
    ("sort", &["-o", "--output", "--compress-program", "-T"]),
    (
        "tar",
        &[
            "-I",
            "--to-command",
            "--info-script",
            "--new-volume-script",
            "--checkpoint-action",
            "--use-compress-program",
            "--rsh-command",
            "-F",
        ],
    ),
    ("rg", &["--pre", "--hostname-bin"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    (
        "curl",
        &[
            "-o",
            "-O",
            "-D",
            "--dump-header",
            "--stderr",
            "--output",
            "--remote-name",
            "-K",
            "--config",
            "-T",
            "--upload-file",
        ],
    ),
    (
        "wget",
        &[
            "-O",
            "--output-document",
            "-P",
            "--use-askpass",
            "-e",
            "--execute",
            "--post-file",
        ],
    ),
    ("cargo", &["--config", "-C", "-Z"]),
    (
        "make",
        &["-f", "--file", "--makefile", "-C", "--eval", "SHELL"],
    ),
    ("less", &["-o", "-O", "--log-file"]),
    ("man", &["-P", "--pager", "-H"]),
    ("zip", &["-T", "-TT", "--unzip-command"]),
];

/// True if a command may run others, or do more than its name says, so that a pattern with `*` does not allow it.
pub(super) fn runs_others(command: &Simple) -> bool {
    let program = plain(command.program());
    if is_runner(program) {
        return true;
    }
    let Some((_, options)) = OPTIONS.iter().find(|(name, _)| *name == program) else {
        return false;
    };
    let is_one = |word: &String| options.iter().any(|option| is_option(word, option));
    command.words.iter().skip(1).any(is_one)
}

/// True if the arguments of a program are commands, or code.
pub(super) fn is_runner(program: &str) -> bool {
    // The program that starts others for the kernel can be called by its name.
    RUNNERS.contains(&plain(program))
        || program.starts_with("ld-linux")
        || program.starts_with("ld.so")
}

/// The name of a program without a version: `python3.12` is `python3`, `git.exe` is `git`.
fn plain(program: &str) -> &str {
    let program = program.strip_suffix(".exe").unwrap_or(program);
    program.split_once('.').map_or(program, |(name, rest)| {
        let is_version =
            !name.is_empty() && rest.bytes().all(|it| it.is_ascii_digit() || it == b'.');
        if is_version { name } else { program }
    })
}

/// True if a word is this option, alone, with its value, or shortened as programs allow it; short ones may be joined.
fn is_option(word: &str, option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => word.strip_prefix("--").is_some_and(|word| {
            let name = word.split('=').next().unwrap_or(word);
            name.len() >= 2 && long.starts_with(name)
        }),
        None => match option.strip_prefix('-') {
            Some(short) if short.len() == 1 => {
                word.starts_with('-') && !word.starts_with("--") && word.contains(short)
            }
            Some(_) => word == option,
            None => word.starts_with(option),
        },
    }
}
