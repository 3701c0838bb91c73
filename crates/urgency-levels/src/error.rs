//! Errors of the macro: a message and the place in the user's source that it is about.

use proc_macro::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};

/// What is wrong, and where.
#[derive(Debug)]
pub(crate) struct Error {
    span: Span,
    message: String,
}

impl Error {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Error {
            span,
            message: message.into(),
        }
    }

    /// `::core::compile_error! { "message" }`. All of it gets the span of what is wrong, because the
    /// compiler reports the span of the invocation, from its first token to its last.
    pub(crate) fn into_tokens(self) -> TokenStream {
        let call: TokenStream = "::core::compile_error!"
            .parse()
            .expect("a path and a `!` are valid tokens");
        let message = TokenTree::from(Literal::string(&self.message));
        let argument = Group::new(Delimiter::Brace, message.into());
        call.into_iter()
            .chain([TokenTree::from(argument)])
            .map(|mut token| {
                token.set_span(self.span);
                token
            })
            .collect()
    }
}
