//! Many sessions on one file.

use adjutant_core::{Flush, Journal, JournalErrorKind, Owner};

use super::{Place, append, check_kind, own, records, whole};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_logs_on_two_handles_lose_and_reorder_nothing() {
    let place = Place::new();
    let handles = [place.open().journal(), place.open().journal()];
    let mut writers = Vec::new();
    for number in 0..200_u64 {
        let journal = handles[number as usize % 2].clone();
        writers.push(tokio::spawn(async move {
            let mut log = own(&journal, &format!("log {number}")).await;
            for turn in 0..10_u64 {
                let flush = if (turn + number) % 5 == 0 {
                    Flush::Now
                } else {
                    Flush::Lazy
                };
                log.append(&records(turn * 3 + 1, turn * 3 + 3), flush)
                    .await
                    .expect("appended");
            }
        }));
    }
    for writer in writers {
        writer.await.expect("no panic");
    }
    let reader = place.open().journal();
    for number in 0..200 {
        assert_eq!(
            whole(&reader, &format!("log {number}")).await,
            records(1, 30)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn append_that_fails_does_not_fail_the_others_of_its_group() {
    let place = Place::new();
    let journal = place.open().journal();
    let mut late = Vec::new();
    for number in 0..20 {
        late.push(own(&journal, &format!("late {number}")).await);
        let taken = Owner {
            takes_over: true,
            ..Owner::default()
        };
        drop(
            journal
                .own(&format!("late {number}").into(), &taken)
                .await
                .expect("taken over"),
        );
    }
    let fenced = late.into_iter().map(|mut log| {
        tokio::spawn(async move {
            check_kind(
                log.append(&records(1, 1), Flush::Now).await,
                JournalErrorKind::Fenced,
            );
        })
    });
    let fine = (0..20).map(|number| {
        let journal = journal.clone();
        tokio::spawn(async move {
            let mut log = own(&journal, &format!("fine {number}")).await;
            for seq in 1..=20 {
                append(&mut *log, &records(seq, seq)).await;
            }
        })
    });
    for task in fenced.chain(fine).collect::<Vec<_>>() {
        task.await.expect("no panic");
    }
    for number in 0..20 {
        assert_eq!(
            whole(&place.open().journal(), &format!("fine {number}")).await,
            records(1, 20)
        );
        assert_eq!(whole(&journal, &format!("late {number}")).await, []);
    }
}

#[test]
fn programs_that_make_one_file_at_once_all_can() {
    let place = Place::new();
    std::thread::scope(|scope| {
        let opening: Vec<_> = (0..8).map(|_| scope.spawn(|| place.open())).collect();
        opening
            .into_iter()
            .for_each(|opening| drop(opening.join().expect("no panic")));
    });
    let tables: i64 = place
        .raw()
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'logs'",
            [],
            |row| row.get(0),
        )
        .expect("read");
    assert_eq!(tables, 1);
}
