//! Teams: members that are replaced, hooks that hang, and whose runs they are.

use std::time::Duration;

use adjutant_agent::{Agent, Caps, HookContext, Limits, points};
use adjutant_llm::Gate;
use adjutant_orchestration::team::MemberStatus;
use adjutant_tool::Replay;
use serde_json::json;

use super::super::{
    fan_out::desk::tool,
    team::desk::{
        agent, call, events, hanging, last, lead, led, reporting, results, says, spawn, taken,
        team, wait_team,
    },
};

#[tokio::test(start_paused = true)]
async fn member_that_ended_is_still_known_when_its_name_cannot_be_given_again() {
    let (crew, seen) = reporting(
        team()
            .template("a", agent([says("First.")]))
            .template("b", hanging()),
    );
    let boss = lead(
        &crew,
        [
            spawn("a"),
            wait_team(),
            spawn("b"),
            spawn("a"),
            says("Done."),
            says("Done."),
        ],
    );
    // Two agents at a time: the lead, and one member.
    let result = boss
        .limits(Limits {
            caps: Caps {
                agents: Some(1),
                ..Caps::default()
            },
            ..Limits::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    let texts = results(&result);
    assert!(texts[3].contains("limit"), "{texts:?}");
    let report = taken(&seen).pop().expect("there were members");
    let a = report
        .members
        .iter()
        .find(|it| &*it.name == "a")
        .unwrap_or_else(|| unreachable!("a is known: {report:?}"));
    assert_eq!((a.status, &*a.result), (MemberStatus::Completed, "First."));
}

#[tokio::test(start_paused = true)]
async fn member_keeps_what_it_came_to_when_its_next_task_cannot_begin() {
    let (crew, seen) = reporting(
        team()
            .template("a", agent([says("First.")]))
            .template("b", hanging()),
    );
    let again = call("assign_task", json!({"name": "a", "task": "More."}));
    let boss = lead(
        &crew,
        [
            spawn("a"),
            wait_team(),
            spawn("b"),
            again,
            says("Done."),
            says("Done."),
        ],
    );
    let result = boss
        .limits(Limits {
            caps: Caps {
                agents: Some(1),
                ..Caps::default()
            },
            ..Limits::default()
        })
        .run("Go.")
        .await
        .expect("the run finishes");
    assert!(
        results(&result)[3].contains("limit"),
        "{:?}",
        results(&result)
    );
    let report = taken(&seen).pop().expect("there were members");
    let a = &report.members[0];
    assert_eq!(
        (a.status, &*a.result, &*a.task),
        (MemberStatus::Completed, "First.", "The task of a.")
    );
}

#[tokio::test(start_paused = true)]
async fn name_is_free_again_when_a_hook_hung_while_its_member_was_spawned() {
    let (crew, seen) = reporting(team().template("a", agent([says("First.")])).max_size(1));
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let boss = lead(
        &crew,
        [
            spawn("a"),
            spawn("a"),
            wait_team(),
            says("Done."),
            says("Done."),
        ],
    );
    let boss = boss.on(move |_: HookContext, point: points::TeammateJoined| {
        let first = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        async move {
            if first {
                std::future::pending::<()>().await;
            }
            adjutant_agent::Verdict::Pass(point)
        }
    });
    let all = tokio::time::timeout(Duration::from_secs(1_000_000), events(&boss))
        .await
        .expect("the run ends");
    let texts = results(&last(&all));
    assert!(texts[1].contains("active"), "{texts:?}");
    assert_eq!(
        taken(&seen).pop().expect("there was a member").members[0].status,
        MemberStatus::Completed
    );
}

#[tokio::test(start_paused = true)]
async fn team_of_a_member_ends_with_its_run_when_the_member_leads_one() {
    let inner = adjutant_orchestration::team::Team::new("inner").template("x", agent([says("X.")]));
    let (inner, inner_seen) = reporting(inner);
    let under = inner.install(agent([
        spawn("x"),
        wait_team(),
        says("Under."),
        says("Under."),
    ]));
    let (crew, seen) = reporting(team().template("u", under));
    let result = led(
        &crew,
        [spawn("u"), wait_team(), says("Done."), says("Done.")],
    )
    .await;
    assert_eq!(result.text(), "Done.");
    let (inner, outer) = (taken(&inner_seen), taken(&seen));
    assert_eq!((inner.len(), outer.len()), (1, 1), "{inner:?} {outer:?}");
    assert_eq!(&*inner[0].members[0].result, "X.");
    assert_eq!(result.total_usage.total() % 110, 0);
}

#[tokio::test(start_paused = true)]
async fn teams_are_apart_when_two_sessions_of_one_lead_run_at_once() {
    let crew = team().template("a", agent([says("One."), says("Two.")]));
    let scripts = || {
        [
            spawn("a"),
            wait_team(),
            call("read_messages", json!({})),
            says("Done."),
            says("Done."),
        ]
    };
    let (one, two) = (lead(&crew, scripts()), lead(&crew, scripts()));
    let (one, two) = tokio::join!(one.run("Go."), two.run("Go."));
    for result in [one.expect("it ends"), two.expect("it ends")] {
        let texts = results(&result);
        assert_eq!(
            texts[2].matches("is done").count()
                + texts[2].matches("\"kind\":\"completed\"").count(),
            1,
            "{texts:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn flood_is_refused_and_nothing_accepted_is_lost_when_a_member_never_reads() {
    let gate = Gate::default();
    let held = gate.clone();
    let open = tool("open", Replay::Once, move |_| {
        let held = held.clone();
        async move {
            held.open();
            Ok(adjutant_llm::CallResult::ok("opened"))
        }
    });
    let reads = (0..20)
        .map(|_| call("read_messages", json!({})))
        .chain([says("Read.")]);
    let member = agent(
        [call("read_messages", json!({})).wait_at(0, &gate)]
            .into_iter()
            .chain(reads),
    );
    let crew = team().template("a", member);
    let flood = (0..150).map(|_| {
        call(
            "send_message",
            json!({"to": "a", "content": "é".repeat(4_000)}),
        )
    });
    let scripts = [spawn("a")].into_iter().chain(flood).chain([
        call("open", json!({})),
        wait_team(),
        says("Done."),
        says("D."),
    ]);
    let boss = lead(&crew, scripts).tool(open).max_turns(400);
    let all = events(&boss).await;
    let sent = results(&last(&all))
        .iter()
        .filter(|it| it.starts_with("Sent to"))
        .count();
    let read: usize = all
        .iter()
        .filter_map(|event| match &event.kind {
            adjutant_agent::EventKind::ToolFinished { result, .. } => {
                result.details["read"].as_array().map(Vec::len)
            }
            _ => None,
        })
        .sum();
    assert!(sent > 10 && sent < 150, "{sent}");
    assert_eq!(read, sent);
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_its_lead_is_stopped_while_a_hook_of_a_member_hangs() {
    let boss = lead(
        &team().template("a", hanging()),
        [spawn("a"), says("Done.")],
    )
    .calls(|calls| calls.grace = Duration::from_secs(1));
    let boss: Agent = boss.on(|_: HookContext, _: points::TeammateJoined| {
        std::future::pending::<adjutant_agent::Verdict<points::TeammateJoined>>()
    });
    let mut running = boss.run("Go.").stream().expect("the session is free");
    let stopper = running.stopper();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stopper.stop(adjutant_agent::CancelBy::User);
    });
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        while running.next().await.is_some() {}
    });
    ended.await.expect("the run ends");
    assert_eq!(
        running
            .result()
            .expect("it has ended")
            .expect("no error")
            .outcome
            .kind(),
        "cancelled"
    );
}
