//! Which request has which level.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use std::{fmt, sync::Arc};
use urgency::LevelId;

/// What a function that chooses a level ([`LevelLayer::choose`](super::LevelLayer::choose)) sees of a request: all but
/// its body.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// What is asked for.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
}

type Choose = dyn Fn(&Head<'_>) -> Option<LevelId> + Send + Sync;

#[derive(Clone)]
pub(super) enum Rule {
    /// Without a slash at its end.
    Path(String, LevelId),
    Header(HeaderName, HeaderValue, LevelId),
    Function(Arc<Choose>),
}

impl Rule {
    fn level_of(&self, head: &Head<'_>) -> Option<LevelId> {
        match self {
            Rule::Path(prefix, level) => {
                let rest = head.uri.path().strip_prefix(prefix.as_str())?;
                (rest.is_empty() || rest.starts_with('/')).then_some(*level)
            }
            Rule::Header(name, value, level) => {
                let mut values = head.headers.get_all(name).iter();
                values.any(|found| found == value).then_some(*level)
            }
            Rule::Function(choose) => choose(head),
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Path(prefix, level) => write!(f, "path {prefix} -> {level}"),
            Rule::Header(name, value, level) => write!(f, "header {name}: {value:?} -> {level}"),
            Rule::Function(_) => f.write_str("function"),
        }
    }
}

/// Rules in their order, and the level of what fits none.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    pub(super) otherwise: Option<LevelId>,
}

impl Rules {
    pub(super) fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// The level of a request; `None` means its connection's level.
    pub(super) fn level_of<B>(&self, request: &Request<B>) -> Option<LevelId> {
        let head = Head {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
        };
        let mut levels = self.rules.iter().map(|rule| rule.level_of(&head));
        levels.find_map(|level| level).or(self.otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(rank: u8) -> LevelId {
        LevelId::new(rank).expect("a small rank")
    }

    #[test]
    fn the_first_rule_that_fits_decides_and_a_path_ends_at_a_slash() {
        let mut rules = Rules::default();
        rules.add(Rule::Path("/batch".into(), level(1)));
        rules.add(Rule::Header(
            HeaderName::from_static("x-level"),
            HeaderValue::from_static("low"),
            level(2),
        ));
        rules.add(Rule::Function(Arc::new(|head| {
            (head.method == Method::PUT).then_some(level(3))
        })));
        let of = |rules: &Rules, method: &str, path: &str, value: &str| {
            let request = Request::builder().method(method).uri(path);
            let request = request.header("x-level", "high").header("x-level", value);
            rules.level_of(&request.body(()).expect("a valid request"))
        };
        assert_eq!(of(&rules, "GET", "/batch", ""), Some(level(1)));
        assert_eq!(of(&rules, "GET", "/batch/7?x", ""), Some(level(1)));
        assert_eq!(of(&rules, "GET", "/batches", ""), None);
        assert_eq!(of(&rules, "PUT", "/batch/", "low"), Some(level(1)));
        assert_eq!(of(&rules, "PUT", "/", "low"), Some(level(2)));
        assert_eq!(of(&rules, "PUT", "/", ""), Some(level(3)));
        rules.otherwise = Some(level(4));
        assert_eq!(of(&rules, "GET", "/batches", ""), Some(level(4)));
    }
}
