//! Key-value stores: versions, conditions, order, watching and searching.

use adjutant_core::{
    KvStore,
    kv::{Change, Changed, KvStoreErrorKind, Scan, Version, When},
};
use futures_util::{StreamExt, future};
use serde_json::json;

use super::place;

fn kind(error: adjutant_core::kv::KvStoreError) -> KvStoreErrorKind {
    error.kind.clone()
}

#[tokio::test]
async fn write_happens_whole_or_not_at_all() {
    let place = place!("write_happens_whole_or_not_at_all");
    let database = place.open().await;
    let kv = database.kv("shelf\0");
    assert_eq!(kv.newest().await.expect("none"), Version(0));
    assert_eq!(kv.get("key").await.expect("none"), None);
    let odd = json!({"nul\0": "\0", "wide": [1.5, u64::MAX, -1, null]});
    let first = kv.write(vec![
        Change::put("key\0", odd.clone()).text("words\0"),
        Change::put("other", json!(1)),
    ]);
    assert_eq!(first.await.expect("it is written"), Version(1));
    let item = kv.get("key\0").await.expect("read").expect("it is there");
    assert_eq!(
        (item.value, &*item.text, item.version),
        (odd, "words\0", Version(1))
    );
    for (when, found) in [
        (When::Absent, Some(Version(1))),
        (When::Is(Version(2)), Some(Version(1))),
    ] {
        let changes = vec![
            Change::put("new", json!(1)),
            Change {
                when,
                ..Change::put("other", json!(2))
            },
        ];
        let error = kv.write(changes).await.expect_err("it is not so");
        assert_eq!(
            kind(error),
            KvStoreErrorKind::Conflict {
                key: "other".into(),
                found
            }
        );
    }
    let error = kv
        .write(vec![Change {
            when: When::Is(Version(1)),
            ..Change::remove("none")
        }])
        .await
        .expect_err("it is absent");
    assert_eq!(
        kind(error),
        KvStoreErrorKind::Conflict {
            key: "none".into(),
            found: None
        }
    );
    assert_eq!(kv.get("new").await.expect("none"), None);
    let changes = vec![
        Change {
            when: When::Is(Version(1)),
            ..Change::remove("other")
        },
        Change {
            when: When::Absent,
            ..Change::put("new", json!(3))
        },
    ];
    assert_eq!(kv.write(changes).await.expect("it is so"), Version(2));
    assert_eq!(
        (
            kv.get("other").await.expect("gone"),
            kv.newest().await.expect("known")
        ),
        (None, Version(2))
    );
    assert_eq!(
        database
            .kv("another")
            .newest()
            .await
            .expect("it is another"),
        Version(0)
    );
}

#[tokio::test]
async fn write_that_cannot_be_is_invalid() {
    let place = place!("write_that_cannot_be_is_invalid");
    let kv = place.open().await.kv("shelf");
    let mut deep = json!(1);
    for _ in 0..130 {
        deep = json!([deep]);
    }
    for changes in [
        vec![Change::put("", json!(1))],
        vec![Change::put("k".repeat(1_025), json!(1))],
        vec![Change::put("k", json!("v".repeat(8 << 20)))],
        vec![Change::put("k", json!(1)), Change::remove("k")],
        vec![Change::put("k", deep)],
        (0..1_001)
            .map(|number| Change::put(number.to_string(), json!(1)))
            .collect(),
    ] {
        assert_eq!(
            kind(kv.write(changes).await.expect_err("it cannot be")),
            KvStoreErrorKind::Invalid
        );
    }
    assert_eq!(kv.newest().await.expect("nothing was written"), Version(0));
}

#[tokio::test]
async fn scan_gives_keys_in_the_order_of_their_bytes() {
    let place = place!("scan_gives_keys_in_the_order_of_their_bytes");
    let kv = place.open().await.kv("shelf");
    let keys = [
        "a",
        "a\0",
        "a/1",
        "a/10",
        "a/2",
        "aé",
        "b",
        "日",
        "\u{10ffff}x",
    ];
    kv.write(
        keys.iter()
            .rev()
            .map(|key| Change::put(*key, json!(key)))
            .collect(),
    )
    .await
    .expect("it is written");
    let scan = async |scan: Scan| -> Vec<String> {
        kv.scan(&scan)
            .await
            .expect("items")
            .iter()
            .map(|item| item.key.to_string())
            .collect()
    };
    assert_eq!(scan(Scan::default()).await, keys);
    assert_eq!(scan(Scan::prefix("a/")).await, ["a/1", "a/10", "a/2"]);
    assert_eq!(
        scan(Scan {
            after: Some("a/1".into()),
            limit: Some(2),
            ..Scan::prefix("a")
        })
        .await,
        ["a/10", "a/2"]
    );
    assert_eq!(scan(Scan::prefix("\u{10ffff}")).await, ["\u{10ffff}x"]);
}

#[tokio::test]
async fn watch_tells_what_happens_in_the_order_of_versions() {
    let place = place!("watch_tells_what_happens_in_the_order_of_versions");
    let (kv, other) = (
        place.open().await.kv("shelf"),
        place.open().await.kv("shelf"),
    );
    other
        .write(vec![Change::put("k/old", json!(0))])
        .await
        .expect("it is written");
    let batch = (0..700)
        .map(|number| Change::put(format!("k/{number:03}"), json!(number)))
        .collect();
    other.write(batch).await.expect("it is written");
    let mut changes = kv.watch("k/", Version(1));
    let mut told = Vec::new();
    for _ in 0..700 {
        told.push(changes.next().await.expect("no end").expect("a change"));
    }
    assert!(
        told.iter()
            .all(|changed| changed.version == Version(2) && changed.item.is_some())
    );
    assert!(told.is_sorted_by(|one, next| one.key < next.key));
    let write = async {
        other
            .write(vec![
                Change::remove("k/old"),
                Change::put("elsewhere", json!(1)),
            ])
            .await
            .expect("it is written");
        other
            .write(vec![Change::put("k/old", json!("again"))])
            .await
            .expect("it is written")
    };
    let (_, next) = tokio::join!(write, changes.next());
    let next = next.expect("no end").expect("a change");
    let last = if next.version == Version(3) {
        assert_eq!(
            next,
            Changed {
                key: "k/old".into(),
                version: Version(3),
                item: None
            }
        );
        changes.next().await.expect("no end").expect("a change")
    } else {
        next
    };
    assert_eq!(
        last,
        Changed {
            key: "k/old".into(),
            version: Version(4),
            item: kv.get("k/old").await.expect("it is there")
        }
    );
}

#[tokio::test]
async fn removals_that_are_told_are_bounded() {
    let place = place!("removals_that_are_told_are_bounded");
    let kv = place.open().await.kv("shelf");
    kv.write(vec![
        Change::put("kept", json!(1)),
        Change::put("last", json!(1)),
    ])
    .await
    .expect("it is written");
    // As if as many writes had removed a key each.
    place.execute(
        "insert into $.removals select id, convert_to(no::text, 'UTF8'), no from $.shelves, generate_series(2, 10100) as no",
    );
    // The oldest are forgotten at every 64th version.
    place.execute("update $.shelves set newest = 64 * 158 - 1");
    kv.write(vec![Change::remove("last")])
        .await
        .expect("it is written");
    let mut changes = kv.watch("", Version(1));
    let first = changes.next().await.expect("no end").expect("a change");
    // Of the removals 2 to 10,100 and 10,112 the newest 10,000 are left.
    assert_eq!((first.version, first.item), (Version(102), None));
}

#[tokio::test]
async fn search_finds_any_of_the_words_best_first() {
    let place = place!("search_finds_any_of_the_words_best_first");
    let kv = place.open().await.kv("shelf");
    let texts = [
        ("n/1", "The build of src/main.rs failed: error E0308"),
        ("n/2", "The user prefers tea to coffee"),
        ("n/3", "The tea was cold\0and the user was not amused"),
        ("n/4", "Grüße aus KÖLN, 東京"),
        ("m/5", "tea tea tea"),
    ];
    let changes = texts
        .iter()
        .map(|(key, text)| Change::put(*key, json!(null)).text(*text))
        .collect();
    kv.write(changes).await.expect("it is written");
    let search = async |query: &str| -> Vec<String> {
        let hits = kv.search("n/", query, 10).await.expect("hits");
        assert!(
            hits.is_sorted_by(|one, next| one.score >= next.score)
                && hits.iter().all(|hit| hit.score > 0.0)
        );
        hits.iter().map(|hit| hit.item.key.to_string()).collect()
    };
    assert_eq!(search("main").await, ["n/1"]);
    assert_eq!(search("e0308").await, ["n/1"]);
    assert_eq!(search("köln").await, ["n/4"]);
    assert_eq!(search("東京").await, ["n/4"]);
    assert_eq!(search("the COFFEE").await[0], "n/2");
    assert_eq!(search("tea user").await.len(), 2);
    for nothing in ["", "''", "zebra", "& | ! ( ) : * <-> \\ '\0", "' | 'x"] {
        assert_eq!(search(nothing).await, Vec::<String>::new(), "{nothing:?}");
    }
    assert_eq!(search("tea & ! (user) :* ' \\").await.len(), 2);
    let long =
        vec![Change::put("n/6", json!(1)).text("word ".repeat(1 << 20) + &"x".repeat(5_000))];
    kv.write(long).await.expect("a long text");
    assert_eq!(search("word").await, ["n/6"]);
    let many = (0..200_000)
        .map(|number| format!("w{number} "))
        .collect::<String>();
    kv.write(vec![Change::put("n/7", json!(1)).text(many)])
        .await
        .expect("many words");
    assert_eq!(search("w7").await, ["n/7"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_count_versions_without_gaps() {
    let place = place!("writers_count_versions_without_gaps");
    let processes = [place.open().await, place.open().await];
    let count = async |number: usize| {
        let kv = processes[number % 2].kv("counter");
        for _ in 0..10 {
            loop {
                let now = kv.get("count").await.expect("read");
                let (value, when) = now.map_or((0, When::Absent), |item| {
                    (
                        item.value.as_u64().expect("a number"),
                        When::Is(item.version),
                    )
                });
                match kv
                    .write(vec![Change {
                        when,
                        ..Change::put("count", json!(value + 1))
                    }])
                    .await
                {
                    Ok(_) => break,
                    Err(error) => assert!(
                        matches!(error.kind, KvStoreErrorKind::Conflict { .. }),
                        "{error}"
                    ),
                }
            }
        }
    };
    future::join_all((0..8).map(count)).await;
    let item = processes[0]
        .kv("counter")
        .get("count")
        .await
        .expect("read")
        .expect("it is there");
    assert_eq!((item.value, item.version), (json!(80), Version(80)));
}
