//! The limit of descriptors, and the end of the runtime.

use super::*;

/// Runs one test of `module` in a process of its own, with `URGENCY_CHILD` set.
pub(super) fn in_a_process_of_its_own(module: &str, test: &str) {
    let (_, module) = module.split_once("::").unwrap();
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([&format!("{module}::{test}"), "--exact", "--nocapture"])
        .env("URGENCY_CHILD", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}");
    assert!(said.contains("1 passed"), "it ran no test: {said}");
}

pub(super) fn is_child() -> bool {
    std::env::var_os("URGENCY_CHILD").is_some()
}

#[test]
fn at_the_limit_of_descriptors_accept_fails_and_the_listener_goes_on_later() {
    if !is_child() {
        let me = "at_the_limit_of_descriptors_accept_fails_and_the_listener_goes_on_later";
        return in_a_process_of_its_own(module_path!(), me);
    }
    block_on(async {
        let listener = TcpListener::bind(LOCAL).await.unwrap();
        let address = listener.local_addr().unwrap();
        let waiting = TcpStream::connect(address).await.unwrap();
        let _registered = poll_once(pin!(waiting.read(&mut [0])));
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let mut hoard = Vec::new();
        let lowered = rustix::process::Rlimit {
            current: Some(64),
            ..limit
        };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, lowered).unwrap();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            hoard.push(file);
        }
        let error = listener.accept().await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(24), "EMFILE: {error}");
        let error = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(24), "EMFILE: {error}");
        let error = crate::reactor::driver::Driver::new().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(24), "EMFILE: {error}");
        drop(hoard);
        let (_, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, waiting.local_addr().unwrap());
    });
}

#[test]
fn a_waiter_of_a_runtime_that_is_shut_down_gets_an_error() {
    let runtime = crate::Runtime::builder().workers(1).build().unwrap();
    let (client, server) = runtime.block_on(async {
        let (client, server) = pair().await;
        let _registered = poll_once(pin!(server.read(&mut [0])));
        (client, server)
    });
    let reader = std::thread::spawn(move || {
        let waiting = block_on(server.read(&mut [0])).unwrap_err();
        let later = block_on(server.read(&mut [0])).unwrap_err();
        (waiting, later)
    });
    std::thread::sleep(Duration::from_millis(2));
    runtime.shutdown(crate::Shutdown::Cancel);
    let (waiting, later) = reader.join().unwrap();
    for error in [waiting, later] {
        assert!(error.to_string().contains("shut down"), "{error}");
    }
    drop(client);
}

/// The driver that knows the descriptor and the timer goes on, and would not wake the closures.
#[test]
fn closures_that_wait_for_io_of_another_runtime_end_with_their_own() {
    for is_dropped in [false, true] {
        let build = || crate::Runtime::builder().workers(2).build().unwrap();
        let (own, other) = (build(), build());
        let (reading, peer, asleep) = other.block_on(async {
            let (reading, peer) = UnixStream::pair().unwrap();
            assert!(poll_once(pin!(reading.read(&mut [0]))).is_pending());
            let mut asleep = Box::pin(time::sleep(Duration::from_secs(1000)));
            assert!(poll_once(asleep.as_mut()).is_pending());
            (reading, peer, asleep)
        });
        let (tell, told) = std::sync::mpsc::channel();
        let says = tell.clone();
        let read = move || says.send(reading.blocking().read(&mut [0]).unwrap_err().to_string());
        own.spawn_fn(read).detach();
        let sleeps = own.spawn_fn(move || {
            let _ends = tell;
            block_on(asleep);
        });
        std::thread::sleep(Duration::from_millis(20));
        if !is_dropped {
            own.shutdown_within(crate::Shutdown::Cancel, Duration::from_millis(1));
        }
        drop(own);
        let limit = Duration::from_secs(20);
        let error = told.recv_timeout(limit).expect("the read ends");
        assert!(error.contains("was shut down"), "{error}");
        let ended = told.recv_timeout(limit).unwrap_err();
        assert_eq!(ended, std::sync::mpsc::RecvTimeoutError::Disconnected);
        assert!(sleeps.get().unwrap_err().is_cancelled());
        drop(peer);
    }
}
