//! What an agent is told, what it may do, and what acts on it.

use adjutant_agent::Outcome;
use adjutant_runtime::ErrorKind;
use serde_json::{Value, json};

use crate::stage::{MODEL, Stage, agents, calls, lead, one, preview, result, run, tools, with};

#[tokio::test]
async fn instructions_are_the_system_prompt() {
    let stage = Stage::new([]);
    let engine = stage
        .engine(one(json!({ "instructions": "Be brief." })))
        .await;
    assert_eq!(&*preview(&engine).await.system, "Be brief.");
}

#[tokio::test]
async fn instructions_of_a_file_are_the_system_prompt() {
    let stage = Stage::new([]);
    let file = stage.file("instructions.md", "Be kind.\n");
    let engine = stage
        .engine(one(json!({ "instructions": { "file": file } })))
        .await;
    assert_eq!(&*preview(&engine).await.system, "Be kind.");
}

#[tokio::test]
async fn context_files_are_told_in_their_order_under_their_names() {
    let stage = Stage::new([]);
    let (first, second) = (
        stage.file("z.md", "The first."),
        stage.file("a.md", "The second."),
    );
    let missing = stage.folder.path().join("missing.md");
    let context = json!([first, { "file": second, "name": "House rules" }, { "file": missing, "optional": true }]);
    let engine = stage.engine(one(json!({ "context": context }))).await;
    let system = preview(&engine).await.system;
    let (z, rules) = (
        system.find("## z.md\n\nThe first."),
        system.find("## House rules\n\nThe second."),
    );
    assert!(
        system.contains("<project_context>") && z.is_some() && z < rules,
        "{system}"
    );
    let wrong = stage
        .wrong(one(
            json!({ "context": [{ "file": missing, "optional": false }] }),
        ))
        .await;
    assert_eq!(wrong.kind(), ErrorKind::Config);
    assert!(wrong.message().contains("missing.md"), "{wrong}");
}

#[tokio::test]
async fn context_files_may_be_greater_than_a_section_usually_is() {
    let stage = Stage::new([]);
    let file = stage.file("long.md", &"x".repeat(600 << 10));
    let engine = stage.engine(one(json!({ "context": [file] }))).await;
    assert!(preview(&engine).await.system.len() > 600 << 10);
}

#[tokio::test]
async fn data_files_are_told_with_their_places_and_descriptions() {
    let stage = Stage::new([]);
    let file = stage.file("prices.csv", "a,b");
    let data = json!([
        { "file": file, "to": "tables/p.csv", "description": "What things cost." },
        { "file": file, "description": "The same." },
        { "file": file, "to": "silent.csv" },
    ]);
    let engine = stage
        .engine(with(one(json!({})), json!({ "data": data })))
        .await;
    let system = preview(&engine).await.system;
    assert!(
        system.contains("- `tables/p.csv`: What things cost.\n- `prices.csv`: The same."),
        "{system}"
    );
    assert!(!system.contains("silent"), "{system}");
}

#[tokio::test]
async fn skills_are_those_that_the_agent_names() {
    let stage = Stage::new([]);
    let skill =
        |name: &str| format!("---\nname: {name}\ndescription: How to {name}.\n---\nDo it well.\n");
    stage.file("skills/bake/SKILL.md", &skill("bake"));
    stage.file("skills/brew/SKILL.md", &skill("brew"));
    let folders = json!({ "skill_folders": [stage.folder.path().join("skills")] });
    for (named, told) in [
        (json!(["brew"]), [false, true]),
        (json!(["*"]), [true, true]),
        (json!([]), [false, false]),
    ] {
        let engine = stage
            .engine(with(one(json!({ "skills": named })), folders.clone()))
            .await;
        let system = preview(&engine).await.system;
        assert_eq!(
            ["How to bake", "How to brew"].map(|it| system.contains(it)),
            told,
            "{system}"
        );
    }
    let wrong = stage
        .wrong(with(one(json!({ "skills": ["fly"] })), folders))
        .await;
    assert_eq!(wrong.kind(), ErrorKind::Config);
    assert!(wrong.message().contains("bake, brew"), "{wrong}");
}

#[tokio::test]
async fn effects_act_with_their_parameters() {
    let stage = Stage::new([]);
    let effects = json!([{ "kind": "tool_scope", "params": { "exclude": ["read_file"] } }]);
    let engine = stage
        .engine(one(json!({ "toolboxes": ["files"], "effects": effects })))
        .await;
    assert_eq!(
        tools(&preview(&engine).await),
        ["list_files", "search_text"]
    );
    let unknown = stage
        .wrong(one(json!({ "effects": [{ "kind": "magic" }] })))
        .await;
    assert_eq!(unknown.kind(), ErrorKind::Config);
    assert!(unknown.message().contains("compact"), "{unknown}");
    let params = json!([{ "kind": "compact", "params": { "threshold": "much" } }]);
    assert_eq!(
        stage.wrong(one(json!({ "effects": params }))).await.kind(),
        ErrorKind::Config
    );
}

/// What becomes of a call of `list_files`: whether it ran, waits, or was denied with these words.
async fn access(access: Value) -> Result<bool, String> {
    let stage = Stage::new(calls("list_files", json!({})));
    let engine = stage
        .engine(one(json!({ "toolboxes": ["files"], "access": access })))
        .await;
    let ran = run(&engine).await;
    match &ran.outcome {
        Outcome::Paused { pauses } => Err(pauses[0].ask.prompt.to_string()),
        _ if ran.calls[0].result.status == adjutant_llm::Status::Ok => Ok(true),
        _ => Err(result(&ran, 0)),
    }
}

#[tokio::test]
async fn calls_are_allowed_asked_or_denied_by_the_first_rule_that_fits() {
    let rule = |tools: &[&str], then: &str| json!({ "tools": tools, "then": then });
    assert_eq!(access(json!({})).await, Ok(true));
    assert_eq!(
        access(json!({ "rules": [rule(&["list_*"], "allow"), rule(&["*"], "deny")] })).await,
        Ok(true)
    );
    assert!(
        access(json!({ "rules": [rule(&["*"], "deny"), rule(&["list_*"], "allow")] }))
            .await
            .is_err()
    );
    let asked = access(json!({ "rules": [rule(&["read_file", "list_files"], "ask")] })).await;
    assert_eq!(asked, Err("May \"list_files\" (titled \"List files\"; by its author's word it changes nothing) run with these arguments?".to_owned()));
    let denied = access(json!({ "rules": [rule(&["*_files"], "deny")] }))
        .await
        .expect_err("it is denied");
    assert!(
        denied.contains("this agent may not call \"list_files\""),
        "{denied}"
    );
}

#[tokio::test]
async fn words_of_a_rule_are_asked_or_told() {
    let said = |then: &str| json!({ "rules": [{ "tools": ["*"], "then": then, "say": "Only on Mondays." }] });
    assert_eq!(
        access(said("ask")).await,
        Err("Only on Mondays.".to_owned())
    );
    let denied = access(said("deny")).await.expect_err("it is denied");
    assert!(denied.contains("Only on Mondays."), "{denied}");
}

#[tokio::test]
async fn calls_that_no_rule_fits_are_treated_by_default() {
    let with_rule = |default: &str| json!({ "default": default, "rules": [{ "tools": ["read_file"], "then": "allow" }] });
    assert_eq!(access(with_rule("allow")).await, Ok(true));
    assert!(
        access(with_rule("ask"))
            .await
            .expect_err("it waits")
            .starts_with("May")
    );
    assert!(
        access(with_rule("deny"))
            .await
            .expect_err("it is denied")
            .contains("may not call")
    );
}

#[tokio::test]
async fn prefix_stands_before_the_lines_of_an_agent() {
    let stage = Stage::new([]);
    let engine = stage.engine(one(json!({ "prefix": "[s]" }))).await;
    assert_eq!(&*lead(&engine).identity().prefix, "[s]");
}

#[tokio::test]
async fn names_that_are_none_are_errors_of_the_configuration() {
    let stage = Stage::new([]);
    for fields in [
        json!({ "toolboxes": ["shovel"] }),
        json!({ "tools": ["weather"] }),
        json!({ "transfers": ["nobody"] }),
        json!({ "delegation": { "agents": ["nobody"], "depth": 1 } }),
        json!({ "team": { "members": ["nobody"] } }),
        json!({ "toolboxes": ["board"] }),
        json!({ "toolboxes": ["notes"] }),
        json!({ "toolboxes": ["memory"] }),
        json!({ "toolboxes": [{ "name": "files", "only": ["write_*"] }] }),
        json!({ "toolboxes": [{ "name": "background", "root": "/" }] }),
        json!({ "reflections": { "folder": "../out" } }),
    ] {
        let wrong = stage.wrong(one(fields.clone())).await;
        assert_eq!(wrong.kind(), ErrorKind::Config, "{fields}: {wrong}");
    }
    let entry = with(one(json!({})), json!({ "entry_agent": "nobody" }));
    assert_eq!(stage.wrong(entry).await.kind(), ErrorKind::Config);
    let twice = agents([
        json!({ "name": "a", "model": MODEL }),
        json!({ "name": "a", "model": MODEL }),
    ]);
    assert_eq!(stage.wrong(twice).await.kind(), ErrorKind::Config);
}
