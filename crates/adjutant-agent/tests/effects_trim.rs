//! `trim_tool_results`: long results of earlier turns are cut, in steps, and stay so.

#[path = "effects/stage.rs"]
mod stage;
#[path = "effects/steps.rs"]
mod steps;

use adjutant_agent::effects::{TrimResults, from_spec};
use adjutant_llm::{CallResult, Content, Entry, Image, Script, Source};
use adjutant_tool::{ToolSpec, tool_fn};
use serde_json::json;
use stage::{agent, done, say, shown};
use steps::{breaks, most_forms};

#[tokio::test]
async fn trim_shortens_old_results_when_they_are_long() {
    let turn = |n: usize| {
        say(json!({ "text": "日", "times": if n == 1 { 500 } else { 2_000 }, "fail": n == 2 }))
    };
    let (model, agent) = agent(1_000_000, (0..20).map(turn).chain([done()]));
    let agent = agent.effect(TrimResults::default());
    agent.run("Go.").await.expect("the run finishes");
    let requests = shown(&model);
    let last = requests.last().expect("there are requests");
    let cut = format!(
        "say = {}\n[cut: 500 of 2000 characters are shown]",
        "日".repeat(500)
    );
    let whole = format!("say = {}", "日".repeat(2_000));
    assert_eq!(last[1], cut);
    assert_eq!(
        last[2],
        format!("say = {}", "日".repeat(500)),
        "not too long"
    );
    assert_eq!(
        last[3],
        format!("say ! {}", "日".repeat(2_000)),
        "errors stay"
    );
    assert_eq!(last[17..21], [whole.as_str(); 4], "the newest 4 turns stay");
    assert_eq!(most_forms(&model), 2, "nothing is cut twice");
    let breaks = breaks(&model);
    assert!((2..=6).contains(&breaks.len()), "{breaks:?}");
    let uncut = |entry: &Entry| match entry {
        Entry::Turn(turn) => turn
            .results()
            .iter()
            .all(|result| !result.text().contains("[cut:")),
        _ => true,
    };
    assert!(
        agent
            .log()
            .transcript()
            .iter()
            .all(|stored| uncut(&stored.entry)),
        "the history keeps everything"
    );
}

#[tokio::test]
async fn trim_waits_when_there_is_little_to_gain() {
    let turns =
        (0..7).map(|n| say(json!({ "text": "x", "times": if n == 0 { 700 } else { 20_000 } })));
    let (model, agent) = agent(1_000_000, turns.chain([done()]));
    agent
        .effect(TrimResults::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    // The first result alone is not worth it, nor is one more; with two more it is.
    assert_eq!(breaks(&model), [8]);
}

#[tokio::test]
async fn trim_leaves_pictures_when_it_cuts_the_text_beside_them() {
    let image = Content::Image(Image {
        media_type: "image/png".into(),
        source: Source::Base64 {
            data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
                .into(),
        },
    });
    let content = vec![image.clone(), Content::text("x".repeat(2_000))];
    let look = tool_fn(
        ToolSpec::new("look", "Looks.", json!({ "type": "object" })),
        move |_, _| {
            let content = content.clone();
            async move {
                Ok(CallResult {
                    content,
                    ..CallResult::ok("")
                })
            }
        },
    );
    let (model, agent) = agent(
        1_000_000,
        [
            Script::new().call("look", json!({})),
            say(json!({ "text": "a" })),
            done(),
        ],
    );
    agent
        .tool(look)
        .effect(TrimResults {
            recent: 1,
            min_gain: 0.0,
            ..TrimResults::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    let request = model.requests().pop().expect("there are requests");
    let Entry::Turn(turn) = &request.entries[1] else {
        panic!("the first turn stands second")
    };
    let text = Content::text(format!(
        "{}\n[cut: 500 of 2000 characters are shown]",
        "x".repeat(500)
    ));
    assert_eq!(turn.results()[0].content, [image, text]);
}

#[tokio::test]
async fn trim_leaves_pinned_results_when_it_cuts_others() {
    let keep = tool_fn(
        ToolSpec::new("keep", "Keeps.", json!({ "type": "object" })),
        |_, _| async {
            Ok(CallResult {
                pinned: true,
                ..CallResult::ok("p".repeat(2_000))
            })
        },
    );
    let scripts = [Script::new()
        .call("keep", json!({}))
        .call("say", json!({ "text": "x", "times": 2_000 }))];
    let (model, agent) = agent(
        1_000_000,
        scripts
            .into_iter()
            .chain([say(json!({ "text": "a" })), done()]),
    );
    agent
        .tool(keep)
        .effect(TrimResults {
            recent: 1,
            min_gain: 0.0,
            ..TrimResults::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    let requests = shown(&model);
    assert_eq!(requests[2][1], format!("keep = {}", "p".repeat(2_000)));
    assert_eq!(
        requests[2][2],
        format!(
            "say = {}\n[cut: 500 of 2000 characters are shown]",
            "x".repeat(500)
        )
    );
}

#[test]
fn trim_reads_its_parameters_when_it_is_configured() {
    let read = |params| serde_json::from_value::<TrimResults>(params);
    assert_eq!(
        read(json!({})).expect("all have defaults"),
        TrimResults::default()
    );
    let set =
        read(json!({ "max_chars": 9, "recent": 1, "min_gain": 0.5 })).expect("these are known");
    assert_eq!(
        set,
        TrimResults {
            max_chars: 9,
            recent: 1,
            min_gain: 0.5
        }
    );
    assert_eq!(
        from_spec("trim_tool_results", json!({}))
            .expect("the kind is known")
            .kind(),
        "trim_tool_results"
    );
}
