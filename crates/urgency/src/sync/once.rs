//! What the places for data that is set once have in common.

/// Of a type `$cell<T>` with a field `data: OnceLock<T>`, a `const fn new` and a `From<T>`.
macro_rules! set_once {
    ($cell:ident) => {
        impl<T> $cell<T> {
            const_fn! {
                /// As [`new`](Self::new), under the name for statics in programs that were written for Tokio.
                pub fn const_new() -> Self {
                    Self::new()
                }
            }

            /// With this data, or empty.
            pub fn new_with(data: Option<T>) -> Self {
                data.map_or_else(Self::new, Self::from)
            }

            /// Whether the data is there.
            pub fn initialized(&self) -> bool {
                self.get().is_some()
            }

            /// The data, if it is there.
            #[inline]
            pub fn get(&self) -> Option<&T> {
                self.data.get()
            }

            /// The data, if it is there, taken out of the cell.
            pub fn into_inner(self) -> Option<T> {
                self.data.into_inner()
            }
        }

        impl<T> Default for $cell<T> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<T: Clone> Clone for $cell<T> {
            fn clone(&self) -> Self {
                Self::new_with(self.get().cloned())
            }
        }

        impl<T: PartialEq> PartialEq for $cell<T> {
            fn eq(&self, other: &Self) -> bool {
                self.get() == other.get()
            }
        }

        impl<T: Eq> Eq for $cell<T> {}
    };
}
pub(super) use set_once;
