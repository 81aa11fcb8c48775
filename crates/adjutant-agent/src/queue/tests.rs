//! The lanes under every schedule of the threads that use them, and after every end of an executor.

use std::collections::BTreeMap;

use adjutant_core::{Lane, PostNo, Record};
use adjutant_llm::{Entry, UserMessage};
use shuttle::{
    sync::{Arc, Mutex},
    thread,
};

use super::{Append, Drain, Manner, lanes::Lanes};

fn message(text: &str) -> Entry {
    UserMessage::text(text).into()
}

fn text(entry: &Entry) -> String {
    match entry {
        Entry::User(message) => message
            .content
            .iter()
            .filter_map(|it| it.as_text())
            .collect(),
        _ => String::new(),
    }
}

/// A log that may fail to keep a batch, and what it folds to.
#[derive(Default)]
struct Log {
    queued: BTreeMap<u64, (Lane, Entry)>,
    numbered: u64,
    placed: Vec<String>,
}

impl Log {
    fn append(&mut self, record: &Record) {
        match record {
            Record::Queued {
                item,
                lane,
                content,
            } => {
                assert!(*item > self.numbered, "numbers count upwards");
                self.numbered = *item;
                self.queued.insert(*item, (*lane, content.clone()));
            }
            Record::Withdrawn { item } => {
                self.queued.remove(item).expect("it is queued");
            }
            Record::Placed { items, .. } => {
                let placed = items
                    .iter()
                    .map(|item| self.queued.remove(item).expect("it is queued").1);
                self.placed.extend(placed.map(|content| text(&content)));
            }
            _ => {}
        }
    }
}

/// Acts as an executor: hears, takes, records; some commits fail, and the log is read again.
fn executor(lanes: &Mutex<Lanes>, log: &mut Log, rounds: usize, fails: impl Fn(usize) -> bool) {
    let lock = || lanes.lock().expect("nobody panics inside");
    for round in 0..rounds {
        let lane = if round % 2 == 0 {
            Lane::Steering
        } else {
            Lane::FollowUp
        };
        let items: Vec<u64> = lock()
            .take(lane, Drain::One)
            .iter()
            .map(|held| held.item)
            .collect();
        thread::yield_now();
        let mut records = lock().hear();
        if !items.is_empty() {
            records.push(Record::Placed {
                items,
                revised: Vec::new(),
            });
        }
        lock().hand_over(&records);
        thread::yield_now();
        if fails(round) {
            lock().put_back(Append::Failed);
            thread::yield_now();
            lock().restore(log.queued.clone(), log.numbered, PostNo(0));
            continue;
        }
        records.iter().for_each(|record| log.append(record));
        records.iter().for_each(|record| lock().confirm(record));
    }
}

fn schedule(fails: fn(usize) -> bool) {
    let lanes = Arc::new(Mutex::new(Lanes::default()));
    let senders: Vec<_> = [(Lane::Steering, "s"), (Lane::FollowUp, "f")]
        .map(|(lane, name)| {
            let lanes = Arc::clone(&lanes);
            thread::spawn(move || {
                let lock = || lanes.lock().expect("nobody panics inside");
                let mut withdrawn = Vec::new();
                for nth in 0..3 {
                    let content = message(&format!("{name}{nth}"));
                    let pushed = lock()
                        .push(lane, content, Manner::Waits, 10)
                        .expect("there is room");
                    thread::yield_now();
                    if nth == 1 && lock().withdraw(lane, pushed.0) {
                        withdrawn.push(format!("{name}{nth}"));
                    }
                }
                withdrawn
            })
        })
        .into();
    let mut log = Log::default();
    executor(&lanes, &mut log, 6, fails);
    let withdrawn: Vec<String> = senders
        .into_iter()
        .flat_map(|it| it.join().expect("no panic"))
        .collect();
    executor(&lanes, &mut log, 1, |_| false);
    let waiting: Vec<String> = lanes
        .lock()
        .expect("nobody panics inside")
        .waiting()
        .map(|it| text(&it.content))
        .collect();
    for name in ["s0", "s1", "s2", "f0", "f1", "f2"] {
        let ends = [&log.placed, &withdrawn, &waiting]
            .map(|end| end.iter().filter(|it| *it == name).count());
        assert_eq!(
            ends.iter().sum::<usize>(),
            1,
            "{name}: placed, withdrawn, waiting: {ends:?}"
        );
    }
    for lane in ["s", "f"] {
        let placed: Vec<&String> = log
            .placed
            .iter()
            .chain(&waiting)
            .filter(|it| it.starts_with(lane))
            .collect();
        assert!(placed.is_sorted(), "{placed:?}");
    }
}

#[test]
fn messages_have_one_end_when_threads_and_the_executor_meet() {
    shuttle::check_random(|| schedule(|_| false), 500);
}

#[test]
fn messages_have_one_end_when_commits_fail() {
    shuttle::check_random(|| schedule(|round| round % 3 == 1), 500);
    shuttle::check_pct(|| schedule(|round| round % 2 == 0), 300, 3);
}

#[test]
fn numbers_of_another_program_win_when_the_log_is_read() {
    let mut lanes = Lanes::default();
    lanes
        .push(Lane::Steering, message("mine"), Manner::Waits, 10)
        .expect("there is room");
    assert_eq!(lanes.hear().len(), 1);
    lanes.restore(
        BTreeMap::from([(1, (Lane::Steering, message("theirs")))]),
        1,
        PostNo(0),
    );
    let waiting: Vec<_> = lanes
        .waiting()
        .map(|it| (it.item, text(&it.content)))
        .collect();
    assert_eq!(
        waiting,
        [(Some(1), "theirs".to_owned()), (None, "mine".to_owned())]
    );
    let queued = Record::Queued {
        item: 2,
        lane: Lane::Steering,
        content: message("mine"),
    };
    assert_eq!(lanes.hear(), [queued]);
}

#[test]
fn withdrawal_is_told_again_when_the_log_did_not_hear_of_it() {
    let mut lanes = Lanes::default();
    let (id, _) = lanes
        .push(Lane::FollowUp, message("gone"), Manner::Waits, 10)
        .expect("there is room");
    let logged = BTreeMap::from([(1, (Lane::FollowUp, message("gone")))]);
    assert_eq!(lanes.hear().len(), 1);
    assert!(lanes.withdraw(Lane::FollowUp, id));
    assert_eq!(lanes.hear(), [Record::Withdrawn { item: 1 }]);
    lanes.restore(logged, 1, PostNo(0));
    assert_eq!(
        (lanes.hear(), lanes.waiting().count()),
        (vec![Record::Withdrawn { item: 1 }], 0)
    );
    lanes.confirm(&Record::Withdrawn { item: 1 });
    lanes.restore(BTreeMap::new(), 1, PostNo(0));
    assert_eq!(lanes.hear(), []);
}
