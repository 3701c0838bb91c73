//! The programs, for any runtime whose functions have Tokio's names.

/// Expands to `body(config)`, which makes the operations and returns how many they were.
macro_rules! programs {
    ($runtime:ident) => {
        use super::{Config, FILE, IN_SET, Program, READERS, REQUEST, answered};
        use ::$runtime::{
            fs,
            net::UnixStream,
            spawn,
            sync::{mpsc, oneshot},
            task::{JoinSet, yield_now},
        };

        async fn socket(operations: u64) -> u64 {
            let stream = answered();
            stream.set_nonblocking(true).expect("the socket is open");
            let stream = &mut UnixStream::from_std(stream).expect("the socket is open");
            let mut answer = [0; REQUEST];
            for n in 0..operations {
                let request = [n as u8; REQUEST];
                stream.write_all(&request).await.expect("the thread reads");
                stream.read_exact(&mut answer).await.expect("it answers");
                assert_eq!(answer, request);
            }
            operations
        }

        async fn actor(operations: u64) -> u64 {
            let (send, mut requests) = mpsc::channel::<(u64, oneshot::Sender<u64>)>(32);
            drop(spawn(async move {
                while let Some((n, answer)) = requests.recv().await {
                    answer.send(n + 1).expect("it is awaited");
                }
            }));
            for n in 0..operations {
                let (answer, awaited) = oneshot::channel();
                let sent = send.send((n, answer)).await;
                assert!(sent.is_ok(), "the task receives");
                assert_eq!(awaited.await.expect("the task answers"), n + 1);
            }
            operations
        }

        async fn set(operations: u64) -> u64 {
            let mut sum = 0;
            for _ in 0..operations / IN_SET {
                let mut set = JoinSet::new();
                for _ in 0..IN_SET {
                    set.spawn(async {
                        yield_now().await;
                        1
                    });
                }
                while let Some(one) = set.join_next().await {
                    sum += one.expect("no task fails");
                }
            }
            sum
        }

        async fn files(operations: u64) -> u64 {
            let path = std::env::temp_dir().join(format!("urgency-body-{}", std::process::id()));
            std::fs::write(&path, [7; FILE]).expect("a file can be written");
            let reads = |_| {
                let path = path.clone();
                spawn(async move {
                    for _ in 0..operations / READERS {
                        let bytes = fs::read(&path).await.expect("the file is there");
                        assert_eq!(bytes.len(), FILE);
                    }
                    operations / READERS
                })
            };
            let readers: Vec<_> = (0..READERS).map(reads).collect();
            let mut sum = 0;
            for reader in readers {
                sum += reader.await.expect("no task fails");
            }
            std::fs::remove_file(&path).expect("the file is there");
            sum
        }

        async fn body(config: Config) -> u64 {
            match config.program {
                Program::Socket => socket(config.operations).await,
                Program::Actor => actor(config.operations).await,
                Program::Set => set(config.operations).await,
                Program::Files => files(config.operations).await,
            }
        }
    };
}

pub(super) use programs;
