//! Fallback from wire to wire: who is asked after whom, what is told about it, and how the conversation goes on.

use adjutant::{
    Model,
    llm::{
        CallResult, Chunk, Error, ErrorKind, Fallback, ModelInfo, Script, ScriptedModel,
        WarningKind,
    },
    providers::Timeouts,
};
use adjutant_testing::{Fault, Loopback};
use adjutant_tests::{Heard, WIRES, Wire, answered, listen};
use futures_util::future::join_all;

use super::{MIDDLE, hello, over, pairs, says_all, says_parts, server};

/// The models that were given up, as the last start tells.
fn given_up(heard: &Heard) -> Vec<String> {
    let fell = heard
        .warnings
        .iter()
        .filter(|it| it.kind == WarningKind::FellBack);
    fell.filter_map(|it| it.message.split_once(" failed: "))
        .map(|(model, _)| model.to_owned())
        .collect()
}

#[tokio::test]
async fn fallback_asks_the_next_wire_when_one_fails() {
    let faults = [
        Fault::overload_error(),
        Fault::rate_limited(7),
        Fault::auth_error(),
        Fault::not_found(),
    ];
    let faults = faults
        .into_iter()
        .chain([Fault::Hangup, Fault::Html, Fault::CutAt(0)]);
    for (fault, (first, second)) in
        faults.flat_map(|fault| pairs().map(move |pair| (fault.clone(), pair)))
    {
        let what = format!("{first} → {second}, {fault:?}");
        let (broken, whole) = (server([(0, fault)]).await, server([]).await);
        let model = Fallback::new(over(first, &broken)).or(over(second, &whole));
        let heard = listen(&model, hello()).await;
        says_all(&heard, &what);
        assert_eq!(given_up(&heard), [first.id()], "{what}");
        let reply = heard.reply();
        assert_eq!(
            (reply.model.as_str(), heard.retracted),
            (second.id(), 0),
            "{what}"
        );
        assert_eq!(model.info_of(&reply.model).id, reply.model, "{what}");
        // The first one is itself again, and takes what the second one said.
        let request = answered(hello(), reply, |_| CallResult::ok("")).user("And now?");
        let heard = listen(&model, request).await;
        says_all(&heard, &what);
        assert_eq!(
            (heard.reply().model.as_str(), given_up(&heard).len()),
            (first.id(), 0),
            "{what}"
        );
        assert_eq!(
            (broken.request_count(), whole.request_count()),
            (2, 1),
            "{what}"
        );
    }
}

#[tokio::test]
async fn fallback_goes_down_the_chain_when_several_fail() {
    for at in 0..WIRES.len() {
        let [a, b, c] = [0, 1, 2].map(|step| WIRES[(at + step) % WIRES.len()]);
        let servers = [
            server([(0, Fault::overload_error())]).await,
            server([(0, Fault::Hangup)]).await,
            server([]).await,
        ];
        let model = Fallback::new(over(a, &servers[0]))
            .or(over(b, &servers[1]))
            .or(over(c, &servers[2]));
        let heard = listen(&model, hello()).await;
        says_all(&heard, "the last of the chain");
        assert_eq!(
            (given_up(&heard), heard.reply().model.as_str()),
            (vec![a.id().into(), b.id().into()], c.id())
        );
    }
}

#[tokio::test]
async fn fallback_gives_the_last_error_when_all_fail() {
    let cell = async |(first, second): (Wire, Wire)| {
        let broken = [
            server([(0, Fault::overload_error())]).await,
            server([(0, Fault::auth_error())]).await,
        ];
        let model = Fallback::new(over(first, &broken[0])).or(over(second, &broken[1]));
        let heard = listen(&model, hello()).await;
        assert_eq!(
            (heard.error().kind(), heard.attempts.len()),
            (ErrorKind::Auth, 0),
            "{first} → {second}"
        );
    };
    join_all(pairs().map(cell)).await;
}

#[tokio::test]
async fn fallback_shows_no_delta_twice_when_an_answer_breaks_midway() {
    let cell = async |(first, second): (Wire, Wire)| {
        let what = format!("{first} → {second}");
        let cut = || server([(0, Fault::CutAt(MIDDLE))]);
        let (broken, whole) = (cut().await, server([]).await);
        let heard = listen(
            &Fallback::new(over(first, &broken)).or(over(second, &whole)),
            hello(),
        )
        .await;
        says_parts(&heard, &what);
        assert_eq!(
            (heard.error().kind(), heard.retracted),
            (ErrorKind::Network, 0),
            "{what}"
        );
        assert_eq!(whole.request_count(), 0, "{what}");

        let (broken, whole) = (cut().await, server([]).await);
        let heard = listen(
            &Fallback {
                retract: true,
                ..Fallback::new(over(first, &broken)).or(over(second, &whole))
            },
            hello(),
        )
        .await;
        says_all(&heard, &what);
        assert_eq!((heard.attempts.len(), heard.retracted), (2, 1), "{what}");
        assert!(!heard.attempts[0].is_empty(), "{what}");
        let models: Vec<&str> = heard.chunks.iter().filter_map(started).collect();
        assert_eq!(models, [first.id(), second.id()], "{what}");
    };
    join_all(pairs().map(cell)).await;
}

fn started(chunk: &Chunk) -> Option<&str> {
    if let Chunk::Start { model, .. } = chunk {
        Some(model.as_str())
    } else {
        None
    }
}

#[tokio::test]
async fn fallback_asks_only_a_larger_model_when_the_input_is_too_long() {
    for (first, second) in pairs() {
        for (window, expect) in [
            (256_000, Ok(second.id())),
            (128_000, Err(ErrorKind::Overflow)),
        ] {
            let full = Script::new().fail(Error::new(ErrorKind::Overflow, "the input is too long"));
            let small = Loopback::start(ScriptedModel::new([full]))
                .await
                .expect("the server starts");
            let large = server([]).await;
            let info: ModelInfo = ModelInfo {
                context_window: window,
                ..second.info()
            };
            let next = second.model_of(info, &second.base_url(&large), Timeouts::new());
            let heard = listen(&Fallback::new(over(first, &small)).or(next), hello()).await;
            let real = heard
                .end
                .as_ref()
                .map(|reply| reply.model.as_str())
                .map_err(Error::kind);
            assert_eq!(real, expect, "{first} → {second}");
        }
    }
}
