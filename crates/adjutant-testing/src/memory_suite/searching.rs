//! Searches: by words and by vectors.

use adjutant_agent::{
    Memory,
    memory::{FactChange, NewFact, OwnerId, Vector},
};

use super::stage::{MemoryStage, add, fact, finds, names, pointing, to_strings, vector};
use crate::suite::{Verdict, equal, holds, ok};

/// The names of the nearest facts, in order.
async fn near(
    memory: &dyn Memory,
    owner: &OwnerId,
    to: &Vector,
    limit: usize,
) -> Result<Vec<String>, String> {
    let found = ok(
        "searching by a vector",
        memory.by_vector(owner, to, limit).await,
    )?;
    for found in &found {
        holds(
            &format!("a cosine goes from -1 to 1: {}", found.score),
            found.score.abs() <= 1.0 + 1e-5,
        )?;
    }
    names(&found)
}

pub(super) async fn any_word(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let facts = [
        ("a", "The user drinks green tea"),
        ("b", "The user drinks black coffee"),
        ("c", "A cat sleeps"),
    ];
    add(&*memory, &owner, facts.map(|(id, text)| fact(id, text))).await?;
    finds(&*memory, &owner, "tea", &["a"]).await?;
    finds(&*memory, &owner, "drinks", &["a", "b"]).await?;
    finds(&*memory, &owner, "tea cat unicorn", &["a", "c"]).await?;
    finds(&*memory, &owner, "unicorn", &[]).await?;
    for (query, best) in [
        ("drinks tea", "a"),
        ("coffee drinks", "b"),
        ("the cat", "c"),
    ] {
        let found = ok("searching", memory.by_words(&owner, query, 10).await)?;
        equal(
            &format!("the best for {query:?}"),
            &names(&found)?.first().map(String::as_str),
            &Some(best),
        )?;
    }
    Ok(())
}

pub(super) async fn case_and_scripts(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let facts = [
        ("a", "ÄRGER café"),
        ("b", "ПРИВЕТ мир"),
        ("c", "version 42, semi-colon"),
        ("d", "ΑΘΗΝΑ"),
    ];
    add(&*memory, &owner, facts.map(|(id, text)| fact(id, text))).await?;
    for (query, want) in [
        ("ärger", "a"),
        ("CAFÉ", "a"),
        ("привет", "b"),
        ("МИР", "b"),
        ("VERSION", "c"),
        ("42", "c"),
        ("semi", "c"),
        ("αθηνα", "d"),
    ] {
        finds(&*memory, &owner, query, &[want]).await?;
    }
    Ok(())
}

pub(super) async fn syntax_is_text(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    add(
        &*memory,
        &owner,
        [
            fact("a", "alpha beta"),
            fact("b", "gamma delta"),
            fact("c", "and or not"),
        ],
    )
    .await?;
    for query in [
        "", " ", "\"", "'", "*", "(", "-", "^", ":", "\\", "\0", "%", "!", "&", "|", "a*", "alph*",
        "\"\"",
    ] {
        finds(&*memory, &owner, query, &[]).await?;
    }
    for (query, want) in [
        ("\"alpha beta", &["a"][..]),
        ("alpha AND gamma", &["a", "b", "c"]),
        ("alpha NOT beta", &["a", "c"]),
        ("text:alpha", &["a"]),
        ("-alpha", &["a"]),
        ("alpha\0gamma", &["a", "b"]),
        ("!alpha | (delta)*", &["a", "b"]),
        ("'; DROP TABLE facts; -- beta", &["a"]),
    ] {
        finds(&*memory, &owner, query, want).await?;
    }
    finds(
        &*memory,
        &owner,
        &format!("{} beta", "word ".repeat(20_000)),
        &["a"],
    )
    .await
}

pub(super) async fn limits(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    add(
        &*memory,
        &owner,
        (0..8).map(|n| pointing(&format!("f{n}"), "tea with other words", &[1.0, 1.0])),
    )
    .await?;
    add(
        &*memory,
        &owner,
        [
            pointing("best", "tea", &[1.0, 0.1]),
            pointing("worst", "x", &[-1.0, 0.0]),
        ],
    )
    .await?;
    for (limit, want) in [(0, 0), (1, 1), (4, 4), (usize::MAX, 9)] {
        let found = ok("searching", memory.by_words(&owner, "tea", limit).await)?;
        equal(
            &format!("how many of {limit} by words"),
            &names(&found)?.len(),
            &want,
        )?;
        let found = near(&*memory, &owner, &vector("usual", &[1.0, 0.0]), limit).await?;
        equal(
            &format!("how many of {limit} by a vector"),
            &found.len(),
            &limit.min(10).min(want + want / 9),
        )?;
    }
    let found = ok("searching", memory.by_words(&owner, "tea", 1).await)?;
    equal("the best by words", &names(&found)?, &to_strings(&["best"]))?;
    equal(
        "the nearest",
        &near(&*memory, &owner, &vector("usual", &[1.0, 0.0]), 1).await?,
        &to_strings(&["best"]),
    )
}

pub(super) async fn follows_changes(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, other, owner) = (stage.open().await, stage.open().await, stage.owner("a"));
    add(&*memory, &owner, [fact("a", "apple"), fact("b", "banana")]).await?;
    finds(&*other, &owner, "apple banana", &["a", "b"]).await?;
    ok(
        "updating",
        other
            .update(
                &owner,
                &"a".into(),
                FactChange::new(2_000).text("cherry", None),
            )
            .await,
    )?;
    finds(&*memory, &owner, "apple", &[]).await?;
    finds(&*memory, &owner, "cherry", &["a"]).await?;
    ok(
        "updating",
        memory
            .update(&owner, &"b".into(), FactChange::new(3_000))
            .await,
    )?;
    finds(&*other, &owner, "banana", &["b"]).await?;
    let found = ok("searching", memory.by_words(&owner, "cherry", 1).await)?;
    let fact = ok("reading", memory.get(&owner, &"a".into()).await)?;
    equal(
        "what a search gives",
        &found.into_iter().map(|found| found.fact).next(),
        &fact,
    )
}

pub(super) async fn nearest_first(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let facts = [
        ("same", [2.0, 0.0, 0.0]),
        ("near", [0.1, 0.02, 0.0]),
        ("right", [0.0, 500.0, 0.0]),
        ("away", [-3.0, 0.0, 0.1]),
        ("half", [1.0, 1.0, 0.0]),
    ];
    add(
        &*memory,
        &owner,
        facts.map(|(id, numbers)| pointing(id, "x", &numbers)),
    )
    .await?;
    let order = to_strings(&["same", "near", "half", "right", "away"]);
    let query = vector("usual", &[0.5, 0.0, 0.0]);
    equal(
        "the order",
        &near(&*stage.open().await, &owner, &query, 10).await?,
        &order,
    )?;
    equal(
        "the nearest two",
        &near(&*memory, &owner, &query, 2).await?.as_slice(),
        &&order[..2],
    )?;
    let scores: Vec<f64> = ok("searching", memory.by_vector(&owner, &query, 10).await)?
        .iter()
        .map(|found| found.score)
        .collect();
    let want = [
        1.0,
        0.980_580_7,
        std::f64::consts::FRAC_1_SQRT_2,
        0.0,
        -0.999_444_9,
    ];
    let is_close = scores
        .iter()
        .zip(want)
        .all(|(score, want)| (score - want).abs() < 1e-4);
    holds(
        &format!("the cosines are {want:?}: {scores:?}"),
        is_close && scores.len() == want.len(),
    )
}

pub(super) async fn other_vectors_left_out(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    let facts = [
        pointing("fits", "x", &[0.0, 1.0]),
        pointing("longer", "x", &[1.0, 0.0, 0.0]),
        pointing("shorter", "x", &[1.0]),
        NewFact {
            vector: Some(vector("other", &[1.0, 0.0])),
            ..fact("other", "x")
        },
        NewFact {
            vector: Some(vector("Usual", &[1.0, 0.0])),
            ..fact("case", "x")
        },
        fact("none", "x"),
    ];
    add(&*memory, &owner, facts).await?;
    equal(
        "what can be compared",
        &near(&*memory, &owner, &vector("usual", &[1.0, 0.0]), 10).await?,
        &to_strings(&["fits"]),
    )?;
    equal(
        "of another model",
        &near(&*memory, &owner, &vector("other", &[1.0, 0.0]), 10).await?,
        &to_strings(&["other"]),
    )?;
    equal(
        "of another length",
        &near(&*memory, &owner, &vector("usual", &[1.0; 3]), 10).await?,
        &to_strings(&["longer"]),
    )?;
    equal(
        "of no model",
        &near(&*memory, &owner, &vector("unknown", &[1.0, 0.0]), 10).await?,
        &to_strings(&[]),
    )?;
    finds(
        &*memory,
        &owner,
        "x",
        &["case", "fits", "longer", "none", "other", "shorter"],
    )
    .await
}

pub(super) async fn updates_change_vectors(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    add(
        &*memory,
        &owner,
        [
            pointing("a", "x", &[1.0, 0.0]),
            pointing("b", "x", &[0.9, 0.1]),
        ],
    )
    .await?;
    let query = vector("usual", &[1.0, 0.0]);
    let update = async |change| ok("updating", memory.update(&owner, &"a".into(), change).await);
    update(FactChange::new(2_000)).await?;
    equal(
        "a vector stays",
        &near(&*memory, &owner, &query, 10).await?,
        &to_strings(&["a", "b"]),
    )?;
    update(FactChange::new(3_000).text("y", Some(vector("usual", &[0.0, 1.0])))).await?;
    equal(
        "a new vector",
        &near(&*memory, &owner, &query, 10).await?,
        &to_strings(&["b", "a"]),
    )?;
    update(FactChange::new(4_000).text("z", None)).await?;
    equal(
        "no vector",
        &near(&*stage.open().await, &owner, &query, 10).await?,
        &to_strings(&["b"]),
    )
}

pub(super) async fn odd_vectors(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, owner) = (stage.open().await, stage.owner("a"));
    add(&*memory, &owner, [pointing("fits", "x", &[1.0, 0.0])]).await?;
    // They may be refused or kept, and are not near anything.
    for (id, numbers) in [
        ("zero", [0.0, 0.0]),
        ("nan", [f32::NAN, 0.0]),
        ("large", [f32::MAX, f32::MAX]),
    ] {
        let _ = memory.add(&owner, vec![pointing(id, "x", &numbers)]).await;
    }
    for numbers in [
        &[1.0, 0.0][..],
        &[0.0, 0.0],
        &[f32::NAN, 1.0],
        &[f32::INFINITY, 1.0],
        &[f32::MAX, f32::MAX],
        &[],
    ] {
        let Ok(found) = memory
            .by_vector(&owner, &vector("usual", numbers), 10)
            .await
        else {
            continue;
        };
        holds(
            "scores are numbers",
            found.iter().all(|found| found.score.is_finite()),
        )?;
    }
    equal(
        "the nearest",
        &near(&*memory, &owner, &vector("usual", &[1.0, 0.0]), 1).await?,
        &to_strings(&["fits"]),
    )
}
