//! Text search: words, whatever they are made of.

use adjutant_agent::{KvStore, kv::Change};
use serde_json::json;

use super::stage::{KvStage, write};
use crate::suite::{Verdict, equal, holds, ok};

/// Puts a value by each of these names that is found by the text beside it.
async fn put(stage: &KvStage<'_>, kv: &dyn KvStore, texts: &[(&str, &str)]) -> Verdict {
    write(
        kv,
        texts
            .iter()
            .map(|(name, text)| Change::put(stage.key(name), json!(name)).text(*text)),
    )
    .await
    .map(drop)
}

/// The names that a search finds, best first.
async fn search_names(
    stage: &KvStage<'_>,
    kv: &dyn KvStore,
    query: &str,
) -> Result<Vec<String>, String> {
    let hits = ok(
        &format!("searching for {query:?}"),
        kv.search(&stage.prefix, query, 100).await,
    )?;
    let scores: Vec<f64> = hits.iter().map(|hit| hit.score).collect();
    holds(
        &format!("scores are above 0, best first: {scores:?}"),
        scores.is_sorted_by(|one, next| one >= next),
    )?;
    holds(
        &format!("scores are above 0: {scores:?}"),
        scores.iter().all(|score| *score > 0.0 && score.is_finite()),
    )?;
    Ok(hits.iter().map(|hit| stage.short(&hit.item.key)).collect())
}

/// Checks which names a search finds, in any order.
async fn finds(stage: &KvStage<'_>, kv: &dyn KvStore, query: &str, want: &[&str]) -> Verdict {
    let mut got = search_names(stage, kv, query).await?;
    got.sort();
    equal(
        &format!("what is found by {query:?}"),
        &got,
        &want.iter().map(|name| (*name).to_owned()).collect(),
    )
}

pub(super) async fn any_word(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let texts = [
        ("a", "the quick brown fox jumps over the fence"),
        ("b", "a brown bear sleeps over there"),
        ("c", "nothing of interest"),
        ("d", ""),
    ];
    put(stage, &*kv, &texts).await?;
    write(&*kv, [Change::put(stage.key("e"), json!("brown fox"))]).await?;
    finds(stage, &*kv, "fox", &["a"]).await?;
    finds(stage, &*kv, "brown", &["a", "b"]).await?;
    finds(stage, &*kv, "fox sleeps unicorn", &["a", "b"]).await?;
    finds(stage, &*kv, "unicorn", &[]).await?;
    equal(
        "the best one",
        &search_names(stage, &*kv, "brown fox").await?,
        &vec!["a".to_owned(), "b".to_owned()],
    )?;
    equal(
        "the best one",
        &search_names(stage, &*kv, "bear brown").await?,
        &vec!["b".to_owned(), "a".to_owned()],
    )
}

pub(super) async fn case_and_scripts(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let texts = [
        ("a", "Straße ÄRGER café"),
        ("b", "ПРИВЕТ мир"),
        ("c", "file_name.rs version 42, it's"),
        ("d", "ΑΘΗΝΑ αβγ"),
        ("e", "hello,world;semi-colon"),
    ];
    put(stage, &*kv, &texts).await?;
    for (query, want) in [
        ("ärger", "a"),
        ("CAFÉ", "a"),
        ("привет", "b"),
        ("МИР", "b"),
        ("VERSION", "c"),
        ("42", "c"),
        ("αθηνα", "d"),
        ("World", "e"),
        ("semi", "e"),
    ] {
        finds(stage, &*kv, query, &[want]).await?;
    }
    Ok(())
}

pub(super) async fn syntax_is_text(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    put(
        stage,
        &*kv,
        &[
            ("a", "alpha beta"),
            ("b", "gamma near delta"),
            ("c", "and or not"),
        ],
    )
    .await?;
    for query in [
        "", " ", "\"", "'", "*", "(", ")", "-", "--", "^", ":", "\\", "\0", "%", "!", "&", "|",
        "<->", "{}", "\"\"", "a*", "alph*",
    ] {
        finds(stage, &*kv, query, &[]).await?;
    }
    for (query, want) in [
        ("\"alpha beta", &["a"][..]),
        ("alpha AND gamma", &["a", "b", "c"]),
        ("alpha NOT beta", &["a", "c"]),
        ("NEAR(alpha delta, 2)", &["a", "b"]),
        ("text:alpha", &["a"]),
        ("key:alpha OR 1=1", &["a", "c"]),
        ("-alpha", &["a"]),
        ("!alpha & gamma", &["a", "b"]),
        ("alpha\0gamma", &["a", "b"]),
        ("alpha* (delta)", &["a", "b"]),
        ("'; DROP TABLE items; -- beta", &["a"]),
        ("^gamma", &["b"]),
        ("{alpha}", &["a"]),
    ] {
        finds(stage, &*kv, query, want).await?;
    }
    let long = format!("{} beta", "word ".repeat(20_000));
    finds(stage, &*kv, &long, &["a"]).await
}

pub(super) async fn within_prefix(stage: &KvStage<'_>) -> Verdict {
    let kv = stage.open().await;
    let texts = ["x/1", "x/2", "x%3", "X/4", "y/5"].map(|name| (name, "needle in hay"));
    put(stage, &*kv, &texts).await?;
    for (prefix, limit, want) in [
        ("x/", 10, 2),
        ("x%", 10, 1),
        ("", 10, 5),
        ("", 3, 3),
        ("x/", 1, 1),
        ("z", 10, 0),
        ("", 0, 0),
    ] {
        let hits = ok(
            "searching",
            kv.search(&stage.key(prefix), "needle", limit).await,
        )?;
        equal(
            &format!("how many of {limit} are found in {prefix:?}"),
            &hits.len(),
            &want,
        )?;
        holds(
            "they have the prefix",
            hits.iter()
                .all(|hit| hit.item.key.starts_with(&stage.key(prefix))),
        )?;
    }
    // A limit omits worse matches, in other prefixes or in this one.
    put(
        stage,
        &*kv,
        &[
            ("y/best", "needle needle"),
            (
                "y/worse",
                "one needle among so very many other words of hay",
            ),
        ],
    )
    .await?;
    let hits = ok("searching", kv.search(&stage.key("y/w"), "needle", 1).await)?;
    equal("what is found in a narrow prefix", &hits.len(), &1)
}

pub(super) async fn follows_changes(stage: &KvStage<'_>) -> Verdict {
    let (kv, other) = (stage.open().await, stage.open().await);
    put(stage, &*kv, &[("a", "apple"), ("b", "banana")]).await?;
    finds(stage, &*other, "apple banana", &["a", "b"]).await?;
    put(stage, &*other, &[("a", "cherry")]).await?;
    finds(stage, &*kv, "apple", &[]).await?;
    finds(stage, &*kv, "cherry", &["a"]).await?;
    write(&*kv, [Change::remove(stage.key("a"))]).await?;
    finds(stage, &*other, "cherry banana", &["b"]).await?;
    let hits = ok("searching", other.search(&stage.prefix, "banana", 1).await)?;
    let item = ok("reading", kv.get(&stage.key("b")).await)?;
    equal(
        "what a search gives",
        &hits.into_iter().map(|hit| hit.item).next(),
        &item,
    )
}
