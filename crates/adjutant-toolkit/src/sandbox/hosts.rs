//! A list of hosts, and what of an address that somebody asks for is allowed by it.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use crate::{Error, ErrorKind, public::is_public};

/// The longest name of a host. Source: RFC 1035, section 2.3.4.
const LONGEST: usize = 253;

/// The hosts that commands may reach; cheap to clone.
///
/// Each is a name (`example.org`), all names below one (`*.example.org`, which is not `example.org` itself), or an address
/// (`192.0.2.1`, `[2001:db8::1]`), with a port behind `:` or with any. A name that leads to an address of this machine or of a
/// private network is refused unless that address is in the list too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hosts(Arc<[AllowedHost]>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct AllowedHost {
    who: HostPattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum HostPattern {
    Name(String),
    /// With the dot before it.
    Below(String),
    Address(IpAddr),
}

impl Hosts {
    /// A list of hosts.
    ///
    /// # Errors
    /// `Host` if one of them is neither a name nor an address.
    pub fn new<S: AsRef<str>>(hosts: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        let hosts = hosts.into_iter().map(|host| {
            let host = host.as_ref();
            AllowedHost::read(host).ok_or_else(|| {
                let message = format!(
                    "neither a host nor an address: {host:?}; hint: write `example.org`, `*.example.org`, `example.org:443` or `192.0.2.1`"
                );
                Error::new(ErrorKind::Host, message)
            })
        });
        Ok(Self(hosts.collect::<Result<_, _>>()?))
    }

    /// True if a host is in the list, by its name or its address; no name is resolved.
    pub fn has(&self, host: &str, port: u16) -> bool {
        if let Some(address) = address(host) {
            return self.names(address, port);
        }
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_listed = self.0.iter().any(|it| {
            let is_name = match &it.who {
                HostPattern::Name(own) => *own == name,
                HostPattern::Below(end) => name.ends_with(end),
                HostPattern::Address(_) => false,
            };
            is_name && it.port.is_none_or(|own| own == port)
        });
        is_listed && is_name(&name)
    }

    /// The addresses of what somebody asks for, those alone that may be reached.
    ///
    /// # Errors
    /// Why none may, with the status of HTTP for it.
    pub(super) fn addresses(
        &self,
        host: &str,
        port: u16,
        resolve: impl FnOnce(&str) -> io::Result<Vec<IpAddr>>,
    ) -> Result<Vec<SocketAddr>, (u16, String)> {
        let refused = || {
            (
                403,
                format!("{host}:{port} is not in the list of hosts that commands may reach"),
            )
        };
        if !self.has(host, port) {
            return Err(refused());
        }
        if let Some(address) = address(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let found =
            resolve(&name).map_err(|error| (502, format!("{name} has no address: {error}")))?;
        let may = |address: &IpAddr| is_public(*address) || self.names(*address, port);
        let allowed = found
            .iter()
            .map(IpAddr::to_canonical)
            .filter(may)
            .map(|address| SocketAddr::new(address, port));
        let allowed: Vec<_> = allowed.collect();
        match (allowed.is_empty(), found.first()) {
            (false, _) => Ok(allowed),
            (true, None) => Err((502, format!("{name} has no address"))),
            (true, Some(address)) => Err((
                403,
                format!(
                    "{name} leads to {address}, which is private: that address is not in the list of hosts"
                ),
            )),
        }
    }

    /// True if an address of this machine itself is in the list.
    pub(super) fn has_loopback(&self) -> bool {
        self.0.iter().any(|it| match &it.who {
            HostPattern::Address(address) => address.is_loopback(),
            HostPattern::Name(name) => name == "localhost",
            HostPattern::Below(_) => false,
        })
    }

    fn names(&self, address: IpAddr, port: u16) -> bool {
        self.0.iter().any(|it| {
            it.who == HostPattern::Address(address) && it.port.is_none_or(|own| own == port)
        })
    }
}

impl AllowedHost {
    fn read(text: &str) -> Option<Self> {
        let (host, port) = split(text.trim())?;
        if let Some(address) = address(host) {
            return Some(Self {
                who: HostPattern::Address(address),
                port,
            });
        }
        let host = host.to_ascii_lowercase();
        let who = match host.strip_prefix("*.") {
            Some(name) if is_name(name) => HostPattern::Below(format!(".{name}")),
            None if is_name(&host) => HostPattern::Name(host),
            Some(_) | None => return None,
        };
        Some(Self { who, port })
    }
}

/// A host and its port, if there is one; an address of version 6 may stand in brackets or, without a port, not.
pub(super) fn split(text: &str) -> Option<(&str, Option<u16>)> {
    if text.parse::<IpAddr>().is_ok() {
        return Some((text, None));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        Some(_) | None => (text, None),
    };
    let is_digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match port {
        None => Some((host, None)),
        Some(port) => {
            let port = Some(port)
                .filter(|port| is_digits(port))?
                .parse()
                .ok()
                .filter(|port| *port != 0)?;
            Some((host, Some(port)))
        }
    }
}

fn address(host: &str) -> Option<IpAddr> {
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address: Option<IpAddr> = match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    };
    address.map(|address| address.to_canonical())
}

/// True for what is a name and cannot be read as an address: some systems take `2130706433` and `0x7f.1` for one.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_number =
        |label: &str| label.bytes().all(|byte| byte.is_ascii_digit()) || label.starts_with("0x");
    name.len() <= LONGEST
        && name.split('.').all(is_label)
        && !name.rsplit('.').next().is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_cannot_be_meant_are_refused() {
        let wrong = [
            "",
            "*",
            "*.",
            "a b",
            "a/b",
            "http://a",
            "a:0",
            "a:99999",
            "a:x",
            "a:+1",
            "2130706433",
            "0x7f.1",
            "a..b",
            "ä.org",
            "[a]",
            "a.*.b",
            "u@a",
            "[::1",
        ];
        for text in wrong {
            assert_eq!(
                Hosts::new([text]).err().map(|error| error.kind()),
                Some(ErrorKind::Host),
                "{text:?}"
            );
        }
        let right = [
            "a",
            "A.b:1",
            "*.a.b:65535",
            "1.2.3.4",
            "1.2.3.4:5",
            "::1",
            "[::1]:5",
            " a.b ",
            "xn--4ca.org",
            "a_b.c",
        ];
        right
            .into_iter()
            .for_each(|text| drop(Hosts::new([text]).expect(text)));
    }

    #[test]
    fn addresses_are_those_of_the_list_and_no_private_ones() {
        let list = [
            "example.org:443",
            "*.example.net",
            "10.0.0.7:80",
            "[::1]",
            "both.test",
            "in.test:80",
        ];
        let hosts = Hosts::new(list).expect("a list");
        let resolve = |name: &str| {
            let found = match name {
                "both.test" => "127.0.0.1 192.168.1.1 8.8.8.8 ::ffff:10.0.0.1",
                "in.test" => "10.0.0.7",
                "a.example.net" => "169.254.169.254",
                "b.example.net" => "64:ff9b::7f00:1",
                "c.example.net" => {
                    "::ffff:127.0.0.1 fd00::1 fe80::1 100.64.0.1 0.0.0.0 :: 2002:7f00:1::"
                }
                "d.example.net" => "2606:4700::1 64:ff9b::808:808",
                "example.org" => "8.8.4.4",
                other => unreachable!("{other} is asked for"),
            };
            Ok(found
                .split(' ')
                .map(|it| it.parse().expect("an address"))
                .collect())
        };
        let table = [
            ("example.org", 443, Ok("8.8.4.4:443")),
            ("EXAMPLE.org.", 443, Ok("8.8.4.4:443")),
            ("example.org", 80, Err(403)),
            ("a.example.org", 443, Err(403)),
            ("example.net", 1, Err(403)),
            ("notexample.net", 1, Err(403)),
            ("a.example.net", 80, Err(403)),
            ("b.example.net", 80, Err(403)),
            ("c.example.net", 80, Err(403)),
            (
                "d.example.net",
                80,
                Ok("[2606:4700::1]:80 [64:ff9b::808:808]:80"),
            ),
            ("both.test", 1, Ok("8.8.8.8:1")),
            ("in.test", 80, Ok("10.0.0.7:80")),
            ("10.0.0.7", 80, Ok("10.0.0.7:80")),
            ("[::ffff:10.0.0.7]", 80, Ok("10.0.0.7:80")),
            ("10.0.0.7", 81, Err(403)),
            ("[::1]", 5, Ok("[::1]:5")),
            ("8.8.8.8", 1, Err(403)),
            ("2130706433", 80, Err(403)),
            ("0x7f.1", 80, Err(403)),
            ("x\u{0}.example.net", 80, Err(403)),
            ("", 80, Err(403)),
        ];
        for (host, port, expect) in table {
            let found = hosts
                .addresses(host, port, resolve)
                .map_err(|(status, _)| status);
            let found = found.map(|it| {
                it.iter()
                    .map(SocketAddr::to_string)
                    .collect::<Vec<_>>()
                    .join(" ")
            });
            assert_eq!(found, expect.map(str::to_owned), "{host}:{port}");
        }
    }
}
