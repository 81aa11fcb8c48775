//! Similar names.

/// The maximum number of names that are returned.
const MAX_NEAR: usize = 3;

/// The minimum length of a name, in bytes, that matches as a part of another name.
const MIN_PART: usize = 3;

/// Returns the names that are most similar to an unknown one.
pub(crate) fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let length = name.chars().count();
    let far = (length * 2 / 3).min(length.div_ceil(3).max(2));
    let rank = |other: &'a str| {
        let steps = strsim::osa_distance(name, other);
        let is_long = name.len().min(other.len()) >= MIN_PART;
        let is_part = is_long && (other.contains(name) || name.contains(other));
        (is_part || steps <= far).then_some((steps, other))
    };
    let mut ranked: Vec<(usize, &str)> = names.filter_map(rank).collect();
    ranked.sort_unstable();
    ranked
        .into_iter()
        .take(MAX_NEAR)
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_gives_the_nearest_names_when_some_are_near() {
        let names = ["heron", "herons/2", "kestrel", "hero", "xyz"];
        assert_eq!(
            near("heron", names.into_iter()),
            ["heron", "hero", "herons/2"]
        );
        assert_eq!(near("kestrle", names.into_iter()), ["kestrel"]);
        assert_eq!(near("tow", ["two", "b"].into_iter()), ["two"]);
        assert_eq!(near("x", ["b", "f"].into_iter()), [""; 0]);
        assert_eq!(near("swallow", names.into_iter()), [""; 0]);
    }
}
