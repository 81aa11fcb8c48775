//! Answers of the Responses wire.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    adjutant_providers::fuzzing::decode(adjutant_providers::fuzzing::Wire::Responses, bytes);
});
