//! Names with wildcards.

/// True if a name matches: a `*` matches any characters, including none.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match left.find(part) {
            Some(at) => left = left.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    left.ends_with(end)
}

/// True if any of the patterns matches.
pub(super) fn any_fits<P: AsRef<str>>(patterns: &[P], name: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern.as_ref(), name))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn star_stands_for_any_letters() {
        for (pattern, name) in [
            ("read_file", "read_file"),
            ("*", ""),
            ("*", "anything"),
            ("read_*", "read_file"),
            ("read_*", "read_"),
            ("*_file", "read_file"),
            ("*e*i*", "read_file"),
            ("r**e", "read_file"),
            ("a*b*b", "abab b"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn name_does_not_fit_when_letters_are_missing_or_over() {
        for (pattern, name) in [
            ("read_file", "read_files"),
            ("read", "read_file"),
            ("", "a"),
            ("ab*b", "ab"),
            ("*x*", "read"),
            ("a*ba", "aba b"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
