//! The elements of every model behind a wire: its data, its wire, and the address of its requests.

use std::{collections::BTreeMap, fmt, sync::Arc};

use adjutant_llm::{Error, ModelInfo, Request, Warning};

use crate::{
    blocks::CallIdSeed,
    credentials::Key,
    driver::{Address, Decode, Driven, Endpoint, Observe, Timeouts},
    segments::{self, Encode, Heads, Prepared},
};

/// Adds the common setters of all wires to a model, and implements [`Model`](adjutant_llm::Model) for it.
///
/// The type holds `inner: Arc<Host<…>>`.
macro_rules! hosted {
    ($name:ident) => {
        #[cfg(feature = "fuzzing")]
        impl $name {
            /// Returns the wire that the model is made of, for fuzz targets.
            pub(crate) fn wire(&self) -> &impl crate::driver::Driven {
                &*self.inner
            }
        }

        hosted!($name<>);
    };
    ($name:ident<$($wire:ident: $bound:path)?>) => {
        impl<$($wire: $bound)?> $name<$($wire)?> {
            /// Sets how long the model is waited for.
            #[must_use]
            pub fn timeouts(mut self, timeouts: crate::Timeouts) -> Self {
                self.inner.set_timeouts(timeouts);
                self
            }

            /// Sets headers of every request, by name; headers in a request's options take precedence.
            #[must_use]
            pub fn headers(mut self, headers: std::collections::BTreeMap<String, String>) -> Self {
                self.inner.set_headers(headers);
                self
            }

            /// Adds an observer that receives the request and the answer, and may rewrite the request.
            #[must_use]
            pub fn observe(mut self, observer: impl crate::Observe + 'static) -> Self {
                self.inner.set_observer(std::sync::Arc::new(observer));
                self
            }
        }

        impl<$($wire: $bound)?> adjutant_llm::Model for $name<$($wire)?> {
            fn info(&self) -> &adjutant_llm::ModelInfo {
                self.inner.info()
            }

            fn stream(&self, request: adjutant_llm::Request) -> adjutant_llm::ChunkStream {
                crate::driver::stream(&self.inner, request)
            }
        }
    };
}

pub(crate) use hosted;

/// The part that a protocol of models defines for itself. The rest is one skeleton for all of them.
///
/// A wire is an encoder of requests ([`Encode`]), a decoder of answers ([`Decode`]), and an address. A [`WireModel`] makes
/// a model of it: with timeouts, headers, observers and kept bytes, and below the same decorators as any other.
///
/// Invariant: two wires with the same `Debug` text write the same bytes, as the encodings of a history are kept by it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a wire",
    note = "implement `Encode`, `Clone`, `Debug` and `Wire`"
)]
pub trait Wire: Encode + fmt::Debug + Clone + Send + Sync + 'static {
    /// The state of one answer.
    type Decoder: Decode;

    /// Returns the address of a model's requests, below the base URL.
    fn address(&self, info: &ModelInfo) -> Address;

    /// Returns the headers of every request that the caller may add values to, as comma-separated lists.
    fn list_headers(&self, info: &ModelInfo) -> &'static [(&'static str, &'static str)] {
        let _ = info;
        &[]
    }

    /// Returns how a refused request may be accepted, if the wire knows; one request gets at most two remedies.
    fn remedy(&self, refusal: &Error) -> Option<Remedy> {
        let _ = refusal;
        None
    }

    /// The decoder of one answer; [`Blocks`](crate::wire::Blocks) are made of the seed.
    fn decoder(&self, info: &Arc<ModelInfo>, seed: CallIdSeed) -> Self::Decoder;
}

/// A way to send a refused request again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    /// The message from which on the thinking of replies is left out; `None` if the wire itself writes something else now.
    pub thinking_from: Option<usize>,
    /// The change, for the user.
    pub warning: Warning,
}

/// The site where a vendor's protocol is served, if the protocol differs there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Site {
    /// At the vendor's own, or where everything is as it is there.
    #[default]
    Own,
    /// Amazon Bedrock: the key is a bearer.
    Bedrock,
    /// Google Vertex AI: the key is a bearer, and the model a part of the path.
    Vertex,
}

/// A model behind a wire of your own. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct WireModel<W> {
    inner: Arc<Host<W>>,
}

impl<W: Wire> WireModel<W> {
    /// Creates a model over this wire, at this base URL. Use `Key::none()` for servers without keys.
    ///
    /// An invalid address is reported with the first request.
    pub fn new(info: ModelInfo, wire: W, base_url: impl AsRef<str>, key: impl Into<Key>) -> Self {
        Self {
            inner: Host::new(Arc::new(info), wire, base_url.as_ref(), key.into()),
        }
    }
}

hosted!(WireModel<W: Wire>);

/// A model behind a wire.
#[derive(Debug, Clone)]
pub(crate) struct Host<P> {
    info: Arc<ModelInfo>,
    protocol: P,
    endpoint: Endpoint,
    /// The name of this model's cached encodings of a transcript, unique to the model.
    slot: String,
    heads: Heads,
    observer: Option<Arc<dyn Observe>>,
}

impl<P: Wire> Host<P> {
    pub(crate) fn new(info: Arc<ModelInfo>, protocol: P, base_url: &str, key: Key) -> Arc<Self> {
        let endpoint = Endpoint::new(base_url, protocol.address(&info), key);
        let mut host = Self {
            info,
            protocol,
            endpoint,
            slot: String::new(),
            heads: Heads::default(),
            observer: None,
        };
        host.renew();
        Arc::new(host)
    }

    pub(crate) fn info(&self) -> &ModelInfo {
        &self.info
    }

    pub(crate) fn set_info(self: &mut Arc<Self>, info: ModelInfo) {
        Arc::make_mut(self).info = Arc::new(info);
    }

    #[cfg(test)]
    pub(crate) fn protocol(&self) -> &P {
        &self.protocol
    }

    pub(crate) fn set_base_url(self: &mut Arc<Self>, url: &str) {
        let host = Arc::make_mut(self);
        host.endpoint = host.endpoint.at(url, host.protocol.address(&host.info));
    }

    pub(crate) fn set_timeouts(self: &mut Arc<Self>, timeouts: Timeouts) {
        Arc::make_mut(self).endpoint.set_timeouts(timeouts);
    }

    pub(crate) fn set_headers(self: &mut Arc<Self>, headers: BTreeMap<String, String>) {
        Arc::make_mut(self).endpoint.set_headers(headers);
    }

    pub(crate) fn set_observer(self: &mut Arc<Self>, observer: Arc<dyn Observe>) {
        Arc::make_mut(self).observer = Some(observer);
    }

    /// Changes how requests are written, and where they go with it.
    pub(crate) fn set_protocol(self: &mut Arc<Self>, change: impl FnOnce(&mut P)) {
        let host = Arc::make_mut(self);
        change(&mut host.protocol);
        host.endpoint.set_address(host.protocol.address(&host.info));
        host.renew();
    }

    /// Drops the encodings cached for the previous state of the model.
    fn renew(&mut self) {
        self.heads = Heads::default();
        self.slot = format!("{} {:?}", self.info.id, self.protocol);
    }
}

impl<P: Wire> Driven for Host<P> {
    type Decoder = P::Decoder;

    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn observer(&self) -> Option<&Arc<dyn Observe>> {
        self.observer.as_ref()
    }

    fn list_headers(&self) -> &'static [(&'static str, &'static str)] {
        self.protocol.list_headers(&self.info)
    }

    fn encode(&self, request: &Request) -> Prepared {
        segments::encode(&self.slot, &self.info, &self.protocol, &self.heads, request)
    }

    fn remedy(&self, request: &Request, refusal: &Error) -> Option<Warning> {
        let remedy = self.protocol.remedy(refusal)?;
        if let Some(message) = remedy.thinking_from {
            segments::refuse_thinking(&self.slot, &self.info, &self.protocol, request, message);
        }
        Some(remedy.warning)
    }

    fn decoder(&self, place: CallIdSeed) -> P::Decoder {
        self.protocol.decoder(&self.info, place)
    }
}
