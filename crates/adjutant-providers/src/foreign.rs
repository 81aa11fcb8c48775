//! A wire that is not one of ours, by its name: what makes models of it, without its type.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use adjutant_llm::{Model, ModelInfo};

use crate::{
    credentials::Key,
    driver::Timeouts,
    host::{Wire, WireModel},
};

type Make = dyn Fn(ModelInfo, Key, &str, Sending) -> Arc<dyn Model> + Send + Sync;

/// The headers of every request, and the times that it is waited for.
pub(crate) struct Sending {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) timeouts: Timeouts,
}

/// A wire of your own under a name, for a [`Provider`](crate::Provider) that speaks it.
#[derive(Clone)]
pub struct ForeignWire {
    name: Arc<str>,
    make: Arc<Make>,
}

impl ForeignWire {
    /// The wire that this function makes for a model; configurations know it by the name once a provider of it is
    /// [registered](crate::Provider::register).
    pub fn new<W: Wire>(
        name: impl Into<Arc<str>>,
        wire: impl Fn(&ModelInfo) -> W + Send + Sync + 'static,
    ) -> Self {
        let make = move |info: ModelInfo, key: Key, url: &str, sending: Sending| {
            let wire = wire(&info);
            let model = WireModel::new(info, wire, url, key).timeouts(sending.timeouts);
            Arc::new(model.headers(sending.headers)) as Arc<dyn Model>
        };
        Self {
            name: name.into(),
            make: Arc::new(make),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn model(
        &self,
        info: ModelInfo,
        key: Key,
        base_url: &str,
        sending: Sending,
    ) -> Arc<dyn Model> {
        (self.make)(info, key, base_url, sending)
    }
}

impl PartialEq for ForeignWire {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.make, &other.make)
    }
}

impl Eq for ForeignWire {}

impl Hash for ForeignWire {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for ForeignWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ForeignWire").field(&self.name).finish()
    }
}
