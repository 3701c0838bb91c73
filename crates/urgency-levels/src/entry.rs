//! `#[main]` and `#[test]`: an async function as the program, or as a test.
//!
//! `async fn name() -> R { body }` becomes `fn name() -> R { Entry::new()...run(async { body }) }`, where `Entry`
//! is the library's (`entry`; `manifest.rs` finds its name), and the options of the attribute are calls between the
//! two. Attributes, visibility and the signature stay as they were written.
//!
//! # Grammar
//!
//! ```text
//! options  = [ option { "," option } [ "," ] ]
//! option   = "flavor" "=" ( "\"current_thread\"" | "\"multi_thread\"" | "\"local\"" )
//!          | "worker_threads" "=" NUMBER
//!          | "start_paused" "=" BOOL
//!          | "name" "=" STRING
//!          | "crate" "=" STRING
//! ```

use crate::{error::Error, manifest};
use proc_macro::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// Which of the two attributes it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Test,
}

/// On which runtime the body runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavor {
    CurrentThread,
    MultiThread,
    Local,
}

/// What the attribute says.
struct Options {
    /// Calls of `Entry`'s methods.
    calls: String,
    /// The path of the library.
    library: String,
}

/// The function that `item` becomes.
pub(crate) fn expand(
    kind: Kind,
    options: TokenStream,
    item: TokenStream,
) -> Result<TokenStream, Error> {
    let options = parse_options(kind, options)?;
    let mut before = Vec::new();
    let mut tokens = item.into_iter();
    loop {
        match tokens.next() {
            Some(TokenTree::Ident(word)) if word.to_string() == "async" => break,
            Some(TokenTree::Ident(word)) if word.to_string() == "fn" => {
                return Err(Error::new(
                    word.span(),
                    "the function must be `async`: the attribute runs its future; write `async fn`",
                ));
            }
            Some(token) => before.push(token),
            None => {
                return Err(Error::new(
                    Span::call_site(),
                    "this attribute is for an `async fn`",
                ));
            }
        }
    }
    let mut signature: Vec<TokenTree> = tokens.collect();
    let body = match signature.pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
        _ => {
            return Err(Error::new(
                Span::call_site(),
                "this attribute is for an `async fn` with a body",
            ));
        }
    };
    // Only a test is called by nobody that could give it any.
    for token in signature.iter().filter(|_| kind == Kind::Test) {
        if let TokenTree::Group(arguments) = token
            && arguments.delimiter() == Delimiter::Parenthesis
        {
            if !arguments.stream().is_empty() {
                return Err(Error::new(
                    arguments.span(),
                    "a test takes no arguments: nobody could give it any",
                ));
            }
            break;
        }
    }
    let mut output: Vec<TokenTree> = Vec::new();
    if kind == Kind::Test {
        let test: TokenStream = "#[::core::prelude::v1::test]"
            .parse()
            .expect("an attribute");
        output.extend(test);
    }
    output.extend(before);
    output.extend(signature);
    output.push(braced(call(&options, body)));
    Ok(output.into_iter().collect())
}

/// `library::entry::Entry::new().option(..).run(async { body })`
fn call(options: &Options, body: Group) -> TokenStream {
    let entry = format!("{}::entry::Entry::new(){}", options.library, options.calls);
    let mut call: Vec<TokenTree> = entry
        .parse::<TokenStream>()
        .expect("the library's path was parsed before")
        .into_iter()
        .collect();
    call.push(Punct::new('.', Spacing::Alone).into());
    call.push(Ident::new("run", Span::call_site()).into());
    let future: TokenStream = [
        TokenTree::from(Ident::new("async", Span::call_site())),
        TokenTree::from(body),
    ]
    .into_iter()
    .collect();
    call.push(Group::new(Delimiter::Parenthesis, future).into());
    call.into_iter().collect()
}

fn braced(tokens: TokenStream) -> TokenTree {
    Group::new(Delimiter::Brace, tokens).into()
}

fn parse_options(kind: Kind, options: TokenStream) -> Result<Options, Error> {
    let mut parsed = Options {
        calls: String::new(),
        library: manifest::library(),
    };
    let (mut workers, mut flavor) = (None, None);
    let mut tokens = options.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let TokenTree::Ident(name) = token else {
            return Err(Error::new(
                token.span(),
                "an option is `name = value`; the names are flavor, worker_threads, start_paused, name and crate",
            ));
        };
        match tokens.next() {
            Some(TokenTree::Punct(sign)) if sign.as_char() == '=' => {}
            _ => {
                return Err(Error::new(
                    name.span(),
                    format!("`{name}` needs a value: `{name} = ..`"),
                ));
            }
        }
        let value = tokens.next().ok_or_else(|| {
            Error::new(name.span(), format!("`{name}` needs a value after the `=`"))
        })?;
        let text = value.to_string();
        let string = || {
            text.strip_prefix('"')
                .and_then(|text| text.strip_suffix('"'))
                .map(str::to_owned)
                .ok_or_else(|| Error::new(value.span(), format!("`{name}` takes a string")))
        };
        match name.to_string().as_str() {
            "flavor" => {
                flavor = Some(match string()?.as_str() {
                    "current_thread" => Flavor::CurrentThread,
                    "multi_thread" => Flavor::MultiThread,
                    "local" => Flavor::Local,
                    other => {
                        return Err(Error::new(
                            value.span(),
                            format!(
                                "there is no flavor {other:?}: take \"current_thread\" (one worker), \
                                 \"multi_thread\" or \"local\" (as \"current_thread\", with local tasks)"
                            ),
                        ));
                    }
                });
            }
            "worker_threads" => {
                let number: usize = text.parse().map_err(|_| {
                    Error::new(value.span(), "`worker_threads` takes a number of workers")
                })?;
                workers = Some(number);
            }
            "start_paused" => {
                if text != "true" && text != "false" {
                    return Err(Error::new(
                        value.span(),
                        "`start_paused` takes `true` or `false`",
                    ));
                }
                parsed.calls += &format!(".start_paused({text})");
            }
            "name" => parsed.calls += &format!(".name({:?})", string()?),
            "crate" => {
                parsed.library = string()?;
                if parsed.library.parse::<TokenStream>().is_err() {
                    return Err(Error::new(value.span(), "`crate` takes a path"));
                }
            }
            _ => {
                return Err(Error::new(
                    name.span(),
                    format!(
                        "there is no option `{name}`; the options are flavor, worker_threads, start_paused, name \
                         and crate"
                    ),
                ));
            }
        }
        match tokens.next() {
            None => break,
            Some(TokenTree::Punct(sign)) if sign.as_char() == ',' => {}
            Some(token) => return Err(Error::new(token.span(), "a `,` belongs between options")),
        }
    }
    // As in Tokio: a test runs on one worker unless it asks for more. A program that was written for Tokio may count on
    // its tasks to run on the test's own thread. In any other test a task may wait in a blocking form for the body.
    let one = kind == Kind::Test && flavor.is_none();
    let is_ported = parsed.library.rsplit("::").next() == Some("tokio");
    let is_current_thread = one && workers.is_none() && is_ported;
    match flavor {
        Some(Flavor::Local) => parsed.calls += ".local()",
        Some(Flavor::CurrentThread) => parsed.calls += ".current_thread()",
        None if is_current_thread => parsed.calls += ".current_thread()",
        _ => {}
    }
    if let Some(workers) = workers.or(one.then_some(1)) {
        parsed.calls += &format!(".workers({workers})");
    }
    Ok(parsed)
}
