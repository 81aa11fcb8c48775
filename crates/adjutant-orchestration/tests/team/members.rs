//! Members: joining, ending in each way, and working again.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Caps, Limits};
use adjutant_llm::{Error, ErrorKind, Gate, Script, ScriptedModel};
use adjutant_orchestration::team::MemberStatus;
use serde_json::json;

use super::desk::{
    agent, call, gated, hanging, lead, led, read, reporting, results, says, send, shown, spawn,
    taken, team, wait, wait_team,
};

#[tokio::test(start_paused = true)]
async fn member_works_while_the_lead_goes_on() {
    let gate = Gate::default();
    let opened = gate.clone();
    let go = Script::from_fn(move |_| {
        opened.open();
        wait_team()
    });
    let result = led(
        &team().template("a", gated("Found it.", &gate)),
        [spawn("a"), go, read(), says("Done.")],
    )
    .await;
    let results = results(&result);
    assert_eq!(
        results[0],
        r#"{"member_id":"teammate-1","name":"a","status":"active"}"#
    );
    assert_eq!(results[1], "a: done. You have 1 unread message from a.");
    assert!(
        results[2].contains(r#""kind":"completed","content":"\"a\" done: Found it.""#),
        "{}",
        results[2]
    );
    assert_eq!(
        (
            result.text().as_str(),
            result.usage.total(),
            result.total_usage.total()
        ),
        ("Done.", 440, 550)
    );
}

#[tokio::test(start_paused = true)]
async fn spawning_is_refused_when_a_member_of_that_name_works() {
    let result = led(
        &team().template("a", hanging()),
        [spawn("a"), spawn("a"), says("Done."), says("Really.")],
    )
    .await;
    assert_eq!(
        results(&result)[1],
        "\"a\" is at work in the team already; hint: choose another name"
    );
}

#[tokio::test(start_paused = true)]
async fn spawning_is_refused_when_the_team_is_full() {
    let gate = Gate::default();
    let opened = gate.clone();
    let go = Script::from_fn(move |_| {
        opened.open();
        wait_team()
    });
    let crew = team()
        .max_size(1)
        .template("a", gated("One.", &gate))
        .template("b", agent([says("Two.")]));
    let result = led(
        &crew,
        [
            spawn("a"),
            spawn("b"),
            go,
            spawn("b"),
            wait_team(),
            read(),
            says("Done."),
        ],
    )
    .await;
    let results = results(&result);
    assert_eq!(
        results[1],
        "the team is full: 1 members are at work; hint: wait for one, or stop one"
    );
    assert_eq!(
        results[3], r#"{"member_id":"teammate-2","name":"b","status":"active"}"#,
        "who has ended does not count"
    );
}

#[tokio::test(start_paused = true)]
async fn team_has_no_limit_when_none_is_set() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let crew = names.iter().fold(team(), |team, name| {
        team.template(*name, agent([says("Yes.")]))
    });
    let script = names
        .iter()
        .map(|name| spawn(name))
        .chain([wait_team(), read(), says("Done.")]);
    let result = led(&crew, script).await;
    assert!(
        results(&result)[12]
            .ends_with("You have 12 unread messages from a, b, c, d, e, f, g, h, i, j, k, l.")
    );
}

#[tokio::test(start_paused = true)]
async fn validation_says_what_is_wrong() {
    let crew = team().template("a", agent([])).templates_only();
    let spawns = [
        json!({"name": "", "task": "Work."}),
        json!({"name": "a b", "task": "Work."}),
        json!({"name": "Lead", "task": "Work."}),
        json!({"name": "*", "task": "Work."}),
        json!({"name": "a", "task": "  "}),
        json!({"name": "x", "task": "Work."}),
        json!({"name": "x", "task": "Work.", "template": "y"}),
    ];
    let others = [
        call("assign_task", json!({"name": "x", "task": "Work."})),
        call("stop_teammate", json!({"name": "x"})),
        send("x", "Hello."),
        send("lead", "Hello."),
        send("*", "Hello."),
        send("a", " "),
        call("wait_for_message", json!({"from": "x", "timeout_s": 1})),
        call("wait_for_message", json!({"from": "lead", "timeout_s": 1})),
        says("Done."),
    ];
    let script = spawns
        .into_iter()
        .map(|args| call("spawn_teammate", args))
        .chain(others);
    assert_eq!(
        results(&led(&crew, script).await),
        [
            "`name` has 1 to 64 letters, digits, `-` and `_`: \"\"",
            "`name` has 1 to 64 letters, digits, `-` and `_`: \"a b\"",
            "\"Lead\" is what the lead is called; hint: choose another name",
            "`name` has 1 to 64 letters, digits, `-` and `_`: \"*\"",
            "`task` is blank: say what to do",
            "members are made from templates only; hint: there are a",
            "there is no template \"y\"; hint: there are a",
            "nobody in the team is called \"x\"; hint: there are lead",
            "nobody in the team is called \"x\"; hint: there are lead",
            "nobody in the team is called \"x\"; hint: there are lead",
            "a message to oneself goes nowhere",
            "no other member of the team is active",
            "`content` is blank: say something",
            "nobody in the team is called \"x\"; hint: there are lead",
            "an agent cannot send a message to itself",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn member_made_from_a_prompt_has_the_leads_model_and_that_prompt() {
    let model = Arc::new(ScriptedModel::new([
        call(
            "spawn_teammate",
            json!({"name": "a", "task": "Sing.", "system_prompt": "You sing."}),
        ),
        says("La."),
        wait_team(),
        read(),
        says("Done."),
    ]));
    // The member is given the model's second reply only if it asks before the lead does.
    let lead =
        team().install(
            adjutant_agent::Agent::new(Arc::clone(&model))
                .instructions("You lead.")
                .on(
                    |cx: adjutant_agent::HookContext,
                     point: adjutant_agent::points::BeforeModel| async move {
                        if cx.who.depth == 0 {
                            tokio::time::sleep(Duration::from_secs(1)).await;
                        }
                        adjutant_agent::Verdict::Pass(point)
                    },
                ),
        );
    let result = lead.run("Go.").await.expect("the run finishes");
    assert_eq!(result.text(), "Done.");
    let systems: Vec<String> = model
        .requests()
        .iter()
        .map(|it| it.system.to_string())
        .collect();
    assert_eq!(
        systems,
        [
            "You lead.",
            "You sing.",
            "You lead.",
            "You lead.",
            "You lead."
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn member_is_briefed_when_it_begins() {
    let model = Arc::new(ScriptedModel::new([says("Yes.")]));
    let crew = team()
        .template("scribe", adjutant_agent::Agent::new(Arc::clone(&model)))
        .template("a", hanging());
    let task = call(
        "spawn_teammate",
        json!({"name": "b", "template": "scribe", "task": "Write it down."}),
    );
    led(
        &crew,
        [spawn("a"), task, wait(), says("Done."), says("Really.")],
    )
    .await;
    let briefing = &shown(&model)[0];
    for part in [
        r#"You are \"b\", a member of the team \"crew\" in the role \"scribe\". Your lead is called \"lead\"."#,
        "At work beside you: a.",
        "send_message",
        "wait_for_message",
        "Your task:\\nWrite it down.",
        r#""kind":"task","from":"main""#,
    ] {
        assert!(briefing.contains(part), "{part} in {briefing}");
    }
}

#[tokio::test(start_paused = true)]
async fn failure_reaches_the_lead_when_the_model_of_a_member_fails() {
    let broken = agent([Script::new().fail(Error::new(ErrorKind::Auth, "no key"))]);
    let (crew, seen) = reporting(team().template("a", broken));
    let result = led(
        &crew,
        [
            spawn("a"),
            wait(),
            call("list_teammates", json!({})),
            says("Done."),
        ],
    )
    .await;
    let results = results(&result);
    assert!(
        results[1].contains(r#""kind":"failed""#) && results[1].contains("no key"),
        "{}",
        results[1]
    );
    assert!(
        results[2].contains(r#""status":"failed""#) && results[2].contains("no key"),
        "{}",
        results[2]
    );
    assert_eq!(taken(&seen)[0].members[0].status, MemberStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn member_has_failed_when_it_panics() {
    let panicking = agent([Script::from_fn(|_| panic!("the model is broken"))]);
    let result = led(
        &team().template("a", panicking),
        [spawn("a"), wait(), says("Done.")],
    )
    .await;
    assert!(
        results(&result)[1].contains(r#""kind":"failed""#),
        "{:?}",
        results(&result)
    );
}

#[tokio::test(start_paused = true)]
async fn member_has_failed_when_it_reaches_its_limit() {
    let busy = agent([call("list_teammates", json!({})), says("Never.")]);
    let asked = call(
        "spawn_teammate",
        json!({"name": "a", "task": "Work.", "max_turns": 1}),
    );
    let result = led(&team().template("a", busy), [asked, wait(), says("Done.")]).await;
    assert!(
        results(&result)[1].contains("it reached its limit of max turns"),
        "{:?}",
        results(&result)
    );
}

#[tokio::test(start_paused = true)]
async fn member_is_cancelled_and_the_lead_told_when_its_time_is_over() {
    for (crew, task) in [
        (
            team().member_timeout(Duration::from_secs(5)),
            json!({"name": "a", "task": "Work.", "timeout_s": 50}),
        ),
        (
            team(),
            json!({"name": "a", "task": "Work.", "timeout_s": 5}),
        ),
    ] {
        let (crew, seen) = reporting(crew.template("a", hanging()));
        let result = led(&crew, [call("spawn_teammate", task), wait(), says("Done.")]).await;
        let heard = &results(&result)[1];
        assert!(
            heard.contains(
                r#""kind":"timed_out","content":"\"a\" timed out: it was not done within 5s""#
            ),
            "{heard}"
        );
        assert_eq!(taken(&seen)[0].members[0].status, MemberStatus::TimedOut);
    }
}

#[tokio::test(start_paused = true)]
async fn stop_reaches_the_lead_when_a_member_is_stopped() {
    let stop = || call("stop_teammate", json!({"name": "a"}));
    let result = led(
        &team().template("a", hanging()),
        [spawn("a"), stop(), stop(), wait(), says("Done.")],
    )
    .await;
    let results = results(&result);
    assert_eq!(
        results[1..3],
        [
            "\"a\" does not work: stopped.",
            "\"a\" does not work: stopped."
        ]
    );
    assert!(
        results[3].contains(r#""kind":"stopped","content":"\"a\" stopped: the lead stopped it""#),
        "{}",
        results[3]
    );
}

#[tokio::test(start_paused = true)]
async fn finished_member_keeps_its_conversation_when_it_has_a_new_task() {
    let model = Arc::new(ScriptedModel::new([says("One."), says("Two.")]));
    let crew = team().template("a", adjutant_agent::Agent::new(Arc::clone(&model)));
    let again = call("assign_task", json!({"name": "a", "task": "Go on."}));
    let result = led(&crew, [spawn("a"), wait(), again, wait(), says("Done.")]).await;
    let results = results(&result);
    assert_eq!(results[2], "\"a\" is at work on it.");
    assert!(results[3].contains("Two."), "{}", results[3]);
    let second = &shown(&model)[1];
    assert!(
        second.contains("The task of a.") && second.contains("One.") && second.contains("Go on."),
        "{second}"
    );
    assert_eq!(result.total_usage.total(), 770);
}

#[tokio::test(start_paused = true)]
async fn task_is_refused_when_the_member_works() {
    let again = call("assign_task", json!({"name": "a", "task": "Go on."}));
    let result = led(
        &team().template("a", hanging()),
        [spawn("a"), again, says("Done."), says("Really.")],
    )
    .await;
    assert_eq!(
        results(&result)[1],
        "\"a\" is at work; hint: send it a message, or wait until it is done"
    );
}

#[tokio::test(start_paused = true)]
async fn stopped_member_works_again_when_it_has_a_new_task() {
    let crew = team().template(
        "a",
        agent([says("Never.").wait_at(0, &Gate::default()), says("Back.")]),
    );
    let stop = call("stop_teammate", json!({"name": "a"}));
    let again = call("assign_task", json!({"name": "a", "task": "Try again."}));
    let result = led(
        &crew,
        [
            spawn("a"),
            wait(),
            stop,
            read(),
            again,
            wait(),
            says("Done."),
        ],
    )
    .await;
    assert!(
        results(&result)[5].contains("Back."),
        "{:?}",
        results(&result)
    );
}

#[tokio::test(start_paused = true)]
async fn name_is_free_when_its_member_has_ended() {
    let crew = team()
        .template("x", agent([says("One.")]))
        .template("y", agent([says("Two.")]));
    let of = |template: &str| {
        call(
            "spawn_teammate",
            json!({"name": "a", "task": "Work.", "template": template}),
        )
    };
    let result = led(&crew, [of("x"), wait(), of("y"), wait(), says("Done.")]).await;
    let results = results(&result);
    assert!(
        results[2].contains("teammate-2") && results[3].contains("Two."),
        "{results:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn team_serves_many_runs_when_it_is_used_again() {
    let (crew, seen) = reporting(team().template("a", agent([says("One."), says("Two.")])));
    let half = || [spawn("a"), wait(), says("Done.")];
    let lead = lead(&crew, half().into_iter().chain(half()));
    for (id, said) in [("teammate-1", "One."), ("teammate-2", "Two.")] {
        let result = lead.run("Go.").await.expect("the run finishes");
        let spawned = format!(r#"{{"member_id":"{id}","name":"a","status":"active"}}"#);
        assert_eq!(results(&result)[0], spawned, "no id is given twice");
        assert!(results(&result)[1].contains(said), "{:?}", results(&result));
    }
    assert_eq!(taken(&seen).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn members_end_together_when_their_common_budget_is_spent() {
    let busy = || agent((0..9).map(|_| call("list_teammates", json!({}))));
    let (crew, seen) = reporting(
        team()
            .member_caps(Caps {
                requests: Some(4),
                ..Caps::default()
            })
            .template("a", busy())
            .template("b", busy()),
    );
    let result = led(
        &crew,
        [spawn("a"), spawn("b"), wait_team(), read(), says("Done.")],
    )
    .await;
    let report = taken(&seen).remove(0);
    assert!(
        report
            .members
            .iter()
            .all(|it| &*it.result == "it reached its limit of requests"),
        "{report:?}"
    );
    assert_eq!(result.total_usage.total(), (5 + 4) * 110);
}

#[tokio::test(start_paused = true)]
async fn members_end_when_their_tokens_are_spent() {
    let busy = agent((0..9).map(|_| call("list_teammates", json!({}))));
    let crew = team()
        .member_caps(Caps {
            tokens: Some(250),
            ..Caps::default()
        })
        .template("a", busy);
    let result = led(&crew, [spawn("a"), wait(), says("Done.")]).await;
    assert!(
        results(&result)[1].contains("it reached its limit of tokens"),
        "{:?}",
        results(&result)
    );
    assert_eq!(result.total_usage.total(), 3 * 110 + 3 * 110);
}

#[tokio::test(start_paused = true)]
async fn member_has_the_limits_of_the_team_when_it_is_made_from_a_prompt() {
    let crew = team().member_limits(Limits {
        max_turns: Some(2),
        caps: Caps {
            requests: Some(1),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let model = ScriptedModel::new([
        call(
            "spawn_teammate",
            json!({"name": "a", "task": "Work.", "max_turns": 40}),
        ),
        wait(),
        call("list_teammates", json!({})),
        says("Done."),
    ]);
    let lead = crew.install(adjutant_agent::Agent::new(model));
    let result = lead.run("Go.").await.expect("the run finishes");
    assert!(
        results(&result)[1].contains("it reached its limit of requests"),
        "{:?}",
        results(&result)
    );
}

#[tokio::test(start_paused = true)]
async fn member_keeps_to_the_turns_of_its_template_when_the_lead_allows_more() {
    let busy = agent([read(), read(), says("Never.")]).max_turns(2);
    let asked = call(
        "spawn_teammate",
        json!({"name": "a", "task": "Work.", "max_turns": 40}),
    );
    let result = led(&team().template("a", busy), [asked, wait(), says("Done.")]).await;
    assert!(
        results(&result)[1].contains("it reached its limit of max turns"),
        "{:?}",
        results(&result)
    );
}

#[tokio::test(start_paused = true)]
async fn member_does_not_join_when_the_run_allows_no_more_agents() {
    let crew = team()
        .template("a", hanging())
        .template("b", agent([says("Yes.")]));
    let stop = call("stop_teammate", json!({"name": "a"}));
    let lead = lead(
        &crew,
        [
            spawn("a"),
            spawn("b"),
            stop,
            spawn("b"),
            wait_team(),
            read(),
            says("Done."),
        ],
    );
    let lead = lead.limits(Limits {
        caps: Caps {
            agents: Some(1),
            ..Caps::default()
        },
        ..Limits::default()
    });
    let result = lead.run("Go.").await.expect("the run finishes");
    let results = results(&result);
    assert_eq!(
        results[1],
        "no agent can be opened: the limit of agents at a time is reached"
    );
    assert_eq!(
        results[3],
        r#"{"member_id":"teammate-3","name":"b","status":"active"}"#
    );
    assert!(results[5].contains("Yes."), "{results:?}");
}
