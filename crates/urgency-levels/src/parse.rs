//! Tokens to a declaration.
//!
//! The parser looks one token ahead and keeps no state beyond its position. Each error says what was
//! expected and what to write instead; the mistakes that are likely (`<` for `>`, `,` for `;`) get
//! messages of their own. Whether the levels make an order is not decided here.

use proc_macro::{Delimiter, Ident, Span, TokenStream, TokenTree, token_stream};
use std::iter::Peekable;

use crate::error::Error;

/// What the user wrote.
#[derive(Debug)]
pub(crate) struct Declaration {
    pub(crate) order: Named,
    pub(crate) visibility: TokenStream,
    /// In the order of their first occurrence.
    pub(crate) levels: Vec<Named>,
    pub(crate) edges: Vec<Edge>,
}

/// A name with its attributes.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) ident: Ident,
    pub(crate) attributes: TokenStream,
}

impl Named {
    /// The name without `r#`.
    pub(crate) fn name(&self) -> String {
        plain(&self.ident)
    }
}

/// `above > below`, as indices of levels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) above: usize,
    pub(crate) below: usize,
    /// The occurrence of `below` in this edge.
    pub(crate) span: Span,
}

fn plain(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}

const SHAPE: &str = "the shape is `pub App: Interactive > Query > Batch; Interactive > Audit`";

/// The whole input of the macro.
pub(crate) fn declaration(input: TokenStream) -> Result<Declaration, Error> {
    let mut parser = Parser {
        tokens: input.into_iter().peekable(),
        last: Span::call_site(),
    };
    let attributes = parser.attributes()?;
    let visibility = parser.visibility();
    let ident = parser.ident("a name for the order of the levels")?;
    let order = Named { ident, attributes };
    if !parser.eat(':') {
        return Err(parser.unexpected("`:` and the levels"));
    }
    let mut declaration = Declaration {
        order,
        visibility,
        levels: Vec::new(),
        edges: Vec::new(),
    };
    if parser.tokens.peek().is_none() {
        let name = declaration.order.name();
        let message = format!("`{name}` has no level: name at least one, as in `{name}: Normal`");
        return Err(Error::new(declaration.order.ident.span(), message));
    }
    while parser.tokens.peek().is_some() {
        parser.chain(&mut declaration)?;
    }
    Ok(declaration)
}

struct Parser {
    tokens: Peekable<token_stream::IntoIter>,
    /// Of the token before, to point at if the input ends too early.
    last: Span,
}

impl Parser {
    /// `level { ">" level }` and the `;` behind it.
    fn chain(&mut self, declaration: &mut Declaration) -> Result<(), Error> {
        let (mut above, known, span) = self.level(declaration)?;
        let mut ordered = false;
        while self.eat('>') {
            let (below, _, span) = self.level(declaration)?;
            declaration.order_pair(above, below, span)?;
            above = below;
            ordered = true;
        }
        if known && !ordered {
            let name = declaration.levels[above].name();
            let message = format!("the level `{name}` is declared already: leave it out here");
            return Err(Error::new(span, message));
        }
        if self.eat(';') || self.tokens.peek().is_none() {
            return Ok(());
        }
        Err(self.unexpected("`>` and a less urgent level, or `;` and another chain"))
    }

    /// A level: its index, whether it occurred before, and where it occurs now.
    fn level(&mut self, declaration: &mut Declaration) -> Result<(usize, bool, Span), Error> {
        let attributes = self.attributes()?;
        let ident = self.ident("the name of a level")?;
        let (span, name) = (ident.span(), plain(&ident));
        if name == declaration.order.name() {
            let message = format!(
                "`{name}` is the name of the order and of a level: both become types, so give them \
                 different names"
            );
            return Err(Error::new(span, message));
        }
        match declaration.levels.iter().position(|l| l.name() == name) {
            Some(index) => {
                declaration.levels[index].attributes.extend(attributes);
                Ok((index, true, span))
            }
            None => {
                declaration.levels.push(Named { ident, attributes });
                Ok((declaration.levels.len() - 1, false, span))
            }
        }
    }

    /// `#[..]`, any number of them.
    fn attributes(&mut self) -> Result<TokenStream, Error> {
        let mut attributes = TokenStream::new();
        while matches!(self.tokens.peek(), Some(TokenTree::Punct(p)) if p.as_char() == '#') {
            attributes.extend(self.next());
            match self.next() {
                Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Bracket => {
                    if let Some(TokenTree::Ident(name)) = g.stream().into_iter().next()
                        && ["cfg", "cfg_attr"].contains(&plain(&name).as_str())
                    {
                        let message = "a level cannot depend on `cfg`: put the `cfg` on the whole \
                                       `levels!`, once for each order";
                        return Err(Error::new(name.span(), message));
                    }
                    attributes.extend([TokenTree::Group(g)]);
                }
                _ => {
                    let message = "only outer attributes and doc comments (`#[..]`, `///`) can \
                                   stand here";
                    return Err(Error::new(self.last, message));
                }
            }
        }
        Ok(attributes)
    }

    /// Nothing, `pub` or `pub(..)`.
    fn visibility(&mut self) -> TokenStream {
        let mut visibility = TokenStream::new();
        if matches!(self.tokens.peek(), Some(TokenTree::Ident(i)) if i.to_string() == "pub") {
            visibility.extend(self.next());
            if matches!(self.tokens.peek(), Some(TokenTree::Group(g))
                if g.delimiter() == Delimiter::Parenthesis)
            {
                visibility.extend(self.next());
            }
        }
        visibility
    }

    fn ident(&mut self, expected: &str) -> Result<Ident, Error> {
        match self.tokens.peek() {
            Some(TokenTree::Ident(ident)) => {
                let ident = ident.clone();
                self.next();
                Ok(ident)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn eat(&mut self, punct: char) -> bool {
        let found = matches!(self.tokens.peek(), Some(TokenTree::Punct(p)) if p.as_char() == punct);
        if found {
            self.next();
        }
        found
    }

    fn next(&mut self) -> Option<TokenTree> {
        let token = self.tokens.next();
        if let Some(token) = &token {
            self.last = token.span();
        }
        token
    }

    fn unexpected(&mut self, expected: &str) -> Error {
        let Some(token) = self.tokens.peek() else {
            let message = format!("the input ends where {expected} should follow; {SHAPE}");
            return Error::new(self.last, message);
        };
        let hint = match token.to_string().as_str() {
            "<" => "write the more urgent level first: `A > B`, not `B < A`".to_owned(),
            "," => "chains are separated by `;`".to_owned(),
            _ => SHAPE.to_owned(),
        };
        let message = format!("expected {expected}, found `{token}`; {hint}");
        Error::new(token.span(), message)
    }
}

impl Declaration {
    fn order_pair(&mut self, above: usize, below: usize, span: Span) -> Result<(), Error> {
        let stated = |e: &Edge| e.above == above && e.below == below;
        if self.edges.iter().any(stated) {
            let (above, below) = (self.levels[above].name(), self.levels[below].name());
            let message = format!("`{above} > {below}` is stated already: leave it out here");
            return Err(Error::new(span, message));
        }
        self.edges.push(Edge { above, below, span });
        Ok(())
    }
}
