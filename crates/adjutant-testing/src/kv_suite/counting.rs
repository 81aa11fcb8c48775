//! Many at once.

use adjutant_agent::{
    KvStore,
    kv::{Change, KvStoreErrorKind, Scan, When},
};
use serde_json::json;

use super::stage::{KvStage, get, has, write};
use crate::suite::{Verdict, equal, join_task, ok};

/// The number under a key, and the condition for a change based on it.
async fn number(kv: &dyn KvStore, key: &str) -> Result<(i64, When), String> {
    let item = get(kv, key).await?;
    Ok(item.map_or((0, When::Absent), |item| {
        (
            item.value.as_i64().unwrap_or_default(),
            When::Is(item.version),
        )
    }))
}

/// Writes if nothing has changed; returns whether it did.
async fn try_write(kv: &dyn KvStore, changes: Vec<Change>) -> Result<bool, String> {
    match kv.write(changes).await {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind, KvStoreErrorKind::Conflict { .. }) => Ok(false),
        Err(error) => ok("writing", Err(error)),
    }
}

pub(super) async fn exact_sum(stage: &KvStage<'_>) -> Verdict {
    let key = stage.key("counter");
    let mut raising = Vec::new();
    for _ in 0..6 {
        let (kv, key) = (stage.open().await, key.clone());
        raising.push(tokio::spawn(async move {
            for _ in 0..20 {
                loop {
                    let (value, when) = number(&*kv, &key).await?;
                    if try_write(
                        &*kv,
                        vec![Change {
                            when,
                            ..Change::put(&*key, json!(value + 1))
                        }],
                    )
                    .await?
                    {
                        break;
                    }
                }
            }
            Ok(())
        }));
    }
    for raising in raising {
        join_task("who counts", raising).await?;
    }
    has(&*stage.open().await, &key, &json!(120), "")
        .await
        .map(drop)
}

pub(super) async fn one_creates(stage: &KvStage<'_>) -> Verdict {
    let key = stage.key("seat");
    let mut creating = Vec::new();
    for number in 0..8 {
        let (kv, key) = (stage.open().await, key.clone());
        creating.push(tokio::spawn(async move {
            let changes = vec![Change {
                when: When::Absent,
                ..Change::put(&*key, json!(number))
            }];
            Ok(try_write(&*kv, changes).await?.then_some(number))
        }));
    }
    let mut winners = Vec::new();
    for creating in creating {
        winners.extend(join_task("who creates", creating).await?);
    }
    equal("how many created it", &winners.len(), &1)?;
    has(&*stage.open().await, &key, &json!(winners[0]), "")
        .await
        .map(drop)
}

pub(super) async fn transfers(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let keys = ["a", "b", "c"].map(|name| stage.key(name));
    write(&*kv, keys.iter().map(|key| Change::put(&**key, json!(100)))).await?;
    let mut moving = Vec::new();
    for mover in 0..3 {
        let (kv, keys) = (stage.open().await, keys.clone());
        moving.push(tokio::spawn(async move {
            let (from, to) = (&keys[mover], &keys[(mover + 1) % 3]);
            let mut moved = 0;
            while moved < 15 {
                let ((one, is_one), (other, is_other)) =
                    (number(&*kv, from).await?, number(&*kv, to).await?);
                let changes = vec![
                    Change {
                        when: is_one,
                        ..Change::put(&**from, json!(one - 1))
                    },
                    Change {
                        when: is_other,
                        ..Change::put(&**to, json!(other + 1))
                    },
                ];
                moved += i32::from(try_write(&*kv, changes).await?);
            }
            Ok(())
        }));
    }
    while !moving.iter().all(tokio::task::JoinHandle::is_finished) {
        let items = ok("scanning", kv.scan(&Scan::prefix(&*stage.prefix)).await)?;
        let sum: i64 = items.iter().filter_map(|item| item.value.as_i64()).sum();
        equal("the sum at one moment", &sum, &300)?;
    }
    for moving in moving {
        join_task("who moves", moving).await?;
    }
    for key in &keys {
        has(&*kv, key, &json!(100), "").await?;
    }
    Ok(())
}
