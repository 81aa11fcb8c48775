//! Watching: changes as they come.

use adjutant_agent::kv::{Change, ChangeStream, Changed, Version};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::stage::{KvStage, write};
use crate::suite::{Verdict, equal, holds, join_task, ok, soon, waits};

async fn next(changes: &mut ChangeStream) -> Result<Changed, String> {
    let changed = soon("a change", changes.next())
        .await?
        .ok_or("the stream of changes ended")?;
    ok("reading a change", changed)
}

/// Checks that this is what happens next.
async fn is_next(
    changes: &mut ChangeStream,
    key: &str,
    version: Version,
    value: Option<Value>,
) -> Verdict {
    let changed = next(changes).await?;
    equal("the key that changed", &&*changed.key, &key)?;
    equal("the version of the change", &changed.version, &version)?;
    if let Some(item) = &changed.item {
        equal("the key of the value", &&*item.key, &key)?;
        equal("the version of the value", &item.version, &version)?;
    }
    equal("the value", &changed.item.map(|item| item.value), &value)
}

pub(super) async fn sees_later_changes(stage: &KvStage<'_>) -> Verdict {
    let (kv, key) = (stage.open().await, stage.key("a"));
    write(&*kv, [Change::put(&*key, json!("before"))]).await?;
    let mut changes = kv.watch(&stage.prefix, ok("newest", kv.newest().await)?);
    let waiting = waits(async move {
        let changed = next(&mut changes).await?;
        Ok((changed, changes))
    });
    let waiting = waiting.await?;
    let one = write(
        &*stage.open().await,
        [Change::put(&*key, json!(1)).text("found by")],
    )
    .await?;
    let (changed, mut changes) = join_task("who watches", waiting).await?;
    equal("the version", &changed.version, &one)?;
    let item = changed.item.ok_or("the value is missing")?;
    equal(
        "the value",
        &(item.value, &*item.text),
        &(json!(1), "found by"),
    )?;
    let two = write(&*stage.open().await, [Change::remove(&*key)]).await?;
    is_next(&mut changes, &key, two, None).await?;
    let three = write(&*kv, [Change::put(&*key, json!(3))]).await?;
    is_next(&mut changes, &key, three, Some(json!(3))).await
}

pub(super) async fn begins_at_a_version(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let keys = ["c", "a", "b"].map(|name| stage.key(name));
    let mut versions = Vec::new();
    for key in &keys {
        versions.push(write(&*kv, [Change::put(&**key, json!(key))]).await?);
    }
    for (from, after) in [(1, versions[0]), (2, versions[1])] {
        let mut changes = stage.open().await.watch(&stage.prefix, after);
        for (key, version) in keys.iter().zip(&versions).skip(from) {
            is_next(&mut changes, key, *version, Some(json!(key))).await?;
        }
    }
    // Of several changes of one key the newest is always reported, and the reported ones are in order.
    for number in 0..5 {
        versions.push(write(&*kv, [Change::put(&*keys[0], json!(number))]).await?);
    }
    let mut changes = kv.watch(&stage.prefix, versions[2]);
    let mut before = versions[2];
    loop {
        let changed = next(&mut changes).await?;
        holds(
            "changes are told in the order of versions",
            changed.version > before,
        )?;
        before = changed.version;
        if before == versions[7] {
            return equal(
                "the newest value",
                &changed.item.map(|item| item.value),
                &Some(json!(4)),
            );
        }
    }
}

pub(super) async fn watches_a_prefix(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let mut changes = kv.watch(&stage.key("a%"), ok("newest", kv.newest().await)?);
    for name in ["b", "a", "A%", "aab", "a_"] {
        write(&*kv, [Change::put(stage.key(name), json!(name))]).await?;
    }
    let (in_it, beside) = (stage.key("a%1"), stage.key("b"));
    let one = write(
        &*kv,
        [
            Change::remove(&*beside),
            Change::put(&*in_it, json!("in it")),
        ],
    )
    .await?;
    is_next(&mut changes, &in_it, one, Some(json!("in it"))).await?;
    write(&*kv, [Change::put(&*beside, json!("beside"))]).await?;
    let two = write(&*kv, [Change::remove(&*in_it)]).await?;
    is_next(&mut changes, &in_it, two, None).await
}
