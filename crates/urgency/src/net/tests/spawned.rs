//! Started operations in tasks that go from thread to thread.

use super::*;

/// Above all it compiles: `spawn` demands tasks that are `Send`.
#[test]
fn every_started_operation_can_be_awaited_in_a_spawned_task() {
    let bytes = || b"hello".to_vec();
    let streams = spawn(async move {
        let listener = TcpListener::bind(LOCAL).await?;
        let accepting = listener.start_accept();
        let client = TcpStream::connect(listener.local_addr()?).await?;
        let (server, _) = accepting.await?;
        let reading = server.start_read(vec![0; 5]);
        yield_now().await;
        assert_eq!(client.start_write(bytes()).await.0?, 5);
        let (count, read) = reading.await;
        assert_eq!((count?, read), (5, bytes()));
        io::Result::Ok(())
    });
    let datagrams = spawn(async move {
        let (a, b) = (UdpSocket::bind(LOCAL).await?, UdpSocket::bind(LOCAL).await?);
        let receiving = b.start_recv_from(vec![0; 5]);
        assert_eq!(a.start_send_to(bytes(), b.local_addr()?).await.0?, 5);
        let (received, read) = receiving.await;
        assert_eq!((received?, read), ((5, a.local_addr()?), bytes()));
        a.connect(b.local_addr()?).await?;
        a.start_send(bytes()).await.0?;
        b.recv(&mut [0; 5]).await
    });
    let unix = spawn(async move {
        let (a, b) = UnixStream::pair()?;
        a.start_write(bytes()).await.0?;
        read_started(&b).await?;
        let (a, b) = UnixDatagram::pair()?;
        a.start_send(bytes()).await.0?;
        let (received, _) = b.start_recv_from(vec![0; 5]).await;
        received.map(|(count, _)| count)
    });
    streams.get().unwrap().unwrap();
    assert_eq!(datagrams.get().unwrap().unwrap(), 5);
    assert_eq!(unix.get().unwrap().unwrap(), 5);
}

async fn read_started(stream: &UnixStream) -> io::Result<usize> {
    let (count, _) = stream.start_read(vec![0; 5]).await;
    count
}
