//! `observation_mask`: results of long ago become lines, in steps, and stay so.

#[path = "effects/stage.rs"]
mod stage;
#[path = "effects/steps.rs"]
mod steps;

use adjutant_agent::{
    MemoryJournal, Outcome,
    effects::{ObservationMask, from_spec},
};
use adjutant_llm::{Entry, Error, ErrorKind, Script};
use serde_json::json;
use stage::{agent, done, say, shown};
use steps::{breaks, most_forms};

const MASKED: &str = "say = [earlier result of say, left out; it began: ";

/// Turns with results of about three hundred tokens each; the third one fails.
fn turns(count: usize) -> Vec<Script> {
    let turn =
        |n: usize| say(json!({ "text": format!("line {n:02} "), "times": 150, "fail": n == 2 }));
    (0..count).map(turn).chain([done()]).collect()
}

fn masked(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.starts_with(MASKED)).count()
}

#[tokio::test]
async fn mask_moves_in_batches_when_it_gains_enough() {
    let (model, agent) = agent(12_000, turns(40));
    let agent = agent.effect(ObservationMask::default());
    let result = agent.run("Go.").await.expect("the run finishes");
    assert!(matches!(result.outcome, Outcome::Finished { .. }));
    // Forty turns, of which only a few did not extend the request before them.
    let breaks = breaks(&model);
    assert!((2..=6).contains(&breaks.len()), "{breaks:?}");
    assert!(
        breaks[0] > 15,
        "nothing moves before 0.6 of the window: {breaks:?}"
    );
    assert_eq!(most_forms(&model), 2, "nothing is masked twice");
    let requests = shown(&model);
    let last = requests.last().expect("there are requests");
    assert_eq!(
        last[3],
        format!("say ! {}", "line 02 ".repeat(150)),
        "errors stay"
    );
    assert_eq!(
        last[1],
        format!("{MASKED}{}…]", "line 00 ".repeat(10).trim_end())
    );
    assert!(masked(last) >= 15, "{last:#?}");
    for request in &requests {
        let newest = &request[request.len().saturating_sub(10)..];
        assert_eq!(masked(newest), 0, "the newest 10 entries stay");
    }
    let history = agent.log().transcript();
    let whole = |entry: &Entry| match entry {
        Entry::Turn(turn) => turn
            .results()
            .iter()
            .all(|result| result.text().len() == 1_200),
        _ => true,
    };
    assert!(
        history.iter().all(|stored| whole(&stored.entry)),
        "the history keeps everything"
    );
}

#[tokio::test]
async fn mask_keeps_characters_whole_when_it_previews() {
    let turns = (0..12).map(|_| say(json!({ "text": "é日🦀", "times": 300 })));
    let (model, agent) = agent(2_000, turns.chain([done()]));
    agent
        .effect(ObservationMask {
            recent: 1,
            min_gain: 0.0,
            ..ObservationMask::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    let requests = shown(&model);
    let line = &requests.last().expect("there are requests")[1];
    let preview: String = "é日🦀".chars().cycle().take(80).collect();
    assert_eq!(*line, format!("{MASKED}{preview}…]"));
}

#[tokio::test]
async fn mask_stays_when_the_log_is_opened_again() {
    let journal = MemoryJournal::default();
    let (first, agent_1) = agent(12_000, turns(40));
    let agent_1 = agent_1
        .journal(journal.clone())
        .effect(ObservationMask::default());
    agent_1.run("Go.").await.expect("the run finishes");
    let (second, agent_2) = agent(12_000, [done()]);
    let agent_2 = agent_2
        .journal(journal)
        .session(agent_1.session_id().clone())
        .take_over();
    agent_2.run("On.").await.expect("the run finishes");
    let (before, after) = (shown(&first), shown(&second));
    let before = before.last().expect("there are requests");
    assert!(
        after[0].starts_with(before),
        "another program shows what the first one showed"
    );
}

#[tokio::test]
async fn mask_makes_room_when_the_provider_says_that_it_does_not_fit() {
    let refused = Script::new().fail(Error::new(ErrorKind::Overflow, "too long"));
    let scripts = turns(14).into_iter().take(14).chain([refused, done()]);
    let (model, agent) = agent(1_000_000, scripts);
    agent
        .effect(ObservationMask::default())
        .run("Go.")
        .await
        .expect("the run finishes");
    let requests = shown(&model);
    assert_eq!(
        (masked(&requests[14]), masked(&requests[15])),
        (0, 3),
        "far below its threshold, as nothing else helps"
    );
}

#[tokio::test]
async fn mask_does_nothing_when_it_may_not() {
    for (window, mask) in [
        (0, ObservationMask::default()),
        (
            12_000,
            ObservationMask {
                threshold: 0.0,
                ..ObservationMask::default()
            },
        ),
    ] {
        let (model, agent) = agent(window, turns(40));
        agent
            .effect(mask)
            .run("Go.")
            .await
            .expect("the run finishes");
        assert_eq!(breaks(&model), Vec::<usize>::new());
    }
}

#[test]
fn mask_reads_its_parameters_when_it_is_configured() {
    let read = |params| serde_json::from_value::<ObservationMask>(params);
    assert_eq!(
        read(json!({})).expect("all have defaults"),
        ObservationMask::default()
    );
    let set =
        read(json!({ "threshold": 0.5, "recent": 3, "min_gain": 0.0 })).expect("these are known");
    assert_eq!(
        set,
        ObservationMask {
            threshold: 0.5,
            recent: 3,
            min_gain: 0.0
        }
    );
    assert!(
        read(json!({ "treshold": 0.5 })).is_err(),
        "a name that is not known is an error"
    );
    assert_eq!(
        from_spec("observation_mask", json!(null))
            .expect("the kind is known")
            .kind(),
        "observation_mask"
    );
}
