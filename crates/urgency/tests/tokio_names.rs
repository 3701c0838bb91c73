//! Names and traits that programs for Tokio use: of sockets, of sets of tasks, of tokens, and how types cross threads.

mod common;

use common::ends;
use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap, HashSet},
    io::{self, ErrorKind, IoSlice, IoSliceMut},
    net::{Ipv4Addr, Shutdown},
    os::fd::{AsFd, AsRawFd},
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};
use urgency::{
    BuildError, Runtime, block_on, fs,
    io::Interest,
    life::{CancellationToken, TaskTracker},
    net::{
        TcpListener, TcpSocket, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream, tcp,
    },
    policy::cores::Demand,
    process,
    runtime::{self, EnterGuard, Handle, RuntimeFlavor},
    sync::mpsc,
    task::{self, AbortHandle, JoinSet, LocalSet},
    time::{Sleep, sleep},
};

#[test]
fn types_cross_threads_and_panics_as_tokios_do() {
    fn sync<T: Sync>() {}
    fn panics<T: UnwindSafe + RefUnwindSafe>() {}
    fn numbered<T: AsRawFd + AsFd>() {}
    sync::<mpsc::Receiver<Cell<u8>>>();
    sync::<mpsc::UnboundedReceiver<Cell<u8>>>();
    sync::<EnterGuard<'_>>();
    sync::<process::Child>();
    sync::<process::Command>();
    panics::<Handle>();
    panics::<AbortHandle>();
    numbered::<TcpListener>();
    numbered::<TcpSocket>();
    numbered::<TcpStream>();
    numbered::<UdpSocket>();
    numbered::<UnixDatagram>();
    numbered::<UnixListener>();
    numbered::<UnixStream>();
    numbered::<process::ChildStdin>();
    numbered::<process::ChildStdout>();
    numbered::<process::ChildStderr>();
    assert!(JoinSet::<Rc<u8>>::default().is_empty());
}

#[test]
fn tokios_builder_builds_in_a_function_of_io_results() {
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    fn build() -> io::Result<Runtime> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .thread_name("my-custom-name")
            .thread_stack_size(3 * 1024 * 1024)
            .on_thread_start(|| _ = BEGUN.fetch_add(1, SeqCst))
            .on_thread_stop(|| ())
            .enable_all()
            .build()?;
        Ok(runtime)
    }
    let runtime = build().unwrap();
    let name = runtime.spawn_blocking(|| std::thread::current().name().map(String::from));
    assert_eq!(name.get().unwrap().as_deref(), Some("my-custom-name"));
    assert_ne!(BEGUN.load(SeqCst), 0);
    assert_eq!(runtime.runtime_flavor(), RuntimeFlavor::MultiThread);
}

#[test]
fn figures_of_a_runtime_by_tokios_names_are_of_now() {
    urgency::levels! { App: Interactive > Batch }
    ends(|| {
        let builder = Runtime::builder().workers(1).levels::<App>();
        let runtime = builder.build().unwrap();
        let metrics = runtime.metrics();
        assert_eq!(metrics.num_workers(), 1);
        assert_eq!(metrics.worker_total_busy_duration(0), Duration::ZERO);
        let (begun, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let theirs = (begun.clone(), over.clone());
        // It computes on the only worker, so nothing less urgent begins.
        let busy = runtime.at(Interactive).spawn_fn(move || {
            let from = Instant::now();
            theirs.0.store(1, SeqCst);
            while theirs.1.load(SeqCst) == 0 || from.elapsed() < Duration::from_millis(5) {}
        });
        while begun.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let spawn = |n| {
            assert_eq!(metrics.global_queue_depth(), n);
            assert_eq!(metrics.num_alive_tasks(), n + 1);
            runtime.at(Batch).spawn(async {})
        };
        let others: Vec<_> = (0..3).map(spawn).collect();
        over.store(1, SeqCst);
        busy.get().unwrap();
        others.into_iter().for_each(|task| task.get().unwrap());
        // A task tells its end before it is accounted for.
        while metrics.num_alive_tasks() != 0 {
            std::thread::yield_now();
        }
        assert_eq!(metrics.global_queue_depth(), 0);
        let busy = metrics.worker_total_busy_duration(0);
        assert!(busy >= Duration::from_millis(5), "{busy:?}");
        let weak = metrics.clone();
        drop((runtime, metrics));
        assert_eq!(weak.num_workers(), 1);
    });
}

#[test]
fn the_error_of_a_runtime_that_has_ended_is_told_from_others() {
    ends(|| {
        let (one, _other) = UnixStream::pair().unwrap();
        let runtime = Runtime::new().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        runtime.block_on(async { assert!(one.poll_read_ready(&mut cx).is_pending()) });
        drop(runtime);
        let error = block_on(one.read(&mut [0; 8])).unwrap_err();
        assert!(runtime::is_rt_shutdown_err(&error));
        assert!(!runtime::is_rt_shutdown_err(&ErrorKind::Other.into()));
        assert!(!runtime::is_rt_shutdown_err(&io::Error::other("another")));
    });
}

#[test]
fn a_runtime_that_cannot_be_had_is_an_io_error_that_keeps_the_reason() {
    fn build(builder: runtime::Builder) -> io::Result<()> {
        builder.build()?;
        Ok(())
    }
    let builder = runtime::Builder::new_multi_thread;
    let error = |builder| build(builder).unwrap_err();
    let none = error(builder().worker_threads(0));
    assert_eq!(none.kind(), ErrorKind::InvalidInput);
    assert_eq!(none.to_string(), BuildError::Workers(0).to_string());
    let reason = none.get_ref().unwrap().downcast_ref();
    assert_eq!(reason, Some(&BuildError::Workers(0)));
    let elsewhere = error(builder().pin_workers_to([5000]));
    assert_eq!(elsewhere.kind(), ErrorKind::PermissionDenied);
    let other = Runtime::builder().workers(1).build().unwrap();
    let greedy = Demand {
        min_cores: 2,
        ..Demand::default()
    };
    let more = error(builder().share_workers_with(&other).demand(greedy));
    assert_eq!(more.kind(), ErrorKind::ResourceBusy);
}

#[test]
fn the_ids_of_tasks_have_an_order() {
    let tasks: Vec<_> = (0..3)
        .map(|_| urgency::spawn(std::future::pending::<()>()))
        .collect();
    let ids: BTreeSet<task::Id> = tasks.iter().map(|task| task.id()).collect();
    assert_eq!(ids.len(), 3);
    tasks.iter().for_each(|task| task.abort());
}

#[test]
fn a_set_of_tasks_says_which_of_them_ended() {
    let elsewhere = Runtime::builder().workers(1).build().unwrap();
    ends(move || {
        block_on(async {
            let mut set: JoinSet<u32> = [1, 2].into_iter().map(|n| async move { n }).collect();
            set.extend([std::future::ready(3)]);
            let mut expected = HashMap::new();
            expected.insert(set.spawn_blocking(|| 4).id(), 4);
            expected.insert(set.spawn_on(async { 5 }, &elsewhere).id(), 5);
            expected.insert(set.spawn_blocking_on(|| 6, &elsewhere).id(), 6);
            let doomed = set.spawn(async { panic!("seven") }).id();
            let (mut sum, mut panicked) = (0, None);
            while let Some(result) = set.join_next_with_id().await {
                match result {
                    Ok((id, value)) => {
                        sum += value;
                        assert_eq!(expected.remove(&id).unwrap_or(value), value);
                    }
                    Err(error) => panicked = Some(error.id()),
                }
            }
            assert_eq!((sum, panicked), (21, Some(doomed)));
            assert!(expected.is_empty());

            let id = set.spawn(async { 8 }).id();
            loop {
                if let Some(result) = set.try_join_next_with_id() {
                    break assert_eq!(result.unwrap(), (id, 8));
                }
                task::yield_now().await;
            }
        });
    });
}

#[test]
fn a_tracker_follows_what_runs_on_another_runtime() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let tracker = TaskTracker::new();
    let ran = Arc::new(AtomicUsize::new(0));
    let runs = || {
        let ran = ran.clone();
        move || {
            ran.fetch_add(1, SeqCst);
            Handle::current()
        }
    };
    let [of_task, of_closure] = [(); 2].map(|()| runs());
    let threads = [
        tracker.spawn_on(async move { of_task() }, &runtime),
        tracker.spawn_blocking_on(of_closure, &runtime),
    ];
    tracker.close();
    ends({
        let tracker = tracker.clone();
        move || block_on(tracker.wait())
    });
    // Their futures are gone; their handles may hear of it later.
    assert_eq!(ran.load(SeqCst), 2);
    for handle in threads {
        handle.get().unwrap();
    }
    assert!(TaskTracker::ptr_eq(&tracker, &tracker.clone()));
    assert!(!TaskTracker::ptr_eq(&tracker, &TaskTracker::new()));
}

#[expect(clippy::mutable_key_type, reason = "a token is hashed by what it is")]
#[test]
fn clones_of_a_token_are_equal_and_its_child_is_another() {
    let token = CancellationToken::new();
    let mut tokens = HashSet::from([token.clone()]);
    assert!(!tokens.insert(token.clone()));
    assert!(tokens.insert(token.child_token()));
    assert_ne!(token, CancellationToken::new());

    assert_eq!(token.drop_guard_ref().disarm(), &token);
    assert!(!token.is_cancelled());
    drop(token.drop_guard_ref());
    assert!(token.is_cancelled());
}

#[test]
fn a_stream_is_read_and_written_in_slices_at_once_or_would_block() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let (mut first, mut second) = ([0; 2], [0; 4]);
        let mut read = || {
            let slices = &mut [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
            b.try_read_vectored(slices)
        };
        assert_eq!(read().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(b.poll_read_ready(&mut cx).is_pending());
        assert!(matches!(a.poll_write_ready(&mut cx), Poll::Ready(Ok(()))));
        let sent = a.try_write_vectored(&[IoSlice::new(b"abc"), IoSlice::new(b"de")]);
        assert_eq!(sent.unwrap(), 5);
        b.readable().await.unwrap();
        assert!(matches!(b.poll_read_ready(&mut cx), Poll::Ready(Ok(()))));
        assert_eq!(read().unwrap(), 5);
        assert_eq!((&first, &second[..3]), (b"ab", &b"cde"[..]));

        // What a dropped started read gave back is ready, though the kernel has nothing.
        a.write_all(b"x").await.unwrap();
        drop(b.start_read(vec![0; 8]));
        assert!(matches!(b.poll_read_ready(&mut cx), Poll::Ready(Ok(()))));
    });
}

#[test]
fn a_unix_stream_knows_its_addresses_and_its_peer() {
    let path = std::env::temp_dir().join(format!("urgency-names-{}", std::process::id()));
    block_on(async {
        let listener = UnixListener::bind(&path).unwrap();
        let listener = UnixListener::from_std(listener.into_std().unwrap()).unwrap();
        let client = UnixStream::connect(&path).await.unwrap();
        let (server, peer) = listener.accept().await.unwrap();
        assert!(peer.is_unnamed());
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(&*path));
        assert_eq!(server.local_addr().unwrap().as_pathname(), Some(&*path));
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(&*path));
        assert!(client.local_addr().unwrap().is_unnamed());
        let peer = server.peer_cred().unwrap();
        assert_eq!(peer.pid(), Some(std::process::id().try_into().unwrap()));
        assert_eq!(peer, client.peer_cred().unwrap());

        use std::os::{linux::net::SocketAddrExt, unix::net};
        let name = net::SocketAddr::from_abstract_name(path.as_os_str().as_encoded_bytes());
        let hidden = net::UnixListener::bind_addr(&name.unwrap()).unwrap();
        let hidden = UnixListener::from_std(hidden).unwrap().local_addr();
        let found = hidden.unwrap();
        assert_eq!(
            found.as_abstract_name(),
            Some(path.as_os_str().as_encoded_bytes())
        );

        let server = UnixStream::from_std(server.into_std().unwrap()).unwrap();
        client.write_all(b"!").await.unwrap();
        assert_eq!(server.read(&mut [0; 2]).await.unwrap(), 1);
    });
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_datagram_comes_at_once_or_would_block() {
    block_on(async {
        let a = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let b = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (from, to) = (a.local_addr().unwrap(), b.local_addr().unwrap());
        let mut buffer = [0; 8];
        let mut cx = Context::from_waker(Waker::noop());
        let nothing = b.try_recv_from(&mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        assert!(b.poll_recv_ready(&mut cx).is_pending());
        a.writable().await.unwrap();
        assert!(matches!(a.poll_send_ready(&mut cx), Poll::Ready(Ok(()))));
        assert_eq!(a.try_send_to(b"one", to).unwrap(), 3);
        b.readable().await.unwrap();
        assert_eq!(b.peek(&mut buffer).await.unwrap(), 3);
        assert_eq!(b.try_recv_from(&mut buffer).unwrap(), (3, from));

        // What a dropped started receive gave back is there, though the kernel has nothing.
        a.send_to(b"three", to).await.unwrap();
        b.readable().await.unwrap();
        drop(b.start_recv_from(vec![0; 8]));
        b.readable().await.unwrap();
        assert!(matches!(b.poll_recv_ready(&mut cx), Poll::Ready(Ok(()))));
        assert_eq!(b.try_recv(&mut buffer).unwrap(), 5);
        assert_eq!(&buffer[..5], b"three");

        a.connect(to).await.unwrap();
        assert_eq!(a.try_send(b"four").unwrap(), 4);
        assert!(matches!(a.poll_send(&mut cx, b""), Poll::Ready(Ok(0))));
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 4);
        let b = UdpSocket::from_std(b.into_std().unwrap()).unwrap();
        assert_eq!(b.recv(&mut buffer).await.unwrap(), 0);

        let (c, d) = UnixDatagram::pair().unwrap();
        assert_eq!(c.try_send(b"five").unwrap(), 4);
        let d = UnixDatagram::from_std(d.into_std().unwrap()).unwrap();
        assert!(d.local_addr().unwrap().is_unnamed());
        assert!(d.peer_addr().unwrap().is_unnamed());
        assert_eq!(d.try_recv(&mut buffer).unwrap(), 4);
        c.shutdown(Shutdown::Both).unwrap();
        assert_eq!(
            c.try_send(b"six").unwrap_err().kind(),
            ErrorKind::BrokenPipe
        );
    });
}

/// As quinn's runtimes have it: the names are the same ones, and the types must be as well.
trait MovableTimer {
    fn reset(self: Pin<&mut Self>, deadline: std::time::Instant);
}

impl MovableTimer for Sleep {
    fn reset(self: Pin<&mut Self>, deadline: std::time::Instant) {
        Sleep::reset(self, deadline.into());
    }
}

#[test]
fn a_sleep_is_reset_through_its_pin() {
    let mut hour = Box::pin(sleep(Duration::from_secs(3600)));
    MovableTimer::reset(hour.as_mut(), std::time::Instant::now());
    block_on(hour);
}

/// As tokio-util's `JoinMap`: a set in a type without bounds.
#[derive(Default)]
struct Tasks<T>(JoinSet<T>);

impl<T> Tasks<T> {
    async fn next(&mut self) -> Option<T> {
        self.0.join_next().await?.ok()
    }
}

#[test]
fn a_set_of_tasks_needs_no_bound_and_a_result_of_a_local_task_none_but_its_life() {
    let local = LocalSet::new();
    let sum = block_on(local.run_until(async {
        let mut tasks = Tasks(JoinSet::new());
        tasks.0.spawn_local(async { Rc::new(1) });
        tasks.0.spawn_local_on(async { Rc::new(2) }, &local);
        *tasks.next().await.unwrap() + *tasks.next().await.unwrap()
    }));
    assert_eq!(sum, 3);
}

#[test]
fn a_socket_is_bound_to_an_interface_by_its_name() {
    block_on(async {
        let tcp = TcpSocket::new_v4().unwrap();
        assert_eq!(tcp.device().unwrap(), None);
        assert!(tcp.bind_device(Some(b"no-interface")).is_err());
        assert_eq!(tcp.device().unwrap(), None);
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        // Some kernels ask for a capability, and a sandbox may have no interface.
        if tcp.bind_device(Some(b"lo")).is_err() {
            return;
        }
        assert_eq!(tcp.device().unwrap(), Some(b"lo".to_vec()));
        udp.bind_device(Some(b"lo")).unwrap();
        assert_eq!(udp.device().unwrap(), Some(b"lo".to_vec()));
        // To end it, a process needs the capability `CAP_NET_RAW`.
        match udp.bind_device(None) {
            Ok(()) => assert_eq!(udp.device().unwrap(), None),
            Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
        }
        tcp.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = tcp.listen(1).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        assert!(client.await.is_ok() && listener.accept().await.is_ok());
    });
}

#[test]
fn options_of_ip_are_set_and_read_back() {
    block_on(async {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        udp.set_broadcast(true).unwrap();
        udp.set_ttl(7).unwrap();
        udp.set_multicast_loop_v4(false).unwrap();
        udp.set_multicast_ttl_v4(3).unwrap();
        assert!(udp.broadcast().unwrap() && !udp.multicast_loop_v4().unwrap());
        assert_eq!(
            (udp.ttl().unwrap(), udp.multicast_ttl_v4().unwrap()),
            (7, 3)
        );
        let no_group = udp.join_multicast_v4(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
        assert_eq!(no_group.unwrap_err().kind(), ErrorKind::InvalidInput);

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.set_ttl(9).unwrap();
        let listener = TcpListener::from_std(listener.into_std().unwrap()).unwrap();
        assert_eq!(listener.ttl().unwrap(), 9);
        let client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let mut client = client.unwrap();
        client.set_ttl(11).unwrap();
        assert_eq!(client.ttl().unwrap(), 11);
        assert_eq!(client.as_raw_fd(), client.as_fd().as_raw_fd());
        let stream: *const TcpStream = &raw const client;
        let (reader, writer): (tcp::ReadHalf<'_>, tcp::WriteHalf<'_>) = client.split();
        assert_eq!(
            [reader.as_ref(), writer.as_ref()].map(|it| it as *const TcpStream),
            [stream; 2]
        );
    });
}

#[test]
fn the_pending_error_of_a_socket_is_told_once() {
    block_on(async {
        let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        sender.connect(target.local_addr().unwrap()).await.unwrap();
        drop(target);
        sender.send(b"nobody is there").await.unwrap();
        assert!(sender.ready(Interest::ERROR).await.unwrap().is_error());
        let error = sender.take_error().unwrap().expect("the port is closed");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(sender.take_error().unwrap().is_none());
    });
}

#[test]
fn a_file_that_must_be_new_is_made_once() {
    let path = std::env::temp_dir().join(format!("urgency-new-{}", std::process::id()));
    block_on(async {
        let file = fs::File::create_new(&path).await.unwrap();
        drop(file);
        let again = fs::File::create_new(&path).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        fs::remove_file(&path).await.unwrap();
    });
}
