//! A glob from the model, with the syntax of a line of `.gitignore`: `*.rs` at any depth, `src/**/*.rs` from the root.

use std::path::Path;

use adjutant_tool::{ToolError, ToolErrorKind};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::show;

/// The pattern of the requested files.
#[derive(Debug)]
pub(super) struct Glob {
    matcher: Gitignore,
    inverted: bool,
}

impl Glob {
    pub(super) fn new(glob: &str) -> Result<Self, ToolError> {
        let (inverted, wanted) = match glob.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, glob.strip_prefix("./").unwrap_or(glob)),
        };
        let invalid = |why: String| {
            let message = format!("not a glob: {}: {why}", show::quoted(glob));
            ToolError::new(ToolErrorKind::InvalidArguments, message)
        };
        let mut builder = GitignoreBuilder::new("");
        builder
            .add_line(None, wanted)
            .map_err(|error| invalid(error.to_string()))?;
        let matcher = builder
            .build()
            .map_err(|error| invalid(error.to_string()))?;
        if matcher.is_empty() {
            return Err(invalid("it is empty or a comment".to_owned()));
        }
        Ok(Self { matcher, inverted })
    }

    /// True if a file matches, by its path from the root or from the start of the search.
    pub(super) fn wants(&self, path: &Path, from: &Path) -> bool {
        let hit = |path: &Path| {
            let usable = path.components().next().is_some() && !path.has_root();
            usable
                && self
                    .matcher
                    .matched_path_or_any_parents(path, false)
                    .is_ignore()
        };
        (hit(path) || path.strip_prefix(from).is_ok_and(hit)) != self.inverted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(glob: &str, path: &str, expect: bool) {
        let glob = Glob::new(glob).expect("a glob");
        assert_eq!(
            glob.wants(Path::new(path), Path::new("crates/a")),
            expect,
            "{path}"
        );
    }

    #[test]
    fn glob_wants_files_when_they_match_from_the_root_or_the_start() {
        check("*.rs", "crates/a/src/lib.rs", true);
        check("*.{rs,toml}", "crates/a/Cargo.toml", true);
        check("src/**/*.rs", "crates/a/src/x/y.rs", true);
        check("crates/*/src", "crates/a/src/lib.rs", true);
        check("src/*.rs", "crates/b/src/lib.rs", false);
        check("!*.rs", "crates/a/src/lib.rs", false);
        check("!*.rs", "crates/a/README.md", true);
    }

    #[test]
    fn new_refuses_when_the_glob_is_broken() {
        let error = Glob::new("[z-a]").expect_err("a range that runs backwards");
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
        assert_eq!(
            Glob::new("# x").expect_err("a comment").to_string(),
            "not a glob: `# x`: it is empty or a comment"
        );
    }
}
