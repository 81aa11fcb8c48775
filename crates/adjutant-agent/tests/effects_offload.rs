//! `offload`: long results leave the view, and `recall` reads them from the history.

#[path = "effects/stage.rs"]
mod stage;
#[path = "effects/steps.rs"]
mod steps;

use adjutant_agent::{
    MemoryJournal,
    effects::{ObservationMask, Offload, from_spec},
};
use adjutant_llm::{Script, Status};
use serde_json::{Value, json};
use stage::{agent, done, say, shown};
use steps::{breaks, most_forms};

fn recall(args: Value) -> Script {
    Script::new().call("recall", args)
}

/// Turns with results of 3,000 characters; the second one fails, the third is short.
fn turns(count: usize) -> impl Iterator<Item = Script> {
    (0..count).map(|n| {
        say(json!({ "text": "é日🦀", "times": if n == 2 { 100 } else { 1_000 }, "fail": n == 1 }))
    })
}

fn line(id: &str) -> String {
    let preview: String = "é日🦀".chars().cycle().take(200).collect();
    format!(
        "[result of say, 3000 characters, taken out; recall with id \"{id}\" shows it; it begins: {preview}…]"
    )
}

#[tokio::test]
async fn recall_gives_the_whole_text_when_a_result_was_taken_out() {
    let journal = MemoryJournal::default();
    let scripts = turns(20).chain([recall(json!({ "id": "c1_0_0" })), done()]);
    let (model, agent_1) = agent(30_000, scripts);
    let agent_1 = agent_1.journal(journal.clone()).effect(Offload::default());
    let result = agent_1.run("Go.").await.expect("the run finishes");
    let requests = shown(&model);
    let last = &requests[20];
    assert_eq!(last[1], format!("say = {}", line("c1_0_0")));
    assert_eq!(
        last[2],
        format!("say ! {}", "é日🦀".repeat(1_000)),
        "errors stay"
    );
    assert_eq!(
        last[3],
        format!("say = {}", "é日🦀".repeat(100)),
        "short ones stay"
    );
    assert_eq!(
        last[15..21],
        [format!("say = {}", "é日🦀".repeat(1_000)).as_str(); 6],
        "the newest 6 turns stay"
    );
    assert_eq!(result.calls[20].result.text(), "é日🦀".repeat(1_000));
    assert_eq!(most_forms(&model), 2, "nothing is taken out twice");
    assert!(
        (1..=4).contains(&breaks(&model).len()),
        "{:?}",
        breaks(&model)
    );

    // The next run, and another program.
    let (_, agent_2) = agent(30_000, [recall(json!({ "id": "c1_0_0" })), done()]);
    let agent_2 = agent_2
        .journal(journal)
        .effect(Offload::default())
        .session(agent_1.session_id().clone())
        .take_over();
    let result = agent_2.run("Once more.").await.expect("the run finishes");
    assert_eq!(result.calls[0].result.text(), "é日🦀".repeat(1_000));
}

#[tokio::test]
async fn recall_shows_pages_when_the_text_is_long() {
    let pages = [
        json!({ "id": "c1_0_0" }),
        json!({ "id": "c1_0_0", "offset": 8_999, "limit": 20_000 }),
    ];
    let scripts = [say(json!({ "text": "é日🦀", "times": 3_000 }))];
    let (_, agent) = agent(
        1_000_000,
        scripts.into_iter().chain(pages.map(recall)).chain([done()]),
    );
    let result = agent
        .effect(Offload::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    let first: String = "é日🦀".chars().cycle().take(8_000).collect();
    assert_eq!(
        result.calls[1].result.text(),
        format!("{first}\n[characters 0 to 8000 of 9000; offset 8000 shows more]")
    );
    assert_eq!(
        result.calls[2].result.text(),
        "🦀\n[characters 8999 to 9000 of 9000]"
    );
}

#[tokio::test]
async fn recall_is_an_error_when_there_is_nothing_to_show() {
    let asked = [
        json!({ "id": "c9_0_0" }),
        json!({ "id": "../../etc" }),
        json!({ "id": "c1_0_0", "offset": 1 }),
    ];
    let scripts = [say(json!({ "text": "a" }))]
        .into_iter()
        .chain(asked.map(recall));
    let (_, agent) = agent(1_000_000, scripts.chain([done()]));
    let result = agent
        .effect(Offload::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    let results: Vec<(Status, String)> = result.calls[1..]
        .iter()
        .map(|call| (call.result.status, call.result.text()))
        .collect();
    let unreadable = r#"not a call id of the form c<turn>_<attempt>_<block>: "../../etc""#;
    assert_eq!(
        results,
        [
            (Status::Failed, "no call c9_0_0 has a result".to_owned()),
            (Status::InvalidArguments, unreadable.to_owned()),
            (
                Status::InvalidArguments,
                "the result has 1 characters: none stands at 1".to_owned()
            ),
        ]
    );
}

#[tokio::test]
async fn recall_is_offered_when_nothing_is_taken_out_yet() {
    let (model, agent) = agent(1_000_000, turns(3).chain([done()]));
    agent
        .effect(Offload::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    let tools: Vec<Vec<String>> = model
        .requests()
        .iter()
        .map(|request| {
            request
                .tools
                .iter()
                .map(|tool| tool.name.to_string())
                .collect()
        })
        .collect();
    assert_eq!(
        tools,
        vec![vec!["say", "recall"]; 4],
        "the tools of a run stay the same"
    );
}

#[tokio::test]
async fn placeholder_stays_when_results_are_masked_too() {
    let (model, agent) = agent(20_000, turns(20).chain([done()]));
    let agent = agent.effect(Offload::default()).effect(ObservationMask {
        threshold: 0.1,
        min_gain: 0.0,
        ..ObservationMask::default()
    });
    agent.run("Go.").await.expect("the run finishes");
    let requests = shown(&model);
    let first = &requests[20][1];
    assert!(
        first.contains("c1_0_0") || first.contains("earlier result"),
        "{first}"
    );
    let lost = requests.windows(2).any(|pair| {
        pair[0][1..]
            .iter()
            .zip(&pair[1][1..])
            .any(|(before, after)| before.contains("recall with id") && before != after)
    });
    assert!(!lost, "a line with an id never gives way to one without");
}

#[test]
fn offload_reads_its_parameters_when_it_is_configured() {
    let read =
        |params| serde_json::from_value::<Offload>(params).map(|offload| format!("{offload:?}"));
    assert_eq!(
        read(json!({})).expect("all have defaults"),
        format!("{:?}", Offload::default())
    );
    let params =
        json!({ "threshold": 0.4, "min_chars": 5, "recent": 1, "preview": 9, "min_gain": 0.2 });
    let set = Offload {
        threshold: 0.4,
        min_chars: 5,
        recent: 1,
        preview: 9,
        min_gain: 0.2,
    };
    assert_eq!(read(params).expect("these are known"), format!("{set:?}"));
    assert_eq!(
        from_spec("offload", json!({}))
            .expect("the kind is known")
            .kind(),
        "offload"
    );
}
