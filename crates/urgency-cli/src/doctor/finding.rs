//! What a finding is.

use serde::Serialize;

/// How much of a thing there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// All of it.
    Usable,
    /// A part of it.
    Limited,
    /// Nothing.
    Missing,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            Self::Usable => "usable",
            Self::Limited => "limited",
            Self::Missing => "missing",
        }
    }
}

/// One thing that a machine may have.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub name: &'static str,
    pub state: State,
    /// What there is, or what is missing.
    pub found: String,
    /// What to do to have all of it; `None` if nothing is missing.
    pub enable: Option<String>,
}

impl Finding {
    pub fn usable(name: &'static str, found: impl Into<String>) -> Self {
        Finding {
            name,
            state: State::Usable,
            found: found.into(),
            enable: None,
        }
    }

    pub fn limited(
        name: &'static str,
        found: impl Into<String>,
        enable: impl Into<String>,
    ) -> Self {
        Finding {
            name,
            state: State::Limited,
            found: found.into(),
            enable: Some(enable.into()),
        }
    }

    pub fn missing(
        name: &'static str,
        found: impl Into<String>,
        enable: impl Into<String>,
    ) -> Self {
        Finding {
            state: State::Missing,
            ..Self::limited(name, found, enable)
        }
    }
}
