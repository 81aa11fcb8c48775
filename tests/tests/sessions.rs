//! Sessions that go on from program to program, in memory, in a file of lines and in SQLite, and what they leave behind.

use std::{path::Path, sync::Arc};

use adjutant::{
    Agent, CallContext, RunResult,
    agent::{
        Journal, LogId, MemoryJournal, Seq,
        memory::{InMemory, Memory},
    },
    context::{Compact, Extraction, Memories},
    llm::{CallResult, Entry, FixedWorld, ModelInfo, Script, ScriptedModel},
    store::{JsonlJournal, Sqlite},
    tools::{ErasedTool, ToolSpec, tool_fn},
};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// A way to open a journal in a folder, as a program does when it starts.
type Opens = Box<dyn Fn(&Path) -> Arc<dyn Journal>>;

/// The stores that need no server; what was opened in a folder before is found there again.
fn stores() -> [(&'static str, Opens); 3] {
    let memory = MemoryJournal::default();
    [
        (
            "memory",
            Box::new(move |_: &Path| Arc::new(memory.clone()) as Arc<dyn Journal>),
        ),
        (
            "jsonl",
            Box::new(|folder: &Path| Arc::new(JsonlJournal::open(folder).expect("it opens"))),
        ),
        (
            "sqlite",
            Box::new(|folder: &Path| {
                Arc::new(Sqlite::open(folder.join("db")).expect("it opens").journal())
            }),
        ),
    ]
}

/// An agent on the session, with a tool that gives long texts.
fn agent(model: &Arc<ScriptedModel>, journal: Arc<dyn Journal>) -> Agent {
    let agent = Agent::new(Arc::clone(model))
        .tool(say())
        .world(FixedWorld::at_ms(1_000));
    agent.journal(journal).session(LogId("friends/ada".into()))
}

fn say() -> impl ErasedTool + 'static {
    let spec = ToolSpec::new("say", "Says something long.", json!({"type": "object"}));
    tool_fn(spec, |_: Value, _: CallContext| async {
        Ok(CallResult::ok("a long text ".repeat(40)))
    })
}

fn model(scripts: impl IntoIterator<Item = Script>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(scripts).info(ModelInfo {
        context_window: 4_000,
        max_output_tokens: 400,
        ..ModelInfo::new("scripted/model")
    }))
}

fn calls() -> Script {
    Script::new().text("Let me say.").call("say", json!({}))
}

fn says(text: &str) -> Script {
    Script::new().text(text)
}

async fn run(agent: Agent, prompt: &str) -> RunResult {
    agent.run(prompt).await.expect("the run finishes")
}

/// The bytes of all records of the session.
async fn bytes(journal: &dyn Journal) -> Vec<String> {
    let records: Vec<_> = journal
        .read(&LogId("friends/ada".into()), Seq(0))
        .collect()
        .await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    records
        .into_iter()
        .map(|it| text(it.expect("it reads").bytes().expect("it is JSON")))
        .collect()
}

#[tokio::test]
async fn session_is_the_same_whatever_keeps_it() {
    let mut seen = Vec::new();
    for (name, open) in stores() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = model([calls(), says("Said.")]);
        run(agent(&first, open(folder.path())), "Say something.").await;
        // Another program, which knows nothing but the place and the name.
        let second = model([says("As I said.")]);
        let next = agent(&second, open(folder.path()));
        assert_eq!(
            run(next.clone(), "And?").await.text(),
            "As I said.",
            "{name}"
        );
        assert_eq!(next.log().transcript().len(), 5, "{name}");
        seen.push((
            name,
            second.requests(),
            next.log().transcript(),
            bytes(&*open(folder.path())).await,
        ));
    }
    let [memory, others @ ..] = &seen[..] else {
        unreachable!("three stores")
    };
    for other in others {
        assert_eq!(
            (&other.1, &other.2, &other.3),
            (&memory.1, &memory.2, &memory.3),
            "{}",
            other.0
        );
    }
}

#[tokio::test]
async fn prompt_of_an_old_session_stays_and_its_change_is_announced() {
    for (name, open) in stores() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (model([says("Hello."), says("Yes.")]), model([says("Hm.")]));
        let kind = agent(&first, open(folder.path())).instructions("Be kind to everyone.");
        run(kind.clone(), "Hello.").await;
        run(kind, "Are you there?").await;
        run(
            agent(&second, open(folder.path())).instructions("Be brief with everyone."),
            "And now?",
        )
        .await;
        let systems = |model: &ScriptedModel| -> Vec<String> {
            model
                .requests()
                .iter()
                .map(|request| request.system.to_string())
                .collect()
        };
        assert_eq!(systems(&first), ["Be kind to everyone."; 2], "{name}");
        assert_eq!(systems(&second), ["Be kind to everyone."], "{name}");
        let sent = format!("{:?}", second.requests()[0].entries);
        assert!(sent.contains("Be brief with everyone."), "{name}: {sent}");
        let stored = bytes(&*open(folder.path())).await.concat();
        // A run's log holds its prompt, once for all runs that share it.
        for text in [
            "Are you there?",
            "Be kind to everyone.",
            "Be brief with everyone.",
        ] {
            assert_eq!(stored.matches(text).count(), 1, "{name}: {stored}");
        }
        let shown = &second.requests()[0].entries;
        assert_eq!(
            shown.len(),
            6,
            "{name}: two messages, two answers, the new message and the announcement"
        );
    }
}

#[tokio::test]
async fn summary_is_written_once_when_a_session_goes_on_in_other_programs() {
    for (name, open) in stores() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = model([says("What was.")]);
        let compact = || Compact {
            threshold: 0.7,
            reserve_tokens: Some(400),
            keep_recent_tokens: 300,
            ..Compact::default()
        };
        let program = |scripts: Vec<Script>| {
            let model = model(scripts);
            let agent = agent(&model, open(folder.path())).effect(Compact {
                model: Some(writer.clone()),
                ..compact()
            });
            (model, agent)
        };
        let (_, first) = program((0..24).map(|_| calls()).chain([says("Done.")]).collect());
        run(first, "Say much.").await;
        writer.assert_done();
        // It fits now: nobody writes a second summary, in whichever program the session goes on.
        for turn in 0..2 {
            let (model, next) = program(vec![says("Fine.")]);
            run(next.clone(), "And?").await;
            let request = model.requests().remove(0);
            let summaries = request
                .entries
                .iter()
                .filter(|it| matches!(it.entry, Entry::Summary(_)))
                .count();
            assert_eq!((summaries, writer.requests().len()), (1, 1), "{name}");
            // The history keeps every entry: 1 message, 24 turns, the answer, and two for each run since.
            assert_eq!(next.log().transcript().len(), 26 + 2 * (turn + 1), "{name}");
        }
    }
}

#[tokio::test]
async fn strategy_rests_when_the_window_of_the_model_is_not_known() {
    let writer = model([]);
    let unknown = Arc::new(ScriptedModel::new(
        (0..6).map(|_| calls()).chain([says("Done.")]),
    ));
    let agent = agent(&unknown, Arc::new(MemoryJournal::default())).effect(Compact {
        model: Some(writer.clone()),
        ..Compact::default()
    });
    assert_eq!(run(agent, "Say much.").await.turns, 7);
    assert_eq!(writer.requests().len(), 0);
}

#[tokio::test]
async fn file_only_grows_when_its_session_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = || {
        let mut files = Vec::new();
        let mut folders = vec![folder.path().to_path_buf()];
        while let Some(at) = folders.pop() {
            for entry in std::fs::read_dir(at).expect("it can be read") {
                let path = entry.expect("it can be read").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((std::fs::read(&path).expect("it can be read"), path));
                }
            }
        }
        files
            .into_iter()
            .max_by_key(|(bytes, _)| bytes.len())
            .expect("there is a file")
    };
    let (mut before, mut grown) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        let journal: Arc<dyn Journal> =
            Arc::new(JsonlJournal::open(folder.path()).expect("it opens"));
        run(
            agent(&model([says("Yes, I am here.")]), journal),
            "Are you there?",
        )
        .await;
        let (bytes, path) = files();
        assert!(
            bytes.starts_with(&before),
            "{} was written anew",
            path.display()
        );
        grown.push(bytes.len() - before.len());
        before = bytes;
    }
    // A turn costs the same bytes however many there were, but for digits of numbers.
    let (least, most) = (
        grown[1..].iter().min().expect("some"),
        grown[1..].iter().max().expect("some"),
    );
    assert!(most - least < 100, "{grown:?}");
}

#[tokio::test]
async fn fact_of_one_session_serves_the_next_in_another_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let memories = |owner: &str| {
        let store = Sqlite::open(folder.path().join("db")).expect("it opens");
        Memories::new(store.memory(), owner).world(FixedWorld::at_ms(1_000))
    };
    let finds = Script::new().text(json!({"facts": ["The user has a dog named Rex."]}).to_string());
    let learning = memories("ada").model(ScriptedModel::new([finds]));
    let first =
        Agent::new(model([says("Nice.")])).middleware(learning.extract(Extraction::Awaited));
    run(first, "My dog is called Rex.").await;
    let asked = |owner: &'static str| {
        let (model, memories) = (model([says("Hm.")]), memories(owner));
        async move {
            run(
                Agent::new(Arc::clone(&model)).effect(memories.recall()),
                "What is my dog called?",
            )
            .await;
            format!("{:?}", model.requests()[0].entries)
        }
    };
    // A session of another agent, in another program that opens the same file.
    assert!(asked("ada").await.contains("The user has a dog named Rex."));
    assert!(
        !asked("eve").await.contains("Rex"),
        "nobody else's memories are shown"
    );
}

/// Facts are added and deleted while they are listed and looked for: whatever is found is whole.
async fn looked_for_while_deleted(memory: Arc<dyn Memory>) {
    let writer = Memories::new(Arc::clone(&memory), "ada");
    let reader = Memories::new(memory, "ada");
    let writing = tokio::spawn(async move {
        for round in 0..40 {
            let mut facts = Vec::new();
            for n in 0..4 {
                let metadata = [("n".into(), json!(round * 4 + n))].into();
                let text = format!("The tea number {} is green.", round * 4 + n);
                facts.push(writer.add(text, metadata).await.expect("there is room"));
            }
            for fact in facts {
                writer.delete(&fact.id).await.expect("it is there");
            }
        }
    });
    while !writing.is_finished() {
        let found = reader.search("green tea").await.expect("the store works");
        let listed = reader.list(None, 5).await.expect("the store works");
        assert!(
            found.len() <= 4 && listed.len() <= 4,
            "{found:?} {listed:?}"
        );
        for fact in found.into_iter().map(|it| it.fact).chain(listed) {
            assert_eq!(
                *fact.text,
                format!("The tea number {} is green.", fact.metadata["n"])
            );
        }
        tokio::task::yield_now().await;
    }
    writing.await.expect("no panic");
    assert_eq!(reader.list(None, 5).await.expect("the store works"), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_are_whole_when_they_are_looked_for_while_others_are_deleted() {
    looked_for_while_deleted(Arc::new(InMemory::default())).await;
    looked_for_while_deleted(Arc::new(Sqlite::in_memory().expect("it opens").memory())).await;
}
