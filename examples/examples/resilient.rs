//! A model with retries, a fallback and rate limits, around scripted models.

use std::{sync::Arc, time::Duration};

use adjutant::{
    Agent, EventKind,
    llm::{
        Error, ErrorKind, Fallback, Limiter, ModelInfo, PerMinute, RateLimit, Retry, RetryPolicy,
        Script, ScriptedModel, Timeout, TimeoutLimits, Usage,
    },
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let overloaded = Error::new(ErrorKind::Overloaded, "the provider is overloaded");
    let down = || {
        Script::new()
            .usage(Usage::default())
            .fail(overloaded.clone())
    };
    let first =
        ScriptedModel::new([down(), down()]).info(ModelInfo::new("anthropic/claude-sonnet-5"));
    let second = ScriptedModel::new([
        // It breaks off after some output, which is then withdrawn.
        Script::new()
            .text("I was about")
            .fail(Error::new(ErrorKind::Network, "the connection broke")),
        Script::new().text("Here I am."),
    ]);
    let (first, second) = (
        Arc::new(first),
        Arc::new(second.info(ModelInfo::new("openai/gpt-5.4"))),
    );

    // Inner decorators run for each attempt. One limiter belongs to one account, however many models share it.
    let limiter = Limiter::new(PerMinute {
        requests: Some(50),
        input_tokens: Some(30_000),
        output_tokens: Some(8_000),
        ..PerMinute::default()
    });
    let policy = RetryPolicy {
        max_retries: 1,
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let one = Timeout::new(
        Arc::clone(&first),
        TimeoutLimits {
            first_chunk: Some(Duration::from_secs(60)),
            idle: Some(Duration::from_secs(60)),
            ..TimeoutLimits::default()
        },
    );
    let one = Retry {
        policy: policy.clone(),
        ..Retry::new(RateLimit::new(one, limiter))
    };
    let other = Retry {
        policy,
        retract: true,
        ..Retry::new(Arc::clone(&second))
    };
    let model = Timeout::new(
        Fallback::new(one).or(other),
        TimeoutLimits {
            total: Some(Duration::from_secs(300)),
            ..TimeoutLimits::default()
        },
    );

    let mut running = Agent::new(model).run("Anybody there?").stream()?;
    while let Some(event) = running.next().await {
        match event.kind {
            EventKind::Warning { warning } => println!("warning: {warning}"),
            EventKind::ReplyRetracted { attempt, cause, .. } => {
                println!("attempt {attempt} is taken back: {cause}")
            }
            EventKind::ReplyFinished { reply, .. } => println!("{}: {}", reply.model, reply.text()),
            _ => {}
        }
    }
    println!(
        "requests: {} and {}",
        first.requests().len(),
        second.requests().len()
    );
    Ok(())
}
