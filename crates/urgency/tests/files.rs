//! File operations among levels and signals: a waiter waits for the device and for nothing else, whichever level began
//! the operation.

mod common;

use common::{ends, in_child, is_child, runtime, with_levels};
use futures_io::{AsyncRead, AsyncWrite};
use std::{
    future::poll_fn,
    io::{Read, Write},
    os::fd::OwnedFd,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
};
use urgency::{
    fs::{File, metadata},
    scheduling_point,
};

urgency::levels! { App: Top > Middle > Bottom }

fn file(end: impl Into<OwnedFd>) -> File {
    File::from(std::fs::File::from(end.into()))
}

#[test]
fn urgent_work_waits_for_a_write_that_less_urgent_work_began() {
    ends(|| {
        let rt = with_levels::<App>(2);
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        // One byte more than a pipe holds: the write blocks in the kernel.
        const ALL: usize = 65537;
        writer.write_all(b"x").unwrap();
        let mut file = file(writer);
        let begun = rt.at(Bottom).spawn(async move {
            let bytes = [7; ALL - 1];
            let count = poll_fn(|cx| Pin::new(&mut file).poll_write(cx, &bytes)).await;
            assert_eq!(count.unwrap(), bytes.len());
            file
        });
        let mut file = begun.get().unwrap();
        let flushed = rt.at(Top).spawn(async move { file.flush().await });
        reader.read_exact(&mut [0; ALL]).unwrap();
        flushed.get().unwrap().unwrap();
    });
}

#[test]
fn an_operation_for_which_urgent_work_waits_is_as_urgent() {
    ends(|| {
        let rt = with_levels::<App>(1);
        let (began, begun) = mpsc::channel();
        let busy = Arc::new(AtomicBool::new(false));
        let stop = Arc::new(AtomicBool::new(false));
        let goes_on = busy.clone();
        let lower = rt.at(Bottom).spawn_fn(move || {
            began.send(metadata("/")).unwrap();
            // The only worker is here until the next level has work.
            while !goes_on.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        let started = begun.recv().unwrap();
        let stopped = stop.clone();
        let endless = rt.at(Middle).spawn_fn(move || {
            while !stopped.load(Relaxed) {
                scheduling_point();
            }
        });
        busy.store(true, Relaxed);
        // It would never run at its own level.
        let urgent = rt.at(Top).spawn(started);
        assert!(urgent.get().unwrap().unwrap().is_dir());
        stop.store(true, Relaxed);
        endless.get().unwrap();
        lower.get().unwrap();
    });
}

#[test]
fn to_start_a_file_operation_is_no_scheduling_point() {
    ends(|| {
        // Somebody may take the worker first; then it tells nothing.
        for _ in 0..100 {
            let rt = with_levels::<App>(1);
            let (running, ran) = mpsc::channel();
            let waits = Arc::new(AtomicBool::new(false));
            let urgent_waits = waits.clone();
            let lower = rt.at(Bottom).spawn_fn(move || {
                running.send(()).unwrap();
                while !urgent_waits.load(Relaxed) {
                    std::hint::spin_loop();
                }
                metadata("/")
            });
            ran.recv().unwrap();
            let urgent = rt.at(Top).spawn_fn(|| ());
            waits.store(true, Relaxed);
            let started = lower.get().unwrap();
            urgent.get().unwrap();
            let total = rt.stats().total();
            assert!(rt.block_on(started).unwrap().is_dir());
            if total.reliefs + total.promotions == 0 {
                assert_eq!(total.abandonments, 0);
                return;
            }
        }
        panic!("the worker was taken each time");
    });
}

/// The kernel starts such a call again only if the handler asks for it.
#[test]
#[cfg(target_os = "linux")]
fn a_read_that_a_signal_interrupts_goes_on() {
    extern "C" fn nothing(_: libc::c_int) {}
    if !is_child() {
        return in_child("a_read_that_a_signal_interrupts_goes_on");
    }
    ends(|| {
        // SAFETY: the handler does nothing; zeroes are an action without flags.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            assert_eq!(
                libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
                0
            );
        }
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut file = file(reader);
        let read = urgency::spawn(async move {
            let mut bytes = [0; 3];
            let count = poll_fn(|cx| Pin::new(&mut file).poll_read(cx, &mut bytes)).await;
            count.map(|count| bytes[..count].to_vec())
        });
        let interrupted = wait_for_reader();
        for _ in 0..3 {
            // SAFETY: a signal to a thread of this process; one that has ended is an error.
            unsafe {
                libc::syscall(libc::SYS_tgkill, libc::getpid(), interrupted, libc::SIGUSR1);
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        writer.write_all(b"abc").unwrap();
        assert_eq!(read.get().unwrap().unwrap(), b"abc");
    });
}

/// Waits until a thread of this process is in `read`, and gives its id.
#[cfg(target_os = "linux")]
fn wait_for_reader() -> libc::pid_t {
    let reads = format!("{} ", libc::SYS_read);
    loop {
        for thread in std::fs::read_dir("/proc/self/task").unwrap() {
            let thread = thread.unwrap();
            let call = std::fs::read_to_string(thread.path().join("syscall"));
            // The caller itself reads in this moment.
            let is_other = std::fs::read_link("/proc/thread-self")
                .is_ok_and(|me| me.file_name() != Some(thread.file_name().as_os_str()));
            if is_other && call.is_ok_and(|call| call.starts_with(&reads)) {
                return thread.file_name().to_str().unwrap().parse().unwrap();
            }
        }
        std::thread::yield_now();
    }
}

/// A file that is not there yet.
fn no_file(name: &str) -> std::path::PathBuf {
    let name = format!("urgency-files-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    path
}

/// Begins to write to a file, and drops it.
async fn write_and_drop(path: &std::path::Path) {
    let mut file = File::create(path).await.unwrap();
    let count = poll_fn(|cx| Pin::new(&mut file).poll_write(cx, b"end")).await;
    assert_eq!(count.unwrap(), 3);
}

#[test]
fn a_write_that_was_begun_happens_though_its_runtime_ends() {
    ends(|| {
        let path = no_file("runtime");
        for _ in 0..100 {
            let runtime = runtime(1);
            runtime.block_on(write_and_drop(&path));
            drop(runtime);
            // If the write has begun, it is on its own way; if not, it has happened.
            while std::fs::read(&path).unwrap() != b"end" {
                std::thread::yield_now();
            }
            std::fs::remove_file(&path).unwrap();
        }
    });
}

#[test]
fn the_end_of_main_waits_for_the_writes_that_were_begun() {
    #[urgency::main]
    async fn on_the_global_runtime(path: &std::path::Path) {
        write_and_drop(path).await;
    }
    #[urgency::main(worker_threads = 2)]
    async fn on_its_own(path: &std::path::Path) {
        write_and_drop(path).await;
    }
    #[urgency::main]
    async fn by_a_panic(path: &std::path::Path) {
        write_and_drop(path).await;
        // No hook: it would print a hundred times.
        std::panic::resume_unwind(Box::new("the end"));
    }
    ends(|| {
        let path = no_file("main");
        for main in [on_the_global_runtime, on_its_own, by_a_panic] {
            for _ in 0..100 {
                let _ = std::panic::catch_unwind(|| main(&path));
                assert_eq!(std::fs::read(&path).unwrap(), b"end");
                std::fs::remove_file(&path).unwrap();
            }
        }
    });
}
