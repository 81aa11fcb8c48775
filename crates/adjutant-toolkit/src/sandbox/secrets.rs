//! The credentials of the user. No command can open these files, even where their directory is readable; files that mix settings and
//! credentials are given to commands as copies without the credentials.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// Files and directories of the home that hold credentials, or text that often contains some (histories).
///
/// Sources: the manuals of the programs (2026-11), and the lists of similar sandboxes: cplt (issue 26), nub (pull request 403).
pub(crate) const HIDDEN: &[&str] = &[
    // Adjutant: settings and rules, sessions, tokens and trust, agents.
    ".config/adjutant",
    ".local/share/adjutant",
    ".local/state/adjutant",
    ".adjutant/run",
    // Keys and remote machines.
    ".ssh",
    ".gnupg",
    ".pki",
    ".netrc",
    "_netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".age",
    ".config/age",
    ".config/sops",
    ".password-store",
    ".local/share/password-store",
    ".vault-token",
    ".config/op",
    ".config/Bitwarden CLI",
    // git and its hosts.
    ".git-credentials",
    ".config/git/credentials",
    ".git-credential-cache",
    ".cache/git/credential",
    ".gitconfig",
    ".config/git/config",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/tea",
    ".subversion/auth",
    ".hgrc",
    // Clouds and clusters.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".oci",
    ".aliyun",
    ".config/doctl",
    ".config/hcloud",
    ".config/linode-cli",
    ".config/scw",
    ".config/rclone",
    ".s3cfg",
    ".boto",
    ".fly",
    ".wrangler",
    ".config/.wrangler",
    ".config/netlify",
    ".local/share/com.vercel.cli",
    ".config/configstore",
    ".terraformrc",
    ".terraform.d/credentials.tfrc.json",
    ".pulumi",
    ".databrickscfg",
    ".snowflake",
    ".config/snowflake",
    ".kaggle",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".kube",
    ".minikube",
    ".docker",
    ".config/containers/auth.json",
    ".config/helm",
    // Packages.
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".pypirc",
    ".config/pypoetry",
    ".config/hatch",
    ".local/share/uv/credentials",
    ".condarc",
    ".conda/.condarc",
    ".conda/condarc",
    ".config/conda",
    ".mambarc",
    "anaconda3/.condarc",
    "miniconda3/.condarc",
    "miniforge3/.condarc",
    ".npm-global/etc/npmrc",
    ".npm-packages/etc/npmrc",
    ".continuum",
    ".config/pnpm",
    ".yarnrc.yml",
    ".bunfig.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".m2/settings-security4.xml",
    ".gradle/gradle.properties",
    ".sbt/.credentials",
    ".sbt/1.0/credentials.sbt",
    ".ivy2/.credentials",
    ".gem/credentials",
    ".local/share/gem/credentials",
    ".gemrc",
    ".bundle/config",
    ".config/composer/auth.json",
    ".composer/auth.json",
    ".nuget/NuGet",
    ".config/NuGet",
    ".hex",
    ".config/mise",
    "go/pkg/mod/cache/vcs",
    // Databases.
    ".pgpass",
    ".pg_service.conf",
    ".my.cnf",
    ".mylogin.cnf",
    // Other agents.
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".cursor",
    ".config/github-copilot",
    ".config/goose",
    ".local/share/opencode",
    ".config/opencode",
    ".aider.conf.yml",
    ".config/openai",
    ".config/io.datasette.llm",
    // Browsers, mail and keyrings.
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/opera",
    ".config/vivaldi",
    ".cache/mozilla",
    ".cache/google-chrome",
    ".cache/chromium",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/keepassxc",
    ".var/app",
    "snap/chromium",
    "snap/firefox",
    "snap/thunderbird",
    // Histories.
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".zsh_sessions",
    ".histfile",
    ".history",
    ".sh_history",
    ".ksh_history",
    ".local/state/bash/history",
    ".local/share/fish",
    ".local/share/atuin",
    ".local/share/nushell",
    ".config/nushell/history.txt",
    ".python_history",
    ".node_repl_history",
    ".irb_history",
    ".local/share/mc/history",
    ".psql_history",
    ".mysql_history",
    ".mariadb_history",
    ".sqlite_history",
    ".rediscli_history",
    ".dbshell",
    ".mongodb",
    ".lesshst",
    ".viminfo",
    ".local/state/nvim",
    ".local/share/recently-used.xbel",
];
/// Files of settings that may contain credentials, and the variable that names another place. Each is copied into the home of the
/// commands.
pub(crate) const COPIED: &[(&str, &str)] = &[
    (".npmrc", "NPM_CONFIG_USERCONFIG"),
    (".yarnrc", ""),
    (".config/pip/pip.conf", "PIP_CONFIG_FILE"),
    (".pip/pip.conf", ""),
    (".config/uv/uv.toml", "UV_CONFIG_FILE"),
    (".config/go/env", "GOENV"),
    (".cargo/config", ""),
    (".cargo/config.toml", ""),
];
/// Variables whose value is the path of a credential, or a list of such paths.
pub(crate) const NAMED: &[&str] = &[
    "ADJUTANT_HOME",
    "ADJUTANT_MCP_TOKENS",
    "ADJUTANT_STORE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CONFIG_DIR",
    "BOTO_CONFIG",
    "CLOUDSDK_CONFIG",
    "CONDARC",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GIT_CONFIG_GLOBAL",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HISTFILE",
    "KUBECONFIG",
    "NETRC",
    "PGPASSFILE",
    "REGISTRY_AUTH_FILE",
    "SSH_AUTH_SOCK",
    "TF_CLI_CONFIG_FILE",
    "UV_CREDENTIALS_DIR",
];
/// The directories of the home that variables move.
const MOVED: [(&str, &str); 5] = [
    (".config/", "XDG_CONFIG_HOME"),
    (".local/share/", "XDG_DATA_HOME"),
    (".local/state/", "XDG_STATE_HOME"),
    (".cache/", "XDG_CACHE_HOME"),
    (".cargo/", "CARGO_HOME"),
];
/// The agents of a directory, with their access tokens.
const AGENTS: &str = ".adjutant/run";
/// The largest file of settings that is copied, in bytes.
const LARGEST: u64 = 1 << 20;

/// Returns the places of a path of the home: in the directory that a variable names, and below the home.
fn places(row: &str) -> Vec<PathBuf> {
    let moved = MOVED.iter().filter_map(|(start, variable)| {
        let folder = PathBuf::from(env::var_os(variable)?);
        Some(folder.join(row.strip_prefix(start)?))
    });
    let home = env::home_dir().map(|home| home.join(row));
    moved.chain(home).collect()
}

/// Returns the files and directories that no command may open, with links resolved: those of the user that exist, and the agents of
/// this root.
pub(super) fn hidden(root: &Path) -> BTreeSet<PathBuf> {
    let rows = HIDDEN.iter().chain(COPIED.iter().map(|(row, _)| row));
    let variables = NAMED
        .iter()
        .chain(COPIED.iter().map(|(_, variable)| variable));
    let named = variables
        .filter_map(env::var_os)
        .flat_map(|value| env::split_paths(&value).collect::<Vec<_>>());
    let all = rows.flat_map(|row| places(row)).chain(named);
    let home = env::home_dir().and_then(|home| home.canonicalize().ok());
    let holds_home = |path: &Path| home.as_ref().is_some_and(|home| home.starts_with(path));
    all.chain([root.join(AGENTS)])
        .filter(|path| path.is_absolute())
        .filter_map(real)
        .filter(|path| !holds_home(path) && is_storage(path))
        .collect()
}

/// Returns an existing path with links resolved. Most paths do not exist, and this is one call for each of them.
fn real(path: PathBuf) -> Option<PathBuf> {
    path.symlink_metadata().ok()?;
    path.canonicalize().ok()
}

/// True for what can hold a credential; a device cannot.
fn is_storage(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_file() || kind.is_dir() || kind.is_socket()
    })
}

/// The paths that are open to a command, with links resolved, and the hidden ones among and below them.
pub(super) struct Opened<'a> {
    paths: Vec<(&'a Path, PathBuf)>,
    hidden: BTreeSet<PathBuf>,
}

impl<'a> Opened<'a> {
    /// A hidden path that is named itself is open.
    pub(super) fn new(paths: impl Iterator<Item = &'a PathBuf>, hidden: BTreeSet<PathBuf>) -> Self {
        let resolve = |path: &'a PathBuf| Some((path.as_path(), path.canonicalize().ok()?));
        let paths: Vec<_> = paths.filter_map(resolve).collect();
        let mut hidden = hidden;
        hidden.retain(|path| paths.iter().all(|(_, real)| real != path));
        let outer = hidden.clone();
        hidden.retain(|path| path.ancestors().skip(1).all(|above| !outer.contains(above)));
        Self { paths, hidden }
    }

    /// Returns where the hidden paths appear below the open ones, and below each of these the open paths in it.
    pub(super) fn masks(&self) -> Vec<(PathBuf, Vec<&'a Path>)> {
        let below = |(path, real): &(&'a Path, PathBuf)| -> Vec<PathBuf> {
            let hidden = self.hidden.iter();
            hidden
                .filter_map(|hidden| Some(path.join(hidden.strip_prefix(real).ok()?)))
                .collect()
        };
        let places: BTreeSet<PathBuf> = self.paths.iter().flat_map(below).collect();
        let inside = |place: &Path| {
            let paths = self.paths.iter().map(|(path, _)| *path);
            paths.filter(|path| path.starts_with(place)).collect()
        };
        places
            .into_iter()
            .map(|place| (place.clone(), inside(&place)))
            .collect()
    }

    /// Returns these paths, and instead of one with something hidden below it, the other entries of it. Links are omitted: they
    /// may lead to what is not open.
    pub(super) fn around<'b>(&self, paths: impl Iterator<Item = &'b PathBuf>) -> Vec<PathBuf> {
        let mut open = Vec::new();
        for real in paths.filter_map(|path| path.canonicalize().ok()) {
            self.collect(&real, &mut open);
        }
        open
    }

    fn collect(&self, path: &Path, open: &mut Vec<PathBuf>) {
        if !self.hidden.iter().any(|hidden| hidden.starts_with(path)) {
            open.push(path.to_owned());
        } else if !self.hidden.contains(path) {
            let entries = path.read_dir().into_iter().flatten().flatten();
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
                .for_each(|entry| self.collect(&entry.path(), open));
        }
    }
}

/// Returns a credential below a path that a command may change. Without mounts it cannot be hidden there.
pub(super) fn exposed<'a>(write: impl Iterator<Item = &'a PathBuf>) -> Option<PathBuf> {
    let write: Vec<PathBuf> = write.filter_map(|path| path.canonicalize().ok()).collect();
    let rows = HIDDEN.iter().chain(COPIED.iter().map(|(row, _)| row));
    rows.flat_map(|row| places(row))
        .filter_map(real)
        .filter(|hidden| write.iter().any(|path| hidden.starts_with(path)))
        .find(|hidden| !write.contains(hidden))
}

/// Returns the user's directory of cargo.
pub(super) fn cargo_home() -> Option<PathBuf> {
    let named = env::var_os("CARGO_HOME").map(PathBuf::from);
    named
        .filter(|path| path.is_absolute())
        .or_else(|| Some(env::home_dir()?.join(".cargo")))
}

/// Returns the user's settings of cargo if they contain no credentials.
pub(super) fn plain_cargo_settings() -> Option<PathBuf> {
    let folder = cargo_home()?;
    let files = ["config", "config.toml"].map(|name| folder.join(name));
    let is_plain =
        |path: &PathBuf| read(path).is_some_and(|text| without_credentials(&text).is_none());
    files.into_iter().find(is_plain)
}

/// Returns the copies of settings of cargo in the home of the commands, and the files that they stand for.
pub(super) fn cargo_copies(home: &Path) -> Vec<(PathBuf, PathBuf)> {
    let names = ["config", "config.toml"];
    let folder = cargo_home().into_iter();
    folder
        .flat_map(|folder| names.map(|name| (home.join(".cargo").join(name), folder.join(name))))
        .filter(|(copy, file)| copy.is_file() && file.is_file())
        .collect()
}

/// Copies the settings of the user's tools into the home of the commands. Settings of cargo are copied only if they contain
/// credentials: their directory has the same path for commands, so that builds outside are not repeated.
pub(crate) fn copy_settings(home: &Path) {
    for (row, variable) in COPIED {
        let named = env::var_os(variable).map(PathBuf::from);
        let place = named.or_else(|| places(row).into_iter().next());
        let Some(text) = place.as_deref().and_then(read) else {
            continue;
        };
        let copy = without_credentials(&text);
        let is_cargo = row.starts_with(".cargo");
        if is_cargo && copy.is_none() {
            continue;
        }
        let to = home.join(row);
        // Without these files the tools use their defaults.
        let _ = to.parent().map(fs::create_dir_all);
        let _ = fs::write(to, copy.unwrap_or(text));
        if let (true, Some(folder)) = (is_cargo, cargo_home()) {
            for name in ["bin", "git", "registry"] {
                let link = home.join(".cargo").join(name);
                let _ = std::os::unix::fs::symlink(folder.join(name), link);
            }
        }
    }
}

/// Returns the directory of cargo for commands without mounts: the copy, if the user's settings contain credentials.
pub(super) fn copied_cargo_home(home: &Path) -> Option<PathBuf> {
    let copy = home.join(".cargo");
    copy.join("registry").is_symlink().then_some(copy)
}

fn read(path: &Path) -> Option<String> {
    let found = path.metadata().ok()?;
    (found.is_file() && found.len() <= LARGEST).then(|| fs::read_to_string(path).ok())?
}

/// Words of settings that hold a credential, in small letters.
const WORDS: [&str; 19] = [
    "token",
    "passw",
    "passphrase",
    "secret",
    "credential",
    "auth",
    "apikey",
    "api-key",
    "api_key",
    "accesskey",
    "access_key",
    "private_key",
    "private-key",
    "privatekey",
    "cookie",
    "keyfile",
    "certfile",
    "signature",
    "-----begin",
];
/// Names of settings that are credentials or a part of one.
const KEYS: [&str; 5] = ["key", "user", "username", "email", "otp"];
/// Random text of this length is taken for a credential.
const RANDOM: usize = 20;

/// Returns settings as lines (`npm`, `pip`, `yarn`) or as TOML without comments and credentials; `None` if they have none. A setting
/// of several lines is left out as a whole.
pub(crate) fn without_credentials(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut has_credentials = false;
    for setting in settings(text) {
        let first = setting.trim_start();
        if first.starts_with(['#', ';']) {
            // A comment can be a credential that is not used at present.
            has_credentials |= is_credential(&setting);
            continue;
        }
        let stripped = without_user_infos(&setting);
        has_credentials |= stripped != setting;
        if !first.starts_with('[') && is_credential(&stripped) {
            has_credentials = true;
        } else {
            kept.push_str(&stripped);
        }
    }
    has_credentials.then_some(kept)
}

fn is_credential(setting: &str) -> bool {
    let text = setting.to_ascii_lowercase().replace("author", "");
    let name = text.split(['=', ' ']).next().unwrap_or_default();
    let name = name.trim().trim_matches(['"', '\'']);
    let is_random = |word: &str| {
        word.len() >= RANDOM
            && word.contains(|sign: char| sign.is_ascii_digit())
            && word.contains(|sign: char| sign.is_ascii_alphabetic())
    };
    // `//host/:…` is a setting of npm about one server: all of these are credentials. `user:password@host` needs no scheme.
    text.trim_start().starts_with("//")
        || KEYS.contains(&name)
        || WORDS.iter().any(|word| text.contains(word))
        || text
            .split(|sign: char| !sign.is_ascii_alphanumeric())
            .any(is_random)
        || text
            .split(|sign: char| sign.is_whitespace() || "\"'=,/".contains(sign))
            .any(|word| {
                word.split_once('@')
                    .is_some_and(|(user, _)| user.contains(':'))
            })
}

/// Removes `user:password@` from addresses.
pub(super) fn without_user_infos(text: &str) -> String {
    let mut parts = text.split("://");
    let mut stripped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|sign: char| sign.is_whitespace() || "/?#\"',".contains(sign));
        let (host, rest) = part.split_at(end.unwrap_or(part.len()));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        stripped.extend(["://", host, rest]);
    }
    stripped
}

/// Splits a text into its settings, each with its line ends. Indented lines without a name belong to the setting above them, and so do
/// lines before the brackets and strings of TOML are closed.
fn settings(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut open = OpenValue::default();
    for line in text.split_inclusive('\n') {
        let is_inside = open.is_open();
        let trimmed = line.trim();
        let is_header = !is_inside && trimmed.starts_with('[') && trimmed.ends_with(']');
        let is_named = line.trim_start().split_once('=').is_some_and(|(name, _)| {
            let is_plain = |sign: char| sign.is_alphanumeric() || "_.-@\"' ".contains(sign);
            name.chars().all(is_plain)
        });
        let goes_on = line.starts_with([' ', '\t']) && !trimmed.is_empty() && !is_named;
        let is_header_before = all
            .last()
            .is_none_or(|last| last.trim_start().starts_with('['));
        if !is_header {
            open.read(line);
        }
        match all.last_mut() {
            Some(last) if is_inside || goes_on && !is_header && !is_header_before => {
                last.push_str(line);
            }
            _ => all.push(line.to_owned()),
        }
    }
    all
}

/// The open brackets and strings of a value of TOML.
#[derive(Default)]
struct OpenValue {
    brackets: usize,
    /// The quotes of a string of several lines.
    quotes: Option<&'static str>,
}

impl OpenValue {
    fn is_open(&self) -> bool {
        self.brackets > 0 || self.quotes.is_some()
    }

    fn read(&mut self, line: &str) {
        let mut rest = line;
        while let Some(sign) = rest.chars().next() {
            if let Some(quotes) = self.quotes {
                let Some((_, after)) = rest.split_once(quotes) else {
                    return;
                };
                self.quotes = None;
                rest = after;
                continue;
            }
            let long = ["\"\"\"", "'''"]
                .into_iter()
                .find(|long| rest.starts_with(long));
            if let Some(long) = long {
                self.quotes = Some(long);
                rest = rest.split_at(long.len()).1;
                continue;
            }
            match sign {
                '#' => return,
                '[' | '{' => self.brackets += 1,
                ']' | '}' => self.brackets = self.brackets.saturating_sub(1),
                // A string of one line.
                '"' | '\'' => {
                    let inside = rest.split_at(1).1;
                    rest = inside.split_once(sign).map_or("", |(_, after)| after);
                    continue;
                }
                _ => {}
            }
            rest = rest.split_at(sign.len_utf8()).1;
        }
    }
}
