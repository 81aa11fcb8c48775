//! Scans: the order of bytes, prefixes, pages.

use adjutant_agent::{
    KvStore,
    kv::{Change, Scan},
};
use serde_json::json;

use super::stage::{KvStage, write};
use crate::suite::{Verdict, equal, ok};

/// Puts a value by each of these names.
async fn put(stage: &KvStage<'_>, kv: &dyn KvStore, names: &[&str]) -> Verdict {
    write(
        kv,
        names
            .iter()
            .map(|name| Change::put(stage.key(name), json!(name))),
    )
    .await
    .map(drop)
}

fn to_strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(super) async fn order_of_bytes(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let sorted = [
        "",
        "\0",
        "\0a",
        " ",
        "-",
        "/",
        "10",
        "9",
        "A",
        "B",
        "_",
        "a",
        "a\0",
        "a b",
        "a-b",
        "aB",
        "ab",
        "b",
        "z",
        "~",
        "\u{7f}",
        "é",
        "ü",
        "日",
        "\u{e000}",
        "\u{ffff}",
        "\u{10000}",
        "👩",
        "\u{10ffff}",
    ];
    let mut shuffled = sorted;
    shuffled.reverse();
    shuffled.rotate_left(7);
    put(stage, &*kv, &shuffled).await?;
    let scan = Scan::prefix(&*stage.prefix);
    for kv in [&kv, &stage.open().await] {
        equal(
            "the order of the keys",
            &stage.keys(&**kv, &scan).await?,
            &to_strings(&sorted),
        )?;
    }
    for item in ok("scanning", kv.scan(&scan).await)? {
        equal(
            "the value beside a key",
            &item.value,
            &json!(stage.short(&item.key)),
        )?;
    }
    Ok(())
}

pub(super) async fn prefixes(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let names = [
        "a",
        "a%",
        "a%b",
        "a_",
        "a_b",
        "ab",
        "abc",
        "ac",
        "b",
        "é",
        "éa",
        "\u{10ffff}",
        "\u{10ffff}\u{10ffff}",
        "\u{10ffff}a",
        "\u{7f}",
        "\u{7f}a",
    ];
    put(stage, &*kv, &names).await?;
    for (prefix, want) in [
        ("a", &["a", "a%", "a%b", "a_", "a_b", "ab", "abc", "ac"][..]),
        ("ab", &["ab", "abc"]),
        ("a%", &["a%", "a%b"]),
        ("a_", &["a_", "a_b"]),
        ("A", &[]),
        ("b", &["b"]),
        ("c", &[]),
        ("é", &["é", "éa"]),
        ("\u{7f}", &["\u{7f}", "\u{7f}a"]),
        (
            "\u{10ffff}",
            &["\u{10ffff}", "\u{10ffff}a", "\u{10ffff}\u{10ffff}"],
        ),
        ("\u{10ffff}\u{10ffff}", &["\u{10ffff}\u{10ffff}"]),
        ("\u{10fffe}", &[]),
        ("*", &[]),
        ("%", &[]),
    ] {
        let got = stage.keys(&*kv, &Scan::prefix(stage.key(prefix))).await?;
        equal(
            &format!("the keys that begin with {prefix:?}"),
            &got,
            &to_strings(want),
        )?;
    }
    let all = ok("scanning", kv.scan(&Scan::default()).await)?;
    let mine = all
        .iter()
        .filter(|item| item.key.starts_with(&stage.prefix))
        .count();
    equal("how many a scan of all keys gives", &mine, &names.len())
}

pub(super) async fn pages(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let names: Vec<String> = (0..17)
        .map(|number| format!("{number:02}\u{10ffff}"))
        .collect();
    put(
        stage,
        &*kv,
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    )
    .await?;
    let scan = Scan::prefix(&*stage.prefix);
    for limit in [1, 2, 5, 16, 17, 18] {
        let mut got: Vec<String> = Vec::new();
        loop {
            let mut page = Scan {
                limit: Some(limit),
                ..scan.clone()
            };
            if let Some(last) = got.last() {
                page = Scan {
                    after: Some(stage.key(last).into()),
                    ..page
                };
            }
            let keys = stage.keys(&*kv, &page).await?;
            let is_last = keys.len() < limit;
            got.extend(keys);
            if is_last || got.len() > names.len() {
                break;
            }
        }
        equal(&format!("all pages of {limit}"), &got, &names)?;
    }
    equal(
        "a page of none",
        &stage
            .keys(
                &*kv,
                &Scan {
                    limit: Some(0),
                    ..scan.clone()
                },
            )
            .await?,
        &Vec::new(),
    )?;
    equal(
        "a page without end",
        &stage
            .keys(
                &*kv,
                &Scan {
                    limit: Some(usize::MAX),
                    ..scan.clone()
                },
            )
            .await?,
        &names,
    )?;
    // A place need not be a key, nor have the prefix.
    for (after, want) in [
        ("05", &names[5..]),
        ("05\u{10ffff}", &names[6..]),
        ("", &names[..]),
        ("z", &[]),
    ] {
        let got = stage
            .keys(
                &*kv,
                &Scan {
                    after: Some(stage.key(after).into()),
                    ..scan.clone()
                },
            )
            .await?;
        equal(
            &format!("the keys behind {after:?}"),
            &got.as_slice(),
            &want,
        )?;
    }
    equal(
        "the keys behind the beginning",
        &stage
            .keys(
                &*kv,
                &Scan {
                    after: Some("\0".into()),
                    ..scan.clone()
                },
            )
            .await?,
        &names,
    )?;
    equal(
        "the keys behind the end",
        &stage
            .keys(
                &*kv,
                &Scan {
                    after: Some("\u{10ffff}".into()),
                    ..scan
                },
            )
            .await?,
        &Vec::new(),
    )
}
