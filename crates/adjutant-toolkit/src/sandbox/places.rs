//! The files of the machine and the user that a command can always read: programs and their requirements.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs::{self, DirEntry, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{Network, helper, hosts::Hosts, secrets};

/// The folders of programs and libraries.
pub(super) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
];
/// The machine's settings that programs need; `shadow`, host keys and similar files are not included.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/dpkg",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/groff",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mailcap",
    "/etc/manpath.config",
    "/etc/maven/logging",
    "/etc/maven/m2.conf",
    "/etc/mime.types",
    "/etc/networks",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/rpc",
    "/etc/services",
    "/etc/sgml",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/texmf",
    "/etc/timezone",
    "/etc/xml",
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/lib/texmf",
];
/// The beginnings of names below `/etc` with settings that a version of a program keeps, as `/etc/java-21-openjdk`.
const VERSIONED: &[&str] = &["java", "python3"];
/// The parts of `/proc` and `/sys` that describe the machine and no process.
pub(super) const MACHINE: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/kernel/random",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/kernel/mm/transparent_hugepage",
];
/// Devices without memory: written bytes are gone, and read bytes belong to no file.
pub(super) const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
/// Tools that people keep in their home, below it. `secrets.rs` lists the credentials in them.
const TOOLS: &[&str] = &[
    ".rustup",
    ".pyenv",
    ".nvm",
    ".volta",
    ".sdkman/candidates",
    ".rbenv",
    ".bun/bin",
    ".deno/bin",
    ".local/bin",
    ".local/lib",
    ".local/share/uv",
    "go/bin",
    "go/pkg",
];
/// The folders next to the `bin` or `shims` of an installation. Its credentials, if it has any, are in other files:
/// nothing else of the directory is readable.
const INSTALLED: &[&str] = &[
    "bin",
    "candidates",
    "Cellar",
    "conda-meta",
    "condabin",
    "conf",
    "envs",
    "include",
    "installs",
    "jmods",
    "lib",
    "lib32",
    "lib64",
    "libexec",
    "node-versions",
    "node_modules",
    "opt",
    "pkgs",
    "plugins",
    "pyvenv.cfg",
    "release",
    "sbin",
    "share",
    "shims",
    "ssl",
    "toolchains",
    "versions",
];
/// Variables that name an installation.
const INSTALLATIONS: [&str; 5] = [
    "CONDA_PREFIX",
    "GOROOT",
    "JAVA_HOME",
    "JDK_HOME",
    "VIRTUAL_ENV",
];
/// Variables by which tools find their files in the user's home: the home of a command is another directory.
const HOMES: [(&str, &str); 13] = [
    ("ASDF_DATA_DIR", ".asdf"),
    ("BUN_INSTALL", ".bun"),
    ("FNM_DIR", ".local/share/fnm"),
    ("MISE_DATA_DIR", ".local/share/mise"),
    ("RBENV_ROOT", ".rbenv"),
    ("SDKMAN_DIR", ".sdkman"),
    ("VOLTA_HOME", ".volta"),
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
    ("PYENV_ROOT", ".pyenv"),
    ("NVM_DIR", ".nvm"),
    ("GOMODCACHE", "go/pkg/mod"),
    ("PYTHONUSERBASE", ".local"),
];
/// The directories of cargo below its home. Its credentials are beside them.
const CARGO: [&str; 3] = ["bin", "git", "registry"];
/// The variables of the locale. Source: locale(7), 2026-11. People use other names that begin with `LC_` for secrets, because servers
/// accept them.
const LOCALE: [&str; 13] = [
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];
/// Variables that are handed on unchanged, like the ones for installations and locales.
const HANDED: [&str; 12] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "USER",
    "CONDA_DEFAULT_ENV",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GOTOOLCHAIN",
    "RUSTUP_TOOLCHAIN",
];
/// Variables that name a proxy, handed on with the whole network.
const PROXIES: [&str; 8] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// The variables that name a proxy. The command's own addresses are reached without it, unless a host of that name is
/// in the list.
pub(super) fn proxied(hosts: &Hosts) -> Vec<(&'static str, String)> {
    let proxy = format!("http://127.0.0.1:{}", helper::PORT);
    let own = if hosts.has_loopback() {
        ""
    } else {
        "localhost,127.0.0.1,::1"
    };
    let proxies = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"]
        .map(|name| (name, proxy.clone()));
    proxies
        .into_iter()
        .chain(["no_proxy", "NO_PROXY"].map(|name| (name, own.to_owned())))
        .collect()
}

/// Returns the machine's settings that programs need.
pub(super) fn settings() -> Vec<PathBuf> {
    let is_versioned = |entry: &DirEntry| {
        let name = entry.file_name();
        let starts = |start: &&str| name.to_string_lossy().starts_with(*start);
        VERSIONED.iter().any(starts)
    };
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    let versioned = entries.filter(is_versioned).map(|entry| entry.path());
    SETTINGS
        .iter()
        .map(PathBuf::from)
        .chain(versioned)
        .collect()
}

/// Returns the tools of the user that exist: the known ones in the home, and the installations that `PATH` and variables name.
pub(super) fn tools() -> Vec<PathBuf> {
    let home = env::home_dir();
    let known = home
        .iter()
        .flat_map(|home| TOOLS.iter().map(move |tool| home.join(tool)));
    let cargo = secrets::cargo_home().into_iter();
    let cargo = cargo
        .flat_map(|cargo| CARGO.map(|name| cargo.join(name)))
        .chain(secrets::plain_cargo_settings());
    let path = env::var_os("PATH").unwrap_or_default();
    let programs: Vec<PathBuf> = env::split_paths(&path)
        .chain(
            INSTALLATIONS
                .iter()
                .filter_map(|name| Some(PathBuf::from(env::var_os(name)?).join("bin"))),
        )
        .collect();
    let programs: BTreeSet<PathBuf> = programs
        .into_iter()
        .flat_map(|programs| [programs.canonicalize().ok(), Some(programs)])
        .flatten()
        .collect();
    let installed = programs
        .iter()
        .flat_map(|programs| installation(programs, home.as_deref()));
    let all: BTreeSet<PathBuf> = known
        .chain(cargo)
        .chain(installed)
        .filter(|path| path.exists())
        .collect();
    // Everything below a listed directory is readable too.
    let mut tools: Vec<PathBuf> = Vec::new();
    for path in all {
        if !tools.last().is_some_and(|last| path.starts_with(last)) {
            tools.push(path);
        }
    }
    tools
}

/// Returns true for the path of a program of the machine, which every command can start.
pub(super) fn is_program(path: &OsString) -> bool {
    let path = Path::new(path);
    let is_executable = |file: Metadata| file.is_file() && file.mode() & 0o111 == 0o111;
    SYSTEM.iter().any(|system| path.starts_with(system)) && path.metadata().is_ok_and(is_executable)
}

/// Returns a directory of programs, and what the installation that it belongs to keeps beside it.
fn installation(programs: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let is_system = SYSTEM.iter().any(|system| programs.starts_with(system));
    let holds_home = |path: &Path| home.is_some_and(|home| home.starts_with(path));
    if !programs.is_absolute() || is_system || holds_home(programs) {
        return Vec::new();
    }
    let mut found = vec![programs.to_owned()];
    let is_installed = ["bin", "sbin", "shims"]
        .iter()
        .any(|name| programs.ends_with(name));
    // `~/.local` and the home itself hold more than one installation.
    let prefix = programs
        .parent()
        .filter(|prefix| is_installed && !holds_home(prefix) && !prefix.ends_with(".local"));
    if let Some(prefix) = prefix {
        found.extend(INSTALLED.iter().map(|name| prefix.join(name)));
    }
    found
}

/// Returns the environment of a command: the variables of this process that are named here. None of them is a credential.
pub(super) fn environment(home: &Path, tmp: &Path, network: &Network) -> Vec<(OsString, OsString)> {
    let proxies = if *network == Network::All {
        &PROXIES[..]
    } else {
        &[]
    };
    let mut environment: Vec<(OsString, OsString)> = HANDED
        .iter()
        .chain(&INSTALLATIONS)
        .chain(&LOCALE)
        .filter_map(|name| Some(((*name).into(), env::var_os(name)?)))
        .collect();
    // Names and passwords of a proxy stay here.
    environment.extend(proxies.iter().filter_map(|name| {
        let value = secrets::without_user_infos(&env::var(name).ok()?);
        Some(((*name).into(), value.into()))
    }));
    if let Some(own) = env::home_dir() {
        let there = HOMES.iter().filter_map(|(name, below)| {
            let value = env::var_os(name).unwrap_or_else(|| own.join(below).into());
            Path::new(&value).exists().then(|| ((*name).into(), value))
        });
        environment.extend(there);
    }
    if rustix::process::geteuid().is_root() {
        // Root without capabilities cannot give files to other users, and tar fails when it tries.
        environment.push(("TAR_OPTIONS".into(), "--no-same-owner".into()));
    }
    let set = [
        ("HOME", home.as_os_str()),
        ("TMPDIR", tmp.as_os_str()),
        ("TERM", "dumb".as_ref()),
    ];
    environment.extend(set.map(|(name, value)| (name.into(), value.to_owned())));
    environment
}
