//! Tokio's `sync`, `select!`, `join!` and `io` run on Urgency as they are: none of them needs Tokio's runtime.

use std::sync::Arc;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{Barrier, Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch},
};
use urgency::Runtime;

#[test]
fn tokios_channels_and_locks_run_in_tasks_of_urgency_as_they_are() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let counted = runtime.block_on(async {
        let (lock, room) = (Arc::new(Mutex::new(0)), Arc::new(Semaphore::new(2)));
        let (each, all) = (Arc::new(RwLock::new(1)), Arc::new(Barrier::new(10)));
        let (send, mut receive) = mpsc::channel(1);
        let tasks: Vec<_> = (0..10)
            .map(|n| {
                let (lock, room, each) = (lock.clone(), room.clone(), each.clone());
                let (all, send) = (all.clone(), send.clone());
                urgency::spawn(async move {
                    let _waited = all.wait().await;
                    for _ in 0..100 {
                        let _permit = room.acquire().await.unwrap();
                        *lock.lock().await += *each.read().await;
                    }
                    send.send(n).await.unwrap();
                })
            })
            .collect();
        drop(send);
        let mut sum = 0;
        while let Some(n) = receive.recv().await {
            sum += n;
        }
        for task in tasks {
            task.await.unwrap();
        }
        (*lock.lock().await, sum)
    });
    assert_eq!(counted, (1000, 45));
}

#[test]
fn tokios_select_and_join_wait_for_events_of_urgency_as_they_are() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async {
        let (stop, mut stopped) = watch::channel(false);
        let (news, mut heard) = broadcast::channel(8);
        let (done, finished) = oneshot::channel();
        let notify = Arc::new(Notify::new());
        let theirs = notify.clone();
        let server = urgency::spawn(async move {
            let mut got = Vec::new();
            loop {
                tokio::select! {
                    biased;
                    message = heard.recv() => got.push(message.unwrap()),
                    _ = stopped.changed() => break,
                    _ = urgency::time::sleep(urgency::time::Duration::from_secs(60)) => panic!("late"),
                }
                theirs.notify_one();
            }
            done.send(got).unwrap();
        });
        for n in 0..3 {
            news.send(n).unwrap();
            notify.notified().await;
        }
        stop.send(true).unwrap();
        let (got, ended) = tokio::join!(finished, server);
        assert_eq!(got.unwrap(), [0, 1, 2]);
        ended.unwrap();
    });
}

#[test]
fn tokios_io_extensions_take_sockets_of_urgency_as_they_are() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async {
        let (a, b) = urgency::net::UnixStream::pair().unwrap();
        let (mut pipe, far) = tokio::io::duplex(8);
        let bridge = urgency::spawn(async move {
            let (mut far, mut a) = (far, a);
            tokio::io::copy_bidirectional(&mut far, &mut a).await
        });
        let mut b = tokio::io::BufStream::new(b);
        pipe.write_all(b"there and back").await.unwrap();
        let mut text = [0; 14];
        b.read_exact(&mut text).await.unwrap();
        b.write_all(&text).await.unwrap();
        b.shutdown().await.unwrap();
        pipe.shutdown().await.unwrap();
        let mut back = String::new();
        pipe.read_to_string(&mut back).await.unwrap();
        assert_eq!(back, "there and back");
        assert_eq!(bridge.await.unwrap().unwrap(), (14, 14));
    });
}
