//! Tests through the public interface.

use super::*;

fn store() -> Store {
    Store::new(&Limits::default()).unwrap()
}

fn value(store: &Store, key: &[u8], now: u32) -> Option<Vec<u8>> {
    store.get(key, now, |item| {
        let mut value = Vec::new();
        item.copy_to(&mut value);
        value
    })
}

fn set(store: &Store, key: &[u8], data: &[u8], expires: u32, now: u32) -> u64 {
    store
        .entry(key, now)
        .set(&NewItem {
            expires,
            value: &[data],
            ..NewItem::default()
        })
        .unwrap()
}

#[test]
fn what_was_set_is_read_until_it_expires() {
    let store = store();
    set(&store, b"a", b"1", 10, 2);
    assert_eq!(value(&store, b"a", 9).as_deref(), Some(&b"1"[..]));
    assert_eq!(value(&store, b"a", 10), None);
    assert!(store.entry(b"a", 10).item().is_none());
}

#[test]
fn each_write_gets_a_higher_cas_id() {
    let store = store();
    let first = set(&store, b"a", b"1", 0, 2);
    let second = set(&store, b"b", b"2", 0, 2);
    assert!(second > first);
    let third = store.entry(b"a", 2).append(&[b"x"]).unwrap();
    assert!(third > second);
    assert_eq!(store.get(b"a", 2, |item| item.cas()), Some(third));
}

#[test]
fn a_flush_takes_what_was_stored_before_its_time() {
    let store = store();
    set(&store, b"a", b"1", 0, 2);
    store.flush_all(5, 2);
    assert!(value(&store, b"a", 4).is_some());
    assert!(value(&store, b"a", 5).is_none());
    set(&store, b"a", b"2", 0, 5);
    assert!(value(&store, b"a", 6).is_some());
    store.flush_all(0, 6);
    assert!(value(&store, b"a", 6).is_none());
}

#[test]
fn too_large_is_said_with_the_limit() {
    let store = store();
    let value = vec![0; 2 << 20];
    let error = store.entry(b"a", 2).set(&NewItem {
        value: &[&value],
        ..NewItem::default()
    });
    assert!(
        matches!(
            error,
            Err(StoreError::TooLarge {
                most: 1_048_576,
                ..
            })
        ),
        "{error:?}"
    );
}
