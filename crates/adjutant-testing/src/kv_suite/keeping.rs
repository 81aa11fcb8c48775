//! Values by key: reading, writing, removing, and what must be true for a change.

use adjutant_agent::kv::{
    Change, KvStoreErrorKind, MAX_KEY_BYTES, MAX_VALUE_BYTES, MAX_WRITE, Version, When,
};
use serde_json::{Value, json};

use super::stage::{KvStage, check_error, conflict, get, has, has_none, write};
use crate::suite::{Verdict, equal, holds, ok};

pub(super) async fn put_then_get(stage: &KvStage<'_>) -> Verdict {
    let (kv, key) = (stage.open().await, stage.key("a"));
    has_none(&*kv, &key).await?;
    let one = write(&*kv, [Change::put(&*key, json!({"n": 1})).text("first")]).await?;
    for kv in [&kv, &stage.open().await] {
        equal(
            "the version",
            &has(&**kv, &key, &json!({"n": 1}), "first").await?,
            &one,
        )?;
    }
    let two = write(&*stage.open().await, [Change::put(&*key, json!([2]))]).await?;
    equal(
        "the version",
        &has(&*kv, &key, &json!([2]), "").await?,
        &two,
    )?;
    let item = get(&*kv, &key).await?.ok_or("the value is gone")?;
    holds("a value tells when it was written", item.changed_ms > 0)
}

pub(super) async fn values_survive(stage: &KvStage<'_>) -> Verdict {
    let numbers = r#"{"z":1,"a":[9007199254740993,-9223372036854775808,18446744073709551615,0.1,-0.0,1e-7,1.7976931348623157e308]}"#;
    let values = [
        Value::Null,
        json!(false),
        json!(""),
        json!("\0 \u{ffff} 👩‍👩‍👧‍👦 \u{2028} \" \\"),
        json!({}),
        json!([[], {}, null]),
        json!({"b": {"\0": 1, "": 2, "ä": 3}, "a": "second"}),
        serde_json::from_str(numbers).map_err(|error| error.to_string())?,
    ];
    let kv = stage.open().await;
    for (number, value) in values.iter().enumerate() {
        let key = stage.key(&number.to_string());
        write(
            &*kv,
            [Change::put(&*key, value.clone()).text("text \0 \n é '")],
        )
        .await?;
        has(&*stage.open().await, &key, value, "text \0 \n é '").await?;
    }
    Ok(())
}

pub(super) async fn keys_are_data(stage: &KvStage<'_>) -> Verdict {
    let names = [
        "a",
        "A",
        "a ",
        " a",
        "a/",
        "a//b",
        "../a",
        "a\0",
        "a\0b",
        "\0",
        "a%",
        "a_",
        "%",
        "*",
        "'",
        "é",
        "e\u{301}",
        "ß",
        "ss",
        "👩‍👩‍👧‍👦",
        "\u{ffff}",
        "\u{10ffff}",
    ];
    let kv = stage.open().await;
    for name in names {
        write(&*kv, [Change::put(stage.key(name), json!(name))]).await?;
    }
    for name in names {
        has(&*stage.open().await, &stage.key(name), &json!(name), "").await?;
    }
    let long = stage.key(&"x".repeat(MAX_KEY_BYTES - stage.prefix.len()));
    write(&*kv, [Change::put(&*long, json!("long"))]).await?;
    has(&*kv, &long, &json!("long"), "").await.map(drop)
}

pub(super) async fn removed_is_gone(stage: &KvStage<'_>) -> Verdict {
    let (kv, key) = (stage.open().await, stage.key("a"));
    write(&*kv, [Change::remove(&*key)]).await?;
    let put = write(&*kv, [Change::put(&*key, json!(1)).text("one")]).await?;
    write(&*kv, [Change::remove(&*key)]).await?;
    for kv in [&kv, &stage.open().await] {
        has_none(&**kv, &key).await?;
    }
    write(&*kv, [Change::remove(&*key)]).await?;
    let again = write(&*kv, [Change::put(&*key, json!(1))]).await?;
    holds(
        &format!("a version is not given again: {put}, then {again}"),
        again > put,
    )
}

pub(super) async fn versions_grow(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let (a, b) = (stage.key("a"), stage.key("b"));
    let newest = ok("newest", kv.newest().await)?;
    let one = write(&*kv, [Change::put(&*a, json!(1))]).await?;
    let two = write(
        &*stage.open().await,
        [Change::put(&*b, json!(1)), Change::remove(&*a)],
    )
    .await?;
    let three = write(&*kv, [Change::remove(&*b)]).await?;
    let four = write(&*stage.open().await, [Change::put(&*a, json!(1))]).await?;
    let versions = [newest, one, two, three, four];
    holds(
        &format!("versions grow: {versions:?}"),
        versions.is_sorted_by(|one, next| one < next),
    )?;
    equal(
        "the newest version",
        &ok("newest", stage.open().await.newest().await)?,
        &four,
    )?;
    check_error(
        "a change that must not happen",
        kv.write(vec![Change {
            when: When::Absent,
            ..Change::put(&*a, json!(2))
        }])
        .await,
        &conflict(&a, Some(four)),
    )?;
    equal(
        "the newest version",
        &ok("newest", kv.newest().await)?,
        &four,
    )
}

pub(super) async fn conditions(stage: &KvStage<'_>) -> Verdict {
    let (kv, other, key) = (stage.open().await, stage.open().await, stage.key("a"));
    let try_put = async |when| {
        kv.write(vec![Change {
            when,
            ..Change::put(&*key, json!("put"))
        }])
        .await
    };
    let try_remove = async |when| {
        other
            .write(vec![Change {
                when,
                ..Change::remove(&*key)
            }])
            .await
    };
    check_error(
        "a version that is not there",
        try_put(When::Is(Version(1))).await,
        &conflict(&key, None),
    )?;
    check_error(
        "removing a version that is not there",
        try_remove(When::Is(Version(0))).await,
        &conflict(&key, None),
    )?;
    has_none(&*kv, &key).await?;
    let one = ok("creating", try_put(When::Absent).await)?;
    check_error(
        "creating once more",
        try_put(When::Absent).await,
        &conflict(&key, Some(one)),
    )?;
    check_error(
        "removing what must be absent",
        try_remove(When::Absent).await,
        &conflict(&key, Some(one)),
    )?;
    let two = ok("replacing", try_put(When::Is(one)).await)?;
    check_error(
        "replacing what was replaced",
        try_put(When::Is(one)).await,
        &conflict(&key, Some(two)),
    )?;
    check_error(
        "removing what was replaced",
        try_remove(When::Is(one)).await,
        &conflict(&key, Some(two)),
    )?;
    let three = ok("replacing anything", try_put(When::Any).await)?;
    equal(
        "the version",
        &has(&*other, &key, &json!("put"), "").await?,
        &three,
    )?;
    ok("removing", try_remove(When::Is(three)).await)?;
    check_error(
        "replacing what was removed",
        try_put(When::Is(three)).await,
        &conflict(&key, None),
    )?;
    ok("removing what is absent", try_remove(When::Absent).await)?;
    ok("creating", try_put(When::Absent).await).map(drop)
}

pub(super) async fn writes_are_whole(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let [a, b, c] = ["a", "b", "c"].map(|name| stage.key(name));
    let one = write(&*kv, [&a, &b].map(|key| Change::put(&**key, json!(1)))).await?;
    equal(
        "the version of the first",
        &has(&*kv, &a, &json!(1), "").await?,
        &one,
    )?;
    equal(
        "the version of the second",
        &has(&*kv, &b, &json!(1), "").await?,
        &one,
    )?;
    let torn = vec![
        Change::put(&*a, json!(2)),
        Change::remove(&*b),
        Change {
            when: When::Is(one),
            ..Change::put(&*c, json!(2))
        },
    ];
    check_error(
        "a write of which the last change must not happen",
        kv.write(torn).await,
        &conflict(&c, None),
    )?;
    for kv in [&kv, &stage.open().await] {
        has(&**kv, &a, &json!(1), "").await?;
        has(&**kv, &b, &json!(1), "").await?;
        has_none(&**kv, &c).await?;
    }
    let whole = vec![
        Change {
            when: When::Is(one),
            ..Change::put(&*a, json!(2))
        },
        Change::remove(&*b),
        Change::put(&*c, json!(2)),
    ];
    let two = write(&*kv, whole).await?;
    equal(
        "the version of the first",
        &has(&*kv, &a, &json!(2), "").await?,
        &two,
    )?;
    has_none(&*kv, &b).await?;
    equal(
        "the version of the last",
        &has(&*kv, &c, &json!(2), "").await?,
        &two,
    )
}

pub(super) async fn doubles_refused(stage: &KvStage<'_>) -> Verdict {
    let (kv, key, other) = (stage.open().await, stage.key("a"), stage.key("b"));
    for double in [Change::put(&*key, json!(2)), Change::remove(&*key)] {
        let changes = vec![
            Change::put(&*other, json!(1)),
            Change::put(&*key, json!(1)),
            double,
        ];
        check_error(
            "two changes of one key",
            kv.write(changes).await,
            &KvStoreErrorKind::Invalid,
        )?;
    }
    has_none(&*kv, &key).await?;
    has_none(&*kv, &other).await
}

pub(super) async fn limits(stage: &KvStage<'_>) -> Verdict {
    let (kv, key) = (stage.open().await, stage.key("a"));
    let long = stage.key(&"é".repeat(MAX_KEY_BYTES / 2));
    for bad in ["", &*long] {
        check_error(
            "writing a bad key",
            kv.write(vec![Change::put(bad, json!(1))]).await,
            &KvStoreErrorKind::Invalid,
        )?;
        check_error(
            "removing a bad key",
            kv.write(vec![Change::remove(bad)]).await,
            &KvStoreErrorKind::Invalid,
        )?;
        check_error(
            "reading a bad key",
            kv.get(bad).await,
            &KvStoreErrorKind::Invalid,
        )?;
    }
    let text = |bytes: usize| "x".repeat(bytes);
    for (value, found_by) in [
        (json!(text(MAX_VALUE_BYTES)), String::new()),
        (json!(1), text(MAX_VALUE_BYTES + 1)),
        (
            json!(text(MAX_VALUE_BYTES / 2)),
            text(MAX_VALUE_BYTES / 2 + 1),
        ),
    ] {
        let large = kv
            .write(vec![Change::put(&*key, value).text(found_by)])
            .await;
        check_error(
            "writing what is too large",
            large,
            &KvStoreErrorKind::Invalid,
        )?;
    }
    has_none(&*kv, &key).await?;
    let fits = json!(text(MAX_VALUE_BYTES - 64 * 1024));
    write(&*kv, [Change::put(&*key, fits.clone()).text("fits")]).await?;
    has(&*stage.open().await, &key, &fits, "fits").await?;
    let many = |count: usize| {
        (0..count).map(|number| Change::put(stage.key(&format!("n{number}")), json!(number)))
    };
    let large = kv.write(many(MAX_WRITE + 1).collect()).await;
    check_error("too many changes", large, &KvStoreErrorKind::Invalid)?;
    has_none(&*kv, &stage.key("n0")).await?;
    write(&*kv, many(MAX_WRITE)).await?;
    has(&*kv, &stage.key("n999"), &json!(999), "")
        .await
        .map(drop)
}
