//! Vectored operations with more slices than one system call takes.

use super::*;
use std::io::{IoSlice, IoSliceMut};

/// What the kernel takes at once.
const MOST: usize = 1024;

#[test]
fn a_write_of_very_many_slices_writes_the_first_of_them() {
    block_on(async {
        let (client, server) = pair().await;
        let slices = vec![IoSlice::new(b"x"); MOST + 76];
        assert_eq!(client.write_vectored(&slices).await.unwrap(), MOST);
        server.read_exact(&mut [0; MOST]).await.unwrap();
    });
}

#[test]
fn a_read_into_very_many_slices_does_not_make_the_next_one_wait() {
    block_on(async {
        let (client, server) = pair().await;
        // Registered, so that the next read looks at what is known.
        assert!(poll_once(pin!(server.read(&mut [0]))).is_pending());
        client.write_all(&[7; 2 * MOST]).await.unwrap();
        server.readable().await.unwrap();
        let mut bytes = [0; MOST + 76];
        let mut slices: Vec<_> = bytes.chunks_mut(1).map(IoSliceMut::new).collect();
        let read = server.read_vectored(&mut slices).await.unwrap();
        assert_eq!(read, MOST);
        let mut rest = [0; 2 * MOST];
        match poll_once(pin!(server.read(&mut rest))) {
            Poll::Ready(count) => assert_eq!(count.unwrap(), MOST),
            Poll::Pending => panic!("it waits for bytes that are there"),
        }
    });
}
