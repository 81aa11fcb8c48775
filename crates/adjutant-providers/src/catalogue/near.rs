//! The names that are nearest to one that does not exist.

/// The largest number of names that are given.
pub(crate) const MOST: usize = 4;
/// Longer names are compared by their beginnings.
const MAX_CHARS: usize = 64;

/// The nearest names as a list for a person, nearest first.
pub(crate) fn list(wanted: &str, names: &[String], most: usize) -> String {
    format!("the nearest are {}", nearest(wanted, names.iter().map(String::as_str), most).join(", "))
}

/// The nearest names, nearest first.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let start = |name: &str| name.chars().take(MAX_CHARS).collect::<String>();
    let wanted = start(wanted);
    let part = |name: &str| strsim::osa_distance(&wanted, &start(name));
    let bare = |name: &str| name.split_once('/').map_or(usize::MAX, |(_, rest)| part(rest));
    let mut ranked: Vec<_> = names.map(|name| (part(name).min(bare(name)), name)).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.into_iter().take(most).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_gives_the_nearest_first_when_there_are_many() {
        let names = ["a/long-name", "b/short", "b/shore"].map(str::to_owned);
        assert_eq!(list("shorf", &names, 2), "the nearest are b/short, b/shore");
    }
}
