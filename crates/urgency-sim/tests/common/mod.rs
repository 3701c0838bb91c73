//! What several files of tests need.

use std::{sync::mpsc, thread, time::Duration};

/// Does something that ends within a minute. (A thread that does not end is left behind.)
pub fn ends<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(what()));
    let ended = told.recv_timeout(Duration::from_secs(60));
    ended.expect("it panics, or does not end")
}
