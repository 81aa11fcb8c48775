//! The four wires, each with a model that may do everything, at a server of this machine.

use std::{fmt, sync::Arc};

use adjutant::{
    Model,
    llm::{Effort, Inputs, ModelInfo, Structured, ThinkingControl},
    providers::{Anthropic, Chat, Gemini, OpenAi, Timeouts},
};
use adjutant_testing::Loopback;

/// All wires.
pub const WIRES: [Wire; 4] = [Wire::Messages, Wire::Responses, Wire::Gemini, Wire::Chat];

/// A wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// Google Gemini.
    Gemini,
    /// OpenAI Chat Completions.
    Chat,
}

impl Wire {
    /// The id of the model behind this wire; each is of a provider of its own.
    pub fn id(self) -> &'static str {
        match self {
            Wire::Messages => "anthropic/claude-opus-4-6",
            Wire::Responses => "openai/gpt-5",
            Wire::Gemini => "gemini/gemini-3-pro",
            Wire::Chat => "openai-chat/gpt-5",
        }
    }

    /// A model that thinks, sees, reads documents and has a mode for structured answers.
    pub fn info(self) -> ModelInfo {
        ModelInfo {
            structured: Structured::Native,
            ..ModelInfo {
                max_output_tokens: 32_000,
                inputs: Inputs {
                    images: true,
                    documents: true,
                    audio: true,
                },
                efforts: vec![Effort::Low, Effort::Medium, Effort::High],
                thinking: ThinkingControl::Level,
                ..ModelInfo::new(self.id())
            }
        }
    }

    /// The base URL of this wire at a server.
    pub fn base_url(self, server: &Loopback) -> String {
        match self {
            Wire::Messages => server.anthropic_base_url(),
            Wire::Responses | Wire::Chat => server.openai_base_url(),
            Wire::Gemini => server.gemini_base_url(),
        }
    }

    /// The model behind this wire at a server.
    pub fn model(self, server: &Loopback) -> Arc<dyn Model> {
        self.model_at(&self.base_url(server), Timeouts::new())
    }

    /// The model behind this wire at an address, waited for that long.
    pub fn model_at(self, base_url: &str, timeouts: Timeouts) -> Arc<dyn Model> {
        self.model_of(self.info(), base_url, timeouts)
    }

    /// A model of this info behind this wire at an address, waited for that long; its prompt cache is asked for.
    pub fn model_of(self, info: ModelInfo, base_url: &str, timeouts: Timeouts) -> Arc<dyn Model> {
        let key = "not-a-real-key";
        match self {
            Wire::Messages => Arc::new(
                Anthropic::new(info, key)
                    .base_url(base_url)
                    .cache_marks()
                    .timeouts(timeouts),
            ),
            Wire::Responses => Arc::new(
                OpenAi::new(info, key)
                    .base_url(base_url)
                    .cache_keys()
                    .timeouts(timeouts),
            ),
            Wire::Gemini => Arc::new(Gemini::new(info, key).base_url(base_url).timeouts(timeouts)),
            Wire::Chat => Arc::new(Chat::new(info, key).base_url(base_url).timeouts(timeouts)),
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wire::Messages => "messages",
            Wire::Responses => "responses",
            Wire::Gemini => "gemini",
            Wire::Chat => "chat",
        })
    }
}
