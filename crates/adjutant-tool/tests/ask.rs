//! Asks and answers: what is stored, what fits, and what a body and a toolset make of them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use adjutant_tool::{
    Answer, Approval, Ask, AskKind, Bound, CallBackend, CallContext, Cancel, ErasedTool, Identity,
    Noted, Progress, ToolError, ToolErrorKind, ToolHints, ToolSpec, external_tool,
    llm::{CallResult, Usage},
    tool_fn,
};
use async_trait::async_trait;
use serde_json::{Value, json};

const KINDS: [AskKind; 5] = [
    AskKind::Approval,
    AskKind::Question,
    AskKind::External,
    AskKind::Limit,
    AskKind::Authorisation,
];

/// Stores a value, reads it back, and reads it back with a field of a later version.
#[track_caller]
fn check<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(
    value: T,
    shape: Value,
) {
    assert_eq!(
        serde_json::to_value(&value).expect("it can be stored"),
        shape
    );
    assert_eq!(
        serde_json::from_value::<T>(shape.clone()).expect("it reads back"),
        value
    );
    let mut later = shape;
    later["field_of_a_later_version"] = json!(1);
    assert_eq!(
        serde_json::from_value::<T>(later).expect("a new field is tolerated"),
        value
    );
}

#[test]
fn ask_reads_back_when_it_is_stored() {
    check(
        Ask::approval("go?"),
        json!({"kind": "approval", "prompt": "go?"}),
    );
    let full = Ask {
        schema: json!({"type": "integer"}),
        data: json!({"of": "eggs"}),
        ..Ask::question("how many?")
    }
    .within(Duration::from_secs(60));
    let shape = json!({
        "kind": "question", "prompt": "how many?", "schema": {"type": "integer"}, "data": {"of": "eggs"},
        "within_ms": 60_000
    });
    check(full, shape);
    let names = KINDS.map(|kind| serde_json::to_value(kind).expect("it can be stored"));
    assert_eq!(
        names,
        ["approval", "question", "external", "limit", "authorisation"].map(Value::from)
    );
    assert_eq!(
        Ask::new(AskKind::Limit, "").within(Duration::MAX).within_ms,
        Some(u64::MAX)
    );
}

#[test]
fn answer_reads_back_when_it_is_stored() {
    check(Answer::approve(), json!({"answer": "approve"}));
    check(
        Answer::approve_with("{}"),
        json!({"answer": "approve", "args": "{}"}),
    );
    check(
        Answer::Approve {
            args: None,
            for_run: true,
        },
        json!({"answer": "approve", "for_run": true}),
    );
    check(
        Answer::deny("no"),
        json!({"answer": "deny", "reason": "no"}),
    );
    check(Answer::give(0.1), json!({"answer": "give", "value": 0.1}));
    check(
        Answer::give(u64::MAX),
        json!({"answer": "give", "value": u64::MAX}),
    );
    check(
        Answer::give(Value::Null),
        json!({"answer": "give", "value": null}),
    );
    let result = json!({"status": "ok", "content": [{"type": "text", "text": "done"}]});
    check(
        Answer::Return {
            result: CallResult::ok("done").into(),
        },
        json!({"answer": "return", "result": result}),
    );
    check(
        Answer::Extend {
            by: 3,
            message: None,
        },
        json!({"answer": "extend", "by": 3}),
    );
    let told = Answer::Extend {
        by: 3,
        message: Some("hurry".into()),
    };
    check(
        told,
        json!({"answer": "extend", "by": 3, "message": "hurry"}),
    );
    check(
        Answer::Decline { message: None },
        json!({"answer": "decline"}),
    );
    check(Answer::Expired, json!({"answer": "expired"}));
}

#[test]
fn answer_fits_when_its_kind_is_asked_for() {
    use AskKind::{Approval, Authorisation, External, Limit, Question};
    let fitting = |answer: Answer| {
        KINDS
            .into_iter()
            .filter(move |kind| answer.fits(&Ask::new(*kind, "?")).is_ok())
    };
    let table: [(Answer, &[AskKind]); 10] = [
        (Answer::approve(), &[Approval, Authorisation]),
        (
            Answer::Approve {
                args: None,
                for_run: true,
            },
            &[Approval, Authorisation],
        ),
        (Answer::approve_with("{}"), &[Approval]),
        (Answer::deny(""), &[Approval, Authorisation]),
        (Answer::give(1), &[Question, Authorisation]),
        (
            Answer::Return {
                result: CallResult::ok("").into(),
            },
            &[External],
        ),
        (
            Answer::Extend {
                by: 1,
                message: None,
            },
            &[Limit],
        ),
        (
            Answer::Extend {
                by: 0,
                message: None,
            },
            &[],
        ),
        (
            Answer::Decline { message: None },
            &[Question, External, Limit, Authorisation],
        ),
        (Answer::Expired, &KINDS),
    ];
    for (answer, kinds) in table {
        assert_eq!(
            fitting(answer.clone()).collect::<Vec<_>>(),
            kinds,
            "{answer:?}"
        );
    }
    let error = Answer::Extend {
        by: 1,
        message: None,
    }
    .fits(&Ask::approval("?"))
    .expect_err("an extension is no approval");
    let expect = (
        ToolErrorKind::InvalidArguments,
        "an extension does not answer a wish for approval",
    );
    assert_eq!((error.kind, &*error.message), expect);
}

#[test]
fn answer_names_every_place_when_its_value_does_not_fit() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["m"]});
    let ask = Ask {
        schema,
        ..Ask::question("?")
    };
    Answer::give(json!({"n": 1, "m": 0}))
        .fits(&ask)
        .expect("this one fits");
    let error = Answer::give(json!({"n": "x"}))
        .fits(&ask)
        .expect_err("this one does not");
    assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    let message = "the value does not fit:\n  - (root): missing properties 'm'\n  - /n: want integer, but got string\n";
    assert_eq!(&*error.message, message);
}

#[test]
fn answer_is_refused_when_the_schema_is_broken() {
    let ask = Ask {
        schema: json!({"type": "nonsense"}),
        ..Ask::question("?")
    };
    let error = Answer::give(1).fits(&ask).expect_err("nothing can fit");
    assert_eq!(
        &*error.message,
        "no value can be given, the schema of what was asked is broken"
    );
    Answer::Decline { message: None }
        .fits(&ask)
        .expect("it can still be declined");
}

/// A run in which everything is answered the same.
struct Answering(Answer, Mutex<Vec<(String, Ask)>>);

#[async_trait]
impl CallBackend for Answering {
    fn emit(&self, _: Progress) {}

    fn charge(&self, _: Usage) {}

    async fn begin(&self, _: &str) -> Result<Noted, ToolError> {
        Ok(Noted::Fresh)
    }

    async fn finish(&self, _: &str, _: Value) -> Result<(), ToolError> {
        Ok(())
    }

    async fn pause(&self, key: &str, ask: Ask) -> Result<Answer, ToolError> {
        self.1
            .lock()
            .expect("nobody panicked")
            .push((key.to_owned(), ask));
        Ok(self.0.clone())
    }
}

fn answering(answer: Answer) -> (CallContext, Arc<Answering>) {
    let port = Arc::new(Answering(answer, Mutex::default()));
    let who = Arc::new(Identity::root("t".into(), "id", "agent"));
    (
        CallContext::new(
            who,
            Cancel::new(),
            Arc::clone(&port) as Arc<dyn CallBackend>,
        ),
        port,
    )
}

#[tokio::test]
async fn context_gives_a_value_when_it_asks() {
    let outcome = async |answer| {
        let (cx, _) = answering(answer);
        cx.ask("k", "how many?")
            .await
            .map_err(|error| (error.kind, error.message.to_string()))
    };
    assert_eq!(outcome(Answer::give(json!([1]))).await, Ok(json!([1])));
    let denied = |words: &str| Err((ToolErrorKind::Denied, words.to_owned()));
    assert_eq!(
        outcome(Answer::Decline { message: None }).await,
        denied("no answer was given")
    );
    assert_eq!(
        outcome(Answer::Decline {
            message: Some("guess".into())
        })
        .await,
        denied("guess")
    );
    let late = "nobody answered in time".to_owned();
    assert_eq!(
        outcome(Answer::Expired).await,
        Err((ToolErrorKind::TimedOut, late))
    );
    let other = "an approval does not answer what was asked for \"k\"".to_owned();
    assert_eq!(
        outcome(Answer::approve()).await,
        Err((ToolErrorKind::Diverged, other))
    );
    let (cx, port) = answering(Answer::give(1));
    cx.ask("k", "how many?").await.expect("it is answered");
    assert_eq!(
        *port.1.lock().expect("nobody panicked"),
        [("k".to_owned(), Ask::question("how many?"))]
    );
}

#[tokio::test]
async fn context_goes_on_only_when_it_is_approved() {
    let outcome = async |answer| {
        let (cx, _) = answering(answer);
        cx.confirm("k", "go?")
            .await
            .map_err(|error| (error.kind, error.message.to_string()))
    };
    let denied = |words: &str| Err((ToolErrorKind::Denied, words.to_owned()));
    assert_eq!(outcome(Answer::approve()).await, Ok(()));
    assert_eq!(
        outcome(Answer::Approve {
            args: None,
            for_run: true
        })
        .await,
        Ok(())
    );
    assert_eq!(
        outcome(Answer::deny("not today")).await,
        denied("not today")
    );
    assert_eq!(
        outcome(Answer::deny(" ")).await,
        denied("it was denied, without a reason")
    );
    assert_eq!(
        outcome(Answer::Expired).await,
        denied("nobody approved it in time")
    );
    let edited = denied("it was approved with other arguments, which cannot be taken here");
    assert_eq!(outcome(Answer::approve_with("{}")).await, edited);
    let other = "a value does not answer what was asked for \"k\"".to_owned();
    assert_eq!(
        outcome(Answer::give(true)).await,
        Err((ToolErrorKind::Diverged, other))
    );
    let (cx, port) = answering(Answer::approve());
    cx.confirm("k", "go?").await.expect("it is approved");
    assert_eq!(
        *port.1.lock().expect("nobody panicked"),
        [("k".to_owned(), Ask::approval("go?"))]
    );
}

#[tokio::test]
async fn context_fails_when_nobody_can_be_asked() {
    let error = CallContext::detached()
        .confirm("k", "go?")
        .await
        .expect_err("nobody is there");
    let expect = (
        ToolErrorKind::Unattended,
        "nobody can be asked here, for \"k\": go?",
    );
    assert_eq!((error.kind, &*error.message), expect);
}

struct Careful;

#[async_trait]
impl ErasedTool for Careful {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            approval: Approval::Always,
            ..ToolSpec::new("careful", "A test.", json!({"type": "object"}))
        }
    }

    fn approval(&self, args: &Value) -> Option<Ask> {
        (args["path"] == "/").then(|| Ask::approval("really everything?"))
    }

    async fn call(&self, _: Value, _: CallContext) -> Result<CallResult, ToolError> {
        Ok(CallResult::ok("done"))
    }
}

#[test]
fn bound_asks_in_the_words_of_the_tool_when_it_has_some() {
    let bound = Bound::new(Careful);
    let plain = Ask::approval("Run \"careful\" with these arguments?");
    assert_eq!(
        bound.approval(&json!({"path": "/"})),
        Some(Ask::approval("really everything?"))
    );
    assert_eq!(bound.approval(&json!({"path": "/tmp"})), Some(plain));
    let hints = ToolHints {
        reads_only: Some(false),
        idempotent: Some(true),
        ..ToolHints::default()
    };
    let told = bound.adapt(ToolSpec {
        title: Some("Tidy up".into()),
        hints,
        ..bound.spec().clone()
    });
    let asked = "Run \"careful\" (titled \"Tidy up\"; by its author's word it changes something, can be repeated) with these \
                 arguments?";
    assert_eq!(
        told.approval(&json!({"path": "/tmp"})),
        Some(Ask::approval(asked))
    );
    let mut spec = bound.spec().clone();
    spec.approval = Approval::Never;
    assert_eq!(bound.adapt(spec).approval(&json!({"path": "/tmp"})), None);
}

#[test]
fn bound_shares_its_schema_when_it_is_adapted() {
    let bound = Bound::new(Careful);
    let copy = bound
        .adapt(ToolSpec {
            title: Some("Careful".into()),
            ..bound.spec().clone()
        })
        .asking(|_, _| None);
    assert!(std::ptr::eq(
        bound.schema().expect("a schema"),
        copy.schema().expect("a schema")
    ));
    assert_eq!(
        (bound.spec().title.as_deref(), copy.spec().title.as_deref()),
        (None, Some("Careful"))
    );
    let mut spec = bound.spec().clone();
    spec.decl.schema = json!({"type": "object", "required": ["path"]}).into();
    let strict = bound.adapt(spec);
    assert_eq!(
        (bound.admit("{}").is_ok(), strict.admit("{}").is_ok()),
        (true, false)
    );
}

#[test]
fn bound_asks_innermost_first_when_it_is_wrapped_twice() {
    let plain = tool_fn(ToolSpec::new("plain", "A test.", json!({})), |_, _| async {
        Ok(CallResult::ok(""))
    });
    let inner =
        Bound::new(plain).asking(|_, args| (args["n"] == 1).then(|| Ask::approval("inner")));
    let mut spec = inner.spec().clone();
    spec.decl.name = "renamed".into();
    let outer = inner.adapt(spec).asking(|spec, args| {
        (args["n"] != 3).then(|| Ask::approval(format!("outer {}", spec.name())))
    });
    let asked = [1, 2, 3].map(|n| {
        outer
            .approval(&json!({"n": n}))
            .map(|ask| ask.prompt.to_string())
    });
    assert_eq!(
        asked,
        [
            Some("inner".to_owned()),
            Some("outer renamed".to_owned()),
            None
        ]
    );
}

#[tokio::test]
async fn external_tool_fails_when_its_body_is_called() {
    let bound = Bound::new(external_tool(ToolSpec::new("far", "A test.", json!({}))));
    assert!(bound.spec().external);
    let error = bound
        .call(json!({}), CallContext::detached())
        .await
        .expect_err("it has no body");
    let expect = (
        ToolErrorKind::Failed,
        "tool \"far\" has no body here: its result is given from outside",
    );
    assert_eq!((error.kind, &*error.message), expect);
}
