//! What types say of themselves: `Debug` for a type whose parts have none, and the text of an error.
//!
//! Both macros are in scope everywhere in the library. The generics of a type come before it, in brackets:
//! `debug_struct!([T] Sender<T>, |it| closed: it.is_closed())`.

/// `Debug` of a type as its name, the fields that are computed here, and two dots.
macro_rules! debug_struct {
    (
        $([$($generics:tt)*])? $name:ident $(<$($argument:tt),*>)?
        $(, |$it:ident| $($field:ident: $value:expr),+)?
    ) => {
        impl$(<$($generics)*>)? std::fmt::Debug for $name$(<$($argument),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut text = f.debug_struct(stringify!($name));
                $(
                    let $it = self;
                    $(text.field(stringify!($field), &$value);)+
                )?
                text.finish_non_exhaustive()
            }
        }
    };
}

/// `Debug` of a type as this text.
macro_rules! debug_text {
    (
        $([$($generics:tt)*])? $name:ident $(<$($argument:tt),*>)?, |$it:ident| $text:expr
    ) => {
        impl$(<$($generics)*>)? std::fmt::Debug for $name$(<$($argument),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $it = self;
                f.write_str($text)
            }
        }
    };
}

/// An error whose text is this.
macro_rules! error_text {
    (
        $([$($generics:tt)*])? $name:ident $(<$($argument:tt),*>)?, |$it:ident| $text:expr
    ) => {
        impl$(<$($generics)*>)? std::fmt::Display for $name$(<$($argument),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $it = self;
                std::fmt::Display::fmt(&$text, f)
            }
        }

        impl$(<$($generics)*>)? std::error::Error for $name$(<$($argument),*>)? {}
    };
    ($([$($generics:tt)*])? $name:ident $(<$($argument:tt),*>)?, $text:literal) => {
        error_text!($([$($generics)*])? $name$(<$($argument),*>)?, |_it| $text);
    };
}
