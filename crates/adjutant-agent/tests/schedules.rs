//! Every order of what may happen to a run: no deadlock, and each queued message has exactly one end.

#[path = "property/check.rs"]
#[expect(dead_code, reason = "only transcripts are checked here")]
mod check;
#[path = "schedules/stage.rs"]
mod stage;

use proptest::{prelude::*, test_runner::Config};
use stage::{Move, Stage};

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        3 => Just(Move::Steer),
        3 => Just(Move::FollowUp),
        2 => Just(Move::Interrupt),
        2 => (0..8_usize).prop_map(Move::Withdraw),
        1 => Just(Move::Clear),
        1 => Just(Move::Cancel),
        6 => (1..6_usize).prop_map(Move::Chunks),
        4 => (1..12_usize).prop_map(Move::Rest),
    ]
}

/// Plays the moves against one session, in this order.
fn play(moves: &[Move], hooked: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(async {
        let mut stage = Stage::new(hooked);
        for made in moves {
            stage.play(*made).await;
        }
        stage.end().await;
    });
}

proptest! {
    #![proptest_config(Config { cases: 128, failure_persistence: None, ..Config::default() })]

    #[test]
    fn messages_have_one_end_when_anything_happens_in_any_order(
        moves in proptest::collection::vec(a_move(), 1..24),
        hooked in any::<bool>(),
    ) {
        play(&moves, hooked);
    }
}

/// All orders of these, one after the other.
fn orders(moves: &mut Vec<Move>, at: usize, visit: &mut impl FnMut(&[Move])) {
    if at == moves.len() {
        return visit(moves);
    }
    for next in at..moves.len() {
        if moves[at..next].contains(&moves[next]) {
            continue;
        }
        moves[at..=next].rotate_right(1);
        orders(moves, at + 1, visit);
        moves[at..=next].rotate_left(1);
    }
}

#[test]
fn messages_have_one_end_when_every_order_is_tried() {
    let mut moves = vec![
        Move::Chunks(2),
        Move::Steer,
        Move::Interrupt,
        Move::FollowUp,
        Move::Withdraw(0),
        Move::Cancel,
    ];
    let mut tried = 0;
    for hooked in [false, true] {
        orders(&mut moves, 0, &mut |moves| {
            let rested: Vec<Move> = moves
                .iter()
                .flat_map(|made| [*made, Move::Rest(3)])
                .collect();
            play(&rested, hooked);
            tried += 1;
        });
    }
    assert_eq!(tried, 2 * 720);
}
