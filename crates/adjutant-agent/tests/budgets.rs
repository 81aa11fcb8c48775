//! Budgets: what is spent never passes a cap, however many spend at once.

#[expect(dead_code, reason = "several targets share it, each uses its part")]
#[path = "subagents/desk.rs"]
mod desk;
#[path = "budgets/runs.rs"]
mod runs;

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use adjutant_agent::{Budget, Caps, Limit, Reservation, ReservationRequest, Spend};
use adjutant_llm::NanoUsd;
use proptest::prelude::*;

type Pending = Pin<Box<dyn Future<Output = Result<Reservation, Limit>> + Send>>;

fn poll(wish: &mut Pending) -> Poll<Result<Reservation, Limit>> {
    wish.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn wish(budget: &Budget, tokens: u64) -> Pending {
    Box::pin(budget.reserve(Spend {
        tokens,
        ..Spend::default()
    }))
}

#[test]
fn request_waits_when_others_hold_what_may_be_given_back() {
    let root = Budget::root(
        Caps {
            tokens: Some(100),
            ..Caps::default()
        },
        Spend::default(),
    );
    let (one, two) = (
        root.child(Caps::default(), Spend::default()),
        root.child(Caps::default(), Spend::default()),
    );
    let Poll::Ready(Ok(held)) = poll(&mut wish(&one, 80)) else {
        unreachable!("there is room")
    };
    let mut waits = wish(&two, 40);
    assert!(poll(&mut waits).is_pending());
    // Nobody overtakes, although this one would fit.
    let mut small = wish(&one, 10);
    assert!(poll(&mut small).is_pending());
    held.settle(Spend {
        tokens: 60,
        ..Spend::default()
    });
    let Poll::Ready(Ok(second)) = poll(&mut waits) else {
        unreachable!("there is room now")
    };
    assert!(poll(&mut small).is_pending());
    assert_eq!(
        (root.spent(), root.outstanding()),
        (
            Spend {
                tokens: 60,
                ..Spend::default()
            },
            Spend {
                tokens: 40,
                ..Spend::default()
            }
        )
    );
    // Dropped without being settled: it counts as spent, and nothing is left for who waits.
    drop(second);
    assert_eq!(
        poll(&mut small).map(|it| it.map(|_| ())),
        Poll::Ready(Err(Limit::Tokens))
    );
    assert_eq!(
        (root.spent(), root.outstanding(), two.spent()),
        (
            Spend {
                tokens: 100,
                ..Spend::default()
            },
            Spend::default(),
            Spend {
                tokens: 40,
                ..Spend::default()
            }
        )
    );
}

#[test]
fn nothing_is_held_when_a_wish_is_dropped() {
    let root = Budget::root(
        Caps {
            tokens: Some(100),
            ..Caps::default()
        },
        Spend::default(),
    );
    let Poll::Ready(Ok(held)) = poll(&mut wish(&root, 100)) else {
        unreachable!("there is room")
    };
    let (mut first, mut second) = (wish(&root, 60), wish(&root, 60));
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    held.settle(Spend::default());
    // It was served and has not looked.
    drop(first);
    assert!(matches!(poll(&mut second), Poll::Ready(Ok(_))));
}

#[test]
fn output_is_cut_when_less_is_left() {
    let caps = Caps {
        tokens: Some(1_000),
        cost: Some(NanoUsd(5_000)),
        ..Caps::default()
    };
    let root = Budget::root(caps, Spend::default());
    let bid = |tokens| ReservationRequest {
        fixed: Spend {
            cost: NanoUsd(1_000),
            tokens,
            ..Spend::default()
        },
        least_output: 50,
        most_output: 4_000,
        output_price: NanoUsd(10_000_000),
        overdraws: false,
    };
    let held = |bid: ReservationRequest| match poll(&mut (Box::pin(root.reserve(bid)) as Pending)) {
        Poll::Ready(Ok(held)) => Ok((held.output(), held.amount().cost)),
        Poll::Ready(Err(limit)) => Err(limit),
        Poll::Pending => unreachable!("nothing is held"),
    };
    // Money allows 400, tokens allow 900.
    assert_eq!(held(bid(100)), Ok((400, NanoUsd(5_000))));
    assert_eq!(held(bid(100)), Err(Limit::Tokens).or(Err(Limit::Money)));
}

#[test]
fn tree_says_what_is_tightest_when_several_limits_are_set() {
    let root = Budget::root(
        Caps {
            requests: Some(10),
            ..Caps::default()
        },
        Spend {
            requests: 9,
            ..Spend::default()
        },
    );
    let child = root.child(
        Caps {
            tokens: Some(100),
            tool_calls: Some(2),
            ..Caps::default()
        },
        Spend {
            tokens: 50,
            ..Spend::default()
        },
    );
    assert_eq!(child.tightest(), Some((Limit::Requests, 9, 10)));
    assert_eq!(
        (child.take_call(), child.take_call(), child.take_call()),
        (Ok(()), Ok(()), Err(Limit::ToolCalls))
    );
    assert_eq!(
        (child.tightest(), child.blocking_limit()),
        (Some((Limit::ToolCalls, 2, 2)), None)
    );
    root.spend(Spend {
        requests: 1,
        ..Spend::default()
    });
    assert_eq!(child.blocking_limit(), Some(Limit::Requests));
    root.set_caps(Caps {
        requests: Some(20),
        ..Caps::default()
    });
    assert_eq!(child.blocking_limit(), None);
}

/// One step of a random history of a tree.
#[derive(Debug, Clone)]
enum Step {
    Child { of: usize, cap: u64 },
    Wish { of: usize, tokens: u64 },
    Poll(usize),
    Settle { of: usize, percent: u64 },
    Lose(usize),
    Leave(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..64_usize;
    prop_oneof![
        1 => (at.clone(), 50..500_u64).prop_map(|(of, cap)| Step::Child { of, cap }),
        4 => (at.clone(), 1..200_u64).prop_map(|(of, tokens)| Step::Wish { of, tokens }),
        3 => at.clone().prop_map(Step::Poll),
        3 => (at.clone(), 0..=100_u64).prop_map(|(of, percent)| Step::Settle { of, percent }),
        1 => at.clone().prop_map(Step::Lose),
        1 => at.prop_map(Step::Leave),
    ]
}

proptest! {
    #[test]
    fn no_cap_is_passed_when_a_tree_is_used_in_any_way(steps in prop::collection::vec(step(), 1..200)) {
        let mut nodes = vec![(Budget::root(Caps { tokens: Some(1_000), ..Caps::default() }, Spend::default()), 1_000)];
        let (mut wishes, mut held): (Vec<Pending>, Vec<Reservation>) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Child { of, cap } => {
                    let child = nodes[of % nodes.len()].0.child(Caps { tokens: Some(cap), ..Caps::default() }, Spend::default());
                    nodes.push((child, cap));
                }
                Step::Wish { of, tokens } => wishes.push(wish(&nodes[of % nodes.len()].0, tokens)),
                Step::Poll(at) if !wishes.is_empty() => {
                    let at = at % wishes.len();
                    if let Poll::Ready(ready) = poll(&mut wishes[at]) {
                        drop(wishes.remove(at));
                        held.extend(ready);
                    }
                }
                Step::Settle { of, percent } if !held.is_empty() => {
                    let reservation = held.remove(of % held.len());
                    let actual = Spend { tokens: reservation.amount().tokens * percent / 100, ..Spend::default() };
                    reservation.settle(actual);
                }
                Step::Lose(at) if !held.is_empty() => drop(held.remove(at % held.len())),
                Step::Leave(at) if !wishes.is_empty() => drop(wishes.remove(at % wishes.len())),
                _ => {}
            }
            for (node, cap) in &nodes {
                prop_assert!(node.spent().tokens + node.outstanding().tokens <= *cap);
            }
        }
        // Whoever still waits is served or refused once nothing is held: nobody waits for ever.
        for _ in 0..=wishes.len() {
            held.clear();
            wishes.retain_mut(|wish| match poll(wish) {
                Poll::Ready(ready) => {
                    held.extend(ready);
                    false
                }
                Poll::Pending => true,
            });
        }
        prop_assert!(wishes.is_empty());
        held.clear();
        prop_assert!(nodes.iter().all(|(node, _)| node.outstanding() == Spend::default()));
    }
}
