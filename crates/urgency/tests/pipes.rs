//! Pipes as `net::unix::pipe` has them: the ends of a named pipe, what is refused, and what the other end sees.

mod common;

use common::{ends, poll};
use std::{
    fs::File,
    io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    pin::pin,
    process::Command,
};
use urgency::{
    block_on,
    io::{Interest, Ready},
    net::unix::pipe::{self, OpenOptions, Receiver, Sender},
    spawn_fn,
};

/// A named pipe, removed at the end.
struct Named(PathBuf);

impl Named {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("urgency-pipe-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Named(path)
    }
}

impl AsRef<Path> for Named {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn is_blocking(pipe: impl AsFd) -> bool {
    let flags = rustix::fs::fcntl_getfl(pipe).unwrap();
    !flags.contains(rustix::fs::OFlags::NONBLOCK)
}

#[test]
fn what_is_written_into_a_named_pipe_is_read_and_then_it_ends_until_the_next_writer() {
    ends(|| {
        block_on(async {
            let path = Named::new("ends");
            let receiver = OpenOptions::new().open_receiver(&path).unwrap();
            let mut buffer = [0; 8];
            for _ in 0..3 {
                let sender = OpenOptions::new().open_sender(&path).unwrap();
                let mut read = Box::pin(receiver.read(&mut buffer));
                assert!(poll(read.as_mut()).is_pending());
                assert_eq!(sender.write(b"ping").await.unwrap(), 4);
                assert_eq!(read.await.unwrap(), 4);
                drop(sender);
                let ready = receiver.ready(Interest::READABLE).await.unwrap();
                assert_eq!(ready, Ready::READ_CLOSED);
                assert_eq!(receiver.read(&mut buffer).await.unwrap(), 0);
            }
        });
    });
}

#[test]
fn a_receiver_waits_for_the_first_writer() {
    ends(|| {
        block_on(async {
            let path = Named::new("first");
            let receiver = OpenOptions::new().open_receiver(&path).unwrap();
            let mut buffer = [0; 8];
            let none = receiver.try_read(&mut buffer).unwrap_err();
            assert_eq!(none.kind(), ErrorKind::WouldBlock);
            let mut into = [IoSliceMut::new(&mut buffer)];
            let none = receiver.try_read_vectored(&mut into).unwrap_err();
            assert_eq!(none.kind(), ErrorKind::WouldBlock);
            assert_eq!(receiver.try_read(&mut []).unwrap(), 0);
            let mut read = Box::pin(receiver.read(&mut buffer));
            assert!(poll(read.as_mut()).is_pending());
            let sender = OpenOptions::new().open_sender(&path).unwrap();
            assert!(poll(read.as_mut()).is_pending());
            sender.write(b"ping").await.unwrap();
            assert_eq!(read.await.unwrap(), 4);
            drop(sender);
            assert_eq!(receiver.try_read(&mut buffer).unwrap(), 0);

            // It ends by a writer that has written nothing.
            let receiver = OpenOptions::new().open_receiver(&path).unwrap();
            let mut read = Box::pin(receiver.read(&mut buffer));
            assert!(poll(read.as_mut()).is_pending());
            drop(OpenOptions::new().open_sender(&path).unwrap());
            assert_eq!(read.await.unwrap(), 0);
        });
    });
}

#[test]
fn an_end_of_both_directions_needs_no_other_end_and_never_ends() {
    ends(|| {
        block_on(async {
            let path = Named::new("both");
            let error = OpenOptions::new().open_sender(&path).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
            let sender = OpenOptions::new()
                .read_write(true)
                .open_sender(&path)
                .unwrap();
            assert_eq!(sender.try_write(b"ping").unwrap(), 4);

            let receiver = OpenOptions::new()
                .read_write(true)
                .open_receiver(&path)
                .unwrap();
            assert_eq!(receiver.try_read(&mut [0; 8]).unwrap(), 4);
            drop(sender);
            let mut buffer = [0; 8];
            let mut read = pin!(receiver.read(&mut buffer));
            assert!(poll(read.as_mut()).is_pending());
            let sender = OpenOptions::new().open_sender(&path).unwrap();
            sender.write(b"again").await.unwrap();
            assert_eq!(read.await.unwrap(), 5);
        });
    });
}

#[test]
fn what_is_no_pipe_or_the_wrong_end_is_refused() {
    let is_refused = |error: io::Error| error.kind() == ErrorKind::InvalidInput;
    let path = Named::new("refused");
    let no_pipe = path.0.with_extension("file");
    let options = OpenOptions::new();
    File::create(&no_pipe).unwrap();
    assert!(is_refused(options.open_sender(&no_pipe).unwrap_err()));
    assert!(is_refused(options.open_receiver(&no_pipe).unwrap_err()));
    let file = || {
        File::options()
            .read(true)
            .write(true)
            .open(&no_pipe)
            .unwrap()
    };
    assert!(is_refused(Sender::from_file(file()).unwrap_err()));
    assert!(is_refused(Receiver::from_file(file()).unwrap_err()));
    std::fs::remove_file(&no_pipe).unwrap();

    let _receiver = options.open_receiver(&path).unwrap();
    let reads = || {
        File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
    };
    let writes = || File::options().write(true).open(&path);
    assert!(is_refused(Sender::from_file(reads().unwrap()).unwrap_err()));
    assert!(is_refused(
        Receiver::from_file(writes().unwrap()).unwrap_err()
    ));
    // A device is no pipe, and may be waited for all the same.
    let zero = "/dev/zero";
    let file = || File::open(zero).unwrap();
    assert!(is_refused(options.open_receiver(zero).unwrap_err()));
    assert!(is_refused(Receiver::from_file(file()).unwrap_err()));
    let mut unchecked = OpenOptions::new();
    let zeros = unchecked.unchecked(true).open_receiver(zero).unwrap();
    assert_eq!(zeros.try_read(&mut [7; 8]).unwrap(), 8);
    assert!(Receiver::from_file_unchecked(file()).is_ok());
}

#[test]
fn an_end_does_not_block_and_may_be_given_away_with_or_without_that() {
    let path = Named::new("blocks");
    let options = OpenOptions::new();
    let receiver = options.open_receiver(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    assert!(is_blocking(&file));
    let sender = Sender::from_file(file).unwrap();
    assert!(!is_blocking(&sender) && !is_blocking(&receiver));
    assert!(is_blocking(sender.into_blocking_fd().unwrap()));
    let receiver = receiver.into_nonblocking_fd().unwrap();
    assert!(!is_blocking(&receiver));
    assert!(Receiver::from_owned_fd(receiver).is_ok());
}

#[test]
fn a_full_pipe_takes_nothing_until_it_is_read() {
    ends(|| {
        block_on(async {
            let (sender, receiver) = pipe::pipe().unwrap();
            let mut written = 0;
            let piece = [IoSlice::new(&[1; 2000]), IoSlice::new(&[2; 2096])];
            let error = loop {
                match sender.try_write_vectored(&piece) {
                    Ok(count) => written += count,
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            assert!(written > 4000);
            let refused = sender.try_io(|| Ok(()));
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::WouldBlock);
            let mut write = pin!(sender.write(b"more"));
            assert!(poll(write.as_mut()).is_pending());
            assert!(receiver.try_io(|| Ok(())).is_ok());
            let (mut one, mut other) = (vec![0; 2000], vec![0; written]);
            let mut into = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
            assert_eq!(receiver.try_read_vectored(&mut into).unwrap(), written);
            assert!(one.iter().all(|byte| *byte == 1));
            assert_eq!(write.await.unwrap(), 4);
            drop(receiver);
            assert!(
                sender
                    .ready(Interest::WRITABLE)
                    .await
                    .unwrap()
                    .is_write_closed()
            );
            let error = sender.write(b"more").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        });
    });
}

#[test]
fn closures_use_the_blocking_views_of_a_pipe() {
    ends(|| {
        let (sender, receiver) = pipe::pipe().unwrap();
        let writes = spawn_fn(move || sender.blocking().write_all(&[3; 300_000]));
        let mut all = Vec::new();
        receiver.blocking().read_to_end(&mut all).unwrap();
        assert_eq!(all, [3; 300_000]);
        writes.get().unwrap().unwrap();
    });
}
