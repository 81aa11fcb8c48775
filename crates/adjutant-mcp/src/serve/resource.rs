//! A resource that a host offers.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use adjutant_llm::Content;
use adjutant_tool::ToolError;

/// A resource that a host offers, or a family of them.
#[derive(Clone)]
pub struct ServedResource {
    pub(super) uri: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) description: Option<Arc<str>>,
    pub(super) media_type: Option<Arc<str>>,
    read: Arc<ReadFn>,
}

type ReadFuture = Pin<Box<dyn Future<Output = Result<Content, ToolError>> + Send>>;
type ReadFn = dyn Fn(Arc<str>) -> ReadFuture + Send + Sync;

impl ServedResource {
    /// A resource of this address, read by a function that is given the address.
    ///
    /// An address with names in braces is a template, such as `file:///{name}.md`: each name matches any text without
    /// a slash. Text is sent as text, other data must be in the message; data at other addresses is not read.
    pub fn new<F, Fut>(uri: impl Into<Arc<str>>, name: impl Into<Arc<str>>, read: F) -> Self
    where
        F: Fn(Arc<str>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Content, ToolError>> + Send + 'static,
    {
        let read = Arc::new(move |uri| Box::pin(read(uri)) as ReadFuture);
        Self {
            uri: uri.into(),
            name: name.into(),
            description: None,
            media_type: None,
            read,
        }
    }

    /// Sets the description for clients.
    #[must_use]
    pub fn description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets its MIME type.
    #[must_use]
    pub fn media_type(mut self, media_type: impl Into<Arc<str>>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// True if it is a template.
    pub(super) fn is_family(&self) -> bool {
        self.uri.contains('{')
    }

    /// True if this address is its own, or one of the family.
    pub(super) fn is_at(&self, uri: &str) -> bool {
        let mut pieces = self
            .uri
            .split('{')
            .map(|piece| piece.split_once('}').map_or(piece, |(_, text)| text));
        let Some(mut rest) = pieces.next().and_then(|first| uri.strip_prefix(first)) else {
            return false;
        };
        let mut pieces = pieces.peekable();
        while let Some(piece) = pieces.next() {
            let at = if pieces.peek().is_none() && piece.is_empty() {
                Some(rest.len())
            } else {
                rest.find(piece)
            };
            let Some((name, after)) =
                at.and_then(|at| Some((rest.get(..at)?, rest.get(at + piece.len()..)?)))
            else {
                return false;
            };
            if name.is_empty() || name.contains('/') {
                return false;
            }
            rest = after;
        }
        rest.is_empty()
    }

    pub(super) async fn read(&self, uri: &str) -> Result<Content, ToolError> {
        (self.read)(uri.into()).await
    }
}

impl fmt::Debug for ServedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedResource")
            .field("uri", &self.uri)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
