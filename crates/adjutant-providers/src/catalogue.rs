//! The models that are known by name: limits, prices, and what they refuse. As of 2026-11-21.
//!
//! A model that is not here can still be used: make its `ModelInfo` by hand, or set a base URL.

use adjutant_llm::{Inputs, ModelInfo, Price, RequestOption};

/// One known model; money in US dollars for a million tokens.
struct Known {
    id: &'static str,
    context_window: u64,
    max_output_tokens: u64,
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    sampling: Sampling,
}

/// Whether a model takes a temperature.
#[derive(PartialEq)]
enum Sampling {
    Taken,
    Refused,
}

/// The known models. All take pictures and documents, as both vendors say of every model in this list.
const KNOWN: [Known; 8] = [
    // Source: platform.claude.com, models overview and pricing of 5 minute cache writes, 2026-11. Sampling options are
    // refused since Opus 4.7.
    Known {
        id: "anthropic/claude-opus-5-5",
        context_window: 1_000_000,
        max_output_tokens: 128_000,
        input: 4.0,
        output: 20.0,
        cache_read: 0.4,
        cache_write: 5.0,
        sampling: Sampling::Refused,
    },
    Known {
        id: "anthropic/claude-opus-5",
        context_window: 1_000_000,
        max_output_tokens: 128_000,
        input: 5.0,
        output: 25.0,
        cache_read: 0.5,
        cache_write: 6.25,
        sampling: Sampling::Refused,
    },
    Known {
        id: "anthropic/claude-sonnet-5",
        context_window: 1_000_000,
        max_output_tokens: 128_000,
        input: 2.0,
        output: 10.0,
        cache_read: 0.2,
        cache_write: 2.5,
        sampling: Sampling::Refused,
    },
    Known {
        id: "anthropic/claude-haiku-4-5",
        context_window: 200_000,
        max_output_tokens: 64_000,
        input: 1.0,
        output: 5.0,
        cache_read: 0.1,
        cache_write: 1.25,
        sampling: Sampling::Taken,
    },
    // Source: developers.openai.com, model pages, 2026-11, for gpt-5 and gpt-5-mini; comparison pages of third parties,
    // 2026-11, for the other two. Writing to the cache is priced like input, as no page names a price for it. Above
    // 272,000 input tokens this one costs twice as much.
    Known {
        id: "openai/gpt-5.4",
        context_window: 1_050_000,
        max_output_tokens: 128_000,
        input: 2.5,
        output: 15.0,
        cache_read: 0.25,
        cache_write: 2.5,
        sampling: Sampling::Refused,
    },
    Known {
        id: "openai/gpt-5",
        context_window: 400_000,
        max_output_tokens: 128_000,
        input: 1.25,
        output: 10.0,
        cache_read: 0.125,
        cache_write: 1.25,
        sampling: Sampling::Refused,
    },
    Known {
        id: "openai/gpt-5-mini",
        context_window: 400_000,
        max_output_tokens: 128_000,
        input: 0.25,
        output: 2.0,
        cache_read: 0.025,
        cache_write: 0.25,
        sampling: Sampling::Refused,
    },
    Known {
        id: "openai/gpt-4.1",
        context_window: 1_047_576,
        max_output_tokens: 32_768,
        input: 2.0,
        output: 8.0,
        cache_read: 0.5,
        cache_write: 2.0,
        sampling: Sampling::Taken,
    },
];

/// The known models, each provider's largest first.
pub fn known() -> impl Iterator<Item = ModelInfo> {
    KNOWN.iter().map(Known::info)
}

/// The known model with this name, as `provider/model`.
pub(crate) fn find(id: &str) -> Option<ModelInfo> {
    KNOWN.iter().find(|known| known.id == id).map(Known::info)
}

impl Known {
    fn info(&self) -> ModelInfo {
        let mut inputs = Inputs::default();
        (inputs.images, inputs.documents) = (true, true);
        let info = ModelInfo::new(self.id)
            .context_window(self.context_window)
            .max_output_tokens(self.max_output_tokens)
            .inputs(inputs)
            .price(Price::dollars(self.input, self.output, self.cache_read, self.cache_write));
        match self.sampling {
            Sampling::Taken => info,
            Sampling::Refused => info.refuses(RequestOption::Temperature),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::PROVIDERS;

    #[test]
    fn known_models_are_consistent_when_listed() {
        for info in known() {
            assert!(info.max_output_tokens < info.context_window, "{}", info.id);
            assert!(PROVIDERS.iter().any(|it| it.name == info.provider()), "{}", info.id);
            assert_eq!(find(info.id.as_str()), Some(info));
        }
        for provider in PROVIDERS {
            assert!(find(&format!("{}/{}", provider.name, provider.default_model)).is_some(), "{}", provider.name);
        }
    }
}
