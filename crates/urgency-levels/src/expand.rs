//! A declaration to types and trait implementations.
//!
//! The code is written as text in which names that start with `__` stand for the user's own tokens
//! (names with their spans, attributes, the visibility); [`Places::fill`] puts them in. Paths start
//! with `::`, so nothing that the program calls `Level` or `core` gets in the way. The library has the name that the
//! program's manifest gives it.
//!
//! All code about a level gets the place of the level's name, so that a message of the compiler which
//! mentions an implementation points at that name and not at the whole declaration.

use proc_macro::{Group, Span, TokenStream, TokenTree};
use std::{collections::HashMap, fmt::Write};
use urgency_policy::order::{MAX_LEVELS, Order, OrderError};

use crate::{
    error::Error,
    manifest,
    parse::{Declaration, Named},
};

/// The output of the macro.
pub(crate) fn expand(declaration: &Declaration) -> Result<TokenStream, Error> {
    let order = order(declaration)?;
    let rank = |level: &Named| {
        order
            .rank(&level.name())
            .expect("every declared level has a rank")
    };
    let places = Places::of(declaration);
    let library = manifest::library();
    let mut output = places.fill_at(
        &declaration.order,
        &order_items(declaration, &order, &library),
    );
    for (awaited, level) in declaration.levels.iter().enumerate() {
        let mut code = level_items(declaration, &order, (awaited, rank(level)), &library);
        for (waiter, other) in declaration.levels.iter().enumerate() {
            if order.may_wait(rank(other), rank(level)) {
                write!(
                    code,
                    "#[automatically_derived]
                     #[diagnostic::do_not_recommend]
                     impl {library}::level::AtLeast<__level_{waiter}> for __level_{awaited} {{}}"
                )
                .expect("a string takes everything");
            }
        }
        output.extend(places.fill_at(level, &code));
    }
    Ok(output)
}

/// Ranks and closure; or the error, at the name that it is about.
fn order(declaration: &Declaration) -> Result<Order, Error> {
    let names: Vec<String> = declaration.levels.iter().map(Named::name).collect();
    let edges: Vec<_> = declaration
        .edges
        .iter()
        .map(|edge| (names[edge.above].clone(), names[edge.below].clone()))
        .collect();
    Order::new(&names, &edges).map_err(|error| {
        let span = match &error {
            OrderError::TooMany { .. } => declaration.levels[MAX_LEVELS].ident.span(),
            OrderError::Cycle { names: cycle } => {
                let in_cycle = |(above, below): &(String, String)| {
                    let at = cycle.iter().position(|name| name == above);
                    at.is_some_and(|at| cycle[(at + 1) % cycle.len()] == *below)
                };
                let last = edges.iter().rposition(in_cycle);
                declaration.edges[last.expect("the edges of a cycle were declared")].span
            }
            _ => declaration.order.ident.span(),
        };
        Error::new(span, error.to_string())
    })
}

/// The type of the order, and `Level` in scope.
fn order_items(declaration: &Declaration, order: &Order, library: &str) -> String {
    let (app, names, masks) = (declaration.order.name(), order.names(), order.masks());
    let summary = format!("Levels, by rank: {}.", list(names));
    format!(
        "#[doc(hidden)] #[allow(unused_imports)] __visibility use {library}::level::Level as _;
         __order_attributes
         #[doc = \"\"]
         #[doc = {summary:?}]
         #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
         #[allow(dead_code)]
         __visibility enum __order {{}}
         #[automatically_derived]
         impl {library}::level::Levels for __order {{
             const NAME: &'static str = {app:?};
             const NAMES: &'static [&'static str] = &{names:?};
             const ABOVE: &'static [u64] = &{masks:?};
         }}"
    )
}

/// The type of one level.
fn level_items(
    declaration: &Declaration,
    order: &Order,
    (index, rank): (usize, u8),
    library: &str,
) -> String {
    let (app, name) = (declaration.order.name(), declaration.levels[index].name());
    let related = |above: bool| {
        let ranks = (0..order.names().len()).filter(move |&other| {
            let (low, high) = if above {
                (usize::from(rank), other)
            } else {
                (other, usize::from(rank))
            };
            order.masks()[low] >> high & 1 == 1
        });
        list(ranks.map(|rank| &order.names()[rank]))
    };
    let place = format!(
        "A level of [`{app}`], rank {rank}. More urgent: {}. Less urgent: {}.",
        related(true),
        related(false)
    );
    format!(
        "__attributes_{index}
         #[doc = \"\"]
         #[doc = {place:?}]
         #[derive(
             ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug,
             ::core::cmp::PartialEq, ::core::cmp::Eq, ::core::hash::Hash,
         )]
         #[allow(dead_code)]
         __visibility struct __level_{index};
         #[automatically_derived]
         impl {library}::level::Level for __level_{index} {{
             type Order = __order;
             const LEVEL: Self = __level_{index};
             const RANK: u8 = {rank};
             const NAME: &'static str = {name:?};
         }}"
    )
}

/// Names as rustdoc links.
fn list<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let links: Vec<_> = names.into_iter().map(|n| format!("[`{n}`]")).collect();
    if links.is_empty() {
        return "none".to_owned();
    }
    links.join(", ")
}

/// The user's tokens by placeholder.
struct Places(HashMap<String, TokenStream>);

impl Places {
    fn of(declaration: &Declaration) -> Self {
        let named = |named: &Named| TokenTree::from(named.ident.clone()).into();
        let mut places = HashMap::from([
            ("__visibility".to_owned(), declaration.visibility.clone()),
            ("__order".to_owned(), named(&declaration.order)),
            (
                "__order_attributes".to_owned(),
                declaration.order.attributes.clone(),
            ),
        ]);
        for (index, level) in declaration.levels.iter().enumerate() {
            places.insert(format!("__level_{index}"), named(level));
            places.insert(format!("__attributes_{index}"), level.attributes.clone());
        }
        Places(places)
    }

    /// `code`, which is about `named`, with the user's tokens in place of the placeholders.
    fn fill_at(&self, named: &Named, code: &str) -> TokenStream {
        let span = Span::call_site().located_at(named.ident.span());
        let code = code.parse().expect("the template is valid Rust");
        self.fill(span, code)
    }

    fn fill(&self, span: Span, code: TokenStream) -> TokenStream {
        code.into_iter()
            .flat_map(|mut token| {
                if let TokenTree::Ident(ident) = &token
                    && let Some(tokens) = self.0.get(&ident.to_string())
                {
                    return tokens.clone();
                }
                if let TokenTree::Group(group) = &token {
                    let inner = self.fill(span, group.stream());
                    token = Group::new(group.delimiter(), inner).into();
                }
                token.set_span(span);
                token.into()
            })
            .collect()
    }
}
