//! What `select!`, `join!` and `try_join!` expand to.
//!
//! The macros of the library split what the user wrote into expressions and patterns, and hand them over in groups:
//!
//! ```text
//! select  = "(" crate ")" "(" start ")" "(" else ")" "(" default ")" { branch }
//! branch  = "{" "(" pattern ")" "(" future ")" "(" if ")" "(" body ")" "}"
//! join    = "(" crate ")" "(" start ")" { "(" future ")" }
//! ```
//!
//! `start` says at which branch a poll begins: the `first` one, the `next` one each time, or one at `random`. `else`
//! and `default` may be empty.
//!
//! The futures become variables in the reverse of the order in which they are written, so that they are dropped in the
//! order in which they are written, as Tokio's are.
//!
//! All of this could be written with `macro_rules!`, but for two things: as many type parameters and variables as there
//! are branches, and a pattern without its `mut` and `ref`, with which a result is looked at before it is moved.

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};
use std::fmt::Write;

/// The groups of an invocation.
fn groups(input: TokenStream) -> Vec<TokenStream> {
    input
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => group.stream(),
            other => unreachable!("the library's macros write groups only, not {other}"),
        })
        .collect()
}

/// Tokens of this crate's own, with holes for what the user wrote: each is an identifier that `fill` knows.
fn fill(template: TokenStream, holes: &dyn Fn(&str) -> Option<TokenStream>) -> TokenStream {
    template
        .into_iter()
        .map(|mut token| match &token {
            TokenTree::Group(group) => {
                let inside = fill(group.stream(), holes);
                let mut filled = Group::new(group.delimiter(), inside);
                filled.set_span(Span::mixed_site());
                filled.into()
            }
            TokenTree::Ident(name) => match holes(&name.to_string()) {
                Some(filling) => Group::new(Delimiter::None, filling).into(),
                None => {
                    token.set_span(Span::mixed_site());
                    token
                }
            },
            _ => {
                token.set_span(Span::mixed_site());
                token
            }
        })
        .collect()
}

/// The expression for where a poll of `count` branches begins.
fn start_of(start: &TokenStream, count: usize) -> String {
    match start.to_string().as_str() {
        "first" => "0usize".to_owned(),
        "next" => format!("polls % {count}usize"),
        "random" => format!("LIBRARY::future::random_start({count}usize)"),
        other => unreachable!("the library's macros do not say {other}"),
    }
}

/// A hole's kind and number: `FUTURE3`.
fn numbered(name: &str) -> Option<(&str, usize)> {
    let digits = name.find(|c: char| c.is_ascii_digit())?;
    Some((&name[..digits], name[digits..].parse().ok()?))
}

/// A pattern that binds by reference whatever it bound by value.
fn unbound(pattern: TokenStream) -> TokenStream {
    let mut after_and = false;
    pattern
        .into_iter()
        .filter_map(|token| {
            let follows = std::mem::take(&mut after_and);
            match token {
                TokenTree::Ident(word) if word.to_string() == "ref" => None,
                TokenTree::Ident(word) if word.to_string() == "mut" && !follows => None,
                TokenTree::Group(group) => {
                    let mut inside = Group::new(group.delimiter(), unbound(group.stream()));
                    inside.set_span(group.span());
                    Some(inside.into())
                }
                token => {
                    after_and = matches!(&token, TokenTree::Punct(sign) if sign.as_char() == '&');
                    Some(token)
                }
            }
        })
        .collect()
}

/// One branch of a `select!`.
struct Branch {
    pattern: TokenStream,
    future: TokenStream,
    condition: TokenStream,
    body: TokenStream,
}

/// See the module's text.
pub(crate) fn select(input: TokenStream) -> TokenStream {
    let mut parts = groups(input).into_iter();
    let mut next = || parts.next().expect("the library's macro writes them");
    let (library, start, otherwise, default) = (next(), next(), next(), next());
    let branches: Vec<Branch> = parts
        .map(|branch| {
            let mut parts = groups(branch).into_iter();
            let mut next = || parts.next().expect("the library's macro writes them");
            Branch {
                pattern: next(),
                future: next(),
                condition: next(),
                body: next(),
            }
        })
        .collect();
    let count = branches.len();
    let start = start_of(&start, count);
    let has_default = !default.is_empty();
    let otherwise = if otherwise.is_empty() {
        "::core::panic!(\"all branches of this `select!` are disabled, and it has no `else`\")"
            .parse()
            .expect("an expression")
    } else {
        otherwise
    };

    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<String>();
    let backwards = |item: &dyn Fn(usize) -> String| (0..count).rev().map(item).collect::<String>();
    let mut text = format!(
        "enum __Won<{}> {{ {} Nobody, Default }}",
        list(&|n| format!("T{n},")),
        list(&|n| format!("W{n}(T{n}),")),
    );
    text += "let mut enabled = 0u64;";
    text += &list(&|n| format!("if CONDITION{n} {{ enabled |= 1u64 << {n}u32; }}"));
    text += "let mut won = {";
    text += &list(&|n| format!("let f{n} = FUTURE{n};"));
    text += &list(&|n| format!("let f{n} = ::core::future::IntoFuture::into_future(f{n});"));
    text += &backwards(&|n| format!("let mut f{n} = ::core::pin::pin!(f{n});"));
    let _ = write!(
        text,
        "::core::future::poll_fn(|cx| {{
            let start = {start};
            let mut waits = false;
            for i in 0..{count}usize {{
                match (start + i) % {count}usize {{ {} _ => ::core::unreachable!(), }}
            }}
            if !waits {{ return ::core::task::Poll::Ready(__Won::Nobody); }}
            {}
        }}).await }};",
        list(&|n| {
            format!(
            "{n}usize => {{
                if enabled & (1u64 << {n}u32) == 0 {{ continue; }}
                let ::core::task::Poll::Ready(result) = ::core::future::Future::poll(f{n}.as_mut(), cx) else {{
                    waits = true;
                    continue;
                }};
                enabled &= !(1u64 << {n}u32);
                match &result {{ LOOK{n} => {{}} _ => continue, }}
                return ::core::task::Poll::Ready(__Won::W{n}(result));
            }}"
        )
        }),
        if has_default {
            "::core::task::Poll::Ready(__Won::Default)"
        } else {
            "::core::task::Poll::Pending"
        },
    );
    let _ = write!(
        text,
        "match won {{ {} __Won::Nobody => OTHERWISE, __Won::Default => {}, _ => ::core::unreachable!(), }}",
        list(&|n| format!("__Won::W{n}(PATTERN{n}) => BODY{n},")),
        if has_default {
            "DEFAULT"
        } else {
            "::core::unreachable!()"
        },
    );
    if count == 0 {
        text = if has_default { "DEFAULT" } else { "OTHERWISE" }.to_owned();
    }

    let holes = |name: &str| -> Option<TokenStream> {
        match name {
            "LIBRARY" => return Some(library.clone()),
            "OTHERWISE" => return Some(otherwise.clone()),
            "DEFAULT" => return Some(default.clone()),
            _ => {}
        }
        let (kind, n) = numbered(name)?;
        let branch = branches.get(n)?;
        Some(match kind {
            "CONDITION" => branch.condition.clone(),
            "FUTURE" => branch.future.clone(),
            "LOOK" => unbound(branch.pattern.clone()),
            "PATTERN" => branch.pattern.clone(),
            "BODY" => branch.body.clone(),
            _ => return None,
        })
    };
    finish(&text, &holes)
}

/// `join!`, and `try_join!` if it is to end with the first error.
pub(crate) fn join(input: TokenStream, tries: bool) -> TokenStream {
    let mut parts = groups(input).into_iter();
    let mut next = || parts.next().expect("the library's macro writes them");
    let (library, start) = (next(), next());
    let futures: Vec<TokenStream> = parts.collect();
    let count = futures.len();
    let start = start_of(&start, count);
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<String>();
    let backwards = |item: &dyn Fn(usize) -> String| (0..count).rev().map(item).collect::<String>();
    let mut text = list(&|n| format!("let f{n} = FUTURE{n};"));
    text += &list(&|n| format!("let f{n} = ::core::future::IntoFuture::into_future(f{n});"));
    text += &backwards(&|n| {
        format!("let mut f{n} = ::core::pin::pin!(LIBRARY::future::MaybeDone::new(f{n}));")
    });
    let failed = |n: usize| {
        if tries {
            format!(
                "if let ::core::option::Option::Some(error) = f{n}.as_mut().take_error() {{
                    return ::core::task::Poll::Ready(::core::result::Result::Err(error));
                }}"
            )
        } else {
            String::new()
        }
    };
    let results = list(&|n| {
        if tries {
            format!(
                "match f{n}.as_mut().take() {{
                ::core::option::Option::Some(::core::result::Result::Ok(result)) => result,
                _ => ::core::unreachable!(),
            }},"
            )
        } else {
            format!("f{n}.as_mut().take().expect(\"looked at above\"),")
        }
    });
    let _ = write!(
        text,
        "let mut polls = 0usize;
        let poll = |cx: &mut ::core::task::Context<'_>| {{
            let start = {start};
            polls = polls.wrapping_add(1);
            let mut waits = false;
            for i in 0..{count}usize {{
                match (start + i) % {count}usize {{ {} _ => ::core::unreachable!(), }}
            }}
            if waits {{ return ::core::task::Poll::Pending; }}
            ::core::task::Poll::Ready({})
        }};
        ::core::future::poll_fn(poll).await",
        list(&|n| format!(
            "{n}usize => {{
                waits |= f{n}.as_mut().poll_done(cx).is_pending();
                {}
            }}",
            failed(n)
        )),
        if tries {
            format!("::core::result::Result::Ok(({results}))")
        } else {
            format!("({results})")
        },
    );
    if count == 0 {
        text = "()".to_owned();
        if tries {
            text = "::core::result::Result::Ok(())".to_owned();
        }
    }
    let holes = |name: &str| -> Option<TokenStream> {
        if name == "LIBRARY" {
            return Some(library.clone());
        }
        match numbered(name)? {
            ("FUTURE", n) => futures.get(n).cloned(),
            _ => None,
        }
    };
    finish(&text, &holes)
}

fn finish(text: &str, holes: &dyn Fn(&str) -> Option<TokenStream>) -> TokenStream {
    const ALLOWED: &str = "#[allow(unused_mut, unused_variables, unused_assignments, unreachable_code, \
        unreachable_patterns, irrefutable_let_patterns, dead_code, clippy::all)]";
    let text = format!("{{ {ALLOWED} {{ {text} }} }}");
    let template: TokenStream = text.parse().expect("the template is Rust");
    fill(template, holes)
}
