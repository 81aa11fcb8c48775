//! Rules that a person gave an agent for good.

use std::{fs, os::unix::fs::PermissionsExt, sync::Arc};

use adjutant_agent::Outcome;
use adjutant_runtime::{
    Error, Home, Instance, Status, Trust,
    bundle::{ExportOptions, ImportOptions, export, import},
    prompt::{PausesRequest, PromptRequest, ResumeRequest},
};
use adjutant_tool::Answer;
use futures_util::StreamExt;
use serde_json::json;
use uuid::Uuid;

use super::{desk::resolved, updated::engines};

/// Has a word of a file replaced; whether it was asked about.
async fn asks(agent: &Arc<dyn Instance>, file: &str) -> bool {
    fs::write(agent.workspace().work().join(file), "One.").expect("it can be written");
    let prompter = agent.prompter().await.expect("it runs");
    let request = PromptRequest::new(format!("Replace `One` by `Two` in {file}."))
        .session(Uuid::new_v4().to_string());
    let reply = prompter.prompt(request).await.expect("it answers");
    let done =
        fs::read_to_string(agent.workspace().work().join(file)).expect("it is there") == "Two.";
    let waits = matches!(reply.result.outcome, Outcome::Paused { .. });
    assert_ne!(done, waits, "{}", reply.text);
    waits
}

async fn begun_again(agent: &Arc<dyn Instance>) -> Result<(), Error> {
    agent.stop().await.expect("it ends");
    agent.start().await
}

#[tokio::test]
async fn approval_for_good_outlives_the_process_and_nobody_else_gives_one() {
    for (folder, backend) in engines() {
        let manifest = json!({"name": "clerk", "entry_agent": "clerk", "agents": [
            {"name": "clerk", "model": "offline/planner", "toolboxes": ["files", "edits"]},
        ]});
        let agent = backend
            .create(Uuid::new_v4(), resolved(manifest, &[]))
            .await
            .expect("it is created");
        agent.start().await.expect("it begins");
        assert!(asks(&agent, "a.md").await);
        let prompter = agent.prompter().await.expect("it runs");
        let page = prompter.pauses(PausesRequest::new()).await.expect("a page");
        let always = page.pauses[0].pause.with_answer(Answer::Approve {
            args: None,
            for_run: true,
        });
        let request = ResumeRequest::new(vec![always]).session(Arc::clone(&page.pauses[0].session));
        prompter
            .resume(request)
            .await
            .expect("it goes on")
            .for_each(|_| async {})
            .await;
        begun_again(&agent).await.expect("it begins");
        assert!(!asks(&agent, "a.md").await);
        assert!(asks(&agent, "b.md").await, "it is just that file");
        let workspace = agent.workspace();
        assert_eq!(
            workspace.kept_rules("clerk").expect("they can be read"),
            ["allow write(/a.md)"]
        );
        assert!(
            workspace
                .kept_rules("../clerk")
                .expect("there are none")
                .is_empty()
        );

        // It does not travel: whoever runs an agent gives it rules.
        agent.stop().await.expect("it ends");
        let home = Home::at(workspace.root().parent().expect("a folder"));
        let entry = home
            .entries()
            .expect("it can be read")
            .find("clerk")
            .expect("it is there")
            .clone();
        let file = folder.path().join("bundle");
        export(&entry, &file, &ExportOptions::new()).expect("it is exported");
        let options = ImportOptions::new().name("other");
        let imported = import(&home, &file, &options, &Trust::Nothing)
            .expect("it wants nothing")
            .id;
        assert!(
            home.workspace(imported)
                .kept_rules("clerk")
                .expect("there are none")
                .is_empty()
        );

        // What others may write, and what is no rule, is told, and nothing begins.
        let rules = workspace.file("rules/clerk");
        let mode = |mode| {
            fs::set_permissions(&rules, fs::Permissions::from_mode(mode))
                .expect("it can be changed")
        };
        mode(0o622);
        let error = agent
            .start()
            .await
            .expect_err("anybody may have written it")
            .to_string();
        let told = format!("{} is not believed: others may write it", rules.display());
        assert!(error.contains(&told), "{error}");
        assert!(workspace.kept_rules("clerk").is_err());
        mode(0o600);
        fs::write(&rules, "# mine\nallow everything please\n").expect("it can be written");
        agent.start().await.expect_err("it is no rule");
        assert!(
            agent.status().to_string().contains("rules/clerk:2: "),
            "{}",
            agent.status()
        );
        // Without its line, it is asked again.
        fs::write(&rules, "# mine\n").expect("it can be written");
        agent.start().await.expect("it begins");
        assert_eq!(
            (agent.status(), asks(&agent, "a.md").await),
            (Status::Ready, true)
        );
        agent.remove().await.expect("it goes");
    }
}
