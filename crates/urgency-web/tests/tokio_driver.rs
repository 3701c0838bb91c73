//! `TokioDriver`: Tokio's own I/O, timers and spawns inside Urgency's tasks.
#![cfg(feature = "tokio-driver")]

use std::{
    future::pending,
    io,
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll},
    thread,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime::Handle,
    time::sleep,
};
use urgency_web::tokio_driver::TokioDriver;

urgency::levels! { App: Urgent > Lazy }

async fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = [0; 64];
    let mut buffer = ReadBuf::new(&mut bytes);
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut buffer)).await?;
    Ok(buffer.filled().to_vec())
}

async fn write(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, bytes)).await
}

#[test]
fn tokios_sockets_and_timers_work_in_tasks_that_stay_at_their_level() {
    let driver = TokioDriver::start().unwrap();
    let runtime = urgency::Runtime::builder().levels::<App>().build().unwrap();
    let (say, address) = mpsc::channel();
    let server = runtime.at(Lazy).spawn(driver.run(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        say.send(listener.local_addr()?).unwrap();
        let (mut stream, _) = listener.accept().await?;
        let word = read(&mut stream).await?;
        sleep(Duration::from_millis(2)).await;
        write(&mut stream, &word).await?;
        io::Result::Ok((
            urgency::current_level(),
            thread::current().name().map(str::to_owned),
        ))
    }));
    let address = address.recv().unwrap();
    let client = runtime.at(Urgent).spawn(driver.run(async move {
        let mut stream = TcpStream::connect(address).await?;
        let start = Instant::now();
        write(&mut stream, b"through").await?;
        let word = read(&mut stream).await?;
        assert!(start.elapsed() >= Duration::from_millis(1));
        io::Result::Ok(word)
    }));
    assert_eq!(client.get().unwrap().unwrap(), b"through");
    let (level, thread) = server.get().unwrap().unwrap();
    assert_eq!(level, Lazy.into());
    assert_ne!(
        thread.as_deref(),
        Some("urgency-tokio"),
        "the task ran on the driver's thread"
    );
}

#[test]
fn what_a_crate_spawns_by_tokio_runs_on_the_drivers_thread_and_can_be_awaited() {
    let driver = TokioDriver::start().unwrap();
    let name = || thread::current().name().map(str::to_owned);
    let spawned = urgency::spawn(driver.run(async move {
        let spawned = tokio::spawn(async move { name() }).await.unwrap();
        let blocking = tokio::task::spawn_blocking(move || 42).await.unwrap();
        (spawned, blocking)
    }));
    let (spawned, blocking) = spawned.get().unwrap();
    assert_eq!((spawned.as_deref(), blocking), (Some("urgency-tokio"), 42));
}

#[test]
fn the_context_ends_with_the_poll_and_is_there_for_the_drop() {
    /// Asks for the context when it is polled and when it is dropped.
    struct Asks(mpsc::Sender<bool>);
    impl Future for Asks {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            self.0.send(Handle::try_current().is_ok()).unwrap();
            Poll::Pending
        }
    }
    impl Drop for Asks {
        fn drop(&mut self) {
            self.0.send(Handle::try_current().is_ok()).unwrap();
        }
    }
    let (send, receive) = mpsc::channel();
    let driver = TokioDriver::start().unwrap();
    let asks = urgency::spawn(driver.run(Asks(send)));
    assert_eq!(receive.recv(), Ok(true));
    asks.abort();
    assert_eq!(receive.recv(), Ok(true));
    assert!(Handle::try_current().is_err());
    assert!(driver.enter(|| Handle::try_current().is_ok()));
}

#[test]
fn dropping_a_driver_ends_its_thread_and_what_was_spawned_on_it() {
    struct Witness(mpsc::Sender<()>);
    impl Drop for Witness {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (send, dropped) = mpsc::channel();
    let driver = TokioDriver::start().unwrap();
    let witness = Witness(send);
    driver.enter(|| {
        drop(tokio::spawn(async move {
            let _witness = witness;
            pending::<()>().await;
        }));
    });
    drop(driver);
    assert_eq!(dropped.try_recv(), Ok(()));
}

#[test]
fn a_closure_of_the_drivers_own_blocking_pool_may_drop_it() {
    let (send, done) = mpsc::channel();
    let (begin, begun) = mpsc::channel::<()>();
    let driver = std::sync::Arc::new(TokioDriver::start().unwrap());
    let last = driver.clone();
    driver.enter(|| {
        drop(tokio::task::spawn_blocking(move || {
            begun.recv().unwrap();
            drop(last);
            let _ = send.send(());
        }));
    });
    drop(driver);
    begin.send(()).unwrap();
    assert_eq!(done.recv_timeout(Duration::from_secs(20)), Ok(()));
}

/// A client as pooled ones are: a warm call needs no reactor, a cold one does.
#[derive(Clone)]
struct Client(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Client {
    async fn call(&self) -> bool {
        if !self.0.swap(true, std::sync::atomic::Ordering::SeqCst) {
            sleep(Duration::from_millis(1)).await;
        }
        Handle::try_current().is_ok()
    }

    fn idles_out(&self) {
        self.0.store(false, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        assert!(Handle::try_current().is_ok(), "dropped outside");
    }
}

#[test]
fn what_a_driver_keeps_is_made_called_cloned_and_dropped_inside_only() {
    let driver = TokioDriver::start().unwrap();
    let client = driver.keep(|| {
        assert!(Handle::try_current().is_ok());
        Client(Default::default())
    });
    let other = client.clone();
    for _ in 0..3 {
        let task = async |kept: &urgency_web::tokio_driver::Kept<Client>| {
            kept.call(async |client| {
                let (cold, warm) = (client.call().await, client.call().await);
                client.idles_out();
                cold && warm
            })
            .await
        };
        assert!(urgency::block_on(task(&client)) && urgency::block_on(task(&other)));
    }
    assert!(
        Handle::try_current().is_err(),
        "the context ended with the calls"
    );
    let cancelled = urgency::block_on(urgency::time::timeout(
        Duration::from_millis(1),
        client.call(async |_| pending::<()>().await),
    ));
    assert!(cancelled.is_err());
}

#[test]
fn a_future_is_made_inside_too_whether_by_a_plain_closure_or_by_into_future() {
    struct Nap;
    impl IntoFuture for Nap {
        type Output = ();
        type IntoFuture = tokio::time::Sleep;
        fn into_future(self) -> tokio::time::Sleep {
            sleep(Duration::from_millis(1))
        }
    }
    let driver = TokioDriver::start().unwrap();
    let kept = driver.keep(|| Duration::from_millis(1));
    urgency::block_on(async {
        driver.run(Nap).await;
        kept.call(|length: &Duration| sleep(*length)).await;
    });
    assert!(Handle::try_current().is_err());
}
