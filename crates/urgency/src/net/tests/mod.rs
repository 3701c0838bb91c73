//! Sockets: echo, order, several users of one socket, the traits of others.

use super::*;
use crate::{block_on, spawn, spawn_fn, time, yield_now};
use futures_io::{AsyncRead, AsyncWrite};
use std::{
    future::{Future, poll_fn},
    io::{self, Read, Write},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

mod full_queue;
mod given_back;
mod limits;
mod order;
mod refused;
mod slices;
mod spawned;
mod unix_addresses;
mod unix_datagrams;
mod unix_sockets;

const LOCAL: &str = "127.0.0.1:0";

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(LOCAL).await.unwrap();
    let connecting = TcpStream::connect(listener.local_addr().unwrap());
    let (server, _) = listener.accept().await.unwrap();
    (connecting.await.unwrap(), server)
}

/// Polls a future once, for a task that will not be woken.
fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// All that comes until the end, in reads of `piece` bytes at most.
async fn read_to_end(stream: TcpStream, piece: usize) -> Vec<u8> {
    let mut all: Vec<u8> = Vec::new();
    let mut buffer = vec![0; piece];
    loop {
        match stream.read(&mut buffer).await.unwrap() {
            0 => return all,
            count => all.extend(&buffer[..count]),
        }
    }
}

async fn echo(stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 512];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            count => stream.write_all(&buffer[..count]).await?,
        }
    }
}

#[test]
fn an_echo_server_serves_many_connections() {
    const CLIENTS: usize = 200;
    let listener = crate::block_on(TcpListener::bind(LOCAL)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = spawn(async move {
        let mut incoming = listener.incoming();
        let mut served = Vec::new();
        for _ in 0..CLIENTS {
            served.push(spawn(echo(incoming.next().await.unwrap())));
        }
        for connection in served {
            connection.await.unwrap().unwrap();
        }
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| {
            spawn(async move {
                let stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                for length in [1, 10, 511, 512, 513, 5000] {
                    let request = vec![n as u8; length];
                    stream.write_all(&request).await.unwrap();
                    let mut answer = vec![0; length];
                    stream.read_exact(&mut answer).await.unwrap();
                    assert!(answer == request);
                }
            })
        })
        .collect();
    for client in clients {
        client.get().unwrap();
    }
    server.get().unwrap();
}

#[test]
fn much_data_in_both_directions_at_once_arrives_in_order() {
    const BYTES: usize = 4_000_000;
    fn pattern(n: usize) -> u8 {
        (n % 251) as u8
    }
    async fn send(half: tcp::OwnedWriteHalf) {
        let data: Vec<u8> = (0..BYTES).map(pattern).collect();
        half.write_all(&data).await.unwrap();
    }
    async fn receive(half: tcp::OwnedReadHalf) {
        let mut buffer = vec![0; 10_000];
        let mut received = 0;
        loop {
            let count = half.read(&mut buffer).await.unwrap();
            if count == 0 {
                break;
            }
            for byte in &buffer[..count] {
                assert_eq!(*byte, pattern(received));
                received += 1;
            }
        }
        assert_eq!(received, BYTES, "the end came too early");
    }
    let (a, b) = block_on(pair());
    let ((ar, aw), (br, bw)) = (a.into_split(), b.into_split());
    let all = [
        spawn(send(aw)),
        spawn(send(bw)),
        spawn(receive(ar)),
        spawn(receive(br)),
    ];
    for handle in all {
        handle.get().unwrap();
    }
}

#[test]
fn every_connection_is_accepted_by_one_of_the_tasks_that_share_a_listener() {
    const TASKS: usize = 4;
    const EACH: usize = 25;
    let listener = Arc::new(crate::block_on(TcpListener::bind(LOCAL)).unwrap());
    let address = listener.local_addr().unwrap();
    let acceptors: Vec<_> = (0..TASKS)
        .map(|_| {
            let listener = listener.clone();
            spawn(async move {
                for _ in 0..EACH {
                    listener.accept().await.unwrap();
                }
            })
        })
        .collect();
    block_on(async {
        for _ in 0..TASKS * EACH {
            TcpStream::connect(address).await.unwrap();
        }
    });
    for acceptor in acceptors {
        acceptor.get().unwrap();
    }
}

#[test]
fn the_end_of_a_stream_is_seen_after_the_last_byte_however_short_the_reads() {
    for _ in 0..100 {
        let (client, server) = block_on(pair());
        let reader = spawn(read_to_end(server, 64));
        block_on(async {
            client.write_all(b"first").await.unwrap();
            yield_now().await;
            client.write_all(b"last").await.unwrap();
            client
                .shutdown_direction(std::net::Shutdown::Write)
                .unwrap();
        });
        assert_eq!(reader.get().unwrap(), b"firstlast");
    }
}

#[test]
fn vectored_operations_keep_the_order() {
    block_on(async {
        let (client, server) = pair().await;
        let slices = [io::IoSlice::new(b"ab"), io::IoSlice::new(b"cde")];
        assert_eq!(client.write_vectored(&slices).await.unwrap(), 5);
        server.readable().await.unwrap();
        let (mut a, mut b) = ([0; 1], [0; 9]);
        let count = {
            let mut slices = [io::IoSliceMut::new(&mut a), io::IoSliceMut::new(&mut b)];
            server.read_vectored(&mut slices).await.unwrap()
        };
        assert_eq!(count, 5);
        assert_eq!((&a, &b[..4]), (b"a", &b"bcde"[..]));
    });
}

#[test]
fn closures_use_the_traits_of_the_standard_library() {
    let listener = crate::block_on(TcpListener::bind(LOCAL)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = spawn_fn(move || {
        let (stream, _) = listener.blocking().accept().unwrap();
        let mut text = String::new();
        stream.blocking().read_to_string(&mut text).unwrap();
        text
    });
    let client = block_on(TcpStream::connect(address)).unwrap();
    let who = "a closure";
    write!(client.blocking(), "from {who}").unwrap();
    client
        .shutdown_direction(std::net::Shutdown::Write)
        .unwrap();
    assert_eq!(server.get().unwrap(), "from a closure");
}

#[test]
fn the_traits_of_futures_io_work_by_value_and_by_reference() {
    block_on(async {
        let (mut client, server) = pair().await;
        let sent = poll_fn(|cx| Pin::new(&mut client).poll_write(cx, b"abc")).await;
        assert_eq!(sent.unwrap(), 3);
        poll_fn(|cx| Pin::new(&mut client).poll_close(cx))
            .await
            .unwrap();
        let mut buffer = [0; 8];
        let count = poll_fn(|cx| Pin::new(&mut &server).poll_read(cx, &mut buffer)).await;
        assert_eq!(&buffer[..count.unwrap()], b"abc");
        let count = poll_fn(|cx| Pin::new(&mut &server).poll_read(cx, &mut buffer)).await;
        assert_eq!(count.unwrap(), 0);
    });
}

#[test]
fn halves_of_different_streams_are_not_reunited() {
    block_on(async {
        let (a, b) = pair().await;
        let ((ar, aw), (br, bw)) = (a.into_split(), b.into_split());
        let error = ar.reunite(bw).unwrap_err();
        assert!(error.to_string().contains("different streams"));
        let tcp::ReuniteError(ar, bw) = error;
        let a = ar.reunite(aw).unwrap();
        let b = br.reunite(bw).unwrap();
        a.write_all(b"x").await.unwrap();
        b.read_exact(&mut [0]).await.unwrap();
    });
}

#[test]
fn connecting_tries_one_address_after_the_other() {
    let listener = crate::block_on(TcpListener::bind(LOCAL)).unwrap();
    let good = listener.local_addr().unwrap();
    // Bound and deaf: refuses, and nobody else gets its port.
    let deaf = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    let any: std::net::SocketAddr = LOCAL.parse().unwrap();
    rustix::net::bind(&deaf, &any).unwrap();
    let bad = std::net::TcpListener::from(deaf);
    let bad_address = bad.local_addr().unwrap();
    block_on(async {
        let refused = TcpStream::connect(bad_address).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let stream = TcpStream::connect(&[bad_address, good][..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        let by_name = TcpStream::connect(("localhost", good.port())).await;
        assert_eq!(by_name.unwrap().peer_addr().unwrap(), good);
        let none = TcpStream::connect(Vec::new()).await.unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::InvalidInput);
    });
}

#[test]
fn two_readers_of_one_udp_socket_share_the_datagrams() {
    const DATAGRAMS: usize = 400;
    let socket = Arc::new(crate::block_on(UdpSocket::bind(LOCAL)).unwrap());
    let address = socket.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(vec![0u32; DATAGRAMS]));
    let total = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (socket, seen, total) = (socket.clone(), seen.clone(), total.clone());
            spawn(async move {
                let mut buffer = [0; 16];
                loop {
                    let (count, _) = socket.recv_from(&mut buffer).await.unwrap();
                    if count == 0 {
                        return;
                    }
                    let number = u32::from_ne_bytes(buffer[..count].try_into().unwrap());
                    seen.lock().unwrap()[number as usize] += 1;
                    total.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let sender = crate::block_on(UdpSocket::bind(LOCAL)).unwrap();
    block_on(async {
        for n in 0..DATAGRAMS {
            let datagram = (n as u32).to_ne_bytes();
            sender.send_to(&datagram, address).await.unwrap();
            // Not more than the socket's buffer holds.
            while n.saturating_sub(total.load(Ordering::SeqCst)) > 30 {
                yield_now().await;
            }
        }
        for _ in 0..2 {
            sender.send_to(b"", address).await.unwrap();
        }
    });
    for reader in readers {
        reader.get().unwrap();
    }
    assert!(seen.lock().unwrap().iter().all(|times| *times == 1));
}

fn socket_path(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("urgency-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn unix_streams_echo() {
    let path = socket_path("stream");
    let listener = UnixListener::bind(&path).unwrap();
    let server = spawn(async move {
        let mut connections = Vec::new();
        for _ in 0..50 {
            let (stream, _) = listener.accept().await.unwrap();
            connections.push(spawn(async move {
                let mut buffer = [0; 100];
                loop {
                    match stream.read(&mut buffer).await.unwrap() {
                        0 => break,
                        count => stream.write_all(&buffer[..count]).await.unwrap(),
                    }
                }
            }));
        }
        for connection in connections {
            connection.await.unwrap();
        }
    });
    let clients: Vec<_> = (0..50u8)
        .map(|n| {
            let path = path.clone();
            spawn(async move {
                let stream = UnixStream::connect(&path).await.unwrap();
                for length in [1, 100, 300_000] {
                    let sent = vec![n; length];
                    let mut back = vec![0; length];
                    let (reader, writer) = stream_parts(&stream);
                    let (wrote, read) =
                        both(writer.write_all(&sent), reader.read_exact(&mut back)).await;
                    wrote.unwrap();
                    read.unwrap();
                    assert!(sent == back);
                }
            })
        })
        .collect();
    for client in clients {
        client.get().unwrap();
    }
    server.get().unwrap();
    let _ = std::fs::remove_file(path);
}

fn stream_parts(stream: &UnixStream) -> (&UnixStream, &UnixStream) {
    (stream, stream)
}

/// Two futures side by side in one task.
async fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut x, mut y) = (None, None);
    poll_fn(|cx| {
        if x.is_none()
            && let Poll::Ready(done) = a.as_mut().poll(cx)
        {
            x = Some(done);
        }
        if y.is_none()
            && let Poll::Ready(done) = b.as_mut().poll(cx)
        {
            y = Some(done);
        }
        if x.is_some() && y.is_some() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    (x.expect("both are ready"), y.expect("both are ready"))
}

#[test]
fn unix_datagrams_wait_for_room_and_lose_nothing() {
    let (a, b) = UnixDatagram::pair().unwrap();
    const DATAGRAMS: u32 = 2000;
    let sender = spawn(async move {
        for n in 0..DATAGRAMS {
            a.send(&n.to_ne_bytes()).await.unwrap();
        }
    });
    let receiver = spawn(async move {
        for n in 0..DATAGRAMS {
            let mut buffer = [0; 4];
            assert_eq!(b.recv(&mut buffer).await.unwrap(), 4);
            assert_eq!(u32::from_ne_bytes(buffer), n);
        }
    });
    sender.get().unwrap();
    receiver.get().unwrap();
}

#[test]
fn urgent_data_does_not_make_a_short_read_hide_the_rest() {
    use rustix::net::{SendFlags, send};
    for _ in 0..50 {
        let (client, server) = block_on(pair());
        let reader = spawn(read_to_end(server, 100));
        block_on(async {
            client.write_all(b"be").await.unwrap();
            yield_now().await;
            send(&client, b"!", SendFlags::OOB).unwrap();
            client.write_all(b"hind").await.unwrap();
        });
        client
            .shutdown_direction(std::net::Shutdown::Write)
            .unwrap();
        assert_eq!(reader.get().unwrap(), b"behind");
    }
}
