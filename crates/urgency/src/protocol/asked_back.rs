//! Asked back: a writer needs a thing for itself, and waits until readers have given back their shares of it.
//!
//! How many shares there are is the thing's own count (of an `Arc`). Here is which reader has to tell the writer.
//!
//! # Rules
//!
//! 1. A writer [asks](AskedBack::ask), and begins to listen. Then comes a fence, and then it looks at the shares. If
//!    there are any it waits to be told.
//! 2. A reader gives its share back. Then comes a fence, and then it looks whether a writer asks, and tells it.
//! 3. Both fences are sequentially consistent. So the writer sees that the share is gone, or the reader sees the
//!    writer. If there are several readers, this holds of each: the writer that still sees a share is told by its
//!    reader.

use crate::sys::primitives::atomic::{AtomicUsize, Ordering, fence};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct AskedBack(AtomicUsize);

/// A writer that asks, until this is dropped.
#[derive(Debug)]
pub(crate) struct Asking<'a>(&'a AskedBack);

impl AskedBack {
    pub(crate) fn new() -> Self {
        AskedBack(AtomicUsize::new(0))
    }

    /// Rule 1.
    pub(crate) fn ask(&self) -> Asking<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Asking(self)
    }

    /// The calling reader has given its share back. Whether it has to tell a writer: rule 2.
    #[inline]
    pub(crate) fn returned(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Asking<'_> {
    /// The writer listens, and looks at the shares next: rule 1.
    pub(crate) fn listens(&self) {
        fence(Ordering::SeqCst);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, urgency_loom))]
mod loom_models {
    use super::*;
    use loom::{sync::Arc, thread};

    struct Model {
        asked: AskedBack,
        shares: AtomicUsize,
        told: AtomicUsize,
    }

    #[test]
    fn a_writer_that_still_sees_a_share_is_told_when_it_comes_back() {
        loom::model(|| {
            let model = Arc::new(Model {
                asked: AskedBack::new(),
                shares: AtomicUsize::new(2),
                told: AtomicUsize::new(0),
            });
            let readers = [(); 2].map(|()| {
                let model = model.clone();
                thread::spawn(move || {
                    model.shares.fetch_sub(1, Ordering::Release);
                    if model.asked.returned() {
                        model.told.fetch_add(1, Ordering::Relaxed);
                    }
                })
            });
            let asking = model.asked.ask();
            asking.listens();
            let seen = model.shares.load(Ordering::Acquire);
            readers.into_iter().for_each(|it| it.join().unwrap());
            let told = model.told.load(Ordering::Relaxed);
            assert!(
                told >= seen,
                "{seen} shares were seen, and {told} came back with a word"
            );
        });
    }
}
