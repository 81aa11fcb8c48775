//! Agents of Markdown files.

use adjutant_runtime::manifest::{Compaction, Instructions};

use crate::folder::Folder;

const CLERK: &str = "---\nname: clerk\ndescription: Writes.\nmodel: offline/planner\nskills: ['*']\nmax_turns: 3\n\
                     delegation: {depth: 1, handoffs: 2}\nexpertise: [words]\nestimated_cost: a cent\nmax_concurrency: 2\nprefix: C\n---\n\
                     You write about ${NOTHING}.\n";

#[test]
fn agents_are_included_with_every_field() {
    let folder = Folder::new();
    folder.write("crew/clerk.md", CLERK);
    let text = "name: whole\ndelegation: {depth: 1}\nskill_folders: [skills]\ninclude: [crew/clerk.md, .adjutant/agents/*.md]\n";
    let manifest = folder
        .read(text)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .manifest;
    let names: Vec<&str> = manifest.agents.iter().map(|agent| &*agent.name).collect();
    assert_eq!(
        (names, &*manifest.entry_agent),
        (vec!["whole", "clerk", "scout"], "whole")
    );
    let clerk = serde_json::to_value(&manifest.agents[1]).expect("it can be written");
    let expect = serde_json::json!({
        "name": "clerk", "description": "Writes.", "model": "offline/planner", "instructions": "You write about ${NOTHING}.",
        "skills": ["*"], "max_turns": 3, "delegation": {"depth": 1, "handoffs": 2}, "expertise": ["words"],
        "estimated_cost": "a cent", "max_concurrency": 2, "prefix": "C",
    });
    assert_eq!(clerk, expect);
}

#[test]
fn manifest_says_more_about_an_agent_that_it_includes() {
    let folder = Folder::new();
    let text = "name: whole\nentry_agent: scout\ninclude: [.adjutant/agents/scout.md]\nagents: [{name: scout, tools: [count]}]\n\
                process_tools: [{name: count, description: Counts., binary: bin/count}]\n";
    let manifest = folder.read(text).expect("it is right").manifest;
    let scout = &manifest.agents[0];
    assert_eq!(
        (
            &*scout.description,
            scout.tools.len(),
            manifest.agents.len()
        ),
        ("Looks around.", 1, 1)
    );
    assert_eq!(
        scout.instructions,
        Some(Instructions::Text("You look.".into()))
    );
}

#[test]
fn agent_file_sets_habits_middleware_and_compaction() {
    let folder = Folder::new();
    folder.write(
        "crew/ada.md",
        "---\ndescription: x\nbehavior: true\nmiddleware: [logger]\ncompaction: false\n---\nx\n",
    );
    let manifest = folder
        .read("name: whole\ninclude: [crew/*.md]\n")
        .expect("it is right")
        .manifest;
    let ada = manifest
        .agents
        .iter()
        .find(|agent| &*agent.name == "ada")
        .expect("it is included");
    let middleware: Vec<&str> = ada.middleware.iter().map(|name| &**name).collect();
    assert_eq!(
        (ada.behavior, middleware, &ada.compaction),
        (true, vec!["logger"], &Some(Compaction::On(false)))
    );
    let error = folder.wrong(
        "name: whole\ninstructions: x\nmiddleware: [logger, logger]\ncompaction: {treshold: 1}\n",
    );
    for expect in [
        "adjutant.yaml:4:14: effect `compact`: there is no field `treshold` here",
        "adjutant.yaml:3:22",
    ] {
        assert!(error.contains(expect), "{error}");
    }
}

#[test]
fn problems_of_included_agents_stand_in_their_files() {
    let folder = Folder::new();
    folder.write("crew/bad.md", "---\ndescription: x\ncolour: red\n---\nx\n");
    folder.write(
        "crew/deep.md",
        "---\ndescription: x\ndelegation: {deep: 1}\n---\nx\n",
    );
    folder.write("crew/empty.md", "---\nprefix: x\n---\nx\n");
    folder.write(
        "crew/model.md",
        "---\ndescription: x\n\nmodel: nowhere/none\ntoolboxes: [file]\n---\nx\n",
    );
    folder.write(
        "crew/number.md",
        "---\ndescription: x\nmax_turns: many\n---\nx\n",
    );
    folder.write("crew/plain.md", "Nothing.\n");
    folder.write(
        "crew/twice.md",
        "---\ndescription: &a x\nprefix: *a\n---\nx\n",
    );
    folder.write(
        "crew/typo.md",
        "---\ndescription: x\ntoolbox: [files]\n---\nx\n",
    );
    let error = folder.wrong("name: whole\ninclude: [crew/*.md]\ndelegation: {depth: 1}\n");
    insta::assert_snapshot!(error, @r#"
    crew/bad.md:3:1: there is no field `colour` here; hint: there is `name`, `description`, `model`, `toolboxes`, `skills`, `behavior`, `middleware`, `compaction`, `max_turns`, `delegation`, `expertise`, `estimated_cost`, …
    crew/deep.md:3:14: there is no field `deep` here; hint: there is `depth`, `handoffs`
    crew/empty.md:1:1: `description` is missing: others choose the agent by it
    crew/model.md:4:8: no provider is called "nowhere"
    crew/model.md:5:13: there is no toolbox "file"; hint: the nearest is `files`
    crew/number.md:3:12: expected a whole number from 0 to 4294967295, found "many"
    crew/plain.md:1:1: it does not begin with front matter: a line `---`, the fields, a line `---`
    crew/twice.md:2:17: there are more than 0 anchors
    crew/typo.md:3:1: there is no field `toolbox` here; hint: the nearest is `toolboxes`
    "#);
}
