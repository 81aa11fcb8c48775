//! Stored types: what loads is stored again as it was, whoever wrote it.
#![no_main]

use adjutant_llm::{Chunk, Error, ModelInfo, Reply, Request, Transcript, Turn};
use serde::{Serialize, de::DeserializeOwned};

fn check<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(first) = serde_json::from_slice::<T>(bytes) else { return };
    let stored = serde_json::to_value(&first).expect("what was loaded can be stored");
    let again: T = serde_json::from_value(stored.clone()).expect("what was stored loads");
    assert_eq!(serde_json::to_value(&again).expect("it can be stored again"), stored);
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check::<Transcript>(bytes);
    check::<Turn>(bytes);
    check::<Reply>(bytes);
    check::<Request>(bytes);
    check::<ModelInfo>(bytes);
    check::<Error>(bytes);
    check::<Chunk>(bytes);
});
