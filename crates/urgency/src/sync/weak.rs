//! What is the same for each channel with several senders: they are counted, and so are the ones that do not keep the
//! channel open.

/// The type `WeakSender<T>`, with this documentation, and what a `Sender<T>` says of the channel that it has in an
/// `Arc`: a `Channel<T>`, whose locked state counts its `senders` and `weak` ones.
macro_rules! counted_senders {
    ($(#[$meta:meta])*) => {
        impl<T> Sender<T> {
            /// Whether both send into the same channel.
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.channel, &other.channel)
            }

            /// A sender that does not keep the channel open.
            #[must_use = "a weak sender does nothing by itself"]
            pub fn downgrade(&self) -> WeakSender<T> {
                WeakSender::new(&self.channel)
            }

            /// How many senders there are.
            pub fn strong_count(&self) -> usize {
                self.channel.state.lock().senders
            }

            /// How many weak senders there are.
            pub fn weak_count(&self) -> usize {
                self.channel.state.lock().weak
            }
        }

        impl<T> Clone for Sender<T> {
            fn clone(&self) -> Self {
                self.channel.state.lock().senders += 1;
                Sender {
                    channel: self.channel.clone(),
                }
            }
        }

        $(#[$meta])*
        pub struct WeakSender<T> {
            channel: Arc<Channel<T>>,
        }

        impl<T> WeakSender<T> {
            fn new(channel: &Arc<Channel<T>>) -> Self {
                channel.state.lock().weak += 1;
                WeakSender {
                    channel: channel.clone(),
                }
            }

            /// A sender, if there is one still.
            pub fn upgrade(&self) -> Option<Sender<T>> {
                let mut state = self.channel.state.lock();
                if state.senders == 0 {
                    return None;
                }
                state.senders += 1;
                drop(state);
                Some(Sender {
                    channel: self.channel.clone(),
                })
            }

            /// How many senders there are.
            pub fn strong_count(&self) -> usize {
                self.channel.state.lock().senders
            }

            /// How many weak senders there are.
            pub fn weak_count(&self) -> usize {
                self.channel.state.lock().weak
            }
        }

        impl<T> Clone for WeakSender<T> {
            fn clone(&self) -> Self {
                WeakSender::new(&self.channel)
            }
        }

        impl<T> Drop for WeakSender<T> {
            fn drop(&mut self) {
                self.channel.state.lock().weak -= 1;
            }
        }

        debug_struct!([T] WeakSender<T>);
    };
}
pub(super) use counted_senders;
