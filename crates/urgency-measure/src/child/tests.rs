//! Tests of child processes.

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Child::start("the child", command).expect("a shell starts")
}

#[test]
fn a_child_has_as_many_threads_here_as_is_said() {
    let named = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("/proc is mounted");
        let name = |task: io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        let ours = |name: &String| name.trim_end() == "a child";
        tasks.filter_map(name).filter(ours).count()
    };
    // A thread that is not named otherwise has the name of the thread that started it.
    let start = move || {
        let mut sleep = Command::new("sleep");
        sleep.arg("20");
        let child = Child::start("sleep", sleep).expect("there is a sleep");
        let threads = named() - 1;
        drop(child);
        threads
    };
    let thread = std::thread::Builder::new().name("a child".to_owned());
    let threads = thread.spawn(start).expect("a thread starts").join();
    assert_eq!(threads.expect("it counts") as f64, Child::THREADS);
}

#[test]
fn a_child_is_heard_line_by_line() {
    let mut child = shell("echo 1; echo 2; cat");
    assert_eq!(child.hear::<u32>(LIMIT).expect("the first line"), 1);
    assert_eq!(child.hear::<u32>(LIMIT).expect("the second line"), 2);
    child.tell(&"three").expect("cat listens");
    let echoed: String = child.hear(LIMIT).expect("cat repeats");
    assert_eq!(echoed, "three");
    child.check_alive(Duration::ZERO).expect("cat goes on");
}

#[test]
fn the_death_of_a_child_is_told_with_its_status_and_last_words() {
    let mut child = shell("echo 'no such luck' >&2; exit 3");
    let error = child.hear::<u32>(LIMIT).expect_err("it said nothing");
    assert!(child.check_alive(Duration::ZERO).is_err());
    let text = error.to_string();
    assert!(text.contains("the child ended before its time"), "{text}");
    assert!(text.contains("exit status: 3"), "{text}");
    assert!(text.contains("no such luck"), "{text}");
}

#[test]
fn a_silent_child_is_given_up_and_does_not_outlive_its_handle() {
    let mut child = shell("exec sleep 600");
    let error = child
        .hear::<u32>(Duration::from_millis(10))
        .expect_err("it says nothing");
    assert!(matches!(error, Error::Silent { .. }), "{error}");
    let id = child.id();
    drop(child);
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
}

#[test]
fn nonsense_of_a_child_is_repeated_in_the_error() {
    let mut child = shell("echo hello; cat");
    let error = child.hear::<u32>(LIMIT).expect_err("it is no number");
    assert!(error.to_string().contains("\"hello\""), "{error}");
}

#[test]
fn of_a_child_that_ends_well_the_last_line_counts_and_of_another_one_none() {
    assert_eq!(shell("echo 1; echo 2").last_line(LIMIT).unwrap(), "2");
    assert!(shell("echo 1; exit 1").last_line(LIMIT).is_err());
    assert!(shell("exit 0").last_line(LIMIT).is_err());
}

#[test]
fn a_group_that_is_stopped_ends_with_what_it_started() {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & echo $!; wait"]);
    let mut child = Child::start_group("the group", command).expect("a shell starts");
    let grandchild: u32 = child.hear(LIMIT).expect("its number");
    child.signal(Signal::SIGSTOP);
    drop(child);
    let stat = format!("/proc/{grandchild}/stat");
    let end = Instant::now() + LIMIT;
    // An orphan may be a zombie for as long as its new parent likes.
    let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
    while lives() {
        assert!(Instant::now() < end, "{grandchild} lives on");
        std::thread::sleep(LOOK);
    }
}

#[test]
fn the_reason_of_a_panic_is_told_also_with_a_backtrace() {
    let text = "a\nb\nthread 'main' panicked at x.rs:1:\nwrong result\nstack backtrace:\n 0: f\n 1: g\n 2: h\n";
    assert_eq!(
        last_lines(text),
        "b | thread 'main' panicked at x.rs:1: | wrong result"
    );
    assert_eq!(last_lines("a\nnote: b\n"), "a");
}
