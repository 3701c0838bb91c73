//! Sockets, files and streams in Tokio's shape: what a program that was written for Tokio's `net`, `io` and `fs` does.
#![cfg(feature = "tokio-io")]

mod common;

use common::ends;
use std::{
    future::poll_fn,
    io::{ErrorKind, SeekFrom},
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Waker},
};
use urgency::{
    block_on, fs,
    io::{
        self, AsyncBufReadExt, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWriteExt, BufReader,
        BufWriter, ReadBuf,
    },
    net::{
        TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixStream, lookup_host, tcp,
    },
    spawn,
};

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let (server, _) = listener.accept().await.unwrap();
    (client.await.unwrap(), server)
}

#[test]
fn lines_go_through_buffers_and_a_borrowed_split_and_come_back() {
    ends(|| {
        block_on(async {
            let (client, mut server) = pair().await;
            let echo = spawn(async move {
                let (mut from, mut to) = server.split();
                io::copy(&mut from, &mut to).await
            });
            let (from, to) = client.into_split();
            let mut to = BufWriter::new(to);
            for n in 0..1000 {
                to.write_all(format!("line {n}\n").as_bytes())
                    .await
                    .unwrap();
            }
            to.shutdown().await.unwrap();
            let mut lines = BufReader::new(from).lines();
            let mut count = 0;
            while let Some(line) = lines.next_line().await.unwrap() {
                assert_eq!(line, format!("line {count}"));
                count += 1;
            }
            assert_eq!(count, 1000);
            assert_eq!(echo.await.unwrap().unwrap(), 8890);
        });
    });
}

#[test]
fn a_pipe_in_memory_and_a_generic_split_serve_two_tasks() {
    ends(|| {
        block_on(async {
            let (mut near, far) = io::duplex(16);
            let (mut from, mut to) = io::split(far);
            let upper = spawn(async move {
                let mut text = String::new();
                from.read_to_string(&mut text).await?;
                to.write_all(text.to_uppercase().as_bytes()).await?;
                io::Result::Ok(text.len())
            });
            near.write_all(b"longer than the pipe is").await.unwrap();
            near.shutdown().await.unwrap();
            let mut text = String::new();
            near.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "LONGER THAN THE PIPE IS");
            assert_eq!(upper.await.unwrap().unwrap(), 23);
        });
    });
}

#[test]
fn a_file_is_written_sought_and_read_by_the_traits() {
    ends(|| {
        let path = std::env::temp_dir().join(format!("urgency-shape-{}", std::process::id()));
        let path = path.as_path();
        block_on(async {
            let mut file = fs::File::create(path).await?;
            file.write_all(b"0123456789").await?;
            file.flush().await?;
            let mut options = fs::OpenOptions::new();
            let mut file = options.read(true).write(true).open(path).await?;
            assert_eq!(file.seek(SeekFrom::End(-4)).await?, 6);
            let mut rest = Vec::new();
            assert_eq!(file.read_to_end(&mut rest).await?, 4);
            assert_eq!(rest, b"6789");
            file.rewind().await?;
            file.write_all(b"ab").await?;
            assert_eq!(file.stream_position().await?, 2);
            file.rewind().await?;
            let mut text = String::new();
            BufReader::new(file).read_line(&mut text).await?;
            assert_eq!(text, "ab23456789");
            fs::remove_file(path).await
        })
        .unwrap();
    });
}

/// As the first polls of a seek that is dropped then.
fn begin_to_seek(file: &mut fs::File, to: SeekFrom) {
    let mut file = Pin::new(file);
    file.as_mut().start_seek(to).unwrap();
    let _ = file.poll_complete(&mut Context::from_waker(Waker::noop()));
}

#[test]
fn a_seek_that_was_given_up_is_not_made_again_after_the_next_call() {
    ends(|| {
        let path = std::env::temp_dir().join(format!("urgency-sought-{}", std::process::id()));
        let path = path.as_path();
        block_on(async {
            std::fs::write(path, "0123456789")?;
            let mut options = fs::OpenOptions::new();
            let mut file = options.read(true).write(true).open(path).await?;
            begin_to_seek(&mut file, SeekFrom::Start(2));
            let mut read = [0; 4];
            file.read_exact(&mut read).await?;
            assert_eq!(&read, b"2345");
            assert_eq!(file.stream_position().await?, 6);
            begin_to_seek(&mut file, SeekFrom::Current(1));
            file.flush().await?;
            assert_eq!(file.stream_position().await?, 7);
            fs::remove_file(path).await
        })
        .unwrap();
    });
}

#[test]
fn what_is_there_is_read_and_written_without_waiting_or_would_block() {
    ends(|| {
        block_on(async {
            let (client, server) = pair().await;
            let mut buffer = [0; 8];
            let nothing = server.try_read(&mut buffer).unwrap_err();
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
            client.writable().await.unwrap();
            assert_eq!(client.try_write(b"ping").unwrap(), 4);
            server.readable().await.unwrap();
            assert_eq!(server.peek(&mut buffer).await.unwrap(), 4);
            assert_eq!(server.try_read(&mut buffer).unwrap(), 4);
            assert_eq!(&buffer[..4], b"ping");
            // Until there is no room.
            let full = loop {
                if let Err(error) = client.try_write(&[0; 1 << 16]) {
                    break error;
                }
            };
            assert_eq!(full.kind(), ErrorKind::WouldBlock);
            drop(server);
        });
    });
}

#[test]
fn a_half_that_is_dropped_ends_its_direction_and_one_that_is_forgotten_does_not() {
    ends(|| {
        block_on(async {
            let (a, b) = pair().await;
            let (read, write): (tcp::OwnedReadHalf, tcp::OwnedWriteHalf) = a.into_split();
            write.forget();
            let nothing = b.try_read(&mut [0]).unwrap_err();
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
            drop(read);
            assert_eq!(b.read(&mut [0]).await.unwrap(), 0);
            let (a, mut b) = UnixStream::pair().unwrap();
            let (mut read, write) = a.into_split();
            drop(write);
            assert_eq!(b.read(&mut [0]).await.unwrap(), 0);
            let (_, mut to) = b.split();
            to.write_all(b"x").await.unwrap();
            assert_eq!(read.read(&mut [0]).await.unwrap(), 1);
        });
    });
}

#[test]
fn a_socket_with_options_listens_and_connects_and_names_are_looked_up() {
    ends(|| {
        block_on(async {
            let mut found = lookup_host("localhost:80").await.unwrap();
            assert!(found.all(|address| address.ip().is_loopback()));
            let literal: Vec<_> = lookup_host(("::1", 7)).await.unwrap().collect();
            assert_eq!(literal, ["[::1]:7".parse().unwrap()]);

            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuseport(true).unwrap();
            socket.set_recv_buffer_size(1 << 16).unwrap();
            assert!(socket.reuseport().unwrap());
            assert!(socket.recv_buffer_size().unwrap() >= 1 << 16);
            socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let address = socket.local_addr().unwrap();
            let listener = socket.listen(16).unwrap();
            // The same address again, because both allow it.
            let other = TcpSocket::new_v4().unwrap();
            other.set_reuseport(true).unwrap();
            other.bind(address).unwrap();
            drop(other);
            let client = TcpSocket::new_v4().unwrap();
            client.set_nodelay(true).unwrap();
            let client = client.connect(address);
            let (server, peer) = listener.accept().await.unwrap();
            let client = client.await.unwrap();
            assert!(client.nodelay().unwrap());
            assert_eq!(client.local_addr().unwrap(), peer);
            // Of the standard library, and back.
            let client = TcpStream::from_std(client.into_std().unwrap()).unwrap();
            client.write_all(b"x").await.unwrap();
            assert_eq!(server.read_exact(&mut [0]).await.unwrap(), 1);
            let refused = TcpSocket::new_v6().unwrap().connect(address).await;
            assert!(refused.is_err(), "another family");
        });
    });
}

#[test]
fn a_datagram_goes_to_an_address_by_reference_or_to_a_name() {
    ends(|| {
        block_on(async {
            let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let address = receiver.local_addr().unwrap();
            sender.send_to(b"one", &address).await.unwrap();
            sender.send_to(b"two", address.to_string()).await.unwrap();
            let name = ("localhost", address.port());
            sender.send_to(b"three", name).await.unwrap();
            for expected in ["one", "two", "three"] {
                let mut buffer = [0; 9];
                let (count, _) = receiver.recv_from(&mut buffer).await.unwrap();
                assert_eq!(&buffer[..count], expected.as_bytes());
            }
            let none: &[std::net::SocketAddr] = &[];
            let nowhere = sender.send_to(b"four", none).await.unwrap_err();
            assert_eq!(nowhere.kind(), ErrorKind::InvalidInput);
        });
    });
}

#[test]
fn a_file_is_written_from_whatever_has_bytes() {
    let path = std::env::temp_dir().join(format!("urgency-bytes-{}", std::process::id()));
    block_on(async {
        let (text, bytes) = ("text".to_owned(), b"bytes".to_vec());
        fs::write(&path, &text).await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), text.as_bytes());
        fs::write(&path, &bytes).await.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), bytes);
        fs::remove_file(&path).await.unwrap();
    });
}

#[test]
fn a_poll_receives_into_bytes_or_into_a_read_buf() {
    block_on(async {
        let (a, b) = (
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        );
        let (from, to) = (a.local_addr().unwrap(), b.local_addr().unwrap());
        for message in [&b"one"[..], b"two", b"three", b"four"] {
            a.send_to(message, to).await.unwrap();
        }
        let mut bytes = [0; 8];
        let count = poll_fn(|cx| b.poll_recv(cx, &mut bytes)).await.unwrap();
        assert_eq!(&bytes[..count], b"one");
        let mut memory = [MaybeUninit::uninit(); 8];
        let mut buffer = ReadBuf::uninit(&mut memory);
        let received = poll_fn(|cx| b.poll_recv_from(cx, &mut buffer)).await;
        assert_eq!(received.unwrap(), from);
        // Behind what it has, and cut off where it is full.
        poll_fn(|cx| b.poll_recv(cx, &mut buffer)).await.unwrap();
        assert_eq!(buffer.filled(), b"twothree");
        buffer.clear();
        // What a dropped started receive put back.
        b.readable().await.unwrap();
        drop(b.start_recv_from(vec![0; 8]));
        let received = poll_fn(|cx| b.poll_recv_from(cx, &mut buffer)).await;
        assert_eq!((received.unwrap(), buffer.filled()), (from, &b"four"[..]));

        let (c, d) = UnixDatagram::pair().unwrap();
        c.send(b"five").await.unwrap();
        buffer.clear();
        let from = poll_fn(|cx| d.poll_recv_from(cx, &mut buffer)).await;
        assert!(from.unwrap().is_unnamed());
        assert_eq!(buffer.filled(), b"five");
    });
}
