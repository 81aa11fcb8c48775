//! Tokens and money over every wire: what a server counts comes back in the same classes, each once, and costs the same.

use std::sync::Arc;

use adjutant::{
    Agent,
    llm::{Chunk, LongPrice, NanoUsd, Price, Request, Script, ScriptedModel, Usage, complete},
    providers::Timeouts,
    tool,
};
use adjutant_testing::{Fault, Loopback};
use adjutant_tests::{WIRES, Wire, listen};
use serde_json::json;

/// Adds two whole numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// 3 dollars for a million tokens of input, 15 of output, 0.30 from the cache, 3.75 into it.
fn price() -> Price {
    Price::dollars(3.0, 15.0, 0.3, 3.75)
}

/// Tokens of every class that a wire can tell, and what they cost by [`price`], in billionths of a dollar.
fn counted(wire: Wire) -> (Usage, u64) {
    let usage = Usage {
        input_uncached: 1_000,
        cache_read: 10_000,
        output: 500,
        ..Usage::default()
    };
    // 1,000 · 3,000 + 10,000 · 300 + 500 · 15,000.
    let cost = 13_500_000;
    match wire {
        // 2,000 · 3,750 more.
        Wire::Messages => (
            Usage {
                cache_write: 2_000,
                ..usage
            },
            cost + 7_500_000,
        ),
        Wire::Responses => (
            Usage {
                cache_write: 2_000,
                reasoning: 300,
                ..usage
            },
            cost + 7_500_000,
        ),
        // Reasoning is a part of the output, so it costs nothing more.
        Wire::Gemini | Wire::Chat => (
            Usage {
                reasoning: 300,
                ..usage
            },
            cost,
        ),
    }
}

async fn server(scripts: impl IntoIterator<Item = Script>, faults: &[Fault]) -> Loopback {
    let setup = Loopback::setup(Arc::new(ScriptedModel::new(scripts)));
    let setup = faults
        .iter()
        .fold(setup, |setup, fault| setup.fault_all(fault.clone()));
    setup.start().await.expect("the server starts")
}

#[tokio::test]
async fn usage_is_what_the_server_counted_when_it_comes_over_a_wire() {
    for wire in WIRES {
        let (usage, cost) = counted(wire);
        let classes = [
            Usage {
                cache_read: 0,
                ..usage
            },
            Usage {
                cache_write: 0,
                ..usage
            },
            Usage {
                reasoning: 0,
                ..usage
            },
            Usage {
                input_uncached: 0,
                ..usage
            },
            Usage {
                reasoning: usage.output.min(usage.reasoning * 10),
                ..usage
            },
            usage,
        ];
        for faults in [&[][..], &[Fault::DuplicateUsage], &[Fault::SplitEvery(7)]] {
            for usage in classes {
                let server = server([Script::new().text("Counted.").usage(usage)], faults).await;
                let heard = listen(&*wire.model(&server), Request::new().user("Count!")).await;
                assert_eq!(heard.reply().usage, usage, "{wire}, {faults:?}");
                let last = heard.chunks.iter().rev().find_map(|chunk| match chunk {
                    Chunk::Usage { usage, .. } => Some(*usage),
                    _ => None,
                });
                assert_eq!(
                    last,
                    Some(usage),
                    "{wire}, {faults:?}: the last that was told"
                );
            }
        }
        assert_eq!(price().cost(&usage), NanoUsd(cost), "{wire}");
    }
}

#[tokio::test]
async fn run_counts_each_request_once_when_it_has_several() {
    for wire in WIRES {
        let (usage, cost) = counted(wire);
        let call = || {
            Script::new()
                .call("add", json!({"a": 2, "b": 3}))
                .usage(usage)
        };
        let server = server(
            [call(), call(), Script::new().text("Five.").usage(usage)],
            &[],
        )
        .await;
        let model = wire.model_of(
            adjutant::llm::ModelInfo {
                price: Some(price()),
                ..wire.info()
            },
            &wire.base_url(&server),
            Timeouts::new(),
        );
        let result = Agent::new(model)
            .tool(add)
            .run("Add!")
            .await
            .expect("the run finishes");
        assert_eq!(
            (result.text().as_str(), result.turns),
            ("Five.", 3),
            "{wire}"
        );
        assert_eq!(result.usage, usage + usage + usage, "{wire}");
        assert_eq!(result.cost, Some(NanoUsd(3 * cost)), "{wire}");
    }
}

#[tokio::test]
async fn cost_is_that_of_a_long_call_when_cached_input_makes_it_long() {
    for wire in WIRES {
        // The input is long only with what came from the cache, and then all of it costs twice.
        let usage = Usage {
            input_uncached: 1_000,
            cache_read: 199_500,
            output: 100,
            ..Usage::default()
        };
        let server = server([Script::new().text("Long.").usage(usage)], &[]).await;
        let long = Some(LongPrice {
            above: 200_000,
            input_percent: 200,
            output_percent: 150,
        });
        let model = wire.model_of(
            adjutant::llm::ModelInfo {
                price: Some(Price { long, ..price() }),
                ..wire.info()
            },
            &wire.base_url(&server),
            Timeouts::new(),
        );
        let reply = complete(&model, Request::new().user("Read!"))
            .await
            .expect("it is answered");
        assert_eq!(reply.usage, usage, "{wire}");
        // (1,000 · 3,000 + 199,500 · 300) · 2 + 100 · 15,000 · 1.5.
        assert_eq!(
            model.info_of(&reply.model).cost(&reply.usage),
            Some(NanoUsd(127_950_000)),
            "{wire}"
        );
    }
}

#[tokio::test]
async fn hour_writes_cost_more_when_the_wire_tells_them_apart() {
    let told =
        include_bytes!("../../crates/adjutant-providers/tests/fixtures/anthropic/cache_1h.sse");
    let server = Loopback::from_bodies([(&told[..]).into()])
        .start()
        .await
        .expect("the server starts");
    let reply = complete(
        &Wire::Messages.model(&server),
        Request::new().user("Write!"),
    )
    .await
    .expect("it is answered");
    let usage = reply.usage;
    assert!(
        usage.cache_write_1h > 0 && usage.cache_write >= usage.cache_write_1h,
        "{usage:?}"
    );
    let more = Price {
        cache_write_1h: NanoUsd(6_000_000_000),
        ..price()
    }
    .cost(&usage)
    .0 - price().cost(&usage).0;
    assert_eq!(more, usage.cache_write_1h * (6_000 - 3_750));
}
