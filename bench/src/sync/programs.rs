//! The programs, for any runtime whose primitives have the usual methods.

/// Expands to `run_program(config)`, which makes the operations and returns how many they were.
macro_rules! programs {
    (
        sync: $runtime:ident,
        spawn: $spawn:path,
        yields: $yields:path,
    ) => {
        use super::{Config, Program, RECEIVERS, TASKS};
        use ::$runtime::sync;
        use std::sync::Arc;

        /// How often a task goes on before it yields.
        const TURN: u64 = 16;

        /// Starts a task for each share of the operations, and adds up what they return.
        async fn shared<F>(operations: u64, task: impl Fn(u64, u64) -> F) -> u64
        where
            F: Future<Output = u64> + Send + 'static,
        {
            let start = |n| $spawn(task(n, operations / TASKS));
            let handles: Vec<_> = (0..TASKS).map(start).collect();
            let mut sum = 0;
            for handle in handles {
                sum += handle.await.expect("no task fails");
            }
            sum
        }

        async fn mutex_alone(operations: u64) -> u64 {
            let mutex = sync::Mutex::new(0);
            for _ in 0..operations {
                *mutex.lock().await += 1;
            }
            mutex.into_inner()
        }

        async fn mutex_shared(operations: u64, turn: u64) -> u64 {
            let mutex = Arc::new(sync::Mutex::new(0));
            let task = |_, share| {
                let mutex = mutex.clone();
                async move {
                    for n in 0..share {
                        let mut count = mutex.lock().await;
                        *count += 1;
                        if turn == 0 {
                            $yields().await;
                        } else if n % turn == 0 {
                            drop(count);
                            $yields().await;
                        }
                    }
                    0
                }
            };
            shared(operations, task).await + *mutex.lock().await
        }

        async fn semaphore_alone(operations: u64) -> u64 {
            let places = sync::Semaphore::new(1);
            for _ in 0..operations {
                drop(places.acquire().await.expect("it is not closed"));
            }
            operations
        }

        async fn semaphore_queued(operations: u64) -> u64 {
            let places = Arc::new(sync::Semaphore::new(2));
            let task = |_, share| {
                let places = places.clone();
                async move {
                    for _ in 0..share {
                        let _permit = places.acquire().await.expect("it is not closed");
                        $yields().await;
                    }
                    share
                }
            };
            shared(operations, task).await
        }

        async fn rwlock(operations: u64) -> u64 {
            let lock = Arc::new(sync::RwLock::new(0));
            let task = |n, share| {
                let lock = lock.clone();
                async move {
                    let mut seen = 0;
                    for step in 0..share {
                        if n == 0 {
                            *lock.write().await += 1;
                        } else {
                            seen += u64::from(*lock.read().await <= share);
                        }
                        if step % TURN == 0 {
                            $yields().await;
                        }
                    }
                    seen
                }
            };
            shared(operations, task).await + *lock.read().await
        }

        async fn mpsc(operations: u64, senders: u64) -> u64 {
            let (sender, mut receiver) = sync::mpsc::channel::<u64>(128);
            for _ in 0..senders {
                let sender = sender.clone();
                drop($spawn(async move {
                    for _ in 0..operations / senders {
                        sender.send(1).await.expect("it is received");
                    }
                }));
            }
            drop(sender);
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
            }
            sum
        }

        async fn mpsc_unbounded(operations: u64) -> u64 {
            let (sender, mut receiver) = sync::mpsc::unbounded_channel::<u64>();
            drop($spawn(async move {
                for n in 0..operations {
                    sender.send(1).expect("it is received");
                    if n % 128 == 0 {
                        $yields().await;
                    }
                }
            }));
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
            }
            sum
        }

        async fn oneshot_alone(operations: u64) -> u64 {
            let mut sum = 0;
            for _ in 0..operations {
                let (sender, receiver) = sync::oneshot::channel();
                sender.send(1).expect("it is received");
                sum += receiver.await.expect("it is sent");
            }
            sum
        }

        async fn oneshot_call(operations: u64) -> u64 {
            let (sender, mut receiver) = sync::mpsc::channel::<sync::oneshot::Sender<u64>>(128);
            drop($spawn(async move {
                while let Some(request) = receiver.recv().await {
                    request.send(1).expect("it is received");
                }
            }));
            let task = |_, share| {
                let sender = sender.clone();
                async move {
                    let mut sum = 0;
                    for _ in 0..share {
                        let (request, answer) = sync::oneshot::channel();
                        assert!(sender.send(request).await.is_ok(), "it is received");
                        sum += answer.await.expect("it is answered");
                    }
                    sum
                }
            };
            shared(operations, task).await
        }

        async fn broadcast(operations: u64) -> u64 {
            let (sender, receiver) = sync::broadcast::channel::<u64>(1024);
            let receivers: Vec<_> = (0..RECEIVERS)
                .map(|_| {
                    let mut receiver = receiver.resubscribe();
                    $spawn(async move {
                        let mut sum = 0;
                        while let Ok(n) = receiver.recv().await {
                            sum += n;
                        }
                        sum
                    })
                })
                .collect();
            drop(receiver);
            for n in 0..operations / RECEIVERS {
                sender.send(1).expect("it is received");
                // Slower than the slowest receiver, so that nobody lags.
                while n % 64 == 0 && sender.len() > 512 {
                    $yields().await;
                }
            }
            drop(sender);
            let mut sum = 0;
            for receiver in receivers {
                sum += receiver.await.expect("no task fails");
            }
            sum
        }

        /// Makes the operations of the configuration, and returns how many they were.
        pub async fn run_program(config: Config) -> u64 {
            let operations = config.operations;
            match config.program {
                Program::MutexAlone => mutex_alone(operations).await,
                Program::MutexShared => mutex_shared(operations, TURN).await,
                Program::MutexQueued => mutex_shared(operations, 0).await,
                Program::SemaphoreAlone => semaphore_alone(operations).await,
                Program::SemaphoreQueued => semaphore_queued(operations).await,
                Program::RwLock => rwlock(operations).await,
                Program::MpscOne => mpsc(operations, 1).await,
                Program::MpscMany => mpsc(operations, TASKS).await,
                Program::MpscUnbounded => mpsc_unbounded(operations).await,
                Program::OneshotAlone => oneshot_alone(operations).await,
                Program::OneshotCall => oneshot_call(operations).await,
                Program::Broadcast => broadcast(operations).await,
            }
        }
    };
}
pub(super) use programs;
