//! The names that are nearest to one that does not exist.

/// How many names are given.
pub(crate) const MOST: usize = 4;
/// Longer names are compared by their beginnings.
const MAX_CHARS: usize = 64;

/// The nearest names as a list for a person, nearest first.
pub(crate) fn list(wanted: &str, names: &[String], most: usize) -> String {
    format!("the nearest are {}", nearest(wanted, names.iter().map(String::as_str), most).join(", "))
}

/// The nearest names, nearest first.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let part = |name: &str| distance(wanted, name);
    let bare = |name: &str| name.split_once('/').map_or(usize::MAX, |(_, rest)| distance(wanted, rest));
    let mut ranked: Vec<_> = names.map(|name| (part(name).min(bare(name)), name)).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.into_iter().take(most).map(|(_, name)| name).collect()
}

/// How many characters must be added, removed or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(MAX_CHARS).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (n, left) in one.chars().take(MAX_CHARS).enumerate() {
        let mut corner = std::mem::replace(&mut row[0], n + 1);
        for (at, right) in other.iter().enumerate() {
            let changed = corner + usize::from(left != *right);
            corner = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(corner + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_changes_when_names_differ() {
        let cases = [("", "", 0), ("abc", "abc", 0), ("abc", "abd", 1), ("abc", "", 3), ("kitten", "sitting", 3)];
        for (one, other, expect) in cases {
            assert_eq!((distance(one, other), distance(other, one)), (expect, expect), "{one} {other}");
        }
    }

    #[test]
    fn list_gives_the_nearest_first_when_there_are_many() {
        let names = ["a/long-name", "b/short", "b/shore"].map(str::to_owned);
        assert_eq!(list("shorf", &names, 2), "the nearest are b/short, b/shore");
    }
}
