//! The sources of projects and their dependencies, fetched by the ordinary clients of their registries.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use super::{remove, run_quietly};

/// The keys of Debian's archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The registry of a project, and its version where it is pinned.
pub(super) enum Kind {
    Crate(&'static str),
    /// With the packages that its tests need.
    Npm(&'static str, &'static [&'static str]),
    /// With the packages that its tests need.
    Python(&'static str, &'static [&'static str]),
    Debian,
}

impl Kind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Crate(_) => "cargo",
            Self::Npm(..) => "npm",
            Self::Python(..) => "python",
            Self::Debian => "debian",
        }
    }

    /// Creates the directory `work` with the source and whatever it needs to be built without a network.
    ///
    /// # Errors
    /// Why it cannot be fetched, or which tool is missing.
    pub(super) fn fetch(&self, name: &str, work: &Path) -> Result<(), String> {
        let place = work.with_file_name("fetched");
        remove(&place)?;
        fs::create_dir_all(&place).map_err(failed)?;
        let run = |words: &str| run_quietly(&mut shell(words, &place));
        match self {
            Self::Crate(version) => {
                let manifest = format!(
                    "[package]\nname = \"fetched\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{name} = \"={version}\"\n"
                );
                fs::create_dir(place.join("src")).map_err(failed)?;
                fs::write(place.join("src/lib.rs"), "").map_err(failed)?;
                fs::write(place.join("Cargo.toml"), manifest).map_err(failed)?;
                run("cargo vendor --quiet vendor")?;
                place_at(&place.join("vendor").join(name), work)?;
                // An empty table keeps the package out of the workspace above it.
                let manifest = work.join("Cargo.toml");
                let text = fs::read_to_string(&manifest).map_err(failed)?;
                fs::write(&manifest, text + "\n[workspace]\n").map_err(failed)?;
                run_quietly(&mut shell("cargo fetch --quiet", work))?;
            }
            Self::Npm(version, packages) => {
                let archive = run(&format!("npm pack --silent {name}@{version}"))?;
                unpack(archive.trim(), &place, work)?;
                let packages = packages.join(" ");
                // Most packages for the development of a package are linters.
                let install = format!(
                    "npm pkg delete devDependencies && npm install --no-save --ignore-scripts --no-audit --no-fund {packages}"
                );
                run_quietly(&mut shell(&install, work))?;
            }
            Self::Python(version, packages) => {
                run(&format!(
                    "python3 -m pip download --quiet --no-deps --no-binary {name} {name}=={version}"
                ))?;
                unpack("*.tar.gz", &place, work)?;
                let packages = packages.join(" ");
                let install = format!(
                    "python3 -m venv .venv && .venv/bin/python -m pip install --quiet {packages}"
                );
                run_quietly(&mut shell(&install, work))?;
            }
            Self::Debian => debian(name, &place, work)?,
        }
        remove(&place)
    }
}

/// Fetches a source package of the system's release. Root installs its build dependencies too.
fn debian(name: &str, place: &Path, work: &Path) -> Result<(), String> {
    let run = |words: &str| run_quietly(&mut shell(words, place));
    let targets = run(&format!(
        "apt-get indextargets --format 'deb-src [signed-by={KEYRING}] $(SITE) $(RELEASE) $(COMPONENT)' \
         'Identifier: Packages' 'Origin: Debian'"
    ))?;
    fs::write(place.join("sources.list"), targets).map_err(failed)?;
    fs::create_dir_all(place.join("lists/partial")).map_err(failed)?;
    let options = "-o Dir::Etc::sourcelist=$PWD/sources.list -o Dir::Etc::sourceparts=/dev/null \
                   -o Dir::State::lists=$PWD/lists -o APT::Sandbox::User=";
    run(&format!("apt-get {options} update"))?;
    run(&format!("apt-get {options} source {name}"))?;
    // The packages are written next to the source, so both are below the root.
    let source = work.join("source");
    fs::create_dir_all(work).map_err(failed)?;
    place_at(&only_directory(place, name)?, &source)?;
    let check = || run_quietly(&mut shell("dpkg-checkbuilddeps", &source));
    if let Err(missing) = check() {
        let install = "test $(id -u) = 0 && apt-get build-dep --yes --no-install-recommends ./";
        run_quietly(&mut shell(install, &source))
            .map_err(|_| format!("{missing}; hint: run `apt-get build-dep {name}`"))?;
        check()?;
    }
    Ok(())
}

/// Unpacks an archive, whose only directory becomes `work`.
fn unpack(archive: &str, place: &Path, work: &Path) -> Result<(), String> {
    fs::create_dir_all(work).map_err(failed)?;
    let tar = format!(
        "tar xzf {archive} --no-same-owner --strip-components 1 -C '{}'",
        work.display()
    );
    run_quietly(&mut shell(&tar, place)).map(drop)
}

fn place_at(directory: &Path, work: &Path) -> Result<(), String> {
    fs::rename(directory, work).map_err(|error| format!("{}: {error}", directory.display()))
}

/// Returns the directory of a source package.
fn only_directory(place: &Path, name: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(place).map_err(failed)?;
    let start = format!("{name}-");
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
        .map(|entry| entry.path())
        .find(|path| path.is_dir())
        .ok_or_else(|| format!("apt-get source {name} created no directory"))
}

fn failed(error: io::Error) -> String {
    error.to_string()
}

/// A command line, without the variables that cargo sets for this process.
fn shell(words: &str, directory: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", words]).current_dir(directory);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO") && text != "CARGO_HOME" || text.starts_with("RUSTFLAGS") {
            command.env_remove(&name);
        }
    }
    command
}
