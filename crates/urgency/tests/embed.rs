//! What `embed` promises to other fork-join interfaces.

use std::{
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};
use urgency::{Runtime, embed::Host};

#[test]
fn threads_that_were_brought_find_all_work_however_they_meet_it() {
    let runtime = Runtime::builder().workers(2).brought_threads();
    let runtime = runtime.build().unwrap();
    let host = Host::of(&runtime);
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let host = host.clone();
            thread::spawn(move || host.serve(number))
        })
        .collect();
    let begin = Instant::now();
    for round in 0..20_000_u32 {
        // The first blocks until the second has run, on the other thread, which may just go to sleep.
        let (send, receive) = channel();
        let (end, ended) = channel();
        host.spawn(move || {
            let _ = receive.recv();
            let _ = end.send(());
        });
        (0..round % 64 * 16).for_each(|_| std::hint::spin_loop());
        host.spawn(move || {
            let _ = send.send(());
        });
        let ended = ended.recv_timeout(Duration::from_secs(20));
        ended.expect("a job is left behind");
        if begin.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
    drop((runtime, host));
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}
