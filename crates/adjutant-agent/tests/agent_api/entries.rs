//! Entries of the application's own, and what one request alone is shown.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::{
    EventKind, HookContext, Journal, MemoryJournal, Record, Seq, Verdict, points::BeforeModel,
};
use adjutant_llm::{CallResult, Custom, Edit, Entry, Request, Script, UserMessage};
use futures_util::StreamExt;
use serde_json::json;

use super::stage::{agent, events, tool};

fn note() -> Entry {
    Entry::Custom(Custom {
        kind: "note".into(),
        value: json!("Noted."),
    })
}

fn texts(request: &Request) -> Vec<String> {
    let text = |entry: &Entry| match entry {
        Entry::User(message) => message.content[0].as_text().unwrap_or_default().to_owned(),
        Entry::Turn(_) => "<turn>".to_owned(),
        Entry::Custom(custom) => format!("<{}>", custom.kind),
        other => unreachable!("no such entry here: {other:?}"),
    };
    request
        .entries
        .iter()
        .map(|stored| text(&stored.entry))
        .collect()
}

#[tokio::test]
async fn custom_entries_stay_out_when_there_is_no_projection() {
    let (model, agent) = agent([Script::new().text("Hi.")]);
    let running = agent
        .run(vec![note(), Entry::User("Go.".into())])
        .stream()
        .expect("the session is free");
    let added = events(running)
        .await
        .into_iter()
        .filter(|event| match event {
            EventKind::EntryAdded { content } => **content == note(),
            _ => false,
        });
    assert_eq!(added.count(), 1);
    assert_eq!(
        agent
            .log()
            .transcript()
            .get(0)
            .map(|stored| stored.entry.clone()),
        Some(note())
    );
    // What stands for it in a request counts for nothing, and no wire writes it.
    let request = model.requests().remove(0);
    let stored = request.entries.get(0).expect("it keeps its place");
    assert_eq!(
        (texts(&request), stored.tokens),
        (vec!["<note>".to_owned(), "Go.".to_owned()], 0)
    );
}

#[tokio::test]
async fn transform_context_changes_the_request_alone_when_it_is_set() {
    let journal = MemoryJournal::default();
    let (model, agent) = agent([
        Script::new().call("work", json!({})),
        Script::new().text("Done."),
    ]);
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let agent = agent
        .journal(journal.clone())
        .tool(tool("work", |_, _| async { Ok(CallResult::ok("ok")) }))
        .convert(|custom| custom.value.as_str().map(UserMessage::text))
        .on(move |_: HookContext, mut point: BeforeModel| {
            counts.fetch_add(1, Ordering::Relaxed);
            let first = point.view.get(0).expect("an entry").clone();
            let Entry::User(shown) = &first.entry else {
                unreachable!("it is converted by then")
            };
            let text = format!("{} Not!", shown.content[0].as_text().unwrap_or_default());
            point.once.push(Edit::Replace {
                at: first.id,
                with: Entry::User(text.into()),
            });
            async { Verdict::Pass(point) }
        });
    agent
        .run(vec![note(), Entry::User("Go.".into())])
        .await
        .expect("the run finishes");
    let shown: Vec<Vec<String>> = model.requests().iter().map(texts).collect();
    let expect: [&[&str]; 2] = [&["Noted. Not!", "Go."], &["Noted. Not!", "Go.", "<turn>"]];
    assert_eq!(shown, expect);
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    assert_eq!(
        agent
            .log()
            .transcript()
            .get(0)
            .map(|stored| stored.entry.clone()),
        Some(note())
    );
    let begun = journal
        .read(agent.session_id(), Seq(0))
        .filter_map(|stamped| async move {
            match &stamped.expect("memory does not fail").record {
                Record::Began { prompts, .. } => Some(prompts.clone()),
                _ => None,
            }
        });
    let begun: Vec<_> = begun.collect().await;
    assert_eq!(
        serde_json::to_value(&begun[0][0]).expect("JSON"),
        serde_json::to_value(note()).expect("JSON")
    );
}
