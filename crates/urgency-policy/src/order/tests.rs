use super::*;
use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use proptest::prelude::*;

fn order(levels: &[&str], edges: &[(&str, &str)]) -> Result<Order, OrderError> {
    Order::new(levels, edges)
}

#[test]
fn sorted_declarations_keep_their_order() {
    let order = order(&["a", "b", "c", "d"], &[("a", "b"), ("b", "c"), ("a", "d")]).unwrap();
    assert_eq!(order.names(), ["a", "b", "c", "d"]);
    assert_eq!(order.masks(), [0b0, 0b1, 0b11, 0b1]);
}

#[test]
fn a_level_moves_only_behind_what_must_come_before_it() {
    let order = order(&["low", "free", "high"], &[("high", "low")]).unwrap();
    assert_eq!(order.names(), ["free", "high", "low"]);
    assert_eq!(order.masks(), [0, 0, 0b10]);
}

#[test]
fn one_level_may_wait_for_itself() {
    let order = order(&["only"], &[]).unwrap();
    assert!(order.may_wait(0, 0));
    assert_eq!(order.masks(), [0]);
}

#[test]
fn nobody_may_wait_for_a_rank_that_does_not_exist() {
    let order = order(&["only"], &[]).unwrap();
    for rank in [1, 63, 64, 65, 128, 255] {
        assert!(!order.may_wait(0, rank), "{rank}");
    }
}

#[test]
fn sixty_four_levels_are_an_order_and_sixty_five_are_not() {
    let names: Vec<String> = (0..65).map(|n| format!("l{n}")).collect();
    let edges: Vec<_> = (1..65)
        .map(|n| (names[n - 1].clone(), names[n].clone()))
        .collect();
    let order = Order::new(&names[..64], &edges[..63]).unwrap();
    assert_eq!(order.masks()[63], u64::MAX >> 1);
    assert!(order.may_wait(63, 0) && order.may_wait(63, 63) && !order.may_wait(0, 63));
    let error = Order::new(&names, &edges).unwrap_err();
    assert_eq!(error, OrderError::TooMany { given: 65 });
    assert!(error.to_string().contains("65") && error.to_string().contains("64"));
}

#[test]
fn no_level_is_an_error() {
    assert_eq!(order(&[], &[]), Err(OrderError::NoLevel));
}

#[test]
fn a_name_used_twice_is_named() {
    let error = order(&["a", "b", "a"], &[]).unwrap_err();
    assert_eq!(error, OrderError::Duplicate { name: "a".into() });
}

#[test]
fn an_edge_to_an_undeclared_level_is_named() {
    let error = order(&["a"], &[("a", "b")]).unwrap_err();
    assert_eq!(error, OrderError::Unknown { name: "b".into() });
}

#[test]
fn a_cycle_is_named_from_its_first_declared_level_without_what_hangs_on_it() {
    let edges = [
        ("top", "b"),
        ("b", "c"),
        ("c", "a"),
        ("a", "b"),
        ("c", "low"),
    ];
    let error = order(&["top", "a", "b", "c", "low"], &edges).unwrap_err();
    let names = vec!["a".into(), "b".into(), "c".into()];
    assert_eq!(error, OrderError::Cycle { names });
    assert!(error.to_string().contains("`a` > `b` > `c` > `a`"));
}

#[test]
fn a_level_above_itself_is_a_cycle() {
    let error = order(&["a"], &[("a", "a")]).unwrap_err();
    let names = vec!["a".into()];
    assert_eq!(error, OrderError::Cycle { names });
}

/// Is there a path of at least one edge? By Floyd and Warshall, on the declared numbers.
fn reachable(levels: usize, edges: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let mut reach = vec![vec![false; levels]; levels];
    for &(above, below) in edges {
        reach[above][below] = true;
    }
    for via in 0..levels {
        for from in 0..levels {
            for to in 0..levels {
                reach[from][to] |= reach[from][via] && reach[via][to];
            }
        }
    }
    reach
}

prop_compose! {
    fn any_edges()(levels in 1usize..=64)(
        edges in proptest::collection::vec((0..levels, 0..levels), 0..levels * 2),
        upwards in any::<bool>(),
        levels in Just(levels),
    ) -> (usize, Vec<(usize, usize)>) {
        // Unrestricted edges nearly always have a cycle; half of the cases must have none.
        let edges = edges.into_iter().filter(|(a, b)| !upwards || a.reverse_bits() < b.reverse_bits());
        (levels, edges.collect())
    }
}

proptest! {
    #[test]
    fn ranks_and_closure_agree_with_brute_force((levels, edges) in any_edges()) {
        let names: Vec<String> = (0..levels).map(|n| format!("l{n}")).collect();
        let named: Vec<_> = edges.iter().map(|&(a, b)| (names[a].clone(), names[b].clone())).collect();
        let reach = reachable(levels, &edges);
        match Order::new(&names, &named) {
            Ok(order) => {
                let rank: Vec<u8> = names.iter().map(|n| order.rank(n).unwrap()).collect();
                for a in 0..levels {
                    prop_assert!(!reach[a][a], "there is a cycle through {a}");
                    for b in 0..levels {
                        prop_assert_eq!(order.may_wait(rank[b], rank[a]), a == b || reach[a][b]);
                        prop_assert!(!reach[a][b] || rank[a] < rank[b]);
                    }
                }
                // Stable: a level that stands before one declared earlier had to.
                for at in 1..levels {
                    let number = |at: usize| rank.iter().position(|&r| usize::from(r) == at).unwrap();
                    let (before, here) = (number(at - 1), number(at));
                    prop_assert!(before < here || reach[before][here]);
                }
            }
            Err(OrderError::Cycle { names: cycle }) => {
                for (at, name) in cycle.iter().enumerate() {
                    let edge = (name.clone(), cycle[(at + 1) % cycle.len()].clone());
                    prop_assert!(named.contains(&edge), "{edge:?} is no edge");
                    prop_assert_eq!(cycle.iter().filter(|n| *n == name).count(), 1);
                }
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
