//! What stands around the turns of an agent: habits, middleware, and what becomes of a full window.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use adjutant_agent::middleware_fn;
use adjutant_llm::{ModelInfo, Script, ScriptedModel};
use adjutant_runtime::ErrorKind;
use serde_json::{Value, json};

use super::stage::{MODEL, Stage, lead, one, preview, run, seen, still};

fn said(text: &str) -> Script {
    Script::new().text(text)
}

#[tokio::test]
async fn habits_are_told_when_the_agent_says_so() {
    for (behavior, expect) in [(json!(true), true), (json!(false), false)] {
        let stage = Stage::new([]);
        let engine = stage
            .engine(one(
                json!({ "instructions": "Be brief.", "behavior": behavior }),
            ))
            .await;
        let system = preview(&engine).await.system;
        assert_eq!(
            system.contains("<behavioral_constraints>\n- When a path was not found"),
            expect,
            "{system}"
        );
    }
}

#[tokio::test]
async fn middleware_surrounds_runs_by_its_name() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let audit = middleware_fn("audit", move |cx, next| {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(next.run(cx))
    });
    let stage = Stage::new([said("Yes.")]);
    let manifest = || one(json!({ "middleware": ["logger", "recovery", "audit"] }));
    let engine = stage
        .builder(manifest())
        .middleware("audit", audit)
        .build()
        .await
        .expect("all are there");
    run(&engine).await;
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let error = stage.wrong(manifest()).await;
    let expect = "the agent solo names a middleware that there is not: audit; hint: there are logger, recovery";
    assert_eq!((error.kind(), error.message()), (ErrorKind::Config, expect));
}

#[tokio::test]
async fn old_turns_are_summarised_as_the_agent_says() {
    const NOTE: &str = "Left out to make room";
    let early = json!({ "threshold": 0.3, "keep_recent_tokens": 1_000, "strategy": "truncate" });
    // (what the manifest says, the tokens of the two prompts, the requests, what the last one shows, and what not)
    let table: [(Value, [usize; 2], usize, &str, &str); 5] = [
        (json!({}), [10_000, 4_000], 3, "Notes.", NOTE),
        (
            json!({ "compaction": false }),
            [10_000, 4_000],
            2,
            NOTE,
            "Notes.",
        ),
        (json!({}), [6_000, 1_000], 2, "word", NOTE),
        (
            json!({ "compaction": early }),
            [6_000, 1_000],
            2,
            NOTE,
            "Notes.",
        ),
        (json!({ "floor": false }), [10_000, 4_000], 2, "word", NOTE),
    ];
    for (fields, [first, second], requests, shown, hidden) in table {
        let stage = Stage::new([]);
        let info = ModelInfo {
            context_window: 20_000,
            ..ModelInfo::new(MODEL)
        };
        let summarises = requests == 3;
        let scripts = [
            said("One."),
            said(if summarises { "Notes." } else { "Two." }),
            said("Two."),
        ];
        let model = Arc::new(ScriptedModel::new(scripts).info(info));
        let engine = stage
            .builder(still(one(fields.clone())))
            .model(MODEL, Arc::clone(&model))
            .build()
            .await;
        let engine = engine.expect("the manifest is right");
        for tokens in [first, second] {
            lead(&engine)
                .run("word".repeat(tokens))
                .await
                .expect("the run finishes");
        }
        let last = seen(&model);
        assert_eq!(
            (
                model.requests().len(),
                last.contains(shown),
                last.contains(hidden)
            ),
            (requests, true, false),
            "{fields}"
        );
    }
    let error = Stage::new([])
        .wrong(one(json!({ "compaction": { "treshold": 1 } })))
        .await;
    assert!(
        error
            .message()
            .contains("the agent solo cannot have the effect compact"),
        "{error}"
    );
}
