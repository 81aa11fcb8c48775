//! Makes modules of the examples, for one program that holds them all: linked one by one they take ten times as long.
//!
//! Each is copied, as it is, with a function below it that its parent can call: `main` is private.

use std::{
    env, fs,
    io::Error,
    path::{Path, PathBuf},
};

const EXAMPLES: &str = "../examples/examples";
const START: &str = "
pub(crate) fn start() -> std::process::ExitCode {
    std::process::Termination::report(main())
}
";

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-changed={EXAMPLES}");
    let to =
        PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| Error::other("cargo names no folder"))?);
    let (mut modules, mut arms) = (String::new(), String::new());
    for name in copy(Path::new(EXAMPLES), &to, START)? {
        modules += &format!("mod {name};\n");
        arms += &format!("        \"{name}\" => {name}::start(),\n");
    }
    let start =
        "fn start(example: &str) -> Option<std::process::ExitCode> {\n    Some(match example {\n";
    fs::write(
        to.join("examples.rs"),
        format!("{modules}\n{start}{arms}        _ => return None,\n    }})\n}}\n"),
    )
}

/// Copies Rust files with an end of their own, and folders of modules without; gives the names of the files.
fn copy(from: &Path, to: &Path, end: &str) -> Result<Vec<String>, Error> {
    fs::create_dir_all(to)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        if path.is_dir() {
            copy(&path, &to.join(name), "")?;
        } else {
            fs::write(to.join(name), fs::read_to_string(&path)? + end)?;
            names.extend(path.file_stem().map(|it| it.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}
