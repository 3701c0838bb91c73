//! A Unix socket that is bound before it connects, listens or sends.

use super::*;

#[test]
fn a_client_with_an_address_of_its_own_is_accepted_with_it() {
    let (service, own) = (socket_path("socket-service"), socket_path("socket-client"));
    block_on(async {
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&service).unwrap();
        assert_eq!(socket.local_addr().unwrap().as_pathname(), Some(&*service));
        let listener = socket.listen(16).unwrap();
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&own).unwrap();
        let client = socket.connect(&service).await.unwrap();
        let (server, peer) = listener.accept().await.unwrap();
        assert_eq!(peer.as_pathname(), Some(&*own));
        client.write_all(b"ping").await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 4);
    });
    std::fs::remove_file(service).unwrap();
    std::fs::remove_file(own).unwrap();
}

#[test]
fn a_client_waits_for_room_in_the_queue_that_the_listener_asked_for() {
    let path = socket_path("socket-queue");
    block_on(async {
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let listener = socket.listen(1).unwrap();
        let mut waits = Vec::new();
        let next = loop {
            let mut next = UnixSocket::new_stream().unwrap().connect(&path);
            match poll_once(Pin::new(&mut next)) {
                Poll::Ready(client) => waits.push(client.unwrap()),
                Poll::Pending => break next,
            }
        };
        assert!(waits.len() < 10, "{} wait", waits.len());
        listener.accept().await.unwrap();
        next.await.unwrap();
    });
    std::fs::remove_file(path).unwrap();
}

#[test]
fn datagrams_go_from_one_address_to_another() {
    let (one, other) = (socket_path("socket-one"), socket_path("socket-other"));
    block_on(async {
        let bound = |path| {
            let socket = UnixSocket::new_datagram().unwrap();
            socket.bind(path).unwrap();
            socket.datagram().unwrap()
        };
        let (sender, receiver) = (bound(&one), bound(&other));
        sender.connect(&other).unwrap();
        sender.send(b"ping").await.unwrap();
        let mut buffer = [0; 8];
        let (count, from) = receiver.recv_from(&mut buffer).await.unwrap();
        assert_eq!((count, from.as_pathname()), (4, Some(&*one)));
    });
    std::fs::remove_file(one).unwrap();
    std::fs::remove_file(other).unwrap();
}

#[test]
fn a_socket_of_the_other_kind_is_an_error_that_says_so() {
    block_on(async {
        let datagram = || UnixSocket::new_datagram().unwrap();
        let errors = [
            datagram().connect("/nowhere").await.err(),
            datagram().listen(16).err(),
            UnixSocket::new_stream().unwrap().datagram().err(),
        ];
        let said = errors.map(|error| error.unwrap().to_string());
        assert!(said[0].starts_with("connect cannot be called on a datagram socket"));
        assert!(said[1].starts_with("listen cannot be called on a datagram socket"));
        assert!(said[2].starts_with("datagram cannot be called on a stream socket"));
    });
}
