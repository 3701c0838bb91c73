//! A sender that does not keep its channel open, which is the same for each channel with several senders.

/// The type `WeakSender<T>`, with this documentation, where `Channel<T>` is a channel whose locked state counts its
/// `senders` and `weak` ones, and a `Sender<T>` has an `Arc` of it.
macro_rules! weak_sender {
    ($(#[$meta:meta])*) => {
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
pub(super) use weak_sender;
