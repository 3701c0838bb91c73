//! The global pool with handlers. One test: the global pool is the process's.

use rayon_core::{ThreadPoolBuilder, current_num_threads};

#[test]
fn a_start_handler_that_asks_does_not_make_another_global_pool() {
    let pool = ThreadPoolBuilder::new().num_threads(64);
    let pool = pool.start_handler(|_| assert_eq!(current_num_threads(), 64));
    pool.build_global().unwrap();
    assert_eq!(current_num_threads(), 64);
}
