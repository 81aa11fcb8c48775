//! The address of requests, and the name of the wire.

use std::sync::Arc;

use adjutant_llm::{Error, ModelInfo};
use adjutant_providers::{
    Provider, WireKind,
    wire::{Address, CallIdSeed, ForeignWire, Framing, Wire},
};

use crate::{decode::Decoder, encode::Ollama};

/// Makes `ollama-native` a known provider: at the local address, or at `OLLAMA_NATIVE_BASE_URL`.
///
/// # Errors
/// `Config` if it was registered before.
pub fn register() -> Result<(), Error> {
    let wire = ForeignWire::new("ollama-chat", Ollama::new);
    let mut provider =
        Provider::new("ollama-native", "http://127.0.0.1:11434").wire(WireKind::Foreign(wire));
    provider.base_url_variable = "OLLAMA_NATIVE_BASE_URL".to_owned();
    // Only a server behind a proxy requires it.
    provider.key_variables = vec!["OLLAMA_API_KEY".to_owned()];
    provider.key_optional = true;
    provider.register()
}

impl Wire for Ollama {
    type Decoder = Decoder;

    fn address(&self, _: &ModelInfo) -> Address {
        Address::new("/api/chat").framing(Framing::Lines)
    }

    fn decoder(&self, info: &Arc<ModelInfo>, seed: CallIdSeed) -> Decoder {
        Decoder::new(info.id.clone(), seed)
    }
}
