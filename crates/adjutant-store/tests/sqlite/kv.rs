//! Key-value stores, over two handles.

use adjutant_core::kv::{Change, KvStore, KvStoreErrorKind, Scan, Version, When};
use adjutant_llm::FixedWorld;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::Place;

#[tokio::test]
async fn kv_stores_of_one_file_do_not_mix() {
    let place = Place::new();
    let (one, two) = (
        place.open().kv("one"),
        place.open().world(FixedWorld::at_ms(7)).kv("two"),
    );
    for value in 1..4 {
        one.write(vec![Change::put("key", json!(value)).text("word")])
            .await
            .expect("written");
    }
    two.write(vec![Change::put("key", json!("other")).text("word")])
        .await
        .expect("written");
    assert_eq!(
        (
            one.newest().await.expect("read"),
            two.newest().await.expect("read")
        ),
        (Version(3), Version(1))
    );
    let item = two.get("key").await.expect("read").expect("there");
    assert_eq!((item.value, item.changed_ms), (json!("other"), 7));
    let hits = place
        .open()
        .kv("one")
        .search("", "WORD", 10)
        .await
        .expect("searched");
    assert_eq!(
        hits.into_iter()
            .map(|hit| hit.item.value)
            .collect::<Vec<_>>(),
        [json!(3)]
    );
}

#[tokio::test]
async fn write_of_which_one_change_conflicts_leaves_everything() {
    let place = Place::new();
    let kv = place.open().kv("shelf");
    kv.write(vec![Change::put("a", json!(1)), Change::put("b", json!(2))])
        .await
        .expect("written");
    let changes = vec![
        Change::put("c", json!(3)).text("three"),
        Change {
            when: When::Is(Version(1)),
            ..Change::remove("a")
        },
        Change {
            when: When::Absent,
            ..Change::put("b", json!(4))
        },
    ];
    let error = kv.write(changes).await.expect_err("a conflict");
    assert_eq!(
        error.kind,
        KvStoreErrorKind::Conflict {
            key: "b".into(),
            found: Some(Version(1))
        }
    );
    let items = kv.scan(&Scan::default()).await.expect("scanned");
    let items: Vec<(String, Value, Version)> = items
        .into_iter()
        .map(|item| (item.key.to_string(), item.value, item.version))
        .collect();
    assert_eq!(
        items,
        [
            ("a".into(), json!(1), Version(1)),
            ("b".into(), json!(2), Version(1))
        ]
    );
    assert_eq!(kv.newest().await.expect("read"), Version(1));
    assert_eq!(kv.search("", "three", 1).await.expect("searched"), []);
}

#[tokio::test]
async fn removals_are_forgotten_when_there_are_too_many() {
    let place = Place::new();
    let kv = place.open().kv("shelf");
    for part in 0..11 {
        let keys = || (0..1_000).map(|number| format!("{part}/{number}"));
        kv.write(keys().map(|key| Change::put(key, json!(0))).collect())
            .await
            .expect("written");
        kv.write(keys().map(Change::remove).collect())
            .await
            .expect("written");
    }
    let kept: i64 = place
        .raw()
        .query_row("SELECT count(*) FROM items", [], |row| row.get(0))
        .expect("counted");
    assert_eq!(kept, 10_000);
    let told = kv
        .watch("", Version(0))
        .next()
        .await
        .expect("goes on")
        .expect("read");
    assert_eq!((told.version, told.item), (Version(4), None));
}

#[tokio::test]
async fn value_that_was_damaged_is_corrupt() {
    let place = Place::new();
    let kv = place.open().kv("shelf");
    kv.write(vec![Change::put("key", json!({"a": 1}))])
        .await
        .expect("written");
    place
        .raw()
        .execute("UPDATE items SET json = '{'", [])
        .expect("damaged");
    assert_eq!(
        kv.get("key").await.expect_err("damaged").kind,
        KvStoreErrorKind::Corrupt
    );
    assert_eq!(
        kv.scan(&Scan::default()).await.expect_err("damaged").kind,
        KvStoreErrorKind::Corrupt
    );
}

#[tokio::test]
async fn value_that_could_not_be_read_again_is_refused() {
    let place = Place::new();
    let kv = place.open().kv("shelf");
    let deep = |levels| (0..levels).fold(json!("\"{[\\"), |value, _| json!([value]));
    kv.write(vec![Change::put("key", deep(120))])
        .await
        .expect("written");
    assert_eq!(
        kv.get("key").await.expect("read").expect("there").value,
        deep(120)
    );
    let error = kv
        .write(vec![Change::put("key", deep(121))])
        .await
        .expect_err("too deep");
    assert_eq!(error.kind, KvStoreErrorKind::Invalid);
}
