//! The ready ones: time, panics, the log of the program, and checks.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_agent::{
    CancelBy, DriveContext, EventKind, Failure, InputGuardrail, Logger, NextDrive, Outcome,
    OutputGuardrail, Recovery, Timeout, middleware_fn,
};
use adjutant_llm::{CallResult, Entry, Error, ErrorKind, Reply, Script};
use serde_json::json;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::{BoxDrive, Lines, all, only_end, stage, tell, told, told_by};

#[tokio::test(start_paused = true)]
async fn timeout_ends_the_drive_when_it_takes_too_long() {
    let (_, agent) = stage::agent([
        Script::new().call("hangs", json!({})),
        Script::new().text("Next."),
    ]);
    let agent = agent.tool(stage::tool("hangs", |_, _| {
        std::future::pending::<Result<CallResult, _>>()
    }));
    let limited = agent.clone().middleware(Timeout(Duration::from_secs(5)));
    let end = only_end(&all(&limited, "Go.").await);
    assert_eq!(
        end.outcome,
        Outcome::Cancelled {
            by: CancelBy::Deadline
        }
    );
    let statuses: Vec<_> = end.calls.iter().map(|call| call.result.status).collect();
    assert_eq!(statuses, [adjutant_llm::Status::Cancelled]);
    assert_eq!(
        agent
            .run("Again.")
            .await
            .expect("the session is usable")
            .text(),
        "Next."
    );
}

#[tokio::test(start_paused = true)]
async fn timeout_lets_the_result_pass_when_there_is_time() {
    let (_, agent) = stage::agent([Script::new().text("Quick.")]);
    let result = agent
        .middleware(Timeout(Duration::from_secs(5)))
        .run("Go.")
        .await;
    assert_eq!(result.expect("the run finishes").text(), "Quick.");
}

#[tokio::test]
async fn recovery_makes_a_failure_when_something_panics() {
    let (_, agent) = stage::agent([Script::new().text("One."), Script::new().text("Two.")]);
    for after in [false, true] {
        let lines = Lines::default();
        let bursts = middleware_fn(
            "bursts",
            move |cx: DriveContext, next: NextDrive<'_>| -> BoxDrive<'_> {
                Box::pin(async move {
                    if after {
                        let _ = next.run(cx).await;
                    }
                    panic!("it burst")
                })
            },
        );
        let saved = agent
            .clone()
            .middleware(told_by("outer", &lines))
            .middleware(Recovery)
            .middleware(bursts);
        let end = only_end(&all(&saved, "Go.").await);
        let message = "what surrounds the run panicked: it burst";
        assert_eq!(
            end.outcome,
            Outcome::Failed {
                failure: Failure::Middleware {
                    message: message.into()
                }
            }
        );
        assert_eq!(told(&lines), ["outer in", "outer out"]);
    }
    assert_eq!(
        agent
            .run("Again.")
            .await
            .expect("the session is usable")
            .text(),
        "Two."
    );
}

#[tokio::test]
async fn panic_of_a_middleware_fails_the_run_when_nothing_recovers_it() {
    let (_, agent) = stage::agent([Script::new().text("One.")]);
    let bursts = middleware_fn(
        "bursts",
        |_: DriveContext, _: NextDrive<'_>| -> BoxDrive<'_> { panic!("it burst") },
    );
    let end = only_end(&all(&agent.clone().middleware(bursts), "Go.").await);
    let message = "what surrounds the run panicked: it burst";
    assert_eq!(
        end.outcome,
        Outcome::Failed {
            failure: Failure::Middleware {
                message: message.into()
            }
        }
    );
    assert_eq!(
        agent
            .run("Again.")
            .await
            .expect("the session is usable")
            .text(),
        "One."
    );
}

/// A subscriber that keeps each event of this crate as a line.
struct Told(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if !["session", "duration_ms"].contains(&field.name()) {
            self.0.push_str(&format!(" {}={value:?}", field.name()));
        }
    }
}

impl Subscriber for Told {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        about.is_event() && about.target().starts_with("adjutant_agent::middleware")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.0.lock().expect("no panic").push(fields.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(Level::INFO.into())
    }
}

#[tokio::test]
async fn logger_tells_start_and_end_when_somebody_listens() {
    let lines = Lines::default();
    let listening = tracing::subscriber::set_default(Told(Arc::clone(&lines)));
    let failed = Error::new(ErrorKind::Auth, "the key is wrong");
    let (_, agent) = stage::agent([Script::new().text("Secret."), Script::new().fail(failed)]);
    let agent = agent.name("bot").middleware(Logger);
    agent.run("Tell me.").await.expect("the run finishes");
    agent.run("Again.").await.expect_err("the model fails");
    drop(listening);
    let expect = [
        "INFO message=drive started agent=\"bot\" prompts=1",
        "INFO message=drive ended agent=\"bot\" run=1 outcome=\"finished\" turns=1 tokens=0",
        "INFO message=drive started agent=\"bot\" prompts=1",
        "WARN message=drive failed agent=\"bot\" failure=\"model\"",
    ];
    let told = told(&lines);
    assert_eq!(told.len(), 4, "{told:?}");
    for (line, expect) in told.iter().zip(expect) {
        let words = |line: &str| {
            line.split(' ')
                .map(String::from)
                .collect::<std::collections::BTreeSet<_>>()
        };
        let tokens = |line: &String| !line.starts_with("tokens=");
        let (line, expect) = (words(line), words(expect));
        assert_eq!(
            line.iter().filter(|it| tokens(it)).collect::<Vec<_>>(),
            expect.iter().filter(|it| tokens(it)).collect::<Vec<_>>()
        );
    }
    assert!(
        told.iter()
            .all(|line| !line.contains("Secret") && !line.contains("Tell me")),
        "{told:?}"
    );
}

#[tokio::test]
async fn output_guardrail_refuses_the_answer_when_it_does_not_hold() {
    let lines = Lines::default();
    let seen = Arc::clone(&lines);
    let failed = Error::new(ErrorKind::Auth, "the key is wrong");
    let scripts = [
        Script::new().text("Good."),
        Script::new().text("Bad."),
        Script::new().text("Worse."),
        Script::new().fail(failed),
    ];
    let (_, agent) = stage::agent(scripts);
    let check = move |reply: Arc<Reply>| {
        let seen = Arc::clone(&seen);
        async move {
            tell(&seen, reply.text());
            match reply.text().as_str() {
                "Good." => Ok(()),
                "Bad." => Err("it is bad".into()),
                _ => panic!("no word for it"),
            }
        }
    };
    let agent = agent.middleware(OutputGuardrail::new("manners", check));
    assert_eq!(
        agent.run("Go.").await.expect("the run finishes").text(),
        "Good."
    );
    for reason in ["it is bad", "the check panicked: no word for it"] {
        let end = only_end(&all(&agent, "Go.").await);
        let failure = Failure::Guardrail {
            by: "manners".into(),
            reason: reason.into(),
        };
        assert_eq!(end.outcome, Outcome::Failed { failure });
    }
    let error = agent.run("Go.").await.expect_err("the model fails");
    assert!(error.model_error().is_some());
    assert_eq!(told(&lines), ["Good.", "Bad.", "Worse."]);
}

#[tokio::test]
async fn input_guardrail_refuses_the_prompt_when_it_does_not_hold() {
    let (model, agent) = stage::agent([Script::new().text("Good.")]);
    let check = |prompts: Arc<[Entry]>| async move {
        match &prompts[0] {
            Entry::User(message) if message.content[0].as_text() == Some("Bad.") => {
                Err("it is bad".into())
            }
            Entry::User(message) if message.content[0].as_text() == Some("Worse.") => {
                panic!("no word for it")
            }
            _ => Ok(()),
        }
    };
    let agent = agent.middleware(InputGuardrail::new("manners", check));
    for (prompt, reason) in [
        ("Bad.", "it is bad"),
        ("Worse.", "the check panicked: no word for it"),
    ] {
        let events = all(&agent, prompt).await;
        let failure = Failure::Guardrail {
            by: "manners".into(),
            reason: reason.into(),
        };
        assert_eq!(only_end(&events).outcome, Outcome::Failed { failure });
        assert!(
            !events
                .iter()
                .any(|event| matches!(event.kind, EventKind::EntryAdded { .. }))
        );
    }
    assert_eq!(
        (model.requests().len(), agent.log().transcript().len()),
        (0, 0)
    );
    assert_eq!(
        agent.run("Good?").await.expect("the run finishes").text(),
        "Good."
    );
    assert_eq!(model.requests()[0].entries.len(), 1);
}
