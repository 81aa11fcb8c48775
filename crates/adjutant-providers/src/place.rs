//! The placeholders in a cloud provider's address, and the environment variables that replace them. Pure.

use std::borrow::Cow;

/// The placeholders in an address, and their variables in order of preference.
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
/// The first variable that is unset, or is not a valid name of a region.
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

/// Splits an Azure address into a base URL and a query, which includes its question mark. A resource without a path,
/// `/openai`, and the address of a deployment become the address of the v1 API; only Chat Completions still uses the
/// address of a deployment.
///
/// An `api-version` with a date belongs to the paths before v1, so it is dropped elsewhere.
///
/// Source: "Azure OpenAI API version lifecycle" and "Responses API", learn.microsoft.com, 2026-11.
pub(crate) fn azure(url: &str, is_chat: bool) -> (String, String) {
    let (base, query) = url.trim().split_once('?').unwrap_or((url.trim(), ""));
    let mut base = base.trim_end_matches('/');
    for path in ["/responses", "/chat/completions"] {
        base = base.strip_suffix(path).unwrap_or(base);
    }
    let host = base.find("://").map_or(0, |at| at + 3);
    let (host, path) = base.split_at(base[host..].find('/').map_or(base.len(), |at| host + at));
    let is_deployment = path.starts_with("/openai/deployments/");
    let is_kept = is_chat && is_deployment;
    let path = match path {
        "" | "/openai" => "/openai/v1",
        _ if is_deployment && !is_chat => "/openai/v1",
        path => path,
    };
    let query = match query {
        "" => String::new(),
        query if query.contains("api-version=20") && !is_kept => String::new(),
        query => format!("?{query}"),
    };
    (format!("{host}{path}"), query)
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

    #[test]
    fn azure_leads_to_the_v1_api_when_the_address_has_an_older_form() {
        const HOST: &str = "https://r.openai.azure.com";
        let older = "/openai/deployments/d?api-version=2024-10-21";
        let cases = [
            ("", "/openai/v1", ""),
            ("/", "/openai/v1", ""),
            ("/openai", "/openai/v1", ""),
            ("/openai/v1/", "/openai/v1", ""),
            ("/openai/v1/responses", "/openai/v1", ""),
            (
                "/openai/v1?api-version=preview",
                "/openai/v1",
                "?api-version=preview",
            ),
            ("/openai?api-version=2025-04-01-preview", "/openai/v1", ""),
            (older, "/openai/v1", ""),
            ("/api/projects/p/openai/v1", "/api/projects/p/openai/v1", ""),
        ];
        for (form, path, query) in cases {
            let expect = (format!("{HOST}{path}"), query.to_owned());
            assert_eq!(azure(&format!("{HOST}{form}"), false), expect, "{form}");
        }
        let kept = (
            format!("{HOST}/openai/deployments/d"),
            "?api-version=2024-10-21".to_owned(),
        );
        assert_eq!(azure(&format!("{HOST}{older}"), true), kept);
    }
}
