//! Messages: who may write to whom, waiting for them, and that nobody waits in vain.

use std::{sync::Arc, time::Duration};

use adjutant_agent::Agent;
use adjutant_llm::{FixedWorld, Gate, Script, ScriptedModel};
use adjutant_orchestration::{
    Error,
    team::{Address, Mailbox, MemoryMailbox, Message, Pick},
};
use serde_json::json;
use tokio::time::Instant;

use super::desk::{
    Seen, agent, call, gated, hanging, led, read, reporting, results, says, send, shown, spawn,
    taken, team, wait, wait_team,
};

#[tokio::test(start_paused = true)]
async fn message_of_a_member_reaches_the_lead_and_its_answer_comes_back() {
    let member = agent([send("lead", "Which colour?"), wait(), says("Painted it.")]);
    let crew = team().world(FixedWorld::at_ms(5_000)).template("a", member);
    let result = led(
        &crew,
        [spawn("a"), wait(), send("a", "Red."), wait(), says("Done.")],
    )
    .await;
    assert_eq!(
        results(&result)[1..3],
        [
            r#"[{"id":"msg-1","from":"a","to":"lead","at_ms":5000,"kind":"said","content":"Which colour?"}]"#,
            "Sent to a as msg-2.",
        ]
    );
    assert!(results(&result)[3].contains("Painted it."));
}

#[tokio::test(start_paused = true)]
async fn members_write_to_each_other() {
    let first = agent([wait(), send("b", "Pong."), says("Played.")]);
    let second = Arc::new(ScriptedModel::new([
        send("a", "Ping."),
        wait(),
        says("Played too."),
    ]));
    let crew = team()
        .template("a", first)
        .template("b", Agent::new(Arc::clone(&second)));
    led(
        &crew,
        [spawn("a"), spawn("b"), wait_team(), read(), says("Done.")],
    )
    .await;
    assert!(shown(&second)[2].contains("Pong."));
}

#[tokio::test(start_paused = true)]
async fn broadcast_goes_to_all_but_its_sender() {
    let hears = || Arc::new(ScriptedModel::new([wait(), says("Heard.")]));
    let (one, two) = (hears(), hears());
    let crew = team()
        .template("a", Agent::new(Arc::clone(&one)))
        .template("b", Agent::new(Arc::clone(&two)));
    let result = led(
        &crew,
        [
            spawn("a"),
            spawn("b"),
            send("*", "Begin."),
            wait_team(),
            read(),
            says("Done."),
        ],
    )
    .await;
    assert_eq!(results(&result)[2], "Sent to a, b as msg-1.");
    assert!(shown(&one)[1].contains("Begin.") && shown(&two)[1].contains("Begin."));
    assert!(!results(&result)[4].contains("Begin."));
}

#[tokio::test(start_paused = true)]
async fn reading_takes_what_it_gives() {
    let crew = team().template(
        "a",
        agent([send("lead", "One."), send("lead", "Two."), says("Done.")]),
    );
    let result = led(
        &crew,
        [
            spawn("a"),
            wait(),
            wait_team(),
            wait(),
            read(),
            read(),
            says("Done."),
        ],
    )
    .await;
    let results = results(&result);
    assert_eq!(results.iter().filter(|it| it.contains("One.")).count(), 1);
    assert_eq!(results[5], "No new messages.");
}

#[tokio::test(start_paused = true)]
async fn message_to_a_member_that_has_ended_is_refused() {
    let result = led(
        &team().template("a", agent([says("Yes.")])),
        [spawn("a"), wait(), send("a", "Hello."), says("Done.")],
    )
    .await;
    assert_eq!(
        results(&result)[2],
        "\"a\" is not at work: done; hint: the lead can give it a new task"
    );
}

#[tokio::test(start_paused = true)]
async fn sender_is_told_when_a_mailbox_is_full() {
    let flood = (0..3).map(|_| send("b", "Hello.")).chain([says("Sent.")]);
    let flooding = Arc::new(ScriptedModel::new(flood));
    let (crew, seen) = reporting(
        team()
            .mailbox(MemoryMailbox::new().limits(2, 1_000))
            .template("a", Agent::new(Arc::clone(&flooding))),
    );
    let crew = crew.template("b", hanging());
    let script = [
        spawn("b"),
        spawn("a"),
        call("wait_for_team", json!({"until": "any"})),
        read(),
        says("Done."),
        says("Bye."),
    ];
    led(&crew, script).await;
    let refused = "was not reached: the mailbox is full: 2 messages of 12 bytes wait unread; hint: it must read";
    assert!(
        shown(&flooding)[3].contains(refused),
        "{}",
        shown(&flooding)[3]
    );
    assert_eq!(
        taken(&seen)[0].members[1].unread,
        ["msg-1".into(), "msg-2".into()]
    );
}

#[tokio::test(start_paused = true)]
async fn end_of_a_member_is_not_lost_when_the_mailbox_of_the_lead_is_full() {
    let crew = team().mailbox(MemoryMailbox::new().limits(1, 1_000));
    let crew = crew.template("a", agent([send("lead", "Hello."), says("My result.")]));
    let model = Arc::new(ScriptedModel::new([
        spawn("a"),
        call("wait_for_team", json!({})),
        wait_team(),
        says("Done."),
        says("Bye."),
    ]));
    crew.install(Agent::new(Arc::clone(&model)))
        .run("Go.")
        .await
        .expect("the run finishes");
    assert!(
        shown(&model)
            .last()
            .expect("it was asked")
            .contains("My result.")
    );
}

#[tokio::test(start_paused = true)]
async fn message_is_refused_when_it_is_too_long() {
    let long = call(
        "send_message",
        json!({"to": "a", "content": "x".repeat(8 * 1024 + 1)}),
    );
    let result = led(
        &team().template("a", hanging()),
        [spawn("a"), long, says("Done."), says("Bye.")],
    )
    .await;
    assert_eq!(
        results(&result)[1],
        "`content` has 8193 bytes, and may have 8192"
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_its_time_is_over() {
    let begun = Instant::now();
    let result = led(
        &team().template("a", hanging()),
        [spawn("a"), wait(), wait_team(), says("Done."), says("Bye.")],
    )
    .await;
    assert_eq!(results(&result)[1], "No message came within 60s.");
    assert_eq!(
        results(&result)[2],
        "a: at work. They were not done within 60s."
    );
    assert_eq!(begun.elapsed().as_secs(), 120);
}

#[tokio::test(start_paused = true)]
async fn everyone_is_told_when_everyone_waits() {
    let member = || Arc::new(ScriptedModel::new([wait(), says("Gave up.")]));
    let (one, two) = (member(), member());
    let crew = team()
        .template("a", Agent::new(Arc::clone(&one)))
        .template("b", Agent::new(Arc::clone(&two)));
    let begun = Instant::now();
    let result = led(
        &crew,
        [
            spawn("a"),
            spawn("b"),
            wait(),
            wait_team(),
            read(),
            says("Done."),
        ],
    )
    .await;
    assert!(
        results(&result)[4].contains("No new messages.")
            || results(&result)[4].contains("Gave up.")
    );
    assert!(
        shown(&one)[1].contains("everyone at work waits")
            && shown(&two)[1].contains("everyone at work waits")
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn lead_is_told_at_once_when_it_waits_for_members_that_wait() {
    let member = Arc::new(ScriptedModel::new([wait(), says("Gave up.")]));
    let crew = team().template("a", Agent::new(Arc::clone(&member)));
    let begun = Instant::now();
    let result = led(
        &crew,
        [spawn("a"), wait_team(), wait_team(), read(), says("Done.")],
    )
    .await;
    assert!(
        results(&result)[3].contains("Gave up."),
        "{:?}",
        results(&result)
    );
    assert!(
        shown(&member)[1]
            .contains("everyone at work waits and nothing that they wait for is unread: a, lead")
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_when_there_is_nobody() {
    let begun = Instant::now();
    let result = led(&team(), [wait(), wait_team(), says("Done.")]).await;
    assert!(
        results(&result)[0].starts_with("No message will come: everyone at work waits"),
        "{:?}",
        results(&result)
    );
    assert_eq!(results(&result)[1], "nobody is in the team.");
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_someone_ends_when_they_have_ended() {
    let member = agent([
        call("wait_for_message", json!({"from": "b", "timeout_s": 60})),
        says("Alone."),
    ]);
    let crew = team()
        .template("a", member)
        .template("b", agent([says("Nothing to say.")]));
    let begun = Instant::now();
    let result = led(
        &crew,
        [
            spawn("b"),
            wait(),
            spawn("a"),
            wait_team(),
            read(),
            says("Done."),
        ],
    )
    .await;
    assert!(
        results(&result)[4].contains("Alone."),
        "{:?}",
        results(&result)
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn message_comes_first_when_the_lead_waits_for_its_team() {
    let crew = team()
        .template(
            "a",
            agent([send("lead", "A question."), wait(), says("Thanks.")]),
        )
        .template("b", hanging());
    let begun = Instant::now();
    let result = led(
        &crew,
        [
            spawn("b"),
            spawn("a"),
            wait_team(),
            says("Done."),
            says("Bye."),
        ],
    )
    .await;
    assert_eq!(
        results(&result)[2],
        "a: at work, b: at work. A message came first. You have 1 unread message from a."
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_any_ends_when_one_member_has_ended() {
    let crew = team()
        .template("a", hanging())
        .template("b", agent([says("Yes.")]));
    let any = call("wait_for_team", json!({"until": "any", "timeout_s": 60}));
    let result = led(
        &crew,
        [spawn("a"), spawn("b"), any, says("Done."), says("Bye.")],
    )
    .await;
    assert_eq!(
        results(&result)[2],
        "a: at work, b: done. You have 1 unread message from b."
    );
}

#[tokio::test(start_paused = true)]
async fn busy_agent_is_told_once_that_messages_wait() {
    let gate = Gate::default();
    let (held, opened) = (gate.clone(), gate.clone());
    let busy = Arc::new(ScriptedModel::new([
        call("list_teammates", json!({})).wait_at(0, &held),
        call("list_teammates", json!({})),
        says("Done."),
    ]));
    let crew = team().template("a", Agent::new(Arc::clone(&busy)));
    let release = Script::from_fn(move |_| {
        opened.open();
        wait_team()
    });
    let result = led(
        &crew,
        [
            spawn("a"),
            wait_team(),
            send("a", "One."),
            send("a", "Two."),
            release,
            read(),
            says("Done."),
        ],
    )
    .await;
    let asked = shown(&busy);
    let notes: Vec<usize> = asked
        .iter()
        .map(|it| it.matches("unread messages from lead").count())
        .collect();
    assert_eq!(notes, [0, 1, 1]);
    assert!(
        asked.iter().all(|it| !it.contains("One.")),
        "what they say comes by reading only"
    );
    assert!(
        results(&result)[5].contains("It has not read msg-1 of lead, msg-2 of lead."),
        "{:?}",
        results(&result)
    );
}

#[tokio::test(start_paused = true)]
async fn status_shows_who_works_on_what() {
    let crew = team()
        .world(FixedWorld::at_ms(1_000))
        .template("a", hanging())
        .template("b", agent([says("Yes.")]));
    let script = [
        spawn("a"),
        send("a", "One."),
        spawn("b"),
        wait(),
        call("team_status", json!({})),
        says("Done."),
        says("Bye."),
    ];
    let status = &results(&led(&crew, script).await)[4];
    let status: serde_json::Value = serde_json::from_str(status).expect("it is JSON");
    assert_eq!(
        status,
        json!({"team": "crew", "unread": 0, "members": [
            {"id": "teammate-1", "name": "a", "status": "active", "task": "The task of a.", "for_s": 0, "unread": 1,
             "waiting": false, "result": ""},
            {"id": "teammate-2", "name": "b", "status": "completed", "task": "The task of b.", "for_s": 0, "unread": 0,
             "waiting": false, "result": "Yes."},
        ]})
    );
}

/// A mailbox that notes what it is sent.
#[derive(Clone, Default)]
struct Noting {
    inner: MemoryMailbox,
    sent: Seen<(String, String)>,
}

#[async_trait::async_trait]
impl Mailbox for Noting {
    async fn send(&self, to: &Address, message: Message) -> Result<(), Error> {
        self.sent
            .lock()
            .expect("nobody panics inside")
            .push((to.name.to_string(), message.content.to_string()));
        self.inner.send(to, message).await
    }

    async fn receive(&self, to: &Address, pick: &Pick) -> Result<Vec<Message>, Error> {
        self.inner.receive(to, pick).await
    }

    async fn wait(&self, to: &Address, pick: &Pick) -> Result<(), Error> {
        self.inner.wait(to, pick).await
    }

    fn open(&self, to: &Address) {
        self.inner.open(to);
    }

    fn close(&self, room: &str) {
        self.inner.close(room);
    }
}

#[tokio::test(start_paused = true)]
async fn messages_go_through_the_mailbox_that_is_given() {
    let mailbox = Noting::default();
    let crew = team()
        .mailbox(mailbox.clone())
        .template("a", agent([wait(), says("Yes.")]));
    led(
        &crew,
        [spawn("a"), send("a", "Hello."), wait(), says("Done.")],
    )
    .await;
    let sent = taken(&mailbox.sent);
    assert_eq!(sent[0], ("teammate-1".to_owned(), "Hello.".to_owned()));
    assert_eq!(sent[1], ("lead".to_owned(), "\"a\" done: Yes.".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn wait_loses_nothing_when_its_call_is_stopped() {
    let gate = Gate::default();
    let (crew, seen) = reporting(team().template("a", gated("Late.", &gate)));
    let lead = super::desk::lead(&crew, [spawn("a"), wait(), says("Never.")]);
    let mut running = lead.run("Go.").stream().expect("the session is free");
    let mut waits = 0;
    while let Some(event) = running.next().await {
        if matches!(&event.kind, adjutant_agent::EventKind::ToolStarted { .. })
            && event.who.depth == 0
        {
            waits += 1;
            if waits == 2 {
                running.cancel();
            }
        }
    }
    assert_eq!(taken(&seen).len(), 1, "the run has ended");
}
