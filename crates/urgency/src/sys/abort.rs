//! Ends the process where a panic would otherwise end a thread that others wait for.

use std::{mem, process};

/// Aborts if it is dropped, which only a panic does: the text says what has panicked.
pub(crate) struct AbortOnPanic(&'static str);

impl AbortOnPanic {
    /// Runs what may unwind into nobody's hands.
    #[inline]
    pub(crate) fn during<T>(what: &'static str, run: impl FnOnce() -> T) -> T {
        let guard = AbortOnPanic(what);
        let result = run();
        mem::forget(guard);
        result
    }
}

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        eprintln!("urgency: {}; aborting", self.0);
        process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, os::unix::process::ExitStatusExt, process::Command};

    const CHILD: &str = "URGENCY_TEST_ABORTS";

    #[test]
    #[cfg_attr(miri, ignore = "starts a process")]
    fn a_panic_inside_ends_the_process_and_says_what_has_panicked() {
        if env::var_os(CHILD).is_some() {
            AbortOnPanic::during("the test's thread has panicked", || panic!("on purpose"));
        }
        assert_eq!(AbortOnPanic::during("never said", || 7), 7);
        let name = "sys::abort::tests::a_panic_inside_ends_the_process_and_says_what_has_panicked";
        let mut again = Command::new(env::current_exe().unwrap());
        let child = again.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
        let child = child.output().unwrap();
        assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{child:?}");
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(
            said.contains("urgency: the test's thread has panicked; aborting"),
            "{said}"
        );
    }
}
