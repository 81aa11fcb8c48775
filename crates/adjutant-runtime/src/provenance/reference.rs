//! References of images: `name`, `name:tag`, `name@sha256:…`, `name:tag@sha256:…`.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, manifest::ImageSpec};

/// A reference of an image, in its parts.
///
/// Source: OCI Distribution Specification 1.1, "Pulling manifests" (2024-02-13): names and tags; the digest stands last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ImageReference {
    /// Its name with its registry, as `registry.example:5000/agents/clerk`.
    pub name: Arc<str>,
    /// Its tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Arc<str>>,
    /// Its digest, as `sha256:` and 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Arc<str>>,
}

/// The longest tag.
const MAX_TAG: usize = 128;
/// The longest name.
const MAX_NAME: usize = 255;

impl ImageReference {
    /// The reference of a manifest, with its digest.
    ///
    /// # Errors
    /// `Invalid` if it is none, `Config` if its two digests differ.
    pub fn of(image: &ImageSpec) -> Result<Self, Error> {
        let mut reference: Self = image.reference.parse()?;
        let Some(digest) = &image.digest else { return Ok(reference) };
        check_digest(digest)?;
        if reference.digest.as_ref().is_some_and(|own| own != digest) {
            let message = format!("the image {reference} is pinned to another digest: {digest}");
            return Err(Error::new(ErrorKind::Config, message));
        }
        reference.digest = Some(Arc::clone(digest));
        Ok(reference)
    }
}

impl FromStr for ImageReference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (rest, digest) = match text.split_once('@') {
            None => (text, None),
            Some((rest, digest)) => (rest, Some(digest)),
        };
        // A colon before the last slash is one of the registry's port.
        let (name, tag) = match rest.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
            None => (rest, None),
            Some((name, tag)) => (name, Some(tag)),
        };
        if let Some(digest) = digest {
            check_digest(digest)?;
        }
        let refuse = |what: &str| Error::new(ErrorKind::Invalid, format!("{what} of an image reference: {text}"));
        if !is_name(name) {
            return Err(refuse("not the name"));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(refuse("not the tag"));
        }
        Ok(Self { name: name.into(), tag: tag.map(Into::into), digest: digest.map(Into::into) })
    }
}

fn check_digest(digest: &str) -> Result<(), Error> {
    let is_hex = |digits: &str| digits.len() == 64 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if digest.strip_prefix("sha256:").is_some_and(is_hex) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Invalid, format!("expected sha256: and 64 hexadecimal digits, found: {digest}")))
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':');
    let is_part = |part: &str| {
        part.bytes().all(fits) && part.starts_with(|c: char| c.is_ascii_alphanumeric()) && !part.contains("..")
    };
    name.len() <= MAX_NAME
        && name.split('/').all(is_part)
        // A port stands in the first part only.
        && name.split('/').skip(1).all(|part| !part.contains(':'))
        && (name.contains('/') || !name.contains(':'))
}

fn is_tag(tag: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !tag.is_empty() && tag.len() <= MAX_TAG && tag.bytes().all(fits) && !tag.starts_with(['.', '-'])
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}
