//! Files that people write: cassettes, catalogues, configurations.
#![no_main]

use adjutant_llm::Cassette;
use adjutant_providers::{Chooser, catalogue::Catalogue};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = Cassette::read(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Catalogue::read(text);
    let Ok(chooser) = Chooser::new(|_| Some("key".to_owned())).configuration(text) else { return };
    let names: Vec<String> = chooser.providers().map(|it| format!("{}/model", it.name)).collect();
    for name in names {
        let _ = chooser.model(&name);
    }
});
