//! What the table answers, what the types cost. The macro's output is tested in `tests/levels.rs`,
//! what must not compile in `tests/compile_fail.rs`.

use super::*;
use crate::rank::LevelTable;
use std::any::TypeId;

/// 0 above 1 and 2, those above 3; 4 beside all.
#[derive(Debug)]
enum Diamond {}

impl Levels for Diamond {
    const NAME: &'static str = "Diamond";
    const NAMES: &'static [&'static str] = &["top", "left", "right", "bottom", "alone"];
    const ABOVE: &'static [u64] = &[0, 0b1, 0b1, 0b111, 0];
}

#[test]
fn the_table_lets_work_wait_for_its_own_level_and_those_above() {
    let table = LevelTable::of::<Diamond>();
    let allowed: Vec<Vec<u8>> = (0..5)
        .map(|waiter| (0..5).filter(|&a| table.may_wait(waiter, a)).collect())
        .collect();
    assert_eq!(
        allowed,
        [vec![0], vec![0, 1], vec![0, 2], vec![0, 1, 2, 3], vec![4]]
    );
}

#[test]
fn a_level_of_another_order_is_refused_by_a_message_that_names_both() {
    let table = LevelTable::of::<Diamond>();
    assert_eq!(table.check(TypeId::of::<Diamond>(), Diamond::NAME), Ok(()));
    let error = table
        .check(TypeId::of::<OneLevel>(), OneLevel::NAME)
        .unwrap_err();
    assert_eq!((error.used(), error.built_with()), ("OneLevel", "Diamond"));
    let text = error.to_string();
    assert!(
        text.contains("`OneLevel`") && text.contains("`Diamond`"),
        "{text}"
    );
}

#[test]
fn the_table_has_the_names_by_rank() {
    let table = LevelTable::of::<Diamond>();
    assert_eq!((table.len(), table.names()), (5, Diamond::NAMES));
}

#[test]
fn ranks_from_64_on_are_no_levels() {
    assert_eq!(LevelId::new(63).map(LevelId::rank), Some(63));
    assert_eq!(LevelId::new(64), None);
    assert_eq!(LevelId::from(Normal), LevelId::MOST_URGENT);
}

#[test]
fn the_proof_of_a_level_and_the_level_of_a_handle_have_no_size() {
    assert_eq!(size_of::<Cx<'static, Normal>>(), 0);
    assert_eq!(
        size_of::<TypedHandle<u32, Normal>>(),
        size_of::<crate::JoinHandle<u32>>()
    );
}

#[test]
fn a_proof_and_a_handle_can_be_sent_and_shared() {
    fn check<T: Send + Sync>() {}
    check::<Cx<'static, Normal>>();
    check::<TypedHandle<u32, Normal>>();
    check::<TypedShared<u32, Normal>>();
}
