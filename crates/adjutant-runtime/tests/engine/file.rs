//! The engine of a file: what it reads, where it works, and what it says when the file is wrong.

use adjutant_runtime::{Engine, ErrorKind, Prompter, prompt::PromptRequest};

use crate::stage::{Stage, text};

const MANIFEST: &str = "\
name: clerk
model: offline/planner
instructions: Answer from the files.
toolboxes: [files]
data:
  - file: prices.txt
    to: tables/prices.txt
    description: What things cost.
";

#[tokio::test]
async fn engine_of_a_file_works_beside_it() {
    let stage = Stage::new([]);
    stage.file("prices.txt", "apple 3\n");
    let path = stage.file("adjutant.yaml", MANIFEST);
    let engine = Engine::from_file(&path).await.expect("it is right");
    let reply = engine
        .prompt(PromptRequest::new("Where does `apple` occur?"))
        .await
        .expect("it answers");
    assert!(reply.text.contains("tables/prices.txt"), "{}", reply.text);
    drop(engine);
    assert!(
        stage
            .folder
            .path()
            .join(".adjutant/state/agent.db")
            .exists()
    );
    let laid = stage.folder.path().join(".adjutant/work/tables/prices.txt");
    std::fs::write(&laid, "apple 4\n").expect("it is ours");
    drop(Engine::from_file(&path).await.expect("it is right"));
    assert_eq!(text(&laid), "apple 4\n", "what the agents worked on stays");
}

#[tokio::test]
async fn file_that_is_wrong_is_told_with_its_place() {
    let stage = Stage::new([]);
    let path = stage.file("adjutant.yaml", "name: clerk\nmodell: offline/planner\n");
    let error = Engine::from_file(&path).await.expect_err("it is wrong");
    assert_eq!(error.kind(), ErrorKind::Manifest);
    assert!(error.message().contains("adjutant.yaml:2:1"), "{error}");
    let missing = Engine::from_file(stage.folder.path().join("none.yaml"))
        .await
        .expect_err("it is not there");
    assert_eq!(missing.kind(), ErrorKind::Manifest);
}
