//! rayon: one pool per process.

use crate::harness::machine;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// A pool of so many threads.
pub fn pool(workers: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(workers)
        .build()
        .expect("threads can be started")
}

/// The same with threads that are as nice as the kernel knows, for compute beside something that is urgent:
/// one line, and no privilege.
pub fn nice_pool(workers: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(workers)
        .start_handler(|_| machine::become_nice())
        .build()
        .expect("threads can be started")
}

/// `rayon::join`.
pub struct Join;

impl super::Join for Join {
    fn join(&self, a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
        rayon::join(a, b);
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
        assert_eq!((niceness(), pool(1).install(niceness)), (here, here));
    }
}
