//! Addresses of servers and token issuers: the permitted ones, their display form, and the client.

use std::net::IpAddr;

use adjutant_toolkit::{
    is_public,
    reach::{PublicOnly, builder, direct},
};
use reqwest::{Client, ClientBuilder, Url};

use crate::error::{Error, ErrorKind};

const PRIVATE: &str = "set that the server is in a private network, if it is";

/// The address of a server.
///
/// # Errors
/// `Invalid` if it is not a web address, or contains credentials.
pub(crate) fn address(name: &str, url: &str) -> Result<Url, Error> {
    let invalid = |what: &str| {
        let message = format!(
            "the address of the server `{name}` {what}; hint: it begins with https:// or http://"
        );
        Err(Error::new(ErrorKind::Invalid, message))
    };
    match Url::parse(url) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") || !url.has_host() => {
            invalid("is none of the web's")
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            invalid("holds credentials, which belong into its headers")
        }
        Ok(url) => Ok(url),
        Err(error) => invalid(&format!("cannot be read ({error})")),
    }
}

/// Fails where a token could be read on its way.
pub(crate) fn may_carry_token(name: &str, url: &Url) -> Result<(), Error> {
    if url.scheme() == "https" || is_local(url) {
        return Ok(());
    }
    let message =
        format!("a token is sent over https alone, and the address of the server `{name}` is http");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// An address for display: without its query and credentials.
pub(crate) fn display_url(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        Err(_) => "(no address)".to_owned(),
    }
}

/// The permitted networks of a token issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// From public addresses, by https.
    Public,
    /// This machine and its networks too: the server is in them itself, or the user allowed it.
    Local,
}

impl Reach {
    pub(crate) fn from_url(server: &Url, is_private: bool) -> Self {
        if is_private || is_local(server) {
            Self::Local
        } else {
            Self::Public
        }
    }

    pub(crate) fn judge(self, url: &Url) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let literal = url
            .host_str()
            .and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
        let shown = display_url(url.as_str());
        match self {
            Self::Local => Ok(()),
            Self::Public if url.scheme() != "https" => {
                Err(format!("{shown} is not asked: it is no https").into())
            }
            Self::Public if literal.is_some_and(|address| !is_public(address)) => Err(format!(
                "{shown} is not called: its address is not public; hint: {PRIVATE}"
            )
            .into()),
            Self::Public => Ok(()),
        }
    }
}

/// True if the name of a server is a name of this machine or its network.
pub(crate) fn is_local(server: &Url) -> bool {
    let host = server
        .host_str()
        .unwrap_or_default()
        .trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(address) => !is_public(address),
        Err(_) => !host.trim_end_matches('.').contains('.') || host.ends_with(".localhost"),
    }
}

/// A client for a server and its token issuers.
pub(crate) fn client(
    server: &Url,
    with: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, Error> {
    let unbuilt = || Error::new(ErrorKind::Unavailable, "cannot create the HTTP client");
    let builder = builder().map_err(|cause| unbuilt().with_source(cause))?;
    with(direct(builder, server))
        .build()
        .map_err(|error| unbuilt().with_source(error))
}

/// Resolves names to public addresses, and the names of the environment's proxies to any address.
pub(crate) fn public_names() -> PublicOnly {
    let names = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ];
    let hosts = names.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        let url = Url::parse(&value)
            .ok()
            .filter(Url::has_host)
            .or_else(|| Url::parse(&format!("http://{value}")).ok())?;
        url.host_str().map(str::to_ascii_lowercase)
    });
    PublicOnly {
        allowed: hosts.collect(),
        hint: PRIVATE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_may_be_in_a_private_network_only_where_its_server_is() {
        let url = |text: &str| Url::parse(text).expect("an address");
        let local = [
            "http://localhost:1/",
            "http://127.0.0.1/",
            "http://[::1]/",
            "http://10.1.2.3/",
            "http://mcp/",
            "http://a.localhost/",
        ];
        let public = [
            "https://a.example/",
            "https://8.8.8.8/",
            "https://[2606:4700::1]/",
            "https://a.internal/",
        ];
        for (texts, is_one) in [(&local[..], true), (&public[..], false)] {
            for text in texts {
                assert_eq!(is_local(&url(text)), is_one, "{text}");
            }
        }
        let judged = |text| {
            Reach::from_url(&url("https://a.example/"), false)
                .judge(&url(text))
                .map_err(|error| error.to_string())
        };
        for (text, words) in [
            ("http://as.example/", "no https"),
            ("https://127.0.0.1/", "not public"),
            ("https://[fd00::1]/", "not public"),
            (
                "https://169.254.169.254/latest?key=hush",
                "https://169.254.169.254/latest is not called",
            ),
        ] {
            let error = judged(text).expect_err(text);
            assert!(error.contains(words) && !error.contains("hush"), "{error}");
            Reach::from_url(&url("http://localhost/"), false)
                .judge(&url(text))
                .expect("it is local too");
        }
        judged("https://as.example/").expect("it is public");
    }

    #[tokio::test]
    async fn name_is_resolved_only_to_public_addresses() {
        use reqwest::dns::Resolve;
        let found = public_names()
            .resolve("localhost".parse().expect("a name"))
            .await;
        let error = found.err().expect("it is this machine").to_string();
        assert!(
            error.contains("`localhost` is at") && error.contains(PRIVATE),
            "{error}"
        );
    }
}
