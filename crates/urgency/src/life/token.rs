//! `CancellationToken`: one signal for many, in a tree.
//!
//! A node has a flag, an event, and weak links to its children, each in a slot that the child knows. A child
//! keeps its parent alive, never the other way. Cancelling sets the flag, notifies all, takes the list of
//! children and goes on with them, from a list and not by recursion: a chain of a million tokens needs no
//! deep stack. Dropping walks up in the same way.
//!
//! *A child made during the cancellation*: the flag is set before the list is taken, and a child looks at the
//! flag under the lock of the list. So it is born cancelled, or it is found.

use crate::{
    future::{Either, race},
    sync::{Notified, Notify},
    sys::{mutex::Mutex, slab::Slab},
};
use std::{
    future::Future,
    hash::{Hash, Hasher},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

struct Node {
    cancelled: AtomicBool,
    event: Notify,
    parent: Option<Link>,
    children: Mutex<Slab<Weak<Node>>>,
}

/// Where a child is in its parent's list.
struct Link {
    parent: Arc<Node>,
    slot: u64,
}

impl Node {
    fn new(cancelled: bool, parent: Option<Link>) -> Self {
        Node {
            cancelled: AtomicBool::new(cancelled),
            event: Notify::new(),
            parent,
            children: Mutex::default(),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}

impl Link {
    /// The child is gone.
    fn cut(self) -> Arc<Node> {
        // None: the list of a cancelled node was taken.
        drop(self.parent.children.lock().remove(self.slot));
        self.parent
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut link = self.parent.take();
        while let Some(cut) = link {
            // The last reference to the parent: its link is next, instead of a recursion.
            link = Arc::into_inner(cut.cut()).and_then(|mut parent| parent.parent.take());
        }
    }
}

/// A signal that work should end, for any number of listeners; clones are the same token.
///
/// [`child_token`](Self::child_token) makes a token that is cancelled with this one, but can be cancelled alone.
///
/// ```
/// use urgency::life::CancellationToken;
///
/// let server = CancellationToken::new();
/// let connection = server.child_token();
/// let task = urgency::spawn({
///     let connection = connection.clone();
///     async move { connection.run_until_cancelled(std::future::pending::<()>()).await }
/// });
/// server.cancel();
/// assert!(connection.is_cancelled());
/// assert_eq!(task.get()?, None);
/// # Ok::<(), urgency::JoinError>(())
/// ```
#[derive(Clone)]
pub struct CancellationToken {
    node: Arc<Node>,
}

impl CancellationToken {
    /// A token of its own, not cancelled.
    pub fn new() -> Self {
        CancellationToken {
            node: Arc::new(Node::new(false, None)),
        }
    }

    /// A token below this one. If this one is cancelled already, so is the child.
    pub fn child_token(&self) -> CancellationToken {
        let mut children = self.node.children.lock();
        if self.node.is_cancelled() {
            let node = Arc::new(Node::new(true, None));
            return CancellationToken { node };
        }
        let node = Arc::new_cyclic(|child| {
            let parent = self.node.clone();
            let slot = children.insert(child.clone());
            Node::new(false, Some(Link { parent, slot }))
        });
        CancellationToken { node }
    }

    /// Cancels this token and all below it, and wakes their listeners. A second call does nothing.
    pub fn cancel(&self) {
        let mut ahead = vec![self.node.clone()];
        while let Some(node) = ahead.pop() {
            if node.cancelled.swap(true, Ordering::AcqRel) {
                continue;
            }
            let children = std::mem::take(&mut *node.children.lock());
            node.event.notify_waiters();
            ahead.extend(children.iter().filter_map(Weak::upgrade));
        }
    }

    /// Whether it was cancelled. It is no scheduling point: a loop that asks it calls
    /// [`scheduling_point`](crate::scheduling_point) as well.
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled()
    }

    /// Waits until it is cancelled. Dropping the future costs nothing.
    ///
    /// ```
    /// use urgency::life::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// let listener = token.child_token();
    /// let heard = urgency::spawn(async move { listener.cancelled().await });
    /// token.cancel();
    /// heard.get().unwrap();
    /// ```
    pub fn cancelled(&self) -> Cancelled<'_> {
        Cancelled {
            event: self.node.event.notified(),
            node: &self.node,
        }
    }

    /// As [`cancelled`](Self::cancelled), and the future keeps the token: for a task of its own.
    pub async fn cancelled_owned(self) {
        self.cancelled().await;
    }

    /// The result of `future`, or `None` if the token is cancelled first: then the future is dropped. If the result is
    /// there and the token cancelled at the same time, the result counts. If the token is cancelled before the first
    /// poll, the future is not polled at all.
    ///
    /// # Cancellation
    ///
    /// As the cancellation of `future`.
    pub async fn run_until_cancelled<F: IntoFuture>(&self, future: F) -> Option<F::Output> {
        if self.is_cancelled() {
            return None;
        }
        match race(future, self.cancelled()).await {
            Either::First(output) => Some(output),
            Either::Second(()) => None,
        }
    }

    /// As [`run_until_cancelled`](Self::run_until_cancelled), and the future keeps the token.
    pub async fn run_until_cancelled_owned<F: IntoFuture>(self, future: F) -> Option<F::Output> {
        self.run_until_cancelled(future).await
    }

    /// Cancels the token when it is dropped, whatever the reason.
    ///
    /// ```
    /// use urgency::life::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// let guard = token.clone().drop_guard();
    /// drop(guard);
    /// assert!(token.is_cancelled());
    /// ```
    pub fn drop_guard(self) -> DropGuard {
        DropGuard(Some(self))
    }

    /// As [`drop_guard`](Self::drop_guard), of a token that is borrowed.
    pub fn drop_guard_ref(&self) -> DropGuardRef<'_> {
        DropGuardRef(Some(self))
    }
}

/// The same token: clones are, children are not.
impl PartialEq for CancellationToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }
}

impl Eq for CancellationToken {}

impl Hash for CancellationToken {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.node).hash(state);
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        CancellationToken::new()
    }
}

debug_struct!(CancellationToken, |it| cancelled: it.is_cancelled());

/// The future of [`CancellationToken::cancelled`].
#[must_use = "futures do nothing unless awaited"]
pub struct Cancelled<'a> {
    /// Made before the flag is looked at.
    event: Notified<'a>,
    node: &'a Node,
}

impl Future for Cancelled<'_> {
    type Output = ();

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<()> {
        if self.node.is_cancelled() {
            return std::task::Poll::Ready(());
        }
        std::pin::Pin::new(&mut self.event).poll(cx)
    }
}

debug_struct!(Cancelled<'_>, |it| cancelled: it.node.is_cancelled());

/// Cancels its token when it is dropped; made by [`CancellationToken::drop_guard`].
#[derive(Debug)]
#[must_use = "dropping it cancels the token"]
pub struct DropGuard(Option<CancellationToken>);

impl DropGuard {
    /// The token, which is not cancelled by this any more.
    pub fn disarm(mut self) -> CancellationToken {
        self.0.take().expect("only this takes it")
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}

/// Cancels its token when it is dropped; made by [`CancellationToken::drop_guard_ref`].
#[derive(Debug)]
#[must_use = "dropping it cancels the token"]
pub struct DropGuardRef<'a>(Option<&'a CancellationToken>);

impl<'a> DropGuardRef<'a> {
    /// The token, which is not cancelled by this any more.
    pub fn disarm(mut self) -> &'a CancellationToken {
        self.0.take().expect("only this takes it")
    }
}

impl Drop for DropGuardRef<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.0 {
            token.cancel();
        }
    }
}
