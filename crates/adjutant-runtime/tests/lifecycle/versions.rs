//! Agents whose files another version of the program wrote: each is told plainly, and nothing of it is changed.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use adjutant_agent::Digest;
use adjutant_runtime::{
    Backend, Workspace,
    backend::{InProcess, InProcessOptions},
    prompt::PromptRequest,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    desk::{Place, process, resolved},
    updated::engines,
};

/// What an agent is made of, and what it remembers.
const FILES: [&str; 3] = ["agent.json", "prepared.json", "state"];

/// Changes a file of JSON.
fn edit(workspace: &Workspace, name: &str, change: impl FnOnce(&mut Value)) {
    let path = workspace.file(name);
    let mut value: Value =
        serde_json::from_slice(&fs::read(&path).expect("it is there")).expect("it is JSON");
    change(&mut value);
    fs::write(path, value.to_string()).expect("it can be written");
}

/// Gives the newest record of the session this version, as whoever wrote it would have: with the right digests.
fn record(workspace: &Workspace, version: u32) {
    let logs = below(&workspace.state())
        .into_iter()
        .filter(|path| path.ends_with("records.jsonl"));
    let [log] = &logs.collect::<Vec<_>>()[..] else {
        panic!("one session")
    };
    let text = fs::read_to_string(log).expect("it is there");
    let (rest, last) = text.trim_end().rsplit_once('\n').expect("several records");
    let link =
        |line: &str| serde_json::from_str::<Value>(line).expect("it is JSON")["link"].clone();
    let before = rest.lines().last().expect("a record");
    let former: Digest = serde_json::from_value(link(before)).expect("a digest");
    let (head, stored) = last.split_once(",\"check\":").expect("a check");
    let stored = stored
        .split_once("\"stored\":")
        .expect("a record")
        .1
        .strip_suffix('}')
        .expect("a whole line");
    let stored = stored.replacen("\"v\":2,", &format!("\"v\":{version},"), 1);
    let (old, new) = (
        link(last),
        serde_json::to_value(former.then(stored.as_bytes())).expect("a digest"),
    );
    let linked =
        |text: &str| text.replace(old.as_str().expect("a text"), new.as_str().expect("a text"));
    let head = linked(head);
    let check = &Digest::compute(head.as_bytes()).to_string()[..16];
    // What was flushed is told beside it.
    let flushed = log.with_file_name("head");
    fs::write(
        &flushed,
        linked(&fs::read_to_string(&flushed).expect("it is there")),
    )
    .expect("it can be written");
    fs::write(
        log,
        format!("{rest}\n{head},\"check\":\"{check}\",\"stored\":{stored}}}\n"),
    )
    .expect("it can be written");
}

/// The files below a path.
fn below(path: &Path) -> Vec<PathBuf> {
    match fs::read_dir(path) {
        Ok(entries) => entries
            .flatten()
            .flat_map(|entry| below(&entry.path()))
            .collect(),
        Err(_) => vec![path.to_owned()],
    }
}

/// What an agent is, byte for byte.
fn bytes(workspace: &Workspace) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = FILES.iter().flat_map(|name| below(&workspace.file(name)));
    // The marks of ownership are of those who look.
    let is_mark = |path: &Path| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name == "owner.json" || name.starts_with("held-")
        })
    };
    let files = files.filter(|path| !is_mark(path));
    files
        .map(|path| (path.clone(), fs::read(path).expect("it can be read")))
        .collect()
}

/// What a program says of an agent that it is to load, to start and to prompt.
async fn told(backend: &dyn Backend, place: &Place) -> String {
    let loaded = backend.load().await.expect("they are looked at");
    let text = match (&loaded.instances[..], &loaded.problems[..]) {
        ([], [problem]) => problem.to_string(),
        ([agent], []) => match agent.start().await {
            Err(error) => error.to_string(),
            Ok(()) => {
                let prompter = agent.prompter().await.expect("it runs");
                let error = prompter
                    .prompt(PromptRequest::new("And now?"))
                    .await
                    .expect_err("nothing was done");
                agent.stop().await.expect("it ends");
                error.to_string()
            }
        },
        (agents, problems) => panic!("{} agents: {problems:?}", agents.len()),
    };
    text.replace(&*place.path().to_string_lossy(), "DIR")
}

/// A version of a file, and what is said of it.
type Version = (&'static str, fn(&Workspace), &'static str);

const VERSIONS: [Version; 8] = [
    (
        "a newer agent.json",
        |it| edit(it, "agent.json", |it| it["format"] = json!(2)),
        "unknown field `format`",
    ),
    (
        "a newer manifest",
        |it| {
            edit(it, "agent.json", |it| {
                it["resolved"]["manifest"]["adjutant"] = json!(2)
            })
        },
        "the manifest is of version 2, and this program reads 1; hint: a newer program reads it",
    ),
    (
        "an older manifest",
        |it| {
            edit(it, "agent.json", |it| {
                it["resolved"]["manifest"]["adjutant"] = json!(0)
            })
        },
        "the manifest is of version 0, and this program reads 1",
    ),
    (
        "a newer manifest that was prepared",
        |it| {
            edit(it, "prepared.json", |it| {
                it["resolved"]["manifest"]["adjutant"] = json!(2)
            })
        },
        "the manifest is of version 2, and this program reads 1; hint: a newer program reads it",
    ),
    (
        "a newer provenance",
        |it| {
            edit(it, "prepared.json", |it| {
                it["provenance"]["signed"] = json!("by")
            })
        },
        "unknown field `signed`",
    ),
    (
        "an older provenance",
        |it| {
            edit(it, "prepared.json", |it| {
                drop(it.as_object_mut().expect("an object").remove("provenance"))
            })
        },
        "missing field `provenance`",
    ),
    (
        "a newer log",
        |it| record(it, 9),
        "has version 9; this program reads up to 2",
    ),
    (
        "an older log",
        |it| record(it, 0),
        "what is stored as record 7 is no record",
    ),
];

#[tokio::test]
async fn files_of_another_version_are_told_and_left_as_they_are() {
    let mut wrong = Vec::new();
    for (place, backend) in engines() {
        let agent = json!({"name": "clerk", "model": "offline/planner"});
        let store = json!({"store": {"kind": "jsonl"}});
        let manifest =
            json!({"name": "clerk", "entry_agent": "clerk", "agents": [agent], "sessions": store});
        let agent = backend
            .create(Uuid::new_v4(), resolved(manifest, &[]))
            .await
            .expect("it is created");
        agent.start().await.expect("it begins");
        let prompter = agent.prompter().await.expect("it runs");
        prompter
            .prompt(PromptRequest::new("Who are you?"))
            .await
            .expect("it answers");
        agent.stop().await.expect("it ends");
        let workspace = agent.workspace();
        drop((agent, prompter, backend));
        let (home, host) = (place.path().join("home"), place.path().join("host"));
        let whole = bytes(&workspace);
        for (what, change, expect) in VERSIONS {
            change(&workspace);
            let changed = bytes(&workspace);
            let backend: Arc<dyn Backend> = match host.exists() {
                true => Arc::new(process(&home, &host)),
                false => Arc::new(InProcess::new(&home, InProcessOptions::new())),
            };
            let told = told(&*backend, &place).await;
            if !told.contains(expect) {
                wrong.push(format!("{what}: {told}"));
            }
            let now = bytes(&workspace);
            let paths = now.keys().chain(changed.keys());
            let other: Vec<&PathBuf> = paths
                .filter(|path| now.get(*path) != changed.get(*path))
                .collect();
            assert!(other.is_empty(), "{what}: {other:?}");
            for (path, bytes) in &whole {
                fs::write(path, bytes).expect("it can be written");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
