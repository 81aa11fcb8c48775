//! How one manifest takes over another.

use std::sync::Arc;

use adjutant_runtime::manifest::{Manifest, ModelChoice, ToolboxChoice};

use crate::folder::Folder;

/// The manifest that a child is with its parent.
fn child(parent: &str, child: &str) -> Manifest {
    let folder = Folder::new();
    folder.write("base.yaml", parent);
    folder
        .read(&format!("extends: base.yaml\n{child}"))
        .expect("it is right")
        .manifest
}

fn names<'a>(names: impl IntoIterator<Item = &'a Arc<str>>) -> Vec<&'a str> {
    names.into_iter().map(|name| &**name).collect()
}

#[test]
fn scalars_of_the_child_win() {
    let it = child(
        "name: base\ndescription: old\nmodel: offline/planner\nmax_turns: 3\n",
        "name: new\nmax_turns: 4\n",
    );
    assert_eq!(
        (&*it.name, &*it.description, it.agents[0].max_turns),
        ("new", "old", Some(4))
    );
    assert_eq!((&*it.agents[0].name, &*it.entry_agent), ("new", "new"));
}

#[test]
fn maps_are_merged_by_key() {
    let it = child(
        "name: a\nlabels: {x: '1', y: '2'}\nlimits: {timeout: 1m, grace: 1s}\noptions: {extra: {deep: {a: 1, b: 2}}}\n",
        "labels: {y: '3', z: '4'}\nlimits: {grace: 2s}\noptions: {extra: {deep: {b: 3}}}\n",
    );
    let labels: Vec<(&str, &str)> = it
        .labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(labels, [("x", "1"), ("y", "3"), ("z", "4")]);
    let limits = &it.agents[0].limits;
    assert_eq!(
        (
            limits.timeout.map(|it| it.to_string()),
            limits.grace.map(|it| it.to_string())
        ),
        (Some("1m".into()), Some("2s".into()))
    );
    assert_eq!(
        it.agents[0].options.extra["deep"],
        serde_json::json!({"a": 1, "b": 3})
    );
}

#[test]
fn agents_are_merged_by_name_and_field() {
    let it = child(
        "name: a\nentry_agent: lead\nagents:\n  - {name: lead, prefix: L, max_turns: 3}\n  - {name: other, prefix: O}\n",
        "agents:\n  - {name: other, max_turns: 9}\n  - {name: third}\n  - {name: lead, max_turns: 5}\n",
    );
    assert_eq!(
        names(it.agents.iter().map(|agent| &agent.name)),
        ["lead", "other", "third"]
    );
    let of = |n: usize| (it.agents[n].prefix.as_deref(), it.agents[n].max_turns);
    assert_eq!(
        [of(0), of(1), of(2)],
        [(Some("L"), Some(5)), (Some("O"), Some(9)), (None, None)]
    );
}

#[test]
fn tools_and_toolboxes_are_merged_by_name() {
    let it = child(
        "name: a\ntoolboxes: [{name: files, prefix: f_}, background]\ntools: [count]\nprocess_tools: [{name: count, description: Old., \
         binary: bin/count, parameters: {type: object, properties: {a: {}}}}]\n",
        "toolboxes: [files, {name: background, timeout: 1s}]\nprocess_tools: [{name: count, description: New., parameters: \
         {type: object, properties: {b: {}}}}, {name: more, description: More., binary: bin/count}]\n",
    );
    let boxes = serde_json::to_value(&it.agents[0].toolboxes).expect("it can be written");
    assert_eq!(
        boxes,
        serde_json::json!([{"name": "files", "prefix": "f_"}, {"name": "background", "timeout": "1s"}])
    );
    assert_eq!(
        names(it.process_tools.iter().map(|tool| &tool.name)),
        ["count", "more"]
    );
    let count = &it.process_tools[0];
    assert_eq!(&*count.description, "New.");
    assert_eq!(
        count.parameters,
        Some(serde_json::json!({"type": "object", "properties": {"b": {}}}))
    );
}

#[test]
fn other_lists_are_replaced() {
    let it = child(
        "name: a\nexpertise: [x, y]\neffects: [{kind: compact}]\ncontext: [docs/style.md]\n",
        "expertise: [z]\neffects: [{kind: loop_detect}, {kind: progress}]\n",
    );
    let agent = &it.agents[0];
    assert_eq!(names(&agent.expertise), ["z"]);
    assert_eq!(
        names(agent.effects.iter().map(|effect| &effect.kind)),
        ["loop_detect", "progress"]
    );
    assert_eq!(agent.context.len(), 1);
}

#[test]
fn null_takes_a_field_away() {
    let it = child(
        "name: a\nlabels: {x: '1', y: '2'}\nmodel: offline/planner\ntoolboxes: [files]\nprefix: x\nboard: {name: b}\n",
        "labels: {x: null, q: ~}\nmodel:\ntoolboxes: null\nboard: ~\nnotes: null\n",
    );
    assert_eq!(it.labels.keys().collect::<Vec<_>>(), ["y"]);
    assert_eq!(
        (
            it.agents[0].model.clone(),
            it.agents[0].toolboxes.clone(),
            it.board
        ),
        (None, Vec::<ToolboxChoice>::new(), None)
    );
}

#[test]
fn model_in_short_takes_on_what_the_child_says_about_it() {
    let it = child("name: a\nmodel: offline/planner\n", "model: {retries: 5}\n");
    let Some(ModelChoice::Spec(spec)) = &it.agents[0].model else {
        panic!("{:?}", it.agents[0].model)
    };
    assert_eq!((&*spec.name, spec.retries), ("offline/planner", Some(5)));
    let it = child(
        "name: a\nmodel: {name: ollama/x, retries: 5}\n",
        "model: offline/planner\n",
    );
    assert_eq!(
        it.agents[0].model,
        Some(ModelChoice::Name("offline/planner".into()))
    );
}

#[test]
fn grandparent_is_merged_once() {
    let folder = Folder::new();
    folder.write(
        "base.yaml",
        "name: base\nentry_agent: a\nagents: [{name: a}]\nlabels: {x: '1'}\n",
    );
    folder.write(
        "middle.yaml",
        "extends: base.yaml\nagents: [{name: b}]\nlabels: {x: null}\n",
    );
    let loaded = folder
        .read("extends: middle.yaml\nagents: [{name: c}]\n")
        .expect("it is right");
    assert_eq!(
        names(loaded.manifest.agents.iter().map(|agent| &agent.name)),
        ["a", "b", "c"]
    );
    assert!(loaded.manifest.labels.is_empty());
    let files = ["adjutant.yaml", "middle.yaml", "base.yaml"]
        .map(|it| folder.path(it).canonicalize().expect("it is there"));
    assert_eq!(loaded.sources, files);
}

#[test]
fn paths_of_a_parent_are_relative_to_the_parent() {
    let folder = Folder::new();
    folder.write("shared/base.yaml", "name: base\ncontext: [note.md]\n");
    folder.write("shared/note.md", "Note.\n");
    folder.write(
        "mine/adjutant.yaml",
        "extends: ../shared/base.yaml\nname: mine\n",
    );
    let loaded = folder.load("mine/adjutant.yaml").expect("it is right");
    let note = folder
        .path("shared/note.md")
        .canonicalize()
        .expect("it is there");
    let context =
        serde_json::to_value(&loaded.manifest.agents[0].context).expect("it can be written");
    assert_eq!(context, serde_json::json!([note]));
}

#[test]
fn chain_of_parents_is_followed_ten_deep_and_no_deeper() {
    let folder = Folder::new();
    folder.write("p0.yaml", "name: oldest\nprefix: x\n");
    for n in 1..=11 {
        folder.write(
            &format!("p{n}.yaml"),
            &format!("extends: p{}.yaml\n", n - 1),
        );
    }
    assert_eq!(
        &*folder.load("p10.yaml").expect("it is right").manifest.name,
        "oldest"
    );
    let error = folder
        .load("p11.yaml")
        .expect_err("it is too deep")
        .to_string();
    assert_eq!(
        folder.plain(&error),
        "p1.yaml:1:10: \"p0.yaml\": more than 10 manifests extend one another"
    );
}

#[test]
fn problem_of_a_parent_is_told_where_it_stands() {
    let folder = Folder::new();
    folder.write("base.yaml", "name: base\nmax_turns: 0\nprefx: x\n");
    let error = folder.wrong("extends: base.yaml\nmodel: offline/planer\n");
    let expect = "adjutant.yaml:2:8: no model is called \"offline/planer\"; hint: the nearest are offline/planner\n\
                  base.yaml:2:12: `max_turns` is at least 1\n\
                  base.yaml:3:1: there is no field `prefx` here; hint: the nearest is `prefix`";
    assert_eq!(error, expect);
}
