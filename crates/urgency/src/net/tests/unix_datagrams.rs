//! Unix datagrams to named sockets, also when their queues are full.

use super::*;
use std::os::unix::net as unix;

/// A receiver with a name.
fn receiver(name: &str) -> (UnixDatagram, unix::SocketAddr, std::path::PathBuf) {
    let path = socket_path(name);
    let receiver = UnixDatagram::bind(&path).unwrap();
    (
        receiver,
        unix::SocketAddr::from_pathname(&path).unwrap(),
        path,
    )
}

/// Fills the queue of a socket from others, each until its own buffer is full, too. Returns how many
/// datagrams it holds.
fn fill(to: &unix::SocketAddr) -> usize {
    let mut sent = 0;
    loop {
        let filler = unix::UnixDatagram::unbound().unwrap();
        filler.set_nonblocking(true).unwrap();
        let before = sent;
        while filler.send_to_addr(b"filler", to).is_ok() {
            sent += 1;
        }
        if sent == before {
            return sent;
        }
    }
}

#[test]
fn a_datagram_for_a_full_queue_is_sent_as_soon_as_there_is_room() {
    let (receiver, to, path) = receiver("full");
    let filled = fill(&to);
    let sender = UnixDatagram::unbound().unwrap();
    block_on(async {
        let mut send = pin!(sender.send_to_addr(b"last", &to));
        assert!(poll_once(send.as_mut()).is_pending());
        let send = async { assert_eq!(send.await.unwrap(), 4) };
        let receive = async {
            let mut buffer = [0; 10];
            for _ in 0..filled {
                let (count, _) = receiver.recv_from(&mut buffer).await.unwrap();
                assert_eq!(&buffer[..count], b"filler");
            }
            let (count, from) = receiver.recv_from(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..count], b"last");
            assert!(from.is_unnamed());
        };
        crate::future::zip(send, receive).await;
    });
    let _ = std::fs::remove_file(path);
}

#[test]
fn many_senders_to_one_socket_lose_no_datagram() {
    const SENDERS: usize = 4;
    const EACH: usize = 500;
    let (receiver, to, path) = receiver("many");
    let senders: Vec<_> = (0..SENDERS)
        .map(|n| {
            let to = to.clone();
            spawn(async move {
                let sender = UnixDatagram::unbound().unwrap();
                for i in 0..EACH as u16 {
                    let datagram = [&[n as u8][..], &i.to_le_bytes()].concat();
                    assert_eq!(sender.send_to_addr(&datagram, &to).await.unwrap(), 3);
                }
            })
        })
        .collect();
    let mut next = [0; SENDERS];
    block_on(async {
        for _ in 0..SENDERS * EACH {
            let mut datagram = [0; 3];
            receiver.recv(&mut datagram).await.unwrap();
            let [n, low, high] = datagram;
            let next = &mut next[usize::from(n)];
            assert_eq!(u16::from_le_bytes([low, high]), *next);
            *next += 1;
        }
    });
    for sender in senders {
        sender.get().unwrap();
    }
    let _ = std::fs::remove_file(path);
}

#[test]
fn closures_answer_the_address_that_a_datagram_came_from() {
    let (server, to, server_path) = receiver("server");
    let (client, _, client_path) = receiver("client");
    let answers = spawn_fn(move || {
        let mut buffer = [0; 10];
        let (count, from) = server.blocking().recv_from(&mut buffer).unwrap();
        server
            .blocking()
            .send_to_addr(&buffer[..count], &from)
            .unwrap()
    });
    assert_eq!(client.blocking().send_to_addr(b"ask", &to).unwrap(), 3);
    let mut buffer = [0; 10];
    let (count, from) = client.blocking().recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..count], b"ask");
    assert_eq!(from.as_pathname(), Some(&*server_path));
    assert_eq!(answers.get().unwrap(), 3);
    let nobody = client.blocking().send_to_addr(b"ask", &to).unwrap_err();
    assert_eq!(nobody.kind(), io::ErrorKind::ConnectionRefused);
    let _ = std::fs::remove_file(server_path);
    let _ = std::fs::remove_file(client_path);
}
