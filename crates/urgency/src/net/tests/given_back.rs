//! What was started and is dropped or cancelled: no byte, datagram, connection or wake-up is lost.

use super::*;

#[test]
fn reads_that_are_cancelled_all_the_time_lose_no_byte() {
    let (client, server) = block_on(pair());
    const BYTES: usize = 20_000;
    let sender = spawn(async move {
        for n in 0..BYTES {
            client.write_all(&[(n % 256) as u8]).await.unwrap();
            if n % 7 == 0 {
                yield_now().await;
            }
        }
    });
    let receiver = spawn(async move {
        let mut received = 0;
        let mut cancelled = 0;
        while received < BYTES {
            let mut buffer = [0; 13];
            // Polled once or twice and then dropped, ready or not.
            let count = {
                let mut read = pin!(server.read(&mut buffer));
                let mut polls = 0;
                poll_fn(|cx| match read.as_mut().poll(cx) {
                    Poll::Ready(count) => Poll::Ready(Some(count.unwrap())),
                    Poll::Pending if polls == received % 2 => Poll::Ready(None),
                    Poll::Pending => {
                        polls += 1;
                        Poll::Pending
                    }
                })
                .await
            };
            match count {
                None => {
                    cancelled += 1;
                    yield_now().await;
                }
                Some(count) => {
                    for byte in &buffer[..count] {
                        assert_eq!(*byte, (received % 256) as u8);
                        received += 1;
                    }
                }
            }
        }
        cancelled
    });
    sender.get().unwrap();
    receiver.get().unwrap();
}

#[test]
fn a_started_read_that_is_dropped_gives_its_bytes_back() {
    block_on(async {
        let (client, server) = pair().await;
        client.write_all(b"abcdef").await.unwrap();
        server.readable().await.unwrap();
        drop(server.start_read(vec![0; 4]));
        let mut buffer = [0; 3];
        assert_eq!(server.peek(&mut buffer).await.unwrap(), 3);
        assert_eq!(server.read(&mut buffer).await.unwrap(), 3);
        assert_eq!(&buffer, b"abc");
        let (count, buffer) = server.start_read(vec![0; 100]).await;
        assert_eq!(&buffer[..count.unwrap()], b"d");
        let (count, buffer) = server.start_read(vec![0; 100]).cancel().unwrap();
        assert_eq!(&buffer[..count.unwrap()], b"ef");
        assert!(server.start_read(vec![0; 1]).cancel().is_none());
    });
}

#[test]
fn bytes_that_are_given_back_wake_a_reader_that_waits() {
    for _ in 0..100 {
        block_on(async {
            let (client, server) = pair().await;
            let server = Arc::new(server);
            client.write_all(b"xy").await.unwrap();
            server.readable().await.unwrap();
            // The started read has the bytes, and nobody takes them from it.
            let started = server.start_read(vec![0; 100]);
            let reader = server.clone();
            let reader = spawn(async move {
                let mut buffer = [0; 2];
                reader.read_exact(&mut buffer).await.unwrap();
                buffer
            });
            yield_now().await;
            drop(started);
            assert_eq!(&reader.await.unwrap(), b"xy");
        });
    }
}

#[test]
fn a_started_write_is_sent_before_it_is_awaited() {
    block_on(async {
        let (client, server) = pair().await;
        let started = client.start_write(b"now".to_vec());
        let mut buffer = [0; 3];
        server.read_exact(&mut buffer).await.unwrap();
        let (count, sent) = started.await;
        assert_eq!((count.unwrap(), sent), (3, b"now".to_vec()));
    });
}

#[test]
fn a_started_accept_that_is_dropped_gives_its_connection_back() {
    block_on(async {
        let listener = TcpListener::bind(LOCAL).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        drop(listener.start_accept());
        let (_, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    });
}

#[test]
fn a_dropped_connect_and_a_dropped_listener_leave_nothing_behind() {
    for _ in 0..50 {
        let listener = crate::block_on(TcpListener::bind(LOCAL)).unwrap();
        let mut connecting = pin!(TcpStream::connect(listener.local_addr().unwrap()));
        let _ = poll_once(connecting.as_mut());
        let mut accept = Box::pin(listener.accept());
        let _ = poll_once(accept.as_mut());
    }
}

#[test]
fn a_dropped_waiter_passes_its_wake_up_to_the_next_one() {
    block_on(async {
        let socket = Arc::new(UdpSocket::bind(LOCAL).await.unwrap());
        let address = socket.local_addr().unwrap();
        let (mut a, mut b) = ([0; 4], [0; 4]);
        // The first in the queue will be woken but never polls again.
        let mut first = Box::pin(socket.recv_from(&mut a));
        assert!(poll_once(first.as_mut()).is_pending());
        let second = socket.clone();
        let second = spawn(async move { second.recv_from(&mut b).await.unwrap().0 });
        time::sleep(Duration::from_millis(2)).await;
        let sender = UdpSocket::bind(LOCAL).await.unwrap();
        sender.send_to(b"abc", address).await.unwrap();
        time::sleep(Duration::from_millis(2)).await;
        drop(first);
        assert_eq!(second.await.unwrap(), 3);
    });
}

#[test]
fn a_started_receive_that_is_dropped_gives_its_datagram_back() {
    block_on(async {
        let socket = UdpSocket::bind(LOCAL).await.unwrap();
        let sender = UdpSocket::bind(LOCAL).await.unwrap();
        sender.connect(socket.local_addr().unwrap()).await.unwrap();
        for datagram in [b"one", b"two"] {
            sender.send(datagram).await.unwrap();
        }
        let mut buffer = [0; 10];
        socket.peek_from(&mut buffer).await.unwrap();
        drop(socket.start_recv_from(vec![0; 10]));
        let (count, from) = socket.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..count], b"one");
        assert_eq!(from, sender.local_addr().unwrap());
        let (result, buffer) = socket.start_recv_from(vec![0; 10]).await;
        assert_eq!(&buffer[..result.unwrap().0], b"two");
        let to = sender.local_addr().unwrap();
        let (sent, _) = socket.start_send_to(b"three".to_vec(), to).await;
        assert_eq!(sent.unwrap(), 5);
        assert_eq!(sender.blocking().recv(&mut [0; 10]).unwrap(), 5);
    });
}

#[test]
fn started_operations_of_unix_sockets_give_back_what_nobody_took() {
    let path = socket_path("started");
    block_on(async {
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).await.unwrap();
        drop(listener.start_accept());
        let (server, _) = listener.start_accept().await.unwrap();
        client.write_all(b"x").await.unwrap();
        server.read_exact(&mut [0]).await.unwrap();

        let (a, b) = UnixDatagram::pair().unwrap();
        let (sent, _) = a.start_send(b"once".to_vec()).await;
        assert_eq!(sent.unwrap(), 4);
        drop(b.start_recv_from(vec![0; 10]));
        let (result, buffer) = b.start_recv_from(vec![0; 10]).await;
        assert_eq!(&buffer[..result.unwrap().0], b"once");
        assert!(b.start_recv_from(vec![0; 10]).cancel().is_none());
    });
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_stream_with_bytes_given_back_is_readable() {
    block_on(async {
        let (client, server) = pair().await;
        client.write_all(b"x").await.unwrap();
        server.readable().await.unwrap();
        drop(server.start_read(vec![0; 10]));
        server.readable().await.unwrap();
        server.read_exact(&mut [0]).await.unwrap();
    });
}

/// Every order of three.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

#[test]
fn bytes_that_are_given_back_in_any_order_are_read_in_the_order_in_which_they_came() {
    block_on(async {
        let (client, server) = pair().await;
        for order in ORDERS {
            // From the kernel; and parts of what was given back, once and twice.
            for before in [&[][..], &[9], &[9, 5]] {
                client.write_all(b"abcdefghi").await.unwrap();
                server.readable().await.unwrap();
                for &count in before {
                    drop(server.start_read(vec![0; count]));
                }
                let mut reads = [2, 3, 4].map(|count| Some(server.start_read(vec![0; count])));
                for read in order {
                    reads[read] = None;
                }
                let mut buffer = [0; 9];
                server.read_exact(&mut buffer).await.unwrap();
                assert_eq!(
                    buffer.escape_ascii().to_string(),
                    "abcdefghi",
                    "dropped as {order:?}"
                );
            }
        }
    });
}

#[test]
fn datagrams_that_are_given_back_in_any_order_are_received_in_the_order_in_which_they_came() {
    block_on(async {
        let (a, b) = UnixDatagram::pair().unwrap();
        for order in ORDERS {
            for datagram in 0..3 {
                a.send(&[datagram]).await.unwrap();
            }
            let mut receives = [0; 3].map(|_| Some(b.start_recv_from(vec![0; 1])));
            for receive in order {
                receives[receive] = None;
            }
            for expected in 0..3 {
                let mut buffer = [9];
                b.recv(&mut buffer).await.unwrap();
                assert_eq!(buffer, [expected], "dropped as {order:?}");
            }
        }
    });
}

#[test]
fn connections_that_are_given_back_in_any_order_are_accepted_in_the_order_in_which_they_came() {
    block_on(async {
        let listener = TcpListener::bind(LOCAL).await.unwrap();
        let address = listener.local_addr().unwrap();
        for order in ORDERS {
            let mut clients = Vec::new();
            for _ in 0..3 {
                clients.push(TcpStream::connect(address).await.unwrap());
            }
            let mut accepts = [0; 3].map(|_| Some(listener.start_accept()));
            for accept in order {
                accepts[accept] = None;
            }
            for client in clients {
                let (_, peer) = listener.accept().await.unwrap();
                assert_eq!(peer, client.local_addr().unwrap(), "dropped as {order:?}");
            }
        }
    });
}

#[test]
fn a_waker_that_panics_keeps_nobody_else_from_bytes_that_are_given_back() {
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics");
        }
    }
    struct Counts(AtomicUsize);
    impl std::task::Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    block_on(async {
        let (client, server) = pair().await;
        // Registered, so that there is somewhere to wait.
        assert!(poll_once(pin!(server.read(&mut [0]))).is_pending());
        client.write_all(b"x").await.unwrap();
        server.readable().await.unwrap();
        let started = server.start_read(vec![0; 10]);
        let counts = Arc::new(Counts(AtomicUsize::new(0)));
        for waker in [Arc::new(Panics).into(), counts.clone().into()] {
            let mut context = Context::from_waker(&waker);
            let mut stream = &server;
            let read = Pin::new(&mut stream).poll_read(&mut context, &mut [0]);
            assert!(read.is_pending());
        }
        let dropping = std::panic::AssertUnwindSafe(|| drop(started));
        assert!(std::panic::catch_unwind(dropping).is_ok());
        assert_eq!(counts.0.load(Ordering::SeqCst), 1);
    });
}
