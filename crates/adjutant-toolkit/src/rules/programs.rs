//! Programs that run other programs, change the shell or write files, and the options with which other programs do.
//!
//! The list is never complete: rules only sort plain commands, and the sandbox is the guarantee.

use std::path::Path;

use super::line::Simple;

/// The effect of a program, independent of its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// No effect beyond the one that its name implies.
    Plain,
    /// Its arguments are commands or code.
    Runs,
    /// It changes the state of the shell, and so the meaning of later commands.
    Shell,
    /// It changes the files that its arguments name.
    Writes,
    /// It runs the code of the script or the module that follows.
    Interprets,
}

/// Known programs.
pub(super) struct Row {
    /// Their names, separated by blanks.
    pub(super) names: &'static str,
    pub(super) effect: Effect,
    /// Options and words with which they run other programs, or write although they otherwise only read: see
    /// [`is_option`].
    pub(super) options: &'static str,
}

const fn row(names: &'static str, effect: Effect, options: &'static str) -> Row {
    Row {
        names,
        effect,
        options,
    }
}

/// All known programs.
pub(super) const ROWS: &[Row] = &[
    row(
        "sudo doas su runuser pkexec run0 gosu su-exec setuidgid sg newgrp env xargs parallel nice ionice nohup \
         timeout time watch setsid stdbuf unbuffer chronic ifne pee mispipe vipe vidir strace ltrace gdb lldb perf rr \
         valgrind chroot unshare nsenter bwrap firejail flatpak snap proot fakeroot fakechroot faketime ssh sshpass \
         autossh mosh rsh rsync docker podman nerdctl kubectl buildah lxc lxc-attach lxc-execute runc crun \
         systemd-nspawn systemd-run machinectl docker-compose busybox toybox flock taskset setpriv chrt numactl cgexec choom prlimit \
         setarch linux32 linux64 i386 i486 i586 i686 x86_64 uname26 capsh catchsegv dtach screen tmux byobu abduco \
         run-parts start-stop-daemon tini dumb-init catatonit runsv chpst softlimit envdir s6-setsid s6-softlimit \
         at batch crontab dbus-run-session dbus-launch xvfb-run xinit startx xterm x-terminal-emulator mpirun mpiexec \
         srun sbatch nix nix-shell guix npx pnpx bunx uvx pipx entr split wish expect script ssh-agent ld-linux ld.so \
         socat ncat nc netcat strace-log-merge tclsh m4 ed ex vi vim view rvim nvim emacs emacsclient \
         ftp lftp sftp sqlite3 psql mysql mariadb dc gnuplot maxima octave erl elixir iex ghci runghc runhaskell \
         sbcl clisp ecl guile racket gforth scala kotlin groovy jshell osascript xonsh nu elvish rlwrap \
         apt apt-get dpkg rpm make-kpkg logrotate tcpdump sed awk gawk mawk nawk original-awk pwsh powershell \
         fish csh tcsh direnv mise asdf conda xdg-open hyperfine cpulimit doit just task nodemon watchexec",
        Effect::Runs,
        "",
    ),
    row(
        "command builtin exec eval source . trap alias unalias coproc export declare typeset local readonly set \
         shopt enable hash unset read mapfile readarray getopts let bind complete compgen compopt fc umask ulimit",
        Effect::Shell,
        "",
    ),
    row(
        "bash sh rbash zsh dash ash ksh mksh yash python pypy perl ruby jruby node nodejs deno bun php lua luajit \
         Rscript julia java tsx ts-node",
        Effect::Interprets,
        "",
    ),
    row(
        "tee cp mv rm rmdir unlink mkdir touch ln install truncate dd shred chmod chown chgrp setfacl mknod mkfifo \
         patch sponge rename unzip gunzip gzip bzip2 bunzip2 xz unxz zstd unzstd cpio pax ar link csplit xxd iconv \
         uniq ranlib strip objcopy patchelf",
        Effect::Writes,
        "--filter --use-compress-program",
    ),
    row(
        "find",
        Effect::Plain,
        "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from",
    ),
    row(
        "git",
        Effect::Plain,
        "-c -C --config-env --exec-path --git-dir --work-tree --output --ext-diff --textconv --upload-pack \
         --receive-pack --exec -x -O --open-files-in-pager --paginate -p --no-pager -P --extcmd --tree-filter \
         --show-signature --template --separate-git-dir --upload-archive --tool --editor \
         config bisect submodule filter-branch difftool mergetool send-email archimport cvsserver daemon \
         instaweb p4 svn hook maintenance for-each-repo web--browse",
    ),
    row(
        "sort",
        Effect::Plain,
        "-o --output --compress-program -T --temporary-directory",
    ),
    row(
        "tar bsdtar gtar",
        Effect::Writes,
        "-I --remove-files --to-command --info-script --new-volume-script --checkpoint-action --use-compress-program --rsh-command \
         -F --rmt-command --index-file",
    ),
    row("shuf", Effect::Plain, "-o --output --random-source"),
    row("rg", Effect::Plain, "--pre --hostname-bin -z --search-zip"),
    row("fd fdfind", Effect::Plain, "-x -X --exec --exec-batch"),
    row(
        "curl",
        Effect::Plain,
        "-o -O -D --dump-header --stderr --output --output-dir --remote-name --remote-name-all --remote-header-name \
         -J -K --config -T --upload-file -c --cookie-jar --trace --trace-ascii --libcurl --etag-save --hsts \
         --alt-svc -E --cert --engine --netrc-file -d --data --data-binary --data-urlencode --json -F --form \
         --create-dirs --unix-socket --abstract-unix-socket --proxy -x --doh-url --resolve --connect-to",
    ),
    row(
        "wget",
        Effect::Plain,
        "-O --output-document -P --directory-prefix --use-askpass -e --execute --post-file --body-file -o \
         --output-file -a --append-output -i --input-file --config --save-cookies --warc-file --load-cookies",
    ),
    row("scp", Effect::Runs, "-S -o -F -J -D"),
    row("cargo", Effect::Plain, "--config -C -Z +*"),
    row(
        "make gmake ninja",
        Effect::Plain,
        "-f --file --makefile -C --directory --eval -E SHELL= MAKEFLAGS= MAKEFILES= -I --include-dir -t",
    ),
    row("less more most pg", Effect::Runs, ""),
    row(
        "man",
        Effect::Plain,
        "-P --pager -H --html -C --config-file -X --gxditview -t",
    ),
    row("zip", Effect::Plain, "-T -TT --unzip-command --test"),
    row(
        "gcc cc c89 c99 g++ c++ cpp clang clang++ gfortran gccgo tcc",
        Effect::Plain,
        "-wrapper -fplugin* -B* -specs* --specs* -Xclang -load @* --config -fuse-ld* --ld-path*",
    ),
    row(
        "ld gold lld mold ld.lld",
        Effect::Plain,
        "-plugin --plugin -dynamic-linker --dynamic-linker @* -T* --script",
    ),
    row("rustc", Effect::Plain, "-C* --codegen -Z* --sysroot @*"),
    row(
        "go",
        Effect::Plain,
        "generate tool -exec -toolexec --exec --toolexec -overlay -modfile -C* -ldflags* -gcflags* env",
    ),
    row(
        "npm pnpm yarn",
        Effect::Plain,
        "exec x dlx explore config set init create --script-shell --shell --prefix -C --dir --cwd --node-options \
         --userconfig --globalconfig --git --viewer --editor --init-module",
    ),
    row(
        "pip uv poetry pdm hatch",
        Effect::Plain,
        "run tool exec download wheel --target -t --prefix --python --config-settings --log --cache-dir \
         --build-option --global-option --config-file --directory --project",
    ),
    row(
        "pytest",
        Effect::Plain,
        "-p -c --config-file --rootdir --pdb* --pdbcls -o --override-ini --basetemp --junitxml --junit-xml \
         --log-file --result-log --confcutdir --debug",
    ),
    row(
        "cmake ctest cpack meson bazel",
        Effect::Plain,
        "-P -E -S -C -D* -T --toolchain --script setup --init",
    ),
    row(
        "gradle gradlew mvn mvnw ant sbt",
        Effect::Plain,
        "-I --init-script -f --file -b --build-file -s --settings -gs -D* -P* -p --project-dir -l -logger -listener -lib",
    ),
    row(
        "eslint prettier tsc jest vitest webpack vite mocha rollup babel stylelint",
        Effect::Plain,
        "-c --config --rulesdir --resolve-plugins-relative-to --plugin --parser --output-file -o --require -r --loader \
         --globalSetup --setupFiles --reporter --reporters --testRunner --rootDir --project -p -f --format --import",
    ),
    row(
        "openssl",
        Effect::Plain,
        "-engine -provider* -out* -writerand engine -config -rand* -keyout",
    ),
    row(
        "gpg gpg2",
        Effect::Plain,
        "-o --output --exec-path --photo-viewer --agent-program --dirmngr-program --options --homedir --log-file \
         --status-file --pinentry-mode --keyserver-options",
    ),
    row("ssh-keygen ssh-add", Effect::Plain, "-D -s -f -w"),
    row("ip", Effect::Plain, "netns -b* -batch vrf"),
    row(
        "nmap",
        Effect::Plain,
        "--script* -oN -oX -oA -oG --datadir --resume --stylesheet",
    ),
    row(
        "aria2c yt-dlp youtube-dl ffmpeg",
        Effect::Plain,
        "--on-* --exec* --config* -o -d --dir --out --conf-path --downloader --external-downloader -y --input-file -i",
    ),
    row("tree", Effect::Plain, "-o -R --fromfile"),
    row(
        "jq yq",
        Effect::Plain,
        "-i --in-place --inplace -s --split-exp",
    ),
    row("date hostname", Effect::Plain, "-s --set -F --file -b"),
    row("file", Effect::Plain, "-C --compile"),
    row(
        "diff sdiff",
        Effect::Plain,
        "-o --output -l --paginate --diff-program",
    ),
    row(
        "journalctl systemctl",
        Effect::Plain,
        "--vacuum* --rotate --flush start restart link enable edit set-environment",
    ),
    row("printf test [", Effect::Plain, "-v"),
    row("rustup", Effect::Plain, "run"),
    row(
        "nano pico micro",
        Effect::Plain,
        "-s --speller -o -B -C --backupdir --operatingdir",
    ),
    row("ranger mc nnn lf", Effect::Runs, ""),
];

/// Returns the row of a program, by its name with or without a version.
pub(super) fn find_row(program: &str) -> Option<&'static Row> {
    let name = program.strip_suffix(".exe").unwrap_or(program);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'));
    let first = name.split_once('.').map_or(name, |(first, _)| first);
    // The name of a cross compiler begins with its target.
    let last = bare.rsplit_once('-').map_or(bare, |(_, last)| last);
    // The dynamic loader can be called by its name to start other programs.
    let loader = ["ld-linux", "ld.so"]
        .into_iter()
        .find(|loader| name.starts_with(loader));
    let names = [Some(name), loader, Some(bare), Some(first), Some(last)];
    names
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .find_map(|name| {
            ROWS.iter()
                .find(|row| row.names.split_whitespace().any(|known| known == name))
        })
}

/// True if a command runs a program, a script or a module that it names relative to its directory.
pub(super) fn names_relative_code(command: &Simple) -> bool {
    let words = &command.words;
    let is_relative = |word: &String| Path::new(word).is_relative();
    let interprets =
        find_row(command.program()).is_some_and(|row| row.effect == Effect::Interprets);
    let script = count_script_words(words).and_then(|count| words.get(count - 1));
    words
        .first()
        .is_some_and(|program| program.contains('/') && is_relative(program))
        || interprets && script.is_some_and(is_relative)
}

/// Subcommands of git that change the files that their arguments name.
const GIT_WRITES: &str = "mv rm checkout restore clean init clone apply worktree archive format-patch \
                          sparse-checkout read-tree checkout-index";

/// True if a command changes the files that its arguments name.
pub(super) fn writes(command: &Simple) -> bool {
    let is_git = command.program() == "git";
    let word = command.words.get(1).filter(|_| is_git);
    let is_change = word.is_some_and(|word| GIT_WRITES.split_whitespace().any(|name| name == word));
    is_change || find_row(command.program()).is_some_and(|row| row.effect != Effect::Plain)
}

/// True if a command may run other programs, or do more than its name implies.
pub(super) fn runs_others(command: &Simple) -> bool {
    !command.assigns.is_empty() || !is_safe_behind(command, 1)
}

/// True if a command does no more than its name and its first words imply, independent of later words: a pattern with a
/// trailing `*` may allow it.
pub(super) fn is_safe_behind(command: &Simple, fixed: usize) -> bool {
    let Some(row) = find_row(command.program()) else {
        return true;
    };
    let is_free = match row.effect {
        Effect::Runs | Effect::Shell => false,
        Effect::Interprets => {
            count_script_words(&command.words).is_some_and(|needed| fixed >= needed)
        }
        Effect::Plain | Effect::Writes => true,
    };
    let is_one = |word: &String| {
        row.options
            .split_whitespace()
            .any(|option| is_option(word, option))
    };
    is_free && !command.words.iter().skip(fixed.max(1)).any(is_one)
}

/// The number of words up to the script or the module of an interpreter; `None` for code.
pub(super) fn count_script_words(words: &[String]) -> Option<usize> {
    let is_python = find_row(words.first()?.rsplit('/').next()?)
        .is_some_and(|row| row.effect == Effect::Interprets)
        && words[0].contains("py");
    let flags = ["-u", "-B", "-E", "-s", "-I", "-O", "-OO"];
    let at = 1 + words[1..]
        .iter()
        .take_while(|word| is_python && flags.contains(&word.as_str()))
        .count();
    match words.get(at)?.as_str() {
        "-m" if is_python => words.get(at + 1).map(|_| at + 2),
        "run" | "test" if matches!(words[0].as_str(), "bun" | "deno") => None,
        script if script.starts_with(['-', '@']) || !script.contains(['/', '.']) => None,
        _ => Some(at + 1),
    }
}

/// Build tools and their actions. All further arguments are allowed, except the options above. An empty list is for
/// tools with only one action.
const TOOLS: &[(&str, &str)] = &[
    (
        "cargo",
        "build check test clippy fmt doc bench run tree metadata nextest",
    ),
    ("npm pnpm yarn", "test build lint ci"),
    ("go", "build test vet fmt list run"),
    ("ruff", "check format"),
    ("dotnet swift mix meson bazel", "build test compile"),
    (
        "git",
        "status log diff show add commit branch switch restore stash tag blame fetch",
    ),
    (
        "make gmake ninja gradle gradlew mvn mvnw",
        "test check build all lint format clean compile verify package docs",
    ),
    (
        "pytest mypy black isort flake8 eslint tsc jest vitest prettier phpunit rspec ctest tox nox",
        "",
    ),
    (
        "ls cat head tail wc grep rg find fd sort diff file stat tree jq",
        "",
    ),
];
/// Modules of Python whose arguments are code or programs.
const CODE_MODULES: [&str; 12] = [
    "timeit", "pdb", "trace", "profile", "cProfile", "runpy", "code", "doctest", "zipapp",
    "asyncio", "pip", "pipx",
];
/// Parts of names of variables that contain programs, code or settings.
const CODE_VARIABLES: [&str; 24] = [
    "PATH", "LD_", "OPT", "FLAGS", "GIT", "PYTHON", "NODE", "PERL", "RUBY", "JAVA", "RUSTC",
    "CARGO", "MAKE", "CC", "CXX", "EDITOR", "PAGER", "SHELL", "BROWSER", "COMMAND", "PROGRAM",
    "CONFIG", "LESS", "ENV",
];

/// Returns the number of first words of a build tool, a fixed script or a fixed module that decide its effect; `None`
/// for every other command.
pub(super) fn prefix_of(command: &Simple, root: &Path) -> Option<usize> {
    let words = &command.words;
    let program = words.first()?;
    let names_code = |variable: &String| {
        let name = variable.split('=').next().unwrap_or_default();
        let is_short = ["IFS", "PS4", "HOME", "RC"].contains(&name);
        is_short || CODE_VARIABLES.iter().any(|part| name.contains(part))
    };
    if command.assigns.iter().any(names_code) {
        return None;
    }
    let interprets =
        find_row(command.program()).is_some_and(|row| row.effect == Effect::Interprets);
    let fixed = if interprets {
        let fixed = count_script_words(words)?;
        let what = words.get(fixed - 1)?;
        let is_module = words[fixed - 2] == "-m";
        let is_code = is_module && CODE_MODULES.contains(&what.as_str());
        let is_outside =
            !is_module && Path::new(what).is_absolute() && !Path::new(what).starts_with(root);
        (!is_code && !is_outside).then_some(fixed)?
    } else if program.contains('/') {
        let is_script = Path::new(program.as_str()).is_relative() && !program.contains("..");
        is_script.then_some(1)?
    } else {
        let has = |names: &str, word: &str| names.split_whitespace().any(|name| name == word);
        let (_, actions) = TOOLS.iter().find(|(names, _)| has(names, program))?;
        let first = words.get(1).map_or("", String::as_str);
        match first {
            _ if actions.is_empty() => 1,
            "-C" if program == "git" => {
                let below = words.get(2).filter(|path| {
                    let is_above = |part: &str| matches!(part, ".." | "~");
                    Path::new(path.as_str()).is_relative() && !path.split('/').any(is_above)
                });
                below.filter(|_| words.get(3).is_some_and(|word| has(actions, word)))?;
                4
            }
            "run" | "run-script" if has("npm pnpm yarn", program) => words.get(2).map(|_| 3)?,
            first => has(actions, first).then_some(2)?,
        }
    };
    // The displayed rule contains the file names.
    let fixed = command
        .globs
        .iter()
        .fold(fixed, |fixed, at| fixed.max(at + 1));
    is_safe_behind(command, fixed).then_some(fixed)
}

/// True if the arguments of a program are commands, or code.
#[cfg(test)]
pub(super) fn is_runner(program: &str) -> bool {
    find_row(program).is_some_and(|row| !matches!(row.effect, Effect::Plain | Effect::Writes))
}

/// True if a word is this option: without a value, with a joined value, or abbreviated as programs permit it. Short
/// options may be combined. A `*` at the end of an option matches a joined value.
pub(super) fn is_option(word: &str, option: &str) -> bool {
    if let Some(start) = option.strip_suffix('*') {
        return word.starts_with(start);
    }
    match option.strip_prefix("--") {
        Some(long) => word.strip_prefix("--").is_some_and(|word| {
            let name = word.split('=').next().unwrap_or(word);
            name.len() >= 2 && long.starts_with(name)
        }),
        None => match option.strip_prefix('-') {
            Some(short) if short.len() == 1 => {
                word.starts_with('-') && !word.starts_with("--") && word.contains(short)
            }
            Some(_) => {
                word == option
                    || word
                        .strip_prefix(option)
                        .is_some_and(|rest| rest.starts_with('='))
            }
            None if option.ends_with('=') => word.starts_with(option),
            None => word == option,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(words: &[&str]) -> Simple {
        Simple {
            words: words.iter().map(|&word| word.to_owned()).collect(),
            ..Simple::default()
        }
    }

    #[test]
    fn every_row_holds_its_programs_and_options_back() {
        let mut seen = std::collections::BTreeSet::new();
        for row in ROWS {
            for name in row.names.split_whitespace() {
                assert!(seen.insert(name), "{name} has two rows");
                let plain = simple(&[name, "argument"]);
                let is_free = matches!(row.effect, Effect::Plain | Effect::Writes);
                assert_eq!(is_safe_behind(&plain, 1), is_free, "{name}");
                for option in row.options.split_whitespace() {
                    let word = option.replace('*', "x");
                    for line in [&[name, &*word, "x"][..], &[name, "x", &*word]] {
                        assert!(!is_safe_behind(&simple(line), 1), "{line:?}");
                    }
                    // The rule contains it.
                    if is_free {
                        assert!(is_safe_behind(&simple(&[name, &word]), 2), "{name} {word}");
                    }
                }
            }
        }
    }

    #[test]
    fn program_is_known_with_its_version_and_its_machine() {
        for name in [
            "python3",
            "python3.12",
            "python2.7",
            "perl5.36.0",
            "ruby3.1",
            "lua5.4",
            "node18",
            "php8.2",
            "vim.basic",
            "nc.openbsd",
            "ld-linux-x86-64.so.2",
            "bash.exe",
            "linux64",
            "x86_64",
            "setarch",
            "capsh",
            "ld.so",
        ] {
            assert!(is_runner(name), "{name}");
        }
        for name in [
            "gcc-12",
            "x86_64-linux-gnu-gcc-12",
            "clang-15",
            "clang++-15",
            "pip3",
            "pip3.11",
        ] {
            assert!(
                find_row(name).is_some_and(|row| row.effect == Effect::Plain),
                "{name}"
            );
        }
        for name in ["ls", "cat", "rustfmt", "pythonic", "linux"] {
            assert!(find_row(name).is_none(), "{name}");
        }
    }

    #[test]
    fn interpreter_is_fixed_by_its_script_or_module() {
        let table: [(&[&str], Option<usize>); 14] = [
            (&["python3", "-m", "pytest", "-q"], Some(3)),
            (&["python3", "-u", "-m", "pytest"], Some(4)),
            (&["python3", "scripts/x.py", "-v"], Some(2)),
            (&["python3.12", "-B", "x.py"], Some(3)),
            (&["node", "build.js"], Some(2)),
            (&["bash", "./test.sh", "a"], Some(2)),
            (&["python3", "-c", "x"], None),
            (&["python3", "-"], None),
            (&["python3"], None),
            (&["python3", "-m"], None),
            (&["bash", "-c", "x.y"], None),
            (&["node", "-e", "a.b"], None),
            (&["perl", "-e", "x"], None),
            (&["java", "@args.txt"], None),
        ];
        for (words, expect) in table {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(count_script_words(&words), expect, "{words:?}");
        }
    }
}
