//! Which other item the documentation of a form leads to: "As [`spawn`]", "The blocking form of
//! [`recv`](Self::recv)".

use crate::source::Item;

/// How the documentation of a form of something else begins or goes on, up to the link.
const FORMS: &[&str] = &[
    "As ",
    "as ",
    "form of ",
    "The form for ",
    "The same as ",
    "; see ",
    "See ",
    "Like ",
];

/// Another item, as a link names it.
pub struct Link<'a> {
    /// The type or trait in front of the name; empty without one.
    of: &'a str,
    name: &'a str,
}

impl Link<'_> {
    /// Whether it leads to `other`, in the documentation of `item`.
    pub fn is(&self, other: &Item, item: &Item) -> bool {
        let of = if self.of == "Self" { &item.of } else { self.of };
        other.name == self.name && (of.is_empty() || other.of == of)
    }
}

/// The links of a form to this crate's items. Another crate's item shows nothing of ours.
pub fn links(docs: &str) -> impl Iterator<Item = Link<'_>> {
    let after = |form: &'static str| {
        docs.match_indices(form)
            .map(|(at, it)| &docs[at + it.len()..])
    };
    FORMS.iter().copied().flat_map(after).filter_map(link)
}

/// What the text begins with, or has in its first sentence after a word or two.
fn link(text: &str) -> Option<Link<'_>> {
    let sentence = text.split(". ").next()?;
    let (before, rest) = sentence.split_once("[`")?;
    if before.split_whitespace().count() > 2 {
        return None;
    }
    let (shown, rest) = rest.split_once("`]")?;
    let target = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let path = target.map_or(shown, |(target, _)| target);
    let path = path.rsplit_once('@').map_or(path, |(_, path)| path);
    let is_foreign = |it: &str| {
        ["std::", "core::", "alloc::"]
            .iter()
            .any(|own| it.starts_with(own))
    };
    if is_foreign(path) || is_foreign(shown) || path.contains('/') {
        return None;
    }
    let mut segments = path.rsplit("::");
    let name = segments.next()?.trim_end_matches(['(', ')', '!']);
    let of = segments.next().unwrap_or("");
    let is_type = of.starts_with(char::is_uppercase);
    Some(Link {
        of: if is_type { of } else { "" },
        name,
    })
}

#[test]
fn a_link_to_another_crate_is_none() {
    let to = |docs: &'static str| {
        let found = links(docs).map(|link| (link.of, link.name));
        found.collect::<Vec<_>>()
    };
    assert!(to("See [`std::fs::copy`].").is_empty());
    assert!(to("As [`read`](std::io::Read::read).").is_empty());
    assert!(to("As the other. A [`Thing`] is given.").is_empty());
    assert_eq!(to("As [`open`], but wide."), [("", "open")]);
    assert_eq!(
        to("The blocking form of [`Self::recv`]."),
        [("Self", "recv")]
    );
    assert_eq!(to("See [`join()`](crate::join())."), [("", "join")]);
    assert_eq!(
        to("It; see [`Host::run`](crate::embed::Host::run)."),
        [("Host", "run")]
    );
}
