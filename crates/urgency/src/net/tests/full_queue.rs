//! Unix connections to a listener whose queue is full.

use super::{
    limits::{in_a_process_of_its_own, is_child},
    *,
};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::path::{Path, PathBuf};

/// A listener whose queue is full, its path, and the clients in the queue.
fn full(name: &str) -> (UnixListener, PathBuf, Vec<rustix::fd::OwnedFd>) {
    let path = socket_path(name);
    let address = SocketAddrUnix::new(&path).unwrap();
    let socket = || {
        let flags = SocketFlags::NONBLOCK;
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    };
    let listener = socket();
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let mut queued = Vec::new();
    loop {
        let client = socket();
        match rustix::net::connect(&client, &address) {
            Ok(()) => queued.push(client),
            Err(error) => {
                assert_eq!(error, rustix::io::Errno::AGAIN);
                let listener = UnixListener::from_std(listener.into()).unwrap();
                return (listener, path, queued);
            }
        }
    }
}

/// Begins to connect: the first attempt, and the first wait.
fn begin(path: &Path) -> UnixConnecting {
    let mut connecting = Box::pin(UnixStream::connect(path));
    assert!(poll_once(connecting.as_mut()).is_pending());
    connecting
}

type UnixConnecting = Pin<Box<ConnectUnix>>;

fn threads_and_descriptors() -> (usize, usize) {
    let count = |folder| std::fs::read_dir(folder).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

#[test]
fn a_unix_connection_waits_for_room_in_the_queue_of_the_listener() {
    const CLIENTS: usize = 6;
    let (listener, path, queued) = full("full-listener");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| spawn(UnixStream::connect(&path)))
        .collect();
    block_on(async {
        let mut servers = Vec::new();
        for _ in 0..queued.len() + CLIENTS {
            servers.push(listener.accept().await.unwrap());
        }
        for client in clients {
            client.await.unwrap().unwrap();
        }
    });
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_closure_waits_for_room_in_the_queue_as_well() {
    let (listener, path, queued) = full("full-closure");
    let client = {
        let path = path.clone();
        spawn_fn(move || block_on(UnixStream::connect(path)))
    };
    for _ in 0..queued.len() + 1 {
        block_on(listener.accept()).unwrap();
    }
    client.get().unwrap().unwrap();
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_listener_that_closes_refuses_the_connections_that_wait() {
    let (listener, path, _queued) = full("full-closes");
    let connecting = begin(&path);
    drop(listener);
    let refused = block_on(connecting).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_dropped_unix_connection_to_a_full_queue_leaves_nothing() {
    if !is_child() {
        let me = "a_dropped_unix_connection_to_a_full_queue_leaves_nothing";
        return in_a_process_of_its_own(module_path!(), me);
    }
    const ATTEMPTS: usize = 40;
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let (listener, path, queued) = full("full-dropped");
    runtime.block_on(async {
        // The runtime has the threads and descriptors that it needs for one.
        let give_up = async || {
            let connecting = UnixStream::connect(&path);
            let late = time::timeout(Duration::from_millis(2), connecting).await;
            late.expect_err("the queue is full");
        };
        give_up().await;
        let (threads, descriptors) = threads_and_descriptors();
        for _ in 0..ATTEMPTS {
            give_up().await;
        }
        let after = threads_and_descriptors();
        assert_eq!(after.1, descriptors);
        assert!(after.0 < threads + ATTEMPTS / 2, "{} threads", after.0);
        for _ in 0..queued.len() {
            listener.accept().await.unwrap();
        }
        assert!(poll_once(pin!(listener.accept())).is_pending());
    });
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_shutdown_ends_the_unix_connections_that_wait_for_room() {
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let (listener, path, queued) = full("full-shutdown");
    let waits = Arc::new(AtomicUsize::new(0));
    let task = {
        let (path, waits) = (path.clone(), waits.clone());
        runtime.spawn(async move {
            let connecting = begin(&path);
            waits.store(1, Ordering::SeqCst);
            connecting.await.map(|_| ())
        })
    };
    while waits.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let report = runtime.shutdown_within(crate::Shutdown::Cancel, Duration::from_secs(20));
    assert_eq!(report.left, 0, "{report:?}");
    assert!(task.get().is_err());
    for _ in 0..queued.len() {
        block_on(listener.accept()).unwrap();
    }
    assert!(poll_once(pin!(listener.accept())).is_pending());
    let _ = std::fs::remove_file(path);
}
