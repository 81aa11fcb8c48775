//! Where a cloud's provider is: the places in its address, which the environment names. Pure.

use std::borrow::Cow;

/// What may stand in an address, and the variables that say what it means, best first.
///
/// Source: the AWS SDKs and tools reference, "AWS Region"; google-genai and anthropic's client for Vertex, 2026-11.
const PLACES: [(&str, &[&str]); 3] = [
    ("{AWS_REGION}", &["AWS_REGION", "AWS_DEFAULT_REGION"]),
    ("{GOOGLE_CLOUD_PROJECT}", &["GOOGLE_CLOUD_PROJECT"]),
    (
        "{GOOGLE_CLOUD_LOCATION}",
        &["GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"],
    ),
];

/// The variables that an address depends on.
pub(crate) fn variables(url: &str) -> impl Iterator<Item = &'static str> {
    PLACES
        .iter()
        .filter(move |(place, _)| url.contains(place))
        .flat_map(|(_, names)| names.iter().copied())
}

/// The address with its places.
///
/// # Errors
/// The first variable that is not set, or is no name of a place.
pub(crate) fn fill(
    url: &str,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Cow<'_, str>, &'static str> {
    let mut filled = Cow::Borrowed(url);
    for (place, names) in PLACES.iter().filter(|(place, _)| url.contains(place)) {
        // It becomes a part of a host: nothing else may be made of it.
        let is_place = |it: &String| it.chars().all(|it| it.is_ascii_alphanumeric() || it == '-');
        let value = names
            .iter()
            .find_map(|name| var(name))
            .filter(is_place)
            .ok_or(names[0])?;
        filled = filled.replace(place, &value).into();
    }
    // The one place without a name in the host. Source: "Locations", cloud.google.com/vertex-ai, 2026.
    Ok(if filled.contains("//global-") {
        filled.replace("//global-", "//").into()
    } else {
        filled
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_filled_when_the_environment_says_where() {
        let vertex = "https://{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com/v1/projects/{GOOGLE_CLOUD_PROJECT}";
        let vars = |location: &'static str| {
            move |name: &str| match name {
                "AWS_DEFAULT_REGION" => Some("eu-west-1".to_owned()),
                "GOOGLE_CLOUD_PROJECT" => Some("acme-7".to_owned()),
                "CLOUD_ML_REGION" => Some(location.to_owned()).filter(|it| !it.is_empty()),
                _ => None,
            }
        };
        let cases = [
            ("https://api.groq.com", "", Ok("https://api.groq.com")),
            (
                "https://x.{AWS_REGION}.api.aws",
                "",
                Ok("https://x.eu-west-1.api.aws"),
            ),
            (
                vertex,
                "us-east5",
                Ok("https://us-east5-aiplatform.googleapis.com/v1/projects/acme-7"),
            ),
            (
                vertex,
                "global",
                Ok("https://aiplatform.googleapis.com/v1/projects/acme-7"),
            ),
            (vertex, "", Err("GOOGLE_CLOUD_LOCATION")),
            (vertex, "evil.example/", Err("GOOGLE_CLOUD_LOCATION")),
        ];
        for (url, location, expect) in cases {
            assert_eq!(
                fill(url, vars(location)).as_deref(),
                expect.as_ref().map(|it| *it),
                "{url} {location}"
            );
        }
        assert_eq!(variables(vertex).count(), 3);
    }
}
