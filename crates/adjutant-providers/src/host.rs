//! The elements of every model behind a wire: its data, its wire, and the address of its requests.

use std::{collections::BTreeMap, fmt, sync::Arc};

use adjutant_llm::{ModelInfo, Request, Warning};

use crate::{
    blocks::CallIdSeed,
    body::Segmented,
    credentials::Key,
    driver::{Address, Decode, Endpoint, Observe, Timeouts, Wire},
    segments::{self, Encode, Heads},
};

/// The part that each wire defines for itself. The rest is one skeleton for all.
pub(crate) trait Protocol: Encode + fmt::Debug + Clone + Send + Sync + 'static {
    type Decoder: Decode;

    /// Returns the address of a model's requests, below this base URL.
    fn address(&self, info: &ModelInfo) -> Address;

    /// The decoder of one answer.
    fn decoder(&self, info: &Arc<ModelInfo>, place: CallIdSeed) -> Self::Decoder;
}

/// A model behind a wire.
#[derive(Debug, Clone)]
pub(crate) struct Host<P> {
    info: Arc<ModelInfo>,
    protocol: P,
    endpoint: Endpoint,
    /// Names the encodings of a transcript that are kept for this model: unlike those of any other one.
    slot: String,
    heads: Heads,
    observer: Option<Arc<dyn Observe>>,
}

impl<P: Protocol> Host<P> {
    pub(crate) fn new(info: Arc<ModelInfo>, protocol: P, base_url: &str, key: Key) -> Arc<Self> {
        let endpoint = Endpoint::new(base_url, protocol.address(&info), key);
        let mut host = Self { info, protocol, endpoint, slot: String::new(), heads: Heads::default(), observer: None };
        host.renew();
        Arc::new(host)
    }

    pub(crate) fn info(&self) -> &ModelInfo {
        &self.info
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

    /// Forgets what was kept for the model as it was.
    fn renew(&mut self) {
        self.heads = Heads::default();
        self.slot = format!("{} {:?}", self.info.id, self.protocol);
    }
}

impl<P: Protocol> Wire for Host<P> {
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

    fn encode(&self, request: &Request) -> (Segmented, Vec<Warning>) {
        segments::encode(&self.slot, &self.info, &self.protocol, &self.heads, request)
    }

    fn decoder(&self, place: CallIdSeed) -> P::Decoder {
        self.protocol.decoder(&self.info, place)
    }
}

/// Gives a model the setters that all wires have, and makes it a [`Model`](adjutant_llm::Model).
///
/// The type holds `inner: Arc<Host<…>>`.
macro_rules! hosted {
    ($name:ident) => {
        impl $name {
            /// Returns the wire that the model is made of, for fuzz targets.
            #[cfg(feature = "fuzzing")]
            pub(crate) fn wire(&self) -> &impl crate::driver::Wire {
                &*self.inner
            }

            /// Sets how long the model is waited for.
            #[must_use]
            pub fn timeouts(mut self, timeouts: crate::Timeouts) -> Self {
                self.inner.set_timeouts(timeouts);
                self
            }

            /// Sets headers of every request, by name; those of a request's own options win.
            #[must_use]
            pub fn headers(mut self, headers: std::collections::BTreeMap<String, String>) -> Self {
                self.inner.set_headers(headers);
                self
            }

            /// Lets someone see, and rewrite, what is sent, and see what comes.
            #[must_use]
            pub fn observe(mut self, observer: impl crate::Observe + 'static) -> Self {
                self.inner.set_observer(std::sync::Arc::new(observer));
                self
            }
        }

        impl adjutant_llm::Model for $name {
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
