//! rayon: one pool per process.

use rayon::{ThreadPool, ThreadPoolBuilder};
use urgency_measure::{
    Sample,
    class::{self, Cpus},
};

/// A pool of so many threads.
pub fn pool(workers: usize) -> ThreadPool {
    start(workers, |_| ())
}

/// The same with threads that are as nice as the kernel knows, for compute beside something that is urgent:
/// one line, and no privilege.
pub fn nice_pool(workers: usize) -> ThreadPool {
    pool_of_niceness(workers, 19)
}

/// The same with threads of this niceness.
pub fn pool_of_niceness(workers: usize, niceness: u8) -> ThreadPool {
    start(workers, move |_| class::become_nice_by(niceness))
}

/// The same with one thread bound to each processor in turn.
pub fn bound_pool(workers: usize, nice: bool) -> ThreadPool {
    let allowed = Cpus::allowed().expect("the affinity can be read");
    let processors: Vec<Cpus> = allowed.in_turn().take(workers).collect();
    start(workers, move |index| {
        let bound = processors[index].bind();
        bound.expect("an allowed processor is allowed");
        if nice {
            class::become_nice();
        }
    })
}

/// A pool each of whose threads begins with `begin` of its index.
fn start(workers: usize, begin: impl Fn(usize) + Send + Sync + 'static) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(workers)
        .start_handler(begin)
        .build()
        .expect("threads can be started")
}

/// `rayon::join`.
#[derive(Clone, Copy)]
pub struct Join;

impl super::Join for Join {
    fn run(self, workers: usize, measure: impl FnOnce() -> Sample + Send) -> Sample {
        pool(workers).install(measure)
    }

    #[inline(always)]
    fn join<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        rayon::join(a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_nice_pool_are_nice_and_no_other() {
        let niceness = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // The second field, the name in parentheses, may hold spaces.
            let rest = stat.rsplit_once(") ").unwrap().1.to_owned();
            rest.split(' ').nth(16).unwrap().parse::<i32>().unwrap()
        };
        let here = niceness();
        assert_eq!(nice_pool(1).install(niceness), 19);
        for nice in 1..19 {
            assert_eq!(pool_of_niceness(1, nice).install(niceness), nice.into());
        }
        assert_eq!((niceness(), pool(1).install(niceness)), (here, here));
    }
}
