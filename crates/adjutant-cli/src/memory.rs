//! `adjutant memory`: the memories of an owner.

use std::sync::Arc;

use adjutant::{
    agent::memory::{Fact, FactId},
    context::Memories,
};
use serde_json::json;

use crate::{
    args::{self, Forget, ListFacts, Search, Whose},
    exit::Exit,
    plain,
    problem::Problem,
    screen::{tell, write, write_or_tell},
    store::Store,
    trouble, when,
    work::work,
};

/// Manages memories.
pub(crate) fn memory(command: args::Memory) -> Result<Exit, Problem> {
    match command {
        args::Memory::List(args) => work(list(args)),
        args::Memory::Search(args) => work(search(args)),
        args::Memory::Forget(args) => work(forget(args)),
    }
}

async fn open(whose: &Whose) -> Result<(Memories, Store), Problem> {
    let store = Store::find(&whose.at).await?;
    Ok((Memories::new(store.memory()?, whose.owner.as_str()), store))
}

/// Lists facts, and prints how to get the next page.
async fn list(args: ListFacts) -> Result<Exit, Problem> {
    let (memories, store) = open(&args.whose).await?;
    let after = args.after.as_deref().map(|id| FactId(id.into()));
    let limit = args.limit as usize;
    // Requests one more, to find out if there are more.
    let mut facts = memories
        .list(after.as_ref(), limit + 1)
        .await
        .map_err(|error| trouble::memory_problem(&error))?;
    let is_more = facts.len() > limit;
    facts.truncate(limit);
    let text: String = facts
        .iter()
        .map(|fact| text_of(fact, None, args.json))
        .collect();
    if write_or_tell(
        &text,
        &format!("nothing is known of {}", plain::line(&args.whose.owner)),
    )? && is_more
        && let Some(last) = facts.last()
    {
        let (owner, after) = (plain::word(&args.whose.owner), plain::word(&last.id.0));
        tell(&format!(
            "more: adjutant memory list --owner {owner}{} --after {after}",
            store.option()
        ));
    }
    Ok(Exit::Finished)
}

/// Finds facts by their words.
async fn search(args: Search) -> Result<Exit, Problem> {
    let (mut memories, _) = open(&args.whose).await?;
    (memories.limit, memories.min_score) = (args.limit as usize, 0.0);
    let found = memories.search(&args.query).await;
    let found = found.map_err(|error| trouble::memory_problem(&error))?;
    let text: String = found
        .iter()
        .map(|it| text_of(&it.fact, Some(it.score), args.json))
        .collect();
    write_or_tell(&text, "nothing that is known fits")?;
    Ok(Exit::Finished)
}

/// Forgets facts.
async fn forget(args: Forget) -> Result<Exit, Problem> {
    let (memories, _) = open(&args.whose).await?;
    for id in &args.ids {
        memories
            .delete(&FactId(Arc::from(id.as_str())))
            .await
            .map_err(|error| {
                trouble::memory_problem(&error).hint("`adjutant memory list` shows the ids")
            })?;
        write(&format!("forgot {}\n", plain::line(id)))?;
    }
    Ok(Exit::Finished)
}

/// Formats a fact in one line.
fn text_of(fact: &Fact, score: Option<f64>, json: bool) -> String {
    if json {
        let mut value = json!(fact);
        if let Some(score) = score {
            value["score"] = json!(score);
        }
        return plain::json_line(value);
    }
    let score = score
        .map(|score| format!("{score:.2}  "))
        .unwrap_or_default();
    let (id, changed) = (plain::line(&fact.id.0), when::minute(fact.updated_ms));
    format!("{id}  {changed}  {score}{}\n", plain::line(&fact.text))
}
