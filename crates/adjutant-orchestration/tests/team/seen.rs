//! What an application sees of a team: hooks and events.

use std::sync::Arc;

use adjutant_agent::{
    EventKind, HookContext, Verdict,
    points::{TeamMessage, TeammateCompleted, TeammateFailed, TeammateJoined, TeammateLeft},
};
use adjutant_llm::{Error, ErrorKind, FixedWorld, Script};
use serde_json::json;

use super::desk::{
    Seen, agent, call, events, hanging, last, lead, results, says, send, spawn, taken, team, told,
    wait, wait_team,
};

#[tokio::test(start_paused = true)]
async fn events_tell_of_members_and_messages() {
    let broken = agent([Script::new().fail(Error::new(ErrorKind::Auth, "no key"))]);
    let crew = team()
        .world(FixedWorld::at_ms(9_000))
        .template("a", agent([send("lead", "Hello."), says("Yes.")]));
    let crew = crew.template("b", broken).template("c", hanging());
    let again = call("assign_task", json!({"name": "b", "task": "Again."}));
    let stop = call("stop_teammate", json!({"name": "c"}));
    let read = || call("read_messages", json!({}));
    let script = [
        spawn("a"),
        wait(),
        wait_team(),
        spawn("b"),
        wait_team(),
        again,
        wait_team(),
        spawn("c"),
        stop,
        read(),
        says("Done."),
    ];
    let events = events(&lead(&crew, script)).await;
    let told = told(&events, "team.");
    let kinds: Vec<(&str, &str)> = told
        .iter()
        .map(|(kind, data)| {
            (
                kind.as_str(),
                data["name"]
                    .as_str()
                    .or(data["from"].as_str())
                    .unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("team.joined", "a"),
            ("team.message", "a"),
            ("team.completed", "a"),
            ("team.notice", "a"),
            ("team.joined", "b"),
            ("team.failed", "b"),
            ("team.notice", "b"),
            ("team.assigned", "b"),
            ("team.failed", "b"),
            ("team.notice", "b"),
            ("team.joined", "c"),
            ("team.left", "c"),
            ("team.notice", "c"),
            ("team.ended", ""),
        ]
    );
    let joined = &told[0].1;
    let of = |field: &str| joined[field].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        ["team", "member_id", "name", "task", "role"].map(of),
        ["crew", "teammate-1", "a", "The task of a.", "a"]
    );
    assert_eq!(
        told[1].1,
        json!({"team": "crew", "id": "msg-1", "from": "a", "to": "lead", "received_by": ["lead"], "at_ms": 9_000, "kind": "said", "content": "Hello."})
    );
    assert_eq!(
        told[2].1,
        json!({"team": "crew", "name": "a", "status": "completed", "text": "Yes.", "unread": []})
    );
    let of_members = events.iter().filter(|event| event.who.depth == 1).count();
    assert!(of_members > 0, "the whole tree is in one stream");
    assert!(last(&events).is_finished());
}

#[tokio::test(start_paused = true)]
async fn member_has_names_task_and_prefix_when_it_is_opened() {
    let scout = agent([says("Yes.")]).identify(|who| who.prefix = "S".into());
    let asked = call(
        "spawn_teammate",
        json!({"name": "ada", "template": "scout", "task": "Look."}),
    );
    let crew = team().template("scout", scout);
    let lead = lead(
        &crew,
        [
            asked,
            wait_team(),
            call("read_messages", json!({})),
            says("Done."),
        ],
    );
    let events = events(&lead).await;
    let opened = events.iter().find_map(|event| match &event.kind {
        EventKind::ChildOpened { child, .. } => Some(child),
        _ => None,
    });
    let child = opened.expect("a member is opened");
    let names = (
        &*child.name,
        &*child.config_name,
        &*child.path,
        &*child.prefix,
        child.task.as_deref(),
    );
    assert_eq!(names, ("ada", "scout", "boss/ada", "S", Some("Look.")));
}

#[tokio::test(start_paused = true)]
async fn hooks_hear_of_members() {
    let seen: Seen<String> = Arc::default();
    let note =
        |seen: &Seen<String>, text: String| seen.lock().expect("nobody panics inside").push(text);
    let broken = agent([Script::new().fail(Error::new(ErrorKind::Auth, "no key"))]);
    let crew = team()
        .template("a", agent([says("Yes.")]))
        .template("b", broken)
        .template("c", hanging());
    let stop = call("stop_teammate", json!({"name": "c"}));
    let read = call("read_messages", json!({}));
    let lead = lead(
        &crew,
        [
            spawn("a"),
            wait_team(),
            spawn("b"),
            wait_team(),
            spawn("c"),
            stop,
            read,
            says("Done."),
        ],
    );
    let (one, two, three, four) = (
        Arc::clone(&seen),
        Arc::clone(&seen),
        Arc::clone(&seen),
        Arc::clone(&seen),
    );
    let lead = lead
        .on(move |_: HookContext, it: TeammateJoined| {
            note(&one, format!("{} joined {}", it.member.path, it.team));
            async { Verdict::Pass(it) }
        })
        .on(move |_: HookContext, it: TeammateCompleted| {
            note(
                &two,
                format!("{} said {}", it.member.name, it.result.text()),
            );
            async { Verdict::Pass(it) }
        })
        .on(move |_: HookContext, it: TeammateFailed| {
            note(
                &three,
                format!("{} failed: {}", it.member.name, it.error.contains("no key")),
            );
            async { Verdict::Pass(it) }
        })
        .on(move |_: HookContext, it: TeammateLeft| {
            note(&four, format!("{} left: {}", it.member.name, it.reason));
            async { Verdict::Pass(it) }
        });
    lead.run("Go.").await.expect("the run finishes");
    assert_eq!(
        taken(&seen),
        [
            "boss/a joined crew",
            "a said Yes.",
            "boss/b joined crew",
            "b failed: true",
            "boss/c joined crew",
            "c left: the lead stopped it",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn hook_changes_or_denies_a_message() {
    let crew = team().template(
        "a",
        agent([
            send("lead", "The key is K-77."),
            send("lead", "Goodbye."),
            says("Yes."),
        ]),
    );
    let lead = lead(
        &crew,
        [
            spawn("a"),
            wait_team(),
            wait_team(),
            call("read_messages", json!({})),
            says("Done."),
        ],
    );
    let lead = lead.on(|cx: HookContext, mut it: TeamMessage| async move {
        assert_eq!(
            (&*it.team, &*it.from, &*it.to, cx.who.depth),
            ("crew", "a", "lead", 0)
        );
        if it.content.contains("K-77") {
            return Verdict::Deny("no keys".into());
        }
        it.content = "Farewell.".into();
        Verdict::Pass(it)
    });
    let events = events(&lead).await;
    let result = last(&events);
    let heard = results(&result).join("\n");
    assert!(
        heard.contains("Farewell.") && !heard.contains("Goodbye.") && !heard.contains("K-77"),
        "{heard}"
    );
    assert_eq!(told(&events, "team.message").len(), 1);
    let refused = events
        .iter()
        .any(|it| format!("{:?}", it.kind).contains("the message was not passed on: no keys"));
    assert!(refused, "the sender is told");
}

#[tokio::test(start_paused = true)]
async fn hooks_hear_who_left_when_the_run_ends() {
    let seen: Seen<String> = Arc::default();
    let heard = Arc::clone(&seen);
    let lead = lead(
        &team().template("a", hanging()),
        [spawn("a"), wait_team(), says("Done."), says("Bye.")],
    );
    let lead = lead.on(move |_: HookContext, it: TeammateLeft| {
        heard
            .lock()
            .expect("nobody panics inside")
            .push(format!("{} left: {}", it.member.name, it.reason));
        async { Verdict::Pass(it) }
    });
    lead.run("Go.").await.expect("the run finishes");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(taken(&seen), ["a left: it was stopped by the parent"]);
}
