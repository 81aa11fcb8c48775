//! The conformance suite against models that are broken in a known way: it must say so.

use std::{collections::HashSet, sync::Arc};

use adjutant_llm::{
    Chunk, ChunkStream, Error, ErrorKind, FinishReason, Model, ModelInfo, Reply, Script,
    ScriptedModel, model_fn,
};
use adjutant_testing::{
    Loopback,
    conformance::{self, HAZARDS, Hazard, Limits, Matrix, Subject},
};

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(test)
}

/// A subject whose models are made without a look at the server.
fn deaf<M: Model + 'static>(name: &str, make: impl Fn() -> M + Send + Sync) -> impl Subject {
    conformance::subject_fn(name, move |_: &Loopback, _: Limits| -> Arc<dyn Model> {
        Arc::new(make())
    })
}

/// Chunks as they are.
struct Chunks(std::vec::IntoIter<Result<Chunk, Error>>);

impl futures_core::Stream for Chunks {
    type Item = Result<Chunk, Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.next())
    }
}

fn chunks(chunks: Vec<Result<Chunk, Error>>) -> ChunkStream {
    Box::pin(Chunks(chunks.into_iter()))
}

fn start() -> Result<Chunk, Error> {
    Ok(Chunk::Start {
        attempt: 0,
        model: "x/y".into(),
        limits: Box::default(),
        warnings: Vec::new(),
    })
}

fn done() -> Result<Chunk, Error> {
    Ok(Chunk::Done(Arc::new(Reply::new(
        "x/y".into(),
        FinishReason::End,
    ))))
}

#[track_caller]
fn check(hazard: &str, subject: &dyn Subject, expect: &str) {
    let hazard = Hazard::find(hazard).expect("the hazard is in the list");
    assert_eq!(
        run(hazard.play(subject)).expect_err("the model is broken"),
        expect
    );
}

#[test]
fn hazards_have_names_of_their_own() {
    let names: HashSet<_> = HAZARDS.iter().map(|hazard| hazard.name).collect();
    assert_eq!(names.len(), HAZARDS.len());
    assert!(names.len() >= 50);
}

#[test]
fn run_fails_every_hazard_when_the_model_never_asks() {
    let subject = deaf("never", || ScriptedModel::new([]));
    let matrix = Matrix::new([run(conformance::run(&subject))]);
    assert!(matrix.missing().is_empty());
    let failed: Vec<_> = matrix
        .failures()
        .iter()
        .map(|(hazard, _, _)| *hazard)
        .collect();
    assert_eq!(
        failed,
        HAZARDS.iter().map(|hazard| hazard.name).collect::<Vec<_>>()
    );
}

#[test]
fn run_fails_every_hazard_when_the_model_speaks_without_asking() {
    let subject = deaf("alone", || {
        let says = |text: &str| Script::new().text(text);
        ScriptedModel::new([says("Done."), says("Done."), says("Done.")])
    });
    let report = run(conformance::run(&subject));
    let borne: Vec<_> = report
        .rows
        .iter()
        .filter(|row| row.result.is_ok())
        .map(|row| row.hazard)
        .collect();
    assert_eq!(borne, [""; 0]);
}

#[test]
fn play_tells_when_the_grammar_is_broken() {
    let of = |items: fn() -> Vec<Result<Chunk, Error>>| {
        deaf("broken", move || {
            model_fn(ModelInfo::new("x/y"), move |_| chunks(items()))
        })
    };
    let grammar = "the stream of the model broke its grammar: ";
    check(
        "text",
        &of(|| vec![done()]),
        &format!("{grammar}a chunk before the start"),
    );
    check(
        "text",
        &of(|| vec![start(), done(), done()]),
        "something followed the end of the stream",
    );
    check(
        "text",
        &of(|| vec![start()]),
        "expected a reply, got Protocol: the stream ended without a terminal",
    );
    let error = || vec![start(), Err(Error::new(ErrorKind::Timeout, "too late"))];
    check(
        "text",
        &of(error),
        "expected a reply, got Timeout: too late",
    );
}

#[test]
fn play_tells_when_the_model_panics() {
    let subject = deaf("panics", || {
        model_fn(ModelInfo::new("x/y"), |_| panic!("no such wire"))
    });
    check("text", &subject, "the model panicked: no such wire");
}

#[test]
fn matrix_shows_what_is_missing_and_what_failed() {
    let subject = deaf("first", || ScriptedModel::new([]));
    let mut first = run(conformance::run(&subject));
    first.rows.truncate(2);
    first.rows[0].result = Ok(());
    first.rows[1].result = Err("it spoke".into());
    assert_eq!(
        first.failures().collect::<Vec<_>>(),
        [("empty", "it spoke")]
    );
    let matrix = Matrix::new([first]);
    let shown = matrix.to_string();
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let row = |name: &str, cell: &str| format!("{name:23} | {cell}");
    assert_eq!(
        lines[..3],
        [
            row("hazard", "first"),
            row("text", "ok"),
            row("empty", "FAILED")
        ]
    );
    assert_eq!(lines[3], row("split_utf8", "MISSING"));
    assert_eq!(lines.last(), Some(&"first, empty: it spoke"));
    assert_eq!(matrix.missing().len(), HAZARDS.len() - 2);
    assert_eq!(matrix.failures(), [("empty", "first", "it spoke")]);
}
