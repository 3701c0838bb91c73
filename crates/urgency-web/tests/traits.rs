//! The traits that `urgency` implements for others: Tokio's streams, `Stream`.

use futures_core::Stream;
use std::{
    future::poll_fn,
    io::{self, Write},
    pin::{Pin, pin},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use urgency::net::{TcpListener, TcpStream};

async fn read(stream: &mut (impl AsyncRead + Unpin), room: usize) -> io::Result<Vec<u8>> {
    let mut memory = Box::new_uninit_slice(room);
    let mut buffer = ReadBuf::uninit(&mut memory);
    poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut buffer)).await?;
    Ok(buffer.filled().to_vec())
}

#[test]
fn tokios_read_gets_first_what_a_dropped_started_read_had_taken() {
    urgency::block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        peer.write_all(b"one two").unwrap();
        stream.readable().await.unwrap();
        drop(stream.start_read(vec![0; 16]));
        assert_eq!(read(&mut stream, 4).await.unwrap(), b"one ");
        assert_eq!(read(&mut stream, 100).await.unwrap(), b"two");
        drop(peer);
        assert_eq!(read(&mut stream, 100).await.unwrap(), b"");
    });
}

#[test]
fn halves_have_tokios_traits_and_shutting_down_twice_is_no_error() {
    urgency::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (server, _) = listener.accept().await.unwrap();
        let (mut reader, _writer) = connecting.await.unwrap().into_split();
        let mut server = pin!(server);
        let count = poll_fn(|cx| server.as_mut().poll_write(cx, b"half")).await;
        assert_eq!(count.unwrap(), 4);
        assert_eq!(read(&mut reader, 10).await.unwrap(), b"half");
        for _ in 0..2 {
            poll_fn(|cx| server.as_mut().poll_shutdown(cx))
                .await
                .unwrap();
        }
        assert_eq!(read(&mut reader, 10).await.unwrap(), b"");
    });
}

#[test]
fn the_connections_of_a_listener_are_a_stream() {
    async fn next<S: Stream>(stream: S) -> Option<S::Item> {
        let mut stream = pin!(stream);
        poll_fn(|cx| stream.as_mut().poll_next(cx)).await
    }
    urgency::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for _ in 0..3 {
            let client = TcpStream::connect(address).await.unwrap();
            let accepted = next(listener.incoming()).await.unwrap().unwrap();
            assert_eq!(accepted.peer_addr().unwrap(), client.local_addr().unwrap());
        }
    });
}
