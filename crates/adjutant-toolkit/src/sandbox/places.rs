//! The files of the machine and of the user that a command may read without being told: programs, and what those need.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{helper, hosts::Hosts};

/// Where programs and their libraries stand.
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
/// What of the machine's settings programs need; `shadow`, keys of the machine and the like are not among them.
pub(super) const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];
/// What of `/proc` and `/sys` tells of the machine and of no process.
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
/// Devices without memory: what is written is gone, what is read is nobody's.
pub(super) const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
/// Tools that people keep in their home, below it; none of these holds a credential.
const TOOLS: &[&str] = &[
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/git",
    ".cargo/registry",
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
/// Variables by which tools find what is in the home, although a command is given another one.
const HOMES: [(&str, &str); 6] = [
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
    ("PYENV_ROOT", ".pyenv"),
    ("NVM_DIR", ".nvm"),
    ("GOMODCACHE", "go/pkg/mod"),
    ("PYTHONUSERBASE", ".local"),
];
/// Variables that are handed on as they are.
const HANDED: [&str; 7] = [
    "PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "USER",
];

/// The variables that name a proxy. What is the command's own is reached without it, unless a host of that name is wanted.
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

/// The tools in the user's home that are there.
pub(super) fn tools() -> Vec<PathBuf> {
    let below = |home: PathBuf| TOOLS.iter().map(move |tool| home.join(tool));
    env::home_dir()
        .into_iter()
        .flat_map(below)
        .filter(|path| path.exists())
        .collect()
}

/// The environment of a command: nothing of this process's but these names.
pub(super) fn environment(home: &Path, tmp: &Path) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = HANDED
        .iter()
        .filter_map(|name| Some(((*name).into(), env::var_os(name)?)))
        .collect();
    if let Some(own) = env::home_dir() {
        let there = HOMES.iter().filter_map(|(name, below)| {
            let value = env::var_os(name).unwrap_or_else(|| own.join(below).into());
            Path::new(&value).exists().then(|| ((*name).into(), value))
        });
        environment.extend(there);
    }
    let set = [
        ("HOME", home.as_os_str()),
        ("TMPDIR", tmp.as_os_str()),
        ("TERM", "dumb".as_ref()),
    ];
    environment.extend(set.map(|(name, value)| (name.into(), value.to_owned())));
    environment
}
