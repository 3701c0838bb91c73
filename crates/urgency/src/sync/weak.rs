//! What is the same for each channel with several senders: they are counted, and so are the ones that do not keep the
//! channel open.

/// The type `WeakSender<T>`, with this documentation, and what a `Sender<T>` says of the channel that it has in an
/// `Arc`: a `Channel<T>`, whose locked state counts its `senders` and `weak` ones. With a name, both types have a
/// constant parameter of that name.
macro_rules! counted_senders {
    ($(#[$meta:meta])* $($bounded:ident)?) => {
        impl<T $(, const $bounded: bool)?> Sender<T $(, $bounded)?> {
            /// Whether both send into the same channel.
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.channel, &other.channel)
            }

            /// A sender that does not keep the channel open.
            #[must_use = "a weak sender does nothing by itself"]
            pub fn downgrade(&self) -> WeakSender<T $(, $bounded)?> {
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

        impl<T $(, const $bounded: bool)?> Clone for Sender<T $(, $bounded)?> {
            fn clone(&self) -> Self {
                self.channel.state.lock().senders += 1;
                Sender {
                    channel: self.channel.clone(),
                }
            }
        }

        $(#[$meta])*
        pub struct WeakSender<T $(, const $bounded: bool = true)?> {
            channel: Arc<Channel<T>>,
        }

        impl<T $(, const $bounded: bool)?> WeakSender<T $(, $bounded)?> {
            fn new(channel: &Arc<Channel<T>>) -> Self {
                channel.state.lock().weak += 1;
                WeakSender {
                    channel: channel.clone(),
                }
            }

            /// A sender, if there is one still.
            pub fn upgrade(&self) -> Option<Sender<T $(, $bounded)?>> {
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

        impl<T $(, const $bounded: bool)?> Clone for WeakSender<T $(, $bounded)?> {
            fn clone(&self) -> Self {
                WeakSender::new(&self.channel)
            }
        }

        impl<T $(, const $bounded: bool)?> Drop for WeakSender<T $(, $bounded)?> {
            fn drop(&mut self) {
                self.channel.state.lock().weak -= 1;
            }
        }

        debug_struct!([T $(, const $bounded: bool)?] WeakSender<T $(, $bounded)?>);
    };
}
pub(super) use counted_senders;
