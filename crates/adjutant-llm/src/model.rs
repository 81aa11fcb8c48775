//! The one trait that every language model, real or scripted, implements.

use std::{fmt, sync::Arc};

use crate::{ChunkStream, Collector, Error, ErrorKind, ModelId, ModelInfo, Reply, Request};

/// A language model.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    note = "models come from `adjutant_providers`, from `ScriptedModel`, or from `model_fn`"
)]
pub trait Model: Send + Sync + fmt::Debug {
    /// Returns the abilities of the model, as data.
    fn info(&self) -> &ModelInfo;

    /// Sends a request to the model. Neither waits nor fails: every failure is the last item of the stream.
    ///
    /// The stream does not borrow the model. Dropping it ends the request.
    fn stream(&self, request: Request) -> ChunkStream;

    /// Returns the info of the model that wrote a reply: this one, unless it combines several.
    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        let _ = model;
        self.info()
    }

    /// Returns the same model with other abilities, or `None` if they cannot be changed.
    ///
    /// A resumed run uses the abilities that it recorded.
    fn with_info(&self, info: &ModelInfo) -> Option<Arc<dyn Model>> {
        let _ = info;
        None
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn info(&self) -> &ModelInfo {
        (**self).info()
    }

    fn info_of(&self, model: &ModelId) -> &ModelInfo {
        (**self).info_of(model)
    }

    fn with_info(&self, info: &ModelInfo) -> Option<Arc<dyn Model>> {
        (**self).with_info(info)
    }

    fn stream(&self, request: Request) -> ChunkStream {
        (**self).stream(request)
    }
}

/// Sends a request to a model and waits for the whole reply: a collect over its stream.
///
/// Cancel: dropping the future ends the request; the partial reply is lost.
///
/// # Errors
/// The error of the stream; `Protocol` if it ended without a terminal chunk.
pub async fn complete(
    model: &(impl Model + ?Sized),
    request: Request,
) -> Result<Arc<Reply>, Error> {
    let mut stream = model.stream(request);
    let mut collector = Collector::default();
    while let Some(chunk) = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        if let Some(reply) = collector.push(&chunk?)? {
            return Ok(reply);
        }
    }
    Err(Error::new(
        ErrorKind::Protocol,
        "the stream of the model ended without a reply",
    ))
}

/// A model made of a function.
pub fn model_fn<F>(info: ModelInfo, stream: F) -> FnModel<F>
where
    F: Fn(Request) -> ChunkStream + Send + Sync,
{
    FnModel { info, stream }
}

/// A model made of a function; see [`model_fn`].
pub struct FnModel<F> {
    info: ModelInfo,
    stream: F,
}

impl<F: Fn(Request) -> ChunkStream + Send + Sync> Model for FnModel<F> {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, request: Request) -> ChunkStream {
        (self.stream)(request)
    }
}

impl<F> fmt::Debug for FnModel<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnModel")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}
