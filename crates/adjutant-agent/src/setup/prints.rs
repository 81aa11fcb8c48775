//! Fingerprints of requests: what stays the same is digested once, and compared by where it is kept.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use adjutant_core::{Config, Digest};
use adjutant_llm::{ModelInfo, Options, Request, ToolDecl, ToolName};
use serde_json::Value;

use super::Setup;

/// The newest fingerprint of agents that come from one: a new drive mostly finds its own here.
#[derive(Debug, Default)]
pub(crate) struct Prints {
    newest: Mutex<Option<Arc<Print>>>,
}

/// A fingerprint and its input, which is kept alive, so that the same address means the same value.
#[derive(Debug)]
pub(crate) struct Print {
    system: (Arc<str>, Digest),
    tools: (Arc<[ToolDecl]>, BTreeMap<ToolName, Digest>),
    options: (Arc<Options>, Value),
    pub(crate) config: Arc<Config>,
}

/// The parts that a request is made with.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) model: &'a ModelInfo,
    pub(crate) system: &'a Arc<str>,
    pub(crate) tools: &'a Arc<[ToolDecl]>,
    pub(crate) options: &'a Arc<Options>,
}

impl Setup {
    /// The fingerprint of a request.
    pub(crate) fn config_of(&self, model: &ModelInfo, request: &Request) -> Arc<Config> {
        let (system, tools, options) = (&request.system, &request.tools, &request.options);
        let parts = Parts {
            model,
            system,
            tools,
            options,
        };
        Arc::clone(&self.prints.fingerprint(parts).config)
    }
}

impl Prints {
    pub(crate) fn fingerprint(&self, parts: Parts<'_>) -> Arc<Print> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some(print) if print.is_of(parts) => Arc::clone(print),
            before => {
                let print = Arc::new(Print::from_parts(parts, before.as_deref()));
                *newest = Some(Arc::clone(&print));
                print
            }
        }
    }
}

impl Print {
    pub(crate) fn is_of(&self, parts: Parts<'_>) -> bool {
        self.config.model == parts.model.id
            && self.config.info.as_deref() == model_to_record(parts.model)
            && Arc::ptr_eq(&self.system.0, parts.system)
            && is_same(&self.tools.0, parts.tools)
            && (Arc::ptr_eq(&self.options.0, parts.options) || *self.options.0 == **parts.options)
    }

    /// Returns the fingerprint of these parts; parts of an earlier one are not digested again.
    fn from_parts(parts: Parts<'_>, before: Option<&Print>) -> Self {
        let system = match before {
            Some(it) if Arc::ptr_eq(&it.system.0, parts.system) => it.system.clone(),
            _ => (
                Arc::clone(parts.system),
                Digest::compute(parts.system.as_bytes()),
            ),
        };
        let tools = match before {
            Some(it) if is_same(&it.tools.0, parts.tools) => it.tools.clone(),
            _ => (
                Arc::clone(parts.tools),
                parts.tools.iter().map(digest).collect(),
            ),
        };
        let options = match before {
            Some(it) if *it.options.0 == **parts.options => it.options.clone(),
            _ => (
                Arc::clone(parts.options),
                serde_json::to_value(&**parts.options).unwrap_or_default(),
            ),
        };
        let config = Config {
            model: parts.model.id.clone(),
            info: model_to_record(parts.model).cloned().map(Arc::new),
            system: system.1,
            tools: tools.1.clone(),
            options: options.1.clone(),
        };
        Self {
            system,
            tools,
            options,
            config: Arc::new(config),
        }
    }
}

/// Returns the abilities of a model to record: those unknown to the application and the catalogue.
fn model_to_record(model: &ModelInfo) -> Option<&ModelInfo> {
    Some(model).filter(|model| !model.limits.is_known())
}

/// True if these are the same declarations by their place; two empty lists are always the same.
fn is_same(one: &Arc<[ToolDecl]>, other: &Arc<[ToolDecl]>) -> bool {
    Arc::ptr_eq(one, other) || (one.is_empty() && other.is_empty())
}

/// Returns the digest of a tool's declaration.
fn digest(tool: &ToolDecl) -> (ToolName, Digest) {
    // Texts and JSON values are always JSON.
    let shown =
        serde_json::to_vec(&(&tool.name, &tool.description, &tool.schema)).unwrap_or_default();
    (tool.name.clone(), Digest::compute(&shown))
}
