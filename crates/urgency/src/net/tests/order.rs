//! The order in which readiness wakes tasks, and what a connection does before it is awaited.

use super::*;
use std::os::unix::net as unix;

/// The numbers below `count` in an order that is neither rising nor falling.
fn scrambled(count: usize) -> Vec<usize> {
    (0..count).map(|n| n * 7 % count).collect()
}

/// How often a task ran before one whose socket had become readable earlier, and how often relief intervened.
fn reorderings() -> (usize, u64) {
    const SOCKETS: usize = 40;
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let waiting = Arc::new(AtomicUsize::new(0));
    let (mut writers, mut tasks) = (Vec::new(), Vec::new());
    for n in 0..SOCKETS {
        let (writer, reader) = unix::UnixStream::pair().unwrap();
        writers.push(writer);
        let (ran, waiting) = (ran.clone(), waiting.clone());
        tasks.push(runtime.spawn(async move {
            let reader: UnixStream = reader.try_into().unwrap();
            waiting.fetch_add(1, Ordering::SeqCst);
            reader.read_exact(&mut [0]).await.unwrap();
            ran.lock().unwrap().push(n);
        }));
    }
    let all_wait =
        || waiting.load(Ordering::SeqCst) == SOCKETS && runtime.stats().levels[0].queued == 0;
    while !all_wait() {
        std::thread::yield_now();
    }
    // On the only worker: no task runs before all sockets are readable.
    let order = scrambled(SOCKETS);
    let write = order.clone();
    let writes = runtime.spawn_fn(move || {
        for n in write {
            writers[n].write_all(b"x").unwrap();
        }
        writers
    });
    let _open = writes.get().unwrap();
    for task in tasks {
        task.get().unwrap();
    }
    let place = |n: &usize| order.iter().position(|m| m == n).unwrap();
    let places: Vec<_> = ran.lock().unwrap().iter().map(place).collect();
    assert_eq!(places.len(), SOCKETS);
    let reordered = places.windows(2).filter(|pair| pair[0] > pair[1]).count();
    (reordered, runtime.stats().total().reliefs)
}

/// The order within the kernel is exact (see the driver's test). Two threads may come out of the poller at
/// once, each wakes what it found, and one of them may lose its processor meanwhile; relief runs two tasks at
/// once. So such attempts do not count: but no other order than the kernel's gives forty tasks exactly in its
/// order, ten times.
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
fn tasks_run_in_the_order_in_which_their_sockets_became_readable() {
    let attempts = (0..200).map(|_| reorderings());
    let in_order = attempts.filter(|attempt| *attempt == (0, 0));
    assert_eq!(in_order.take(10).count(), 10, "of 200 attempts");
}

#[test]
fn a_unix_connection_is_made_before_it_is_awaited() {
    let path = socket_path("started-connect");
    let listener = UnixListener::bind(&path).unwrap();
    let connecting = UnixStream::connect(&path);
    block_on(async {
        let (server, _) = listener.accept().await.unwrap();
        server.write_all(b"x").await.unwrap();
        let client = connecting.await.unwrap();
        client.read_exact(&mut [0]).await.unwrap();
        drop(UnixStream::connect(&path));
        let (dropped, _) = listener.accept().await.unwrap();
        assert_eq!(dropped.read(&mut [0]).await.unwrap(), 0);
        drop(listener);
        let refused = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    });
    let _ = std::fs::remove_file(path);
}
