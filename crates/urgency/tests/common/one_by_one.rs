//! The order in which one worker serves a level.

use std::sync::{Arc, Mutex};
use urgency::{Runtime, policy::AnyOrder};

/// In which order one worker runs the tasks 0..n that a closure spawned before it ended.
pub fn order(kind: impl Into<AnyOrder>, n: usize) -> Vec<usize> {
    let kind = kind.into();
    loop {
        let runtime = Runtime::builder().workers(1).pool(kind.clone());
        let runtime = runtime.build().unwrap();
        let ran = Arc::new(Mutex::new(Vec::new()));
        let theirs = ran.clone();
        let spawner = runtime.spawn_fn(move || {
            let spawn = |i| {
                let ran = theirs.clone();
                urgency::spawn(async move { ran.lock().unwrap().push(i) })
            };
            (0..n).map(spawn).collect::<Vec<_>>()
        });
        for handle in spawner.get().unwrap() {
            handle.get().unwrap();
        }
        // If the spawner was relieved, its tasks ran while it still spawned.
        if runtime.stats().total().reliefs == 0 {
            return Arc::into_inner(ran).unwrap().into_inner().unwrap();
        }
    }
}
