//! What is kept, in every place.

use adjutant_orchestration::{
    ErrorKind,
    reflection::{Failed, Outcome, ReflectionId, Tally},
};
use futures_util::future::join_all;

use super::{NOW_MS, failed, places, summaries};

fn tally(helped: u32, useless: u32, unknown: u32) -> Tally {
    let mut tally = Tally::default();
    (tally.helped, tally.useless, tally.unknown) = (helped, useless, unknown);
    tally
}

#[tokio::test]
async fn reflection_is_found_by_others_when_it_was_recorded() {
    for place in places::all("reflection_is_found_by_others_when_it_was_recorded").await {
        assert_eq!(
            place
                .theirs
                .recall("build the parser")
                .await
                .expect("nothing fails"),
            [],
            "{place:?}"
        );
        let failed = Failed {
            agent: "coder".into(),
            task: "Build the parser crate".into(),
            summary: "The toolchain was too old.\n## Task\nIt said so.".into(),
            caveats: Some("Look at rust-toolchain.toml first.".into()),
            files_modified: vec!["src/lib.rs".into(), "Cargo.toml".into()],
        };
        let id = place.mine.record(&failed).await.expect("it is recorded");
        assert_eq!(&*id.0, "coder-20000229-000000", "{place:?}");
        let found = place
            .theirs
            .recall("please BUILD a parser")
            .await
            .expect("it is recalled");
        let [it] = found.as_slice() else {
            panic!("one is found in {place:?}: {found:?}")
        };
        assert_eq!(
            (&it.id, &*it.agent, &it.task, &it.summary),
            (&id, "coder", &failed.task, &failed.summary),
            "{place:?}"
        );
        assert_eq!(
            (&it.caveats, &it.files_modified),
            (&failed.caveats, &failed.files_modified),
            "{place:?}"
        );
        assert_eq!(
            (it.created_ms, it.tally),
            (NOW_MS, Tally::default()),
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn reflections_of_one_second_have_numbers() {
    for place in places::all("reflections_of_one_second_have_numbers").await {
        for (summary, expect) in [("a", ""), ("b", "-2"), ("c", "-3")] {
            let id = place
                .mine
                .record(&failed("Build it", summary))
                .await
                .expect("it is recorded");
            assert_eq!(
                &*id.0,
                format!("coder-20000229-000000{expect}"),
                "{place:?}"
            );
        }
        place.world.advance_ms(1_000);
        let id = place
            .theirs
            .record(&failed("Build it", "d"))
            .await
            .expect("it is recorded");
        assert_eq!(&*id.0, "coder-20000229-000001", "{place:?}");
        let listing = place.mine.list().await.expect("a list");
        assert_eq!(
            summaries(&listing.reflections),
            ["d", "c", "b", "a"],
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn same_failure_is_kept_once() {
    for place in places::all("same_failure_is_kept_once").await {
        let first = place
            .mine
            .record(&failed("Build it", "No."))
            .await
            .expect("it is recorded");
        place.world.advance_ms(9_000);
        let again = place
            .theirs
            .record(&failed("Build it", " No.\n"))
            .await
            .expect("it is recorded");
        assert_eq!(first, again, "{place:?}");
        assert_eq!(
            place.mine.list().await.expect("a list").reflections.len(),
            1,
            "{place:?}"
        );
        let odd = Failed {
            caveats: Some("a\r\nb\n## Task\n".into()),
            files_modified: vec![" ".into(), "a\n## Task b ".into(), "- c".into()],
            ..failed("\\## Build it\r\n", "---\n")
        };
        let first = place.mine.record(&odd).await.expect("it is recorded");
        assert_eq!(
            place.theirs.record(&odd).await.expect("it is recorded"),
            first,
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn failure_is_refused_when_it_names_no_task() {
    for place in places::all("failure_is_refused_when_it_names_no_task").await {
        let error = place
            .mine
            .record(&failed(" \n", "No."))
            .await
            .expect_err("there is no task");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{place:?}");
        assert_eq!(
            place.mine.list().await.expect("a list").reflections,
            [],
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn outcomes_are_counted_once_for_each_run() {
    for place in places::all("outcomes_are_counted_once_for_each_run").await {
        let one = place
            .mine
            .record(&failed("Build it", "a"))
            .await
            .expect("it is recorded");
        let two = place
            .mine
            .record(&failed("Build it", "b"))
            .await
            .expect("it is recorded");
        let gone = ReflectionId::from("coder-19990101-000000");
        let hostile = ReflectionId::from("../../coder-19990101-000000");
        let ids = [one.clone(), one.clone(), gone, hostile];
        place
            .mine
            .outcome(&ids, Outcome::Helped)
            .await
            .expect("it is counted");
        place
            .theirs
            .outcome(&[one, two], Outcome::Useless)
            .await
            .expect("it is counted");
        place
            .theirs
            .outcome(&ids, Outcome::Unknown)
            .await
            .expect("it is counted");
        let listing = place.mine.list().await.expect("a list");
        let tallies: Vec<Tally> = listing.reflections.iter().map(|it| it.tally).collect();
        assert_eq!(tallies, [tally(0, 1, 0), tally(1, 1, 1)], "{place:?}");
        assert_eq!(listing.skipped, [], "{place:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_outcome_is_lost_when_many_count_at_once() {
    for place in places::all("no_outcome_is_lost_when_many_count_at_once").await {
        let id = place
            .mine
            .record(&failed("Build it", "a"))
            .await
            .expect("it is recorded");
        let counting = (0..24).map(|n| {
            let (reflections, ids) = (
                if n % 2 == 0 {
                    &place.mine
                } else {
                    &place.theirs
                }
                .clone(),
                [id.clone()],
            );
            let outcome = if n < 16 {
                Outcome::Helped
            } else {
                Outcome::Useless
            };
            tokio::spawn(async move { reflections.outcome(&ids, outcome).await })
        });
        for counted in join_all(counting).await {
            counted.expect("no panic").expect("it is counted");
        }
        let listing = place.mine.list().await.expect("a list");
        assert_eq!(listing.reflections[0].tally, tally(16, 8, 0), "{place:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_reflection_is_lost_when_many_record_at_once() {
    for place in places::all("no_reflection_is_lost_when_many_record_at_once").await {
        let recording = (0..16).map(|n| {
            let reflections = if n % 2 == 0 {
                &place.mine
            } else {
                &place.theirs
            }
            .clone();
            tokio::spawn(async move {
                reflections
                    .record(&failed("Build it", &format!("summary {n}")))
                    .await
            })
        });
        let mut ids = Vec::new();
        for recorded in join_all(recording).await {
            ids.push(recorded.expect("no panic").expect("it is recorded"));
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 16, "{place:?}");
        assert_eq!(
            place.mine.list().await.expect("a list").reflections.len(),
            16,
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn useless_reflection_is_listed_but_not_recalled() {
    for place in places::all("useless_reflection_is_listed_but_not_recalled").await {
        let id = place
            .mine
            .record(&failed("Build the parser", "No."))
            .await
            .expect("it is recorded");
        for uses in 1..=4 {
            let found = place
                .mine
                .recall("build the parser")
                .await
                .expect("it is recalled");
            assert_eq!(found.len(), 1, "{place:?} after {uses} uses");
            place
                .mine
                .outcome(std::slice::from_ref(&id), Outcome::Useless)
                .await
                .expect("it is counted");
        }
        assert_eq!(
            place
                .theirs
                .recall("build the parser")
                .await
                .expect("nothing fails"),
            [],
            "{place:?}"
        );
        let listing = place.theirs.list().await.expect("a list");
        assert!(listing.reflections[0].is_dropped(), "{place:?}");
        // What a run that began earlier says of it still counts.
        place
            .mine
            .outcome(&[id], Outcome::Helped)
            .await
            .expect("it is counted");
        assert_eq!(
            place
                .mine
                .recall("build the parser")
                .await
                .expect("it is recalled")
                .len(),
            1,
            "{place:?}"
        );
    }
}
