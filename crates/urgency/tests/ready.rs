//! `ready`, `try_io` and `async_io` of sockets and descriptors: several interests of one wait.

mod common;

use common::{ends, poll};
use std::{
    cell::Cell,
    io::{self, ErrorKind, Read, Write},
    os::fd::{AsFd, AsRawFd},
    pin::pin,
    sync::Arc,
};
use urgency::{
    block_on,
    io::{Async, Interest, Ready},
    net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixStream},
    spawn,
    sync::oneshot,
    task::JoinHandle,
    yield_now,
};

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let (server, _) = listener.accept().await.unwrap();
    (client.await.unwrap(), server)
}

/// Writes until the peer's buffers are full. How many bytes.
fn fill(stream: &UnixStream) -> usize {
    let mut filled = 0;
    loop {
        match stream.try_write(&[7; 4096]) {
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return filled,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A system call of the program's own.
fn receive(from: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (to, length) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    let count = unsafe { libc::recv(from.as_fd().as_raw_fd(), to, length, 0) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

#[test]
fn a_stream_is_ready_for_what_the_kernel_says_and_for_nothing_else() {
    ends(|| {
        block_on(async {
            let (client, server) = pair().await;
            assert_eq!(client.ready(BOTH).await.unwrap(), Ready::WRITABLE);
            assert!(poll(pin!(client.ready(Interest::READABLE))).is_pending());
            server.write_all(b"ping").await.unwrap();
            let ready = client.ready(Interest::READABLE).await.unwrap();
            assert_eq!(ready, Ready::READABLE);
            assert_eq!(client.ready(BOTH).await.unwrap(), ready | Ready::WRITABLE);
            assert_eq!(client.try_read(&mut [0; 8]).unwrap(), 4);
            assert!(poll(pin!(client.ready(Interest::READABLE))).is_pending());
            drop(server);
            let ready = client.ready(Interest::READABLE).await.unwrap();
            assert_eq!(ready, Ready::READABLE | Ready::READ_CLOSED);
            // That it is closed for writing as well is of no interest here.
            let (one, other) = UnixStream::pair().unwrap();
            drop(other);
            let ready = one.ready(Interest::READABLE).await.unwrap();
            assert_eq!(ready, Ready::READABLE | Ready::READ_CLOSED);
            assert!(one.ready(BOTH).await.unwrap().is_write_closed());
        });
    });
}

#[test]
fn a_wait_for_both_directions_ends_by_either() {
    ends(|| {
        block_on(async {
            for reads in [true, false] {
                let (one, other) = UnixStream::pair().unwrap();
                let filled = fill(&one);
                assert!(poll(pin!(one.ready(BOTH))).is_pending());
                let waits = spawn(async move { (one.ready(BOTH).await.unwrap(), one) });
                for _ in 0..10 {
                    yield_now().await;
                }
                assert!(!waits.is_finished());
                if reads {
                    other.write_all(b"now").await.unwrap();
                } else {
                    other.read_exact(&mut vec![0; filled]).await.unwrap();
                }
                let (ready, _one) = waits.await.unwrap();
                assert_eq!(ready.is_readable(), reads, "{ready:?}");
                assert_eq!(ready.is_writable(), !reads, "{ready:?}");
            }
        });
    });
}

/// The first waiter of a direction has the readiness, and passes it on when its wait ends otherwise.
#[test]
fn a_wait_that_ends_otherwise_passes_on_the_readiness_to_read() {
    ends(|| {
        block_on(async {
            for is_dropped in [true, false] {
                let (one, other) = UnixStream::pair().unwrap();
                let filled = fill(&one);
                let one = Arc::new(one);
                let mut both = Box::pin(one.ready(BOTH));
                assert!(poll(both.as_mut()).is_pending());
                let reads = behind(&one).await;
                if is_dropped {
                    drop(both);
                } else {
                    other.read_exact(&mut vec![0; filled]).await.unwrap();
                    assert!(both.await.unwrap().is_writable());
                }
                other.write_all(b"now").await.unwrap();
                assert_eq!(reads.await.unwrap(), 3);
            }
        });
    });
}

/// A task that waits to read, behind what waits there.
async fn behind(stream: &Arc<UnixStream>) -> JoinHandle<usize> {
    let (begun, begins) = oneshot::channel();
    let stream = stream.clone();
    let reads = spawn(async move {
        let mut buffer = [0; 8];
        let mut read = pin!(stream.read(&mut buffer));
        assert!(poll(read.as_mut()).is_pending());
        let _ = begun.send(());
        read.await.unwrap()
    });
    begins.await.unwrap();
    reads
}

/// There are bytes, which is nothing to it; so it keeps them from no reader.
#[test]
fn a_wait_for_exceptions_hides_no_bytes_from_the_readers_behind_it() {
    ends(|| {
        block_on(async {
            for interest in [
                Interest::PRIORITY,
                Interest::ERROR,
                Interest::ERROR | Interest::PRIORITY,
                Interest::PRIORITY | Interest::WRITABLE,
            ] {
                let (one, other) = UnixStream::pair().unwrap();
                fill(&one);
                let one = Arc::new(one);
                let theirs = one.clone();
                let mut waits = Box::pin(async move { theirs.ready(interest).await });
                assert!(poll(waits.as_mut()).is_pending());
                let waits = spawn(waits);
                let reads = behind(&one).await;
                other.write_all(b"now").await.unwrap();
                assert_eq!(reads.await.unwrap(), 3);
                assert!(!waits.is_finished());
                // Nor does it lose them for a reader that comes later.
                other.write_all(b"later").await.unwrap();
                for _ in 0..10 {
                    yield_now().await;
                }
                assert_eq!(one.read(&mut [0; 8]).await.unwrap(), 5);
                waits.abort();
            }
        });
    });
}

#[test]
fn what_a_started_read_put_back_is_ready() {
    ends(|| {
        block_on(async {
            let (one, other) = UnixStream::pair().unwrap();
            other.write_all(b"ping").await.unwrap();
            drop(one.start_read(vec![0; 8]));
            let ready = one.ready(Interest::READABLE).await.unwrap();
            assert!(ready.is_readable());
            assert_eq!(one.try_read(&mut [0; 8]).unwrap(), 4);
            assert!(poll(pin!(one.ready(Interest::READABLE))).is_pending());

            let (one, other) = UnixDatagram::pair().unwrap();
            other.send(b"ping").await.unwrap();
            drop(one.start_recv_from(vec![0; 8]));
            let ready = one.ready(Interest::READABLE).await.unwrap();
            assert!(ready.is_readable());
            assert_eq!(one.try_recv(&mut [0; 8]).unwrap(), 4);
            assert!(poll(pin!(one.ready(Interest::READABLE))).is_pending());
        });
    });
}

#[test]
fn an_operation_of_the_programs_own_is_called_only_if_it_is_worth_it() {
    ends(|| {
        block_on(async {
            let (client, server) = pair().await;
            let calls = Cell::new(0);
            let mut buffer = [0; 8];
            let mut try_receive = || {
                client.try_io(Interest::READABLE, || {
                    calls.set(calls.get() + 1);
                    receive(&client, &mut buffer)
                })
            };
            assert_eq!(try_receive().unwrap_err().kind(), ErrorKind::WouldBlock);
            assert_eq!(calls.get(), 0);
            server.write_all(b"ping").await.unwrap();
            client.readable().await.unwrap();
            assert_eq!(try_receive().unwrap(), 4);
            assert_eq!(calls.get(), 1);
            // It has its own errors.
            let other = client.try_io(Interest::WRITABLE, || {
                Err::<(), _>(io::Error::from(ErrorKind::Unsupported))
            });
            assert_eq!(other.unwrap_err().kind(), ErrorKind::Unsupported);
        });
    });
}

#[test]
fn an_operation_of_the_programs_own_waits_until_it_does_not_block() {
    ends(|| {
        block_on(async {
            let (client, server) = pair().await;
            let calls = Cell::new(0);
            let mut buffer = [0; 8];
            let mut received = pin!(client.async_io(Interest::READABLE, || {
                calls.set(calls.get() + 1);
                receive(&client, &mut buffer)
            }));
            assert!(poll(received.as_mut()).is_pending());
            let before = calls.get();
            assert_ne!(before, 0);
            server.write_all(b"ping").await.unwrap();
            assert_eq!(received.await.unwrap(), 4);
            assert!(calls.get() > before);
        });
    });
}

#[test]
fn datagrams_are_received_by_calls_of_the_programs_own() {
    ends(|| {
        block_on(async {
            let one = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let mut buffer = [0; 8];
            let mut try_receive = || one.try_io(Interest::READABLE, || receive(&one, &mut buffer));
            assert_eq!(try_receive().unwrap_err().kind(), ErrorKind::WouldBlock);
            let to = one.local_addr().unwrap();
            other.send_to(b"ping", to).await.unwrap();
            assert!(one.ready(BOTH).await.unwrap().is_writable());
            one.ready(Interest::READABLE).await.unwrap();
            assert_eq!(try_receive().unwrap(), 4);
            other.send_to(b"again", to).await.unwrap();
            let received = one.async_io(Interest::READABLE, || receive(&one, &mut buffer));
            assert_eq!(received.await.unwrap(), 5);
        });
    });
}

#[test]
fn a_writer_learns_that_its_pipe_is_read_no_more() {
    ends(|| {
        let (reader, writer) = io::pipe().unwrap();
        let writer = Async::new(writer).unwrap();
        assert!(writer.try_io(Interest::WRITABLE, |_| Ok(())).is_ok());
        let none = writer.try_io(Interest::ERROR, |_| Ok(()));
        assert_eq!(none.unwrap_err().kind(), ErrorKind::WouldBlock);
        block_on(async {
            let mut gone = pin!(writer.async_io(Interest::ERROR, |mut pipe| {
                match pipe.write_all(b"!") {
                    Ok(()) => Err(ErrorKind::WouldBlock.into()),
                    Err(error) => Ok(error.kind()),
                }
            }));
            assert!(poll(gone.as_mut()).is_pending());
            drop(reader);
            assert_eq!(gone.await.unwrap(), ErrorKind::BrokenPipe);
        });
        assert!(writer.try_io(Interest::ERROR, |_| Ok(())).is_ok());
    });
}

#[test]
fn data_out_of_band_is_of_priority() {
    ends(|| {
        block_on(async {
            let (client, server) = pair().await;
            let mut urgent = pin!(client.ready(Interest::PRIORITY));
            assert!(poll(urgent.as_mut()).is_pending());
            // Usual bytes are not.
            server.write_all(b"ping").await.unwrap();
            client.readable().await.unwrap();
            assert!(poll(urgent.as_mut()).is_pending());
            // SAFETY: one byte, of a buffer that has one.
            let sent =
                unsafe { libc::send(server.as_raw_fd(), b"!".as_ptr().cast(), 1, libc::MSG_OOB) };
            assert_eq!(sent, 1);
            assert_eq!(urgent.await.unwrap(), Ready::PRIORITY);
        });
    });
}

#[test]
fn a_pipe_is_read_by_calls_on_itself() {
    ends(|| {
        let (reader, mut writer) = io::pipe().unwrap();
        let reader = Async::new(reader).unwrap();
        let mut buffer = [0; 8];
        block_on(async {
            writer.write_all(b"now").unwrap();
            let read = reader.async_io(Interest::READABLE, |mut pipe| pipe.read(&mut buffer));
            assert_eq!(read.await.unwrap(), 3);
        });
    });
}
