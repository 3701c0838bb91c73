//! Second entries, boosts, and inherited levels.

use super::*;

#[test]
fn two_entries_run_the_task_once() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        outside.flag.store(true, Relaxed);
        let (task, handle) = new(wait(&outside), Arc::clone(&queue), 1);
        assert!(task.raise(0));
        let thread = thread::spawn(move || task.run());
        let second = queue.next().expect("the raise made it").run();
        let first = thread.join().unwrap();
        assert!(matches!(
            (first, second),
            (Ran::Finished, Ran::Stale) | (Ran::Stale, Ran::Finished)
        ));
        drop(handle);
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_stale_entry_never_enters_a_running_task_that_was_woken() {
    model(|| {
        let queue = Queue::new();
        let mut polls = 0;
        let yielding = poll_fn(move |cx| {
            polls += 1;
            if polls == 2 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        let (task, handle) = new(yielding, Arc::clone(&queue), 1);
        assert!(task.raise(0));
        let second = queue.next().expect("the raise made it");
        let thread = thread::spawn(move || task.run());
        let mut runs = vec![second.run(), thread.join().unwrap()];
        runs.extend(queue.drain());
        runs.retain(|ran| *ran != Ran::Stale);
        runs.sort_by_key(|ran| *ran == Ran::Finished);
        assert_eq!(runs, [Ran::Rescheduled, Ran::Finished]);
        drop(handle);
        assert_all_gone(&queue);
    });
}

#[test]
fn a_raise_races_a_wake_up_and_an_entry_at_the_new_level_exists() {
    model(|| {
        let (queue, outside) = (Queue::new(), Outside::new());
        let (handle, waker) = suspended(&queue, &outside);
        outside.flag.store(true, Relaxed);
        let thread = thread::spawn(move || waker.wake());
        handle.task().raise(0);
        thread.join().unwrap();
        assert!(queue.levels.lock().unwrap().contains(&0));
        assert_eq!(queue.drain(), [Ran::Finished]);
        drop(handle);
        assert_eq!(outside.drops(), 1);
        assert_all_gone(&queue);
    });
}

#[test]
fn the_thread_that_runs_a_task_learns_of_a_raise_before_the_task_has_ended() {
    model(|| {
        let queue = Queue::new();
        let (task, handle) = new(std::future::ready(()), Arc::clone(&queue), 2);
        let thread = thread::spawn({
            let task = task.clone();
            move || {
                task.raise(0);
                task.is_finished()
            }
        });
        let mut level = 2;
        let ran = task.run_then(Runner::UNNAMED, |task| level = task.level(), |_| ());
        assert_eq!(ran, Ran::Finished);
        let was_late = thread.join().unwrap();
        assert!(was_late || level == 0 || queue.grant.load(Relaxed));
        queue.drain();
        drop(handle);
    });
}

/// The task goes from one runner to another, and an entry may be stale.
#[test]
fn a_raise_of_a_running_task_names_its_runner_or_the_runner_sees_the_level() {
    model(|| {
        let queue = Queue::new();
        let mut has_yielded = false;
        let yields_once = poll_fn(move |cx| {
            if std::mem::replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        let (task, handle) = new(yields_once, Arc::clone(&queue), 2);
        let thread = thread::spawn({
            let task = task.clone();
            move || {
                task.raise(0);
                task.is_finished()
            }
        });
        let (mut entry, mut level, mut runner) = (Some(task), 2, 0);
        let mut number = 0;
        while let Some(task) = entry {
            number += 1;
            let claimed = |task: &TaskRef| (level, runner) = (task.level(), number);
            task.run_then(Runner::numbered(number), claimed, |_| ());
            entry = queue.next();
        }
        let was_late = thread.join().unwrap();
        let is_told = queue.runner.load(Relaxed) == runner;
        assert!(was_late || level == 0 || is_told, "the runner is not told");
        assert!(handle.task().is_finished());
        queue.drain();
        drop(handle);
    });
}

#[test]
fn a_boost_races_the_end_of_an_inheritance_and_is_not_lost() {
    model(|| {
        let queue = Queue::new();
        let (task, handle) = new(std::future::ready(()), Arc::clone(&queue), 3);
        assert!(task.inherit(1, 0));
        let thread = thread::spawn({
            let task = task.clone();
            move || task.raise(2)
        });
        assert!(task.give_back(1));
        thread.join().unwrap();
        assert_eq!((task.level(), task.own_level()), (2, 2));
        drop(handle);
        assert_eq!(task.run(), Ran::Finished);
        queue.drain();
    });
}

#[test]
fn two_inheritances_end_in_any_order_and_leave_the_own_level() {
    model(|| {
        let queue = Queue::new();
        let (task, handle) = new(std::future::ready(()), Arc::clone(&queue), 3);
        assert!(task.inherit(1, 1));
        let thread = thread::spawn({
            let task = task.clone();
            move || {
                let _ = task.inherit(2, 0);
                task.give_back(2)
            }
        });
        task.give_back(1);
        thread.join().unwrap();
        assert_eq!(task.level(), 3);
        drop(handle);
        assert_eq!(task.run(), Ran::Finished);
        queue.drain();
    });
}

#[test]
fn a_boost_races_the_beginning_of_a_wait_and_reaches_the_awaited() {
    model(|| {
        let queue = Queue::new();
        let (waiting, one) = new(std::future::ready(()), Arc::clone(&queue), 2);
        let (awaited, two) = new(std::future::ready(()), Arc::clone(&queue), 2);
        let thread = thread::spawn({
            let waiting = waiting.clone();
            move || waiting.boost(0)
        });
        waiting.begin_wait(&awaited, 0);
        thread.join().unwrap();
        assert_eq!((waiting.level(), awaited.level()), (0, 0));
        waiting.end_wait(&awaited, 0);
        drop((one, two));
        assert_eq!(
            (waiting.run(), awaited.run()),
            (Ran::Finished, Ran::Finished)
        );
        queue.drain();
        assert_eq!(Arc::strong_count(&queue), 1);
    });
}
