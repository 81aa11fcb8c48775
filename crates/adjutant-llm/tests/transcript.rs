//! What a view shows after its edits, which entries are pinned, and how an open turn becomes an entry.

use std::sync::Arc;

use adjutant_llm::{
    Block, Call, CallId, CallResult, Custom, Edit, EditError, Entry, EntryId, Estimate,
    FinishReason, OpenTurn, Reply, Status, Summary, Turn, UserMessage, View,
};
use proptest::prelude::*;
use serde_json::json;

fn user(text: &str) -> Entry {
    UserMessage::text(text).into()
}

fn fold(upto: u64, keep: &[u64], text: &str) -> Edit {
    let keep = keep.iter().copied().map(EntryId).collect();
    Edit::Fold {
        upto: EntryId(upto),
        keep,
        into: Summary {
            text: text.into(),
            covers: 1,
        },
    }
}

fn view(entries: impl IntoIterator<Item = Entry>) -> View {
    let mut view = View::default();
    for entry in entries {
        view.apply(&Edit::Append { entry })
            .expect("appending always fits");
    }
    view
}

fn shown(view: &View) -> Vec<(u64, Entry)> {
    view.items()
        .iter()
        .map(|stored| (stored.id.0, stored.entry.clone()))
        .collect()
}

/// Folds what shows `a` to `e` under the ids 0 to 4, one fold after the other; kept entries are `a` to `e`, summaries
/// in brackets.
#[track_caller]
fn check(folds: &[Edit], expect: Result<&[(u64, &str)], EditError>) {
    let mut view = view(["a", "b", "c", "d", "e"].map(user));
    let before = view.clone();
    let (last, first) = folds.split_last().expect("at least one fold");
    first
        .iter()
        .for_each(|edit| view.apply(edit).expect("the first folds fit"));
    let expect = expect.map(|shown| {
        let entry = |text: &str| match text.strip_prefix('[') {
            Some(summary) => Entry::Summary(Summary {
                text: summary.trim_end_matches(']').into(),
                covers: 1,
            }),
            None => user(text),
        };
        shown
            .iter()
            .map(|(id, text)| (*id, entry(text)))
            .collect::<Vec<_>>()
    });
    let untouched = view.clone();
    let applied = view.apply(last);
    if applied.is_err() {
        assert_eq!(view, untouched);
    }
    assert_eq!(applied.map(|()| shown(&view)), expect);
    assert_eq!(view.items().next_id(), before.items().next_id());
}

#[test]
fn fold_shows_what_it_keeps_before_the_summary_when_it_is_applied() {
    check(&[fold(2, &[], "x")], Ok(&[(2, "[x]"), (3, "d"), (4, "e")]));
    check(
        &[fold(2, &[0], "x")],
        Ok(&[(0, "a"), (2, "[x]"), (3, "d"), (4, "e")]),
    );
    check(
        &[fold(3, &[2, 0], "x")],
        Ok(&[(0, "a"), (2, "c"), (3, "[x]"), (4, "e")]),
    );
    check(
        &[fold(3, &[1, 1], "x")],
        Ok(&[(1, "b"), (3, "[x]"), (4, "e")]),
    );
    check(
        &[fold(4, &[0, 1, 2, 3], "x")],
        Ok(&[(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "[x]")]),
    );
    check(
        &[fold(0, &[], "x")],
        Ok(&[(0, "[x]"), (1, "b"), (2, "c"), (3, "d"), (4, "e")]),
    );
}

#[test]
fn fold_is_refused_when_it_keeps_what_it_does_not_fold() {
    check(&[fold(2, &[2], "x")], Err(EditError(EntryId(2))));
    check(&[fold(2, &[0, 3], "x")], Err(EditError(EntryId(3))));
    check(&[fold(2, &[0, 9], "x")], Err(EditError(EntryId(9))));
    check(&[fold(9, &[0], "x")], Err(EditError(EntryId(9))));
    check(
        &[fold(2, &[0], "x"), fold(3, &[1], "y")],
        Err(EditError(EntryId(1))),
    );
    assert_eq!(
        EditError(EntryId(1)).to_string(),
        "the edit does not fit the view at entry 1"
    );
}

#[test]
fn fold_folds_what_an_earlier_fold_left_when_it_does_not_keep_it() {
    let first = || fold(2, &[0, 1], "x");
    check(&[first(), fold(3, &[], "y")], Ok(&[(3, "[y]"), (4, "e")]));
    check(
        &[first(), fold(3, &[1], "y")],
        Ok(&[(1, "b"), (3, "[y]"), (4, "e")]),
    );
    check(
        &[first(), fold(3, &[0, 2], "y")],
        Ok(&[(0, "a"), (2, "[x]"), (3, "[y]"), (4, "e")]),
    );
    check(
        &[first(), fold(2, &[1], "y")],
        Ok(&[(1, "b"), (2, "[y]"), (3, "d"), (4, "e")]),
    );
    check(
        &[first(), fold(1, &[], "y")],
        Ok(&[(1, "[y]"), (2, "[x]"), (3, "d"), (4, "e")]),
    );
}

/// What a view is: the entries by their ids, and the id that the next one gets.
#[derive(Clone)]
struct Model {
    items: Vec<(u64, Entry)>,
    next: u64,
}

impl Model {
    fn apply(&mut self, edit: &Edit) -> Result<(), EditError> {
        let shown = |id: EntryId| self.items.iter().any(|(it, _)| *it == id.0);
        match edit {
            Edit::Append { entry } => {
                self.items.push((self.next, entry.clone()));
                self.next += 1;
            }
            Edit::Replace { at, with } => {
                let found = self
                    .items
                    .iter_mut()
                    .find(|(it, _)| *it == at.0)
                    .ok_or(EditError(*at))?;
                found.1 = with.clone();
            }
            Edit::Fold { upto, keep, into } => {
                if !shown(*upto) {
                    return Err(EditError(*upto));
                }
                if let Some(wrong) = keep.iter().find(|id| **id >= *upto || !shown(**id)) {
                    return Err(EditError(*wrong));
                }
                self.items
                    .retain(|(it, _)| *it > upto.0 || keep.contains(&EntryId(*it)));
                let at = self.items.iter().take_while(|(it, _)| *it < upto.0).count();
                self.items
                    .insert(at, (upto.0, Entry::Summary(into.clone())));
            }
            other => unreachable!("an edit that no test makes: {other:?}"),
        }
        Ok(())
    }

    /// An id that is shown; of none, 0.
    fn id(&self, pick: usize) -> u64 {
        self.items
            .get(pick % self.items.len().max(1))
            .map_or(0, |(id, _)| *id)
    }
}

/// An edit of what the model shows, mostly one that fits. Replacements are the most frequent.
fn edit(model: &Model, (kind, pick, keep): &(u8, usize, Vec<usize>), n: usize) -> Edit {
    let text = format!("edit {n}");
    match kind {
        0..3 => Edit::Append { entry: user(&text) },
        3..17 => Edit::Replace {
            at: EntryId(model.id(*pick)),
            with: user(&text),
        },
        17 => Edit::Replace {
            at: EntryId(*pick as u64),
            with: user(&text),
        },
        18 => fold(
            *pick as u64,
            &keep.iter().map(|it| *it as u64).collect::<Vec<_>>(),
            &text,
        ),
        _ => {
            // Early in the view, or soon nothing would be left of it.
            let upto = model.id(pick % 12);
            let keep: Vec<u64> = keep
                .iter()
                .map(|it| model.id(it % 12))
                .filter(|id| *id < upto)
                .collect();
            fold(upto, &keep, &text)
        }
    }
}

fn texts(count: usize) -> impl Iterator<Item = Entry> {
    (0..count).map(|n| user(&format!("entry {n}")))
}

proptest! {
    #[test]
    fn apply_all_is_apply_one_by_one_when_edits_are_random(
        count in 0_usize..200,
        picks in prop::collection::vec((0_u8..22, 0_usize..220, prop::collection::vec(0_usize..220, 0..4)), 0..40),
    ) {
        let start = view(texts(count));
        let mut model = Model { items: shown(&start), next: count as u64 };
        let (mut one_by_one, mut edits, mut expect) = (start.clone(), Vec::new(), Ok(()));
        for (n, pick) in picks.iter().enumerate() {
            edits.push(edit(&model, pick, n));
            let before = one_by_one.clone();
            expect = model.apply(&edits[n]);
            prop_assert_eq!(one_by_one.apply(&edits[n]), expect.clone());
            if expect.is_err() {
                prop_assert_eq!(&one_by_one, &before);
                break;
            }
        }
        prop_assert_eq!(shown(&one_by_one), model.items.clone());
        prop_assert_eq!(one_by_one.items().tokens(), model.items.iter().map(|(_, entry)| Estimate::entry(entry)).sum::<u64>());
        for id in 0..model.next + 2 {
            let place = model.items.iter().position(|(it, _)| *it == id);
            prop_assert_eq!(one_by_one.items().position(EntryId(id)), place);
        }
        let mut at_once = start.clone();
        prop_assert_eq!(at_once.apply_all(&edits), expect.clone());
        prop_assert_eq!(&at_once, if expect.is_ok() { &one_by_one } else { &start });
        prop_assert_eq!(at_once.items().tokens(), at_once.items().iter().map(|it| it.tokens).sum::<u64>());
    }
}

#[test]
fn apply_all_sees_earlier_edits_when_later_ones_build_on_them() {
    let mut view = view(texts(2));
    let edits = [
        Edit::Replace {
            at: EntryId(0),
            with: user("A"),
        },
        Edit::Append { entry: user("c") },
        Edit::Replace {
            at: EntryId(2),
            with: user("C"),
        },
        Edit::Replace {
            at: EntryId(0),
            with: user("AA"),
        },
        fold(1, &[0], "x"),
        Edit::Replace {
            at: EntryId(1),
            with: user("b"),
        },
    ];
    view.apply_all(&edits).expect("every entry is shown");
    assert_eq!(
        shown(&view),
        [(0, user("AA")), (1, user("b")), (2, user("C"))]
    );
    let before = view.clone();
    let edits = [
        Edit::Append { entry: user("d") },
        Edit::Replace {
            at: EntryId(9),
            with: user("e"),
        },
    ];
    assert_eq!(view.apply_all(&edits), Err(EditError(EntryId(9))));
    assert_eq!(view, before);
}

#[test]
fn edits_take_no_id_twice_when_the_newest_entries_are_gone() {
    let mut stored = serde_json::to_value(view(texts(2))).expect("it can be stored");
    stored["next"] = json!(7);
    let mut view: View = serde_json::from_value(stored).expect("it reads back");
    view.apply(&Edit::Replace {
        at: EntryId(1),
        with: user("b"),
    })
    .expect("the entry is shown");
    view.apply(&fold(1, &[], "x")).expect("the entry is shown");
    view.apply(&Edit::Append { entry: user("c") })
        .expect("appending always fits");
    let summary = Entry::Summary(Summary {
        text: "x".into(),
        covers: 1,
    });
    assert_eq!(shown(&view), [(1, summary), (7, user("c"))]);
}

fn id(block: u32) -> CallId {
    CallId {
        turn: 1,
        attempt: 0,
        block,
    }
}

/// A turn of two calls, of which the second has its result.
fn half(result: CallResult) -> OpenTurn {
    let mut reply = Reply::new("vendor/model".into(), FinishReason::Calls);
    let call = |block| Call {
        id: id(block),
        wire_id: None,
        name: "look".into(),
        args: "{}".into(),
        extra: Default::default(),
    };
    reply.blocks = (0..2)
        .map(|block| Arc::new(Block::Call(call(block))))
        .collect();
    let mut open = Turn::open(Arc::new(reply));
    open.put(id(1), Arc::new(result))
        .expect("the call waits for its result");
    open
}

fn results(turn: &Turn) -> Vec<(CallId, CallResult)> {
    turn.pairs()
        .map(|(call, result)| (call.id, CallResult::clone(result)))
        .collect()
}

#[test]
fn open_turn_keeps_its_results_when_the_missing_ones_are_made() {
    let turn = half(CallResult::ok("b"))
        .close_with(|call| CallResult::new(Status::Denied, call.id.to_string()));
    assert_eq!(
        results(&turn),
        [
            (id(0), CallResult::new(Status::Denied, "c1_0_0")),
            (id(1), CallResult::ok("b"))
        ]
    );
    let entry = Entry::from(half(CallResult::ok("b")));
    let missing = CallResult::new(Status::Cancelled, "not executed: no result was recorded");
    let expect = half(CallResult::ok("b")).close_with(|_| missing.clone());
    assert_eq!(results(&expect)[0], (id(0), missing));
    assert_eq!(entry, Entry::from(expect));
}

#[test]
fn entry_is_pinned_when_its_message_or_a_result_is() {
    let summary = Summary {
        text: "a".into(),
        covers: 1,
    };
    let cases = [
        (user("a"), false),
        (
            UserMessage {
                pinned: true,
                ..UserMessage::text("a")
            }
            .into(),
            true,
        ),
        (half(CallResult::ok("b")).into(), false),
        (
            half(CallResult {
                pinned: true,
                ..CallResult::ok("b")
            })
            .into(),
            true,
        ),
        (Entry::Summary(summary), false),
        (
            Custom {
                kind: "mark".into(),
                value: json!({"pinned": true}),
            }
            .into(),
            false,
        ),
    ];
    for (entry, expect) in cases {
        assert_eq!(entry.is_pinned(), expect, "{entry:?}");
    }
}
