//! Owners: no owner can access the facts of another.

use adjutant_agent::{
    Memory,
    memory::{FactChange, FactId, MemoryErrorKind, NewFact, OwnerId},
};
use serde_json::json;

use super::stage::{
    MemoryStage, add, build_fact, check_error, fact, finds, get, has, metadata, names, pointing,
    to_strings, vector,
};
use crate::suite::{Verdict, equal, ok};

pub(super) async fn names_are_of_owners(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, ann, bob) = (stage.open().await, stage.owner("ann"), stage.owner("bob"));
    let (of_ann, of_bob) = (
        pointing("one", "tea", &[1.0]),
        pointing("one", "coffee", &[-1.0]),
    );
    add(&*memory, &ann, [of_ann.clone()]).await?;
    add(&*memory, &bob, [of_bob.clone()]).await?;
    let again = memory.add(&ann, vec![fact("one", "more tea")]).await;
    check_error(
        "adding a name that the owner has",
        again,
        MemoryErrorKind::Exists,
    )?;
    has(&*memory, &ann, &[build_fact(&of_ann)]).await?;
    has(&*memory, &bob, &[build_fact(&of_bob)]).await?;
    let changed = memory
        .update(
            &bob,
            &"one".into(),
            FactChange::new(9_000).text("wine", None),
        )
        .await;
    let changed = ok("updating", changed)?;
    has(&*memory, &ann, &[build_fact(&of_ann)]).await?;
    ok("deleting", memory.delete(&ann, &"one".into()).await)?;
    has(&*stage.open().await, &bob, &[changed]).await
}

/// Tries all that can be done to facts of another owner, by these names.
async fn attack(memory: &dyn Memory, thief: &OwnerId, ids: &[FactId]) -> Verdict {
    for id in ids {
        equal(
            "a fact of another",
            &ok("reading", memory.get(thief, id).await)?,
            &None,
        )?;
        let fields = metadata(&[("stolen", json!(true))]);
        let change = FactChange {
            metadata: fields,
            ..FactChange::new(9_000).text("stolen", Some(vector("usual", &[0.0, 1.0])))
        };
        check_error(
            "updating a fact of another",
            memory.update(thief, id, change).await,
            MemoryErrorKind::Missing,
        )?;
        let touched = memory.update(thief, id, FactChange::new(9_000)).await;
        check_error(
            "touching a fact of another",
            touched,
            MemoryErrorKind::Missing,
        )?;
        check_error(
            "deleting a fact of another",
            memory.delete(thief, id).await,
            MemoryErrorKind::Missing,
        )?;
        for after in [None, Some(id)] {
            equal(
                "a list behind a fact of another",
                &ok("listing", memory.list(thief, after, 10).await)?,
                &Vec::new(),
            )?;
        }
    }
    Ok(())
}

pub(super) async fn foreign_ids_touch_nothing(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, ann, bob) = (stage.open().await, stage.owner("ann"), stage.owner("bob"));
    let facts = [
        pointing("one", "secret tea", &[1.0, 0.0]),
        pointing("two", "secret coffee", &[0.0, 1.0]),
    ];
    add(&*memory, &ann, facts.clone()).await?;
    ok("marking", memory.mark(&ann, "session", 0, 7).await)?;
    let mut ids: Vec<FactId> = facts.iter().map(|fact| fact.id.clone()).collect();
    ids.extend(
        [
            format!("{ann}/one"),
            format!("{ann}\0one"),
            "%".into(),
            "*".into(),
            String::new(),
            "' OR 1=1 --".into(),
        ]
        .map(|id| FactId(id.into())),
    );
    attack(&*memory, &bob, &ids).await?;
    attack(
        &*stage.open().await,
        &OwnerId(format!("{ann}%").into()),
        &ids,
    )
    .await?;
    equal(
        "the mark of another",
        &ok("marked", memory.read_mark(&bob, "session").await)?,
        &0,
    )?;
    ok("marking", memory.mark(&bob, "session", 0, 3).await)?;
    // A list continues after a name, even if another owner has the same one.
    add(&*memory, &bob, [NewFact::new("mine".into(), "tea", 1)]).await?;
    has(&*memory, &ann, &facts.map(|fact| build_fact(&fact))).await?;
    finds(&*memory, &ann, "secret stolen", &["one", "two"]).await?;
    equal(
        "the mark",
        &ok("marked", memory.read_mark(&ann, "session").await)?,
        &7,
    )
}

pub(super) async fn searches_keep_apart(stage: &MemoryStage<'_>) -> Verdict {
    let (memory, ann, bob) = (stage.open().await, stage.owner("ann"), stage.owner("bob"));
    add(
        &*memory,
        &ann,
        (0..30).map(|n| pointing(&format!("a{n}"), "green tea", &[1.0, 0.0])),
    )
    .await?;
    add(
        &*memory,
        &bob,
        [pointing(
            "b",
            "tea and many other things besides",
            &[0.2, 1.0],
        )],
    )
    .await?;
    finds(&*memory, &bob, "green tea", &["b"]).await?;
    finds(&*memory, &stage.owner("eve"), "green tea", &[]).await?;
    // A limit is one of the owner's own facts.
    let found = ok("searching", memory.by_words(&bob, "green tea", 1).await)?;
    equal(
        "what is found by words",
        &names(&found)?,
        &to_strings(&["b"]),
    )?;
    let found = ok(
        "searching",
        memory
            .by_vector(&bob, &vector("usual", &[1.0, 0.0]), 1)
            .await,
    )?;
    equal(
        "what is found by a vector",
        &names(&found)?,
        &to_strings(&["b"]),
    )?;
    let found = ok(
        "searching",
        memory
            .by_vector(&stage.owner("eve"), &vector("usual", &[1.0, 0.0]), 5)
            .await,
    )?;
    equal(
        "what one finds who has nothing",
        &names(&found)?,
        &to_strings(&[]),
    )
}

pub(super) async fn owners_are_data(stage: &MemoryStage<'_>) -> Verdict {
    let memory = stage.open().await;
    let owners = [
        "a",
        "A",
        "a ",
        " a",
        "a/b",
        "a%",
        "a_",
        "a\0",
        "a\0b",
        "é",
        "e\u{301}",
        "👩‍👩‍👧‍👦",
        "'",
        "*",
        "..",
        "",
    ];
    for name in owners {
        let owner = stage.owner(name);
        add(&*memory, &owner, [fact("one", &format!("I am {name:?}"))]).await?;
        ok(
            "marking",
            memory.mark(&owner, "s", 0, name.len() as u64 + 1).await,
        )?;
    }
    for name in owners {
        let (owner, memory) = (stage.owner(name), stage.open().await);
        has(
            &*memory,
            &owner,
            &[build_fact(&fact("one", &format!("I am {name:?}")))],
        )
        .await?;
        equal(
            "the mark",
            &ok("marked", memory.read_mark(&owner, "s").await)?,
            &(name.len() as u64 + 1),
        )?;
        finds(&*memory, &owner, "am", &["one"]).await?;
    }
    equal(
        "a fact of nobody",
        &get(&*memory, &stage.owner("B"), "one").await?,
        &None,
    )
}
