//! The surface of both kinds of datagram socket.

/// Gives a type with a field `datagrams: Datagrams<$std>` what UDP's and Unix's sockets have in common. A macro and not
/// a generic type, as `impl_stream`.
macro_rules! impl_datagrams {
    ($type:ident of $std:ty, $address:ty) => {
        impl $type {
            /// Sends one datagram to the connected peer. Dropping the future before it is ready has sent nothing.
            ///
            /// # Errors
            /// The kernel's errors, among them that the socket is not connected; or that the runtime was shut down.
            pub async fn send(&self, datagram: &[u8]) -> io::Result<usize> {
                self.datagrams.transmit(datagram, None).await
            }

            /// Receives one datagram and gives its length, as [`recv_from`](Self::recv_from).
            ///
            /// # Errors
            /// As [`recv_from`](Self::recv_from).
            pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
                Ok(self.recv_from(buffer).await?.0)
            }

            /// Receives one datagram: its length and where it came from. Dropping the future loses none.
            ///
            /// # Errors
            /// The kernel's errors, or that the runtime was shut down.
            pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, $address)> {
                self.datagrams.receive(buffer).await
            }

            /// Receives the datagram that is there now: its length and where it came from.
            ///
            /// # Errors
            /// `WouldBlock` if none is there; else as [`recv_from`](Self::recv_from).
            pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, $address)> {
                self.datagrams.try_receive(buffer)
            }

            /// As [`try_recv_from`](Self::try_recv_from), without the address.
            ///
            /// # Errors
            /// As [`try_recv_from`](Self::try_recv_from).
            pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
                Ok(self.try_recv_from(buffer)?.0)
            }

            /// Sends one datagram to the connected peer, if there is room for it now.
            ///
            /// # Errors
            /// `WouldBlock` if there is no room; else as [`send`](Self::send).
            pub fn try_send(&self, datagram: &[u8]) -> io::Result<usize> {
                self.socket().transmit(datagram, None)
            }

            /// Waits until a datagram would be received at once. Dropping the future changes nothing. That the kernel
            /// has an error to tell does not end the wait: it is of a datagram that was sent, and
            /// [`recv`](Self::recv) returns it. [`Interest::ERROR`] is the interest in it.
            ///
            /// # Errors
            /// As [`recv_from`](Self::recv_from).
            pub async fn readable(&self) -> io::Result<()> {
                self.datagrams.readable().await
            }

            /// Waits until a datagram would be sent at once. Dropping the future changes nothing.
            ///
            /// # Errors
            /// As [`send`](Self::send).
            pub async fn writable(&self) -> io::Result<()> {
                self.datagrams.io().writable().await
            }

            /// Waits until the socket is ready for one of `interest`, and says for which. Dropping the future changes
            /// nothing.
            ///
            /// ```
            /// use urgency::{io::Interest, net::UnixDatagram};
            ///
            /// urgency::block_on(async {
            ///     let (one, other) = UnixDatagram::pair()?;
            ///     let both = Interest::READABLE | Interest::WRITABLE;
            ///     assert!(!one.ready(both).await?.is_readable());
            ///     other.send(b"ping").await?;
            ///     assert!(one.ready(both).await?.is_readable());
            ///     std::io::Result::Ok(())
            /// })?;
            /// # std::io::Result::Ok(())
            /// ```
            ///
            /// # Errors
            /// As [`recv_from`](Self::recv_from).
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.datagrams.ready(interest).await
            }

            /// Makes `operation`, a system call of the program's own on this socket, if the socket is ready for one of
            /// `interest` now. If it is not, `operation` is not called. A datagram that a dropped started receive put
            /// back is not the kernel's any more, so `operation` does not find it: [`recv`](Self::recv) does.
            ///
            /// # Errors
            /// `WouldBlock` if the socket is not ready, and the operation's own errors.
            pub fn try_io<R>(
                &self,
                interest: Interest,
                operation: impl FnOnce() -> io::Result<R>,
            ) -> io::Result<R> {
                self.datagrams.try_io(interest, operation)
            }

            /// Makes `operation` as soon as it does not fail with `WouldBlock`, and waits between attempts until the
            /// socket is ready for one of `interest`; else as [`try_io`](Self::try_io). Dropping the future cancels:
            /// the operation has happened if and only if the future returned.
            ///
            /// # Errors
            /// The operation's errors, or that the runtime was shut down.
            pub async fn async_io<R>(
                &self,
                interest: Interest,
                mut operation: impl FnMut() -> io::Result<R>,
            ) -> io::Result<R> {
                self.datagrams.io().async_io(interest, |_| operation()).await
            }

            /// The `poll_*` form of [`readable`](Self::readable).
            pub fn poll_recv_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.datagrams.poll_readable(cx)
            }

            /// The `poll_*` form of [`writable`](Self::writable).
            pub fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.datagrams.io().poll_writable(cx)
            }

            /// The `poll_*` form of [`recv`](Self::recv).
            pub fn poll_recv<B: ReceiveBuffer + ?Sized>(
                &self,
                cx: &mut Context<'_>,
                buffer: &mut B,
            ) -> Poll<io::Result<B::Count>> {
                let received = self.datagrams.poll_receive(cx, buffer);
                received.map_ok(|(count, _)| B::count(count))
            }

            /// The `poll_*` form of [`recv_from`](Self::recv_from).
            pub fn poll_recv_from<B: ReceiveBuffer + ?Sized>(
                &self,
                cx: &mut Context<'_>,
                buffer: &mut B,
            ) -> Poll<io::Result<B::CountFrom<$address>>> {
                let received = self.datagrams.poll_receive(cx, buffer);
                received.map_ok(|(count, from)| B::count_from(count, from))
            }

            /// The `poll_*` form of [`send`](Self::send).
            pub fn poll_send(
                &self,
                cx: &mut Context<'_>,
                datagram: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.datagrams.poll_transmit(cx, datagram, None)
            }

            /// The socket of the standard library, still non-blocking. Datagrams that a dropped started receive put
            /// back are lost: receive them first.
            ///
            /// # Errors
            /// None yet.
            pub fn into_std(self) -> io::Result<$std> {
                Ok(self.datagrams.into_socket())
            }

            /// Starts to receive now; await the datagram later. Dropping it loses no datagram.
            pub fn start_recv_from(&self, buffer: Vec<u8>) -> StartedReceive<'_, $std> {
                Started::new(self.datagrams.io(), ReceiveOperation {
                    datagrams: &self.datagrams,
                    buffer,
                })
            }

            /// Sends now to the connected peer, or as soon as there is room; await the result later.
            pub fn start_send(&self, datagram: Vec<u8>) -> StartedSend<'_, $std> {
                Started::new(self.datagrams.io(), SendOperation {
                    datagrams: &self.datagrams,
                    datagram,
                    to: None,
                })
            }

            /// The blocking forms, for closures.
            pub fn blocking(&self) -> Blocking<'_, Self> {
                Blocking::new(self)
            }

            /// The socket of the standard library, for its addresses and options (broadcast, multicast, time to live).
            pub fn socket(&self) -> &$std {
                self.datagrams.socket()
            }
        }

        impl Blocking<'_, $type> {
            #[doc = concat!("See [`", stringify!($type), "::recv_from`].")]
            ///
            /// # Errors
            /// As there.
            pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, $address)> {
                crate::block_on(self.inner.recv_from(buffer))
            }

            #[doc = concat!("See [`", stringify!($type), "::recv`].")]
            ///
            /// # Errors
            /// As there.
            pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
                crate::block_on(self.inner.recv(buffer))
            }

            #[doc = concat!("See [`", stringify!($type), "::send`].")]
            ///
            /// # Errors
            /// As there.
            pub fn send(&self, datagram: &[u8]) -> io::Result<usize> {
                crate::block_on(self.inner.send(datagram))
            }
        }

        impl AsFd for $type {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.socket().as_fd()
            }
        }

        of_std!($std => $type, |socket| $type { datagrams: Datagrams::new(socket) });
    };
}

pub(super) use impl_datagrams;
