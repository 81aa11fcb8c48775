//! `page`: the page of the view in a real browser. It is driven against made sessions and against the real program;
//! pictures of every view are kept below `target/page/screenshots`.

use std::{path::PathBuf, process::Command};

use crate::{Failure, cargo, npm};

const PACKAGES: &[(&str, &str)] = &[("playwright-core", "1.65.1"), ("axe-core", "4.14.1")];
/// Names that the browser has, the usual one first.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
const BUILD: &str = "build --workspace --bin adjutant --locked --quiet";
/// The picture of the README, which the drive makes.
const PICTURE: &str = "docs/view.png";
/// Bytes of the picture.
const MAX_PICTURE: u64 = 200_000;

pub(crate) fn run(options: &[&str]) -> Result<(), Failure> {
    let keeps = match options {
        [] => false,
        ["--picture"] => true,
        _ => return Err(Failure::Usage("page: only --picture is known".into())),
    };
    let Some(browser) = browser() else {
        println!("skipped: the page: no browser is here; hint: install chromium");
        return Ok(());
    };
    let out = npm::folder("page");
    let installed = match npm::install(&out, PACKAGES) {
        Ok(installed) => installed,
        Err(Failure::Step(why) | Failure::Usage(why)) => {
            println!("skipped: the page: its driver cannot be installed: {why}");
            return Ok(());
        }
    };
    let program = cargo::built(BUILD, "adjutant")?;
    let (root, mut drive) = (cargo::root(), Command::new(installed.node));
    drive
        .arg(root.join("xtask/page/drive.mjs"))
        .arg(root.join("crates/adjutant-server/page"));
    let status = drive.arg(&out).arg(browser).arg(program).status();
    let status = status.map_err(|error| Failure::Step(format!("the driver: {error}")))?;
    if !status.success() {
        return Err(Failure::Step("the page does not do what it should".into()));
    }
    let made = out.join("view.png");
    let bytes = std::fs::metadata(&made).map_or(u64::MAX, |it| it.len());
    if bytes >= MAX_PICTURE {
        return Err(Failure::Step(format!(
            "{}: {bytes} bytes (limit {MAX_PICTURE})",
            made.display()
        )));
    }
    if keeps {
        let copied = std::fs::copy(&made, root.join(PICTURE));
        copied.map_err(|error| Failure::Step(format!("{PICTURE}: {error}")))?;
    }
    Ok(())
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path)
        .flat_map(|folder| BROWSERS.iter().map(move |name| folder.join(name)));
    found.find(|it| it.is_file())
}
