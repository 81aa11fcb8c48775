//! The means with which the checks of a key-value store are played: keys of their own, and short ways to do the usual.

use std::sync::Arc;

use adjutant_agent::{
    KvStore,
    kv::{Change, Item, KvStoreError, KvStoreErrorKind, Scan, Version},
};
use adjutant_llm::{SystemWorld, World};
use serde_json::Value;

use super::Lab;
use crate::suite::{Verdict, equal, fails, ok};

/// A play of one check.
pub(super) struct KvStage<'a> {
    lab: &'a dyn Lab,
    /// The prefix of its keys, unused before.
    pub(super) prefix: String,
}

impl<'a> KvStage<'a> {
    pub(super) fn new(lab: &'a (dyn Lab + 'static)) -> Self {
        Self {
            lab,
            prefix: format!("{:x}/", SystemWorld.id()),
        }
    }

    /// A key of this play.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(super) async fn open(&self) -> Arc<dyn KvStore> {
        self.lab.open().await
    }

    /// The keys that begin like this, without what all keys of this play begin with.
    pub(super) async fn keys(&self, kv: &dyn KvStore, scan: &Scan) -> Result<Vec<String>, String> {
        let items = ok("scanning", kv.scan(scan).await)?;
        Ok(items.iter().map(|item| self.short(&item.key)).collect())
    }

    pub(super) fn short(&self, key: &str) -> String {
        key.strip_prefix(&self.prefix).unwrap_or(key).to_owned()
    }
}

pub(super) async fn write(
    kv: &dyn KvStore,
    changes: impl IntoIterator<Item = Change>,
) -> Result<Version, String> {
    ok("writing", kv.write(changes.into_iter().collect()).await)
}

pub(super) async fn get(kv: &dyn KvStore, key: &str) -> Result<Option<Item>, String> {
    ok("reading", kv.get(key).await)
}

/// Checks the value of a key; gives its version.
pub(super) async fn has(
    kv: &dyn KvStore,
    key: &str,
    value: &Value,
    text: &str,
) -> Result<Version, String> {
    let item = get(kv, key)
        .await?
        .ok_or_else(|| format!("key {key:?} has no value"))?;
    equal("the key", &&*item.key, &key)?;
    // Also the order of the fields, which comparing values does not see.
    equal(
        &format!("the value of {key:?}"),
        &item.value.to_string(),
        &value.to_string(),
    )?;
    equal(&format!("the text of {key:?}"), &&*item.text, &text)?;
    Ok(item.version)
}

pub(super) async fn has_none(kv: &dyn KvStore, key: &str) -> Verdict {
    equal(
        &format!("the value of {key:?}"),
        &get(kv, key).await?,
        &None,
    )
}

/// Checks that something fails in this way.
pub(super) fn check_error<T>(
    what: &str,
    result: Result<T, KvStoreError>,
    kind: &KvStoreErrorKind,
) -> Verdict {
    let error = fails(what, result)?;
    equal(
        &format!("the kind of error of {what} ({error})"),
        &error.kind,
        kind,
    )
}

/// Makes the error for a condition on a key that is not true.
pub(super) fn conflict(key: &str, found: Option<Version>) -> KvStoreErrorKind {
    KvStoreErrorKind::Conflict {
        key: key.into(),
        found,
    }
}
