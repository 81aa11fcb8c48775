//! Returns the names nearest to one that does not exist; empty if none is similar enough.

/// The largest number of names that are given.
const MOST: usize = 4;
/// Longer names are compared by their beginnings.
const MAX_CHARS: usize = 64;

/// The nearest names as a hint for a person, nearest first; empty if none is near.
pub(crate) fn hint<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    let nearest = nearest(wanted, names).join(", ");
    if nearest.is_empty() {
        nearest
    } else {
        format!("; hint: the nearest are {nearest}")
    }
}

/// The names that are near, nearest first.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<_> = names
        .filter_map(|name| Some((distance(wanted, name)?, name)))
        .collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked
        .into_iter()
        .take(MOST)
        .map(|(_, name)| name)
        .collect()
}

/// The distance of a name, if it is near: by what follows a provider that is right, else whole or without its provider.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let bare = name.split_once('/');
    match (wanted.split_once('/'), bare) {
        (Some((provider, wanted)), Some((same, name))) if provider == same => steps(wanted, name),
        _ => [Some(name), bare.map(|(_, name)| name)]
            .into_iter()
            .flatten()
            .filter_map(|it| steps(wanted, it))
            .min(),
    }
}

fn steps(wanted: &str, name: &str) -> Option<usize> {
    let start = |name: &str| name.chars().take(MAX_CHARS).collect::<String>();
    let length = wanted.chars().take(MAX_CHARS).count();
    let far = (length * 2 / 3).min(length.div_ceil(3).max(2));
    Some(strsim::osa_distance(&start(wanted), &start(name))).filter(|steps| *steps <= far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_gives_the_nearest_first_and_nothing_when_none_is_near() {
        let names = ["a/long-name", "b/short", "b/shore"];
        let hint = |wanted| hint(wanted, names.into_iter());
        assert_eq!(hint("shorf"), "; hint: the nearest are b/short, b/shore");
        assert_eq!(hint("b/shor"), "; hint: the nearest are b/short, b/shore");
        assert_eq!(hint("c/short"), "; hint: the nearest are b/short, b/shore");
        assert_eq!(
            [hint("b/x"), hint("nowhere"), hint("b/long-name")],
            ["", "", "; hint: the nearest are a/long-name"]
        );
    }
}
