//! What holds for every backend, by the public suite, and what holds for agents in this process alone.

use std::sync::Arc;

use adjutant_runtime::{
    Backend, ErrorKind, Instance, Status,
    backend::{InProcess, InProcessOptions},
};
use serde_json::json;
use uuid::Uuid;

use super::desk::{created, in_process, resolved};

mod in_this_process {
    use adjutant_testing::lifecycle_suite::lab_fn;

    use super::*;

    adjutant_testing::lifecycle_suite!(
        lab_fn(|home| Arc::new(in_process(home))).without_processes()
    );
}

mod in_processes {
    use adjutant_testing::lifecycle_suite::{GRACE, lab_fn};

    use super::{super::desk, *};

    adjutant_testing::lifecycle_suite!({
        let (folder, host, _) = desk::place(&desk::GOOD);
        lab_fn(move |home| {
            // The host is there for as long as backends are opened.
            let _folder = &folder;
            Arc::new(desk::process_with(
                home,
                &host,
                desk::options().grace(GRACE),
            ))
        })
    });
}

#[tokio::test]
async fn agent_in_this_process_ends_when_nobody_holds_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let backend = in_process(folder.path());
    let agent = created(&backend, "clerk").await;
    agent.start().await.expect("it begins");
    let workspace = agent.workspace();
    assert!(workspace.is_hosted().expect("it can be found out"));
    drop((agent, backend));
    super::desk::until("it lets go of its lock", || {
        !workspace.is_hosted().expect("it can be found out")
    })
    .await;
    let again = in_process(folder.path());
    let loaded = adjutant_runtime::Backend::load(&again)
        .await
        .expect("it can be read");
    let [agent] = &loaded.instances[..] else {
        panic!("one agent")
    };
    assert_eq!(
        agent.status().to_string(),
        "failed (crashed): its process ended while nobody followed it"
    );
    Instance::start(&**agent).await.expect("it begins again");
}

#[tokio::test]
async fn missing_key_is_a_failure_of_the_model_and_is_looked_up_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = Arc::new(std::sync::Mutex::new(None));
    let lookup = {
        let key = Arc::clone(&key);
        move |name: &str| {
            (name == "ANTHROPIC_API_KEY")
                .then(|| key.lock().expect("not poisoned").clone())
                .flatten()
        }
    };
    let backend = InProcess::new(
        folder.path().join("home"),
        InProcessOptions::new().credentials(lookup),
    );
    let agent = json!({"name": "clerk", "model": "anthropic/claude-sonnet-5"});
    let mut resolved = resolved(
        json!({"name": "clerk", "entry_agent": "clerk", "agents": [agent]}),
        &[],
    );
    resolved.needs = vec!["ANTHROPIC_API_KEY".to_owned()];
    let agent = backend
        .create(Uuid::new_v4(), resolved)
        .await
        .expect("it is created");
    let error = agent.start().await.expect_err("there is no key");
    assert_eq!(error.kind(), ErrorKind::Model, "{error}");
    let Status::Failed { reason, message } = agent.status() else {
        panic!("{}", agent.status())
    };
    assert_eq!(
        (reason.word(), message.contains("ANTHROPIC_API_KEY")),
        ("model", true),
        "{message}"
    );
    *key.lock().expect("not poisoned") = Some("a-key".to_owned());
    agent.start().await.expect("there is one now");
    agent.remove().await.expect("it goes");
}
