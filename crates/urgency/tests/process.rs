//! `process`: the status and the output of children, waits that are dropped, and kills. What children leave is in
//! `orphans.rs`.
//!
//! Where a child is to run until the test says otherwise, it is a `cat` whose input the test has.

#![cfg(all(target_os = "linux", not(miri)))]

#[path = "common/children.rs"]
mod children;
mod common;

use children::{lasting, shell};
use common::{all, ends, runtime, with_levels};
use std::{
    io::{self, Read, Write},
    os::unix::process::ExitStatusExt,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    time::{Duration, Instant},
};
use urgency::{block_on, join, levels, process::Command, spawn, sync::Mutex, time};

#[test]
fn a_wait_gives_the_code_or_the_signal_with_which_the_child_ended_each_time() {
    ends(|| {
        let runtime = runtime(2);
        runtime.block_on(async {
            for code in [0, 3, 255] {
                let mut child = shell(&format!("exit {code}")).spawn().unwrap();
                assert!(child.id().is_some());
                for _ in 0..2 {
                    assert_eq!(child.wait().await.unwrap().code(), Some(code));
                    assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(code));
                }
                assert_eq!(child.id(), None);
            }
            let status = shell("kill -TERM $$").status().await.unwrap();
            assert_eq!(status.signal(), Some(libc::SIGTERM));
        });
    });
}

#[test]
fn output_that_fills_both_pipes_in_turns_is_read_from_both() {
    ends(|| {
        let script =
            "for i in 1 2 3; do head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2; done";
        let output = runtime(1).block_on(shell(script).output()).unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, vec![0; 300_000]);
        assert_eq!(output.stderr, vec![0; 300_000]);
    });
}

#[test]
fn what_is_written_to_a_cat_comes_back() {
    ends(|| {
        let runtime = runtime(2);
        let sent: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, bytes) = (child.stdin.take().unwrap(), sent.clone());
        let writes = runtime.spawn(async move { input.write_all(&bytes).await });
        let output = runtime.block_on(child.wait_with_output()).unwrap();
        writes.get().unwrap().unwrap();
        assert!(output.status.success());
        assert!(output.stdout == sent, "{} bytes", output.stdout.len());
    });
}

#[test]
fn closures_write_and_read_by_the_blocking_forms() {
    ends(|| {
        let runtime = runtime(1);
        let echoes = runtime.spawn_fn(|| {
            let mut child = Command::new("cat")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let mut seen = String::new();
            for word in ["one ", "two "] {
                input.blocking().write_all(word.as_bytes())?;
                let mut bytes = [0; 4];
                output.blocking().read_exact(&mut bytes)?;
                seen.push_str(str::from_utf8(&bytes).unwrap());
            }
            drop(input);
            output.blocking().read_to_string(&mut seen)?;
            assert!(block_on(child.wait())?.success());
            io::Result::Ok(seen)
        });
        // The worker is not kept from other work.
        runtime.spawn(async {}).get().unwrap();
        assert_eq!(echoes.get().unwrap().unwrap(), "one two ");
    });
}

#[test]
fn a_wait_closes_the_input_that_nobody_took() {
    ends(|| {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(runtime(1).block_on(child.wait()).unwrap().success());
        assert!(child.stdin.is_none());
    });
}

#[test]
fn a_wait_that_was_dropped_again_and_again_is_begun_anew_and_ends() {
    ends(|| {
        let runtime = runtime(2);
        let (mut child, input) = lasting();
        runtime.block_on(async {
            for _ in 0..20 {
                let limit = Duration::from_millis(1);
                assert!(time::timeout(limit, child.wait()).await.is_err());
            }
            assert!(child.try_wait().unwrap().is_none());
            drop(input);
            assert!(child.wait().await.unwrap().success());
        });
    });
}

#[test]
fn a_killed_child_ends_by_that_signal_and_a_kill_after_the_wait_is_no_error() {
    ends(|| {
        runtime(1).block_on(async {
            let (mut child, _input) = lasting();
            child.kill().await.unwrap();
            let status = child.wait().await.unwrap();
            assert_eq!(status.signal(), Some(libc::SIGKILL));
            child.start_kill().unwrap();
            child.kill().await.unwrap();
        });
    });
}

#[test]
fn a_write_to_a_full_pipe_fails_when_the_child_is_killed() {
    ends(|| {
        let runtime = runtime(2);
        let mut child = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let (tell, told) = mpsc::channel();
        let writes = runtime.spawn(async move {
            loop {
                let write = input.write_all(&[0; 8192]);
                if let Err(error) = write.await {
                    return error;
                }
                tell.send(()).unwrap();
            }
        });
        // A pipe has room for 64 KiB as a rule.
        for _ in 0..8 {
            told.recv().unwrap();
        }
        runtime.block_on(child.kill()).unwrap();
        assert_eq!(writes.get().unwrap().kind(), io::ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_second_line_is_read_while_the_child_still_runs() {
    ends(|| {
        runtime(1).block_on(async {
            let script = "echo first; read gate; echo second; read gate";
            let mut child = shell(script)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let mut line = [0; 100];
            for expected in ["first\n", "second\n"] {
                let count = output.read(&mut line).await.unwrap();
                assert_eq!(str::from_utf8(&line[..count]), Ok(expected));
                let waits = time::timeout(Duration::from_millis(5), output.read(&mut line));
                assert!(waits.await.is_err(), "it waits for the gate");
                input.write_all(b"go on\n").await.unwrap();
            }
            assert_eq!(output.read(&mut line).await.unwrap(), 0);
            assert!(child.wait().await.unwrap().success());
        });
    });
}

#[test]
fn the_output_of_one_child_is_the_input_of_another() {
    ends(|| {
        runtime(1).block_on(async {
            let mut first = shell("sleep 0.1; echo b; echo a")
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let between: Stdio = first.stdout.take().unwrap().try_into().unwrap();
            // It blocks again: `sort` would fail with an error for a pipe that does not.
            let second = Command::new("sort").stdin(between).output().await.unwrap();
            assert_eq!(second.stdout, b"a\nb\n");
            assert!(first.wait().await.unwrap().success());
        });
    });
}

#[test]
fn output_ends_with_the_last_process_that_has_the_pipe_and_a_wait_with_the_child() {
    ends(|| {
        runtime(1).block_on(async {
            // What begins in the background is a child of the child.
            let script = "exec 3<&0; (read gate <&3; echo late) & echo early";
            let mut child = shell(script)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let input = child.stdin.take().unwrap();
            assert!(child.wait().await.unwrap().success());
            let mut output = std::pin::pin!(child.wait_with_output());
            let waits = time::timeout(Duration::from_millis(5), &mut output);
            assert!(waits.await.is_err());
            input.write_all(b"go on\n").await.unwrap();
            assert_eq!(output.await.unwrap().stdout, b"early\nlate\n");
        });
    });
}

#[test]
fn two_hundred_children_at_once_all_end_with_their_own_status() {
    ends(|| {
        let runtime = runtime(2);
        let children = (0..200).map(|number| {
            runtime.spawn(async move {
                let (mut child, input) = {
                    let mut child = shell("read code; exit $code")
                        .stdin(Stdio::piped())
                        .spawn()
                        .unwrap();
                    let input = child.stdin.take().unwrap();
                    (child, input)
                };
                let waits = spawn(async move { child.wait().await.unwrap().code() });
                let line = format!("{}\n", number % 100);
                input.write_all(line.as_bytes()).await.unwrap();
                waits.await.unwrap()
            })
        });
        let children: Vec<_> = children.collect();
        let codes = all(children);
        assert!(
            codes
                .iter()
                .enumerate()
                .all(|(at, code)| *code == Some(at as i32 % 100))
        );
    });
}

#[test]
fn a_clock_that_stands_still_goes_on_while_a_child_is_waited_for_and_the_wait_ends() {
    ends(|| {
        runtime(1).block_on(async {
            time::pause();
            let (mut child, input) = lasting();
            let hour = Duration::from_secs(3600);
            for _ in 0..5 {
                assert!(time::timeout(hour, child.wait()).await.is_err());
            }
            drop(input);
            assert!(child.wait().await.unwrap().success());
            time::resume();
        });
    });
}

#[test]
fn a_status_closes_the_pipes_that_were_asked_for() {
    ends(|| {
        let mut command = shell("head -c 1000000 /dev/zero");
        command.stdout(Stdio::piped());
        let status = runtime(1).block_on(command.status()).unwrap();
        assert!(!status.success(), "it was told that nobody reads");
    });
}

#[cfg(feature = "tokio-io")]
#[test]
fn streams_of_a_child_have_the_traits_of_tokio() {
    use urgency::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    ends(|| {
        runtime(1).block_on(async {
            let mut child = Command::new("cat")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut input = child.stdin.take().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            AsyncWriteExt::write_all(&mut input, b"one\ntwo\n")
                .await
                .unwrap();
            input.flush().await.unwrap();
            assert_eq!(lines.next_line().await.unwrap().unwrap(), "one");
            assert_eq!(lines.next_line().await.unwrap().unwrap(), "two");
            input.shutdown().await.unwrap();
            drop(input);
            assert_eq!(lines.next_line().await.unwrap(), None);
            assert!(child.wait().await.unwrap().success());
        });
    });
}

levels! { App: Upper > Middle > Lower }

/// A stranger's program: leaves of milliseconds below, a lock across their forks, and a call at each level that blocks
/// undeclared.
#[test]
fn children_of_urgent_tasks_end_beside_long_leaves_on_few_threads() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let (lock, stop) = (Mutex::new(0), Arc::new(AtomicBool::new(false)));
        let ends = stop.clone();
        let spins = || {
            let end = Instant::now() + Duration::from_millis(10);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        };
        let batch = runtime.at(Lower).spawn_fn(move || {
            while !ends.load(SeqCst) {
                let mut rounds = lock.blocking_lock();
                join(spins, spins);
                *rounds += 1;
            }
        });
        let (wakes, sleeps) = mpsc::channel::<()>();
        let sleeps = Arc::new(std::sync::Mutex::new(sleeps));
        let blocked = [Upper.id(), Middle.id(), Lower.id()].map(|level| {
            let sleeps = sleeps.clone();
            runtime
                .at(level)
                .spawn_fn(move || sleeps.lock().unwrap().recv().is_err())
        });
        for _ in 0..20 {
            let child = runtime.at(Upper).spawn(async {
                let mut cat = Command::new("cat");
                let mut cat = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                cat.stdin.take().unwrap().write_all(b"a line").await?;
                cat.wait_with_output().await
            });
            assert_eq!(child.get().unwrap().unwrap().stdout, b"a line");
        }
        stop.store(true, SeqCst);
        batch.get().unwrap();
        drop(wakes);
        assert!(blocked.into_iter().all(|it| it.get().unwrap()));
        let most = runtime.stats().threads_peak;
        assert!(most <= 16, "{most} threads");
    });
}
