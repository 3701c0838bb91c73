//! What a line of the text protocol asks for. What the client said and the server has to judge (an expiry, a
//! version) is as it came.

use crate::protocol::{Data, Mode, meta, words::Words};

/// A line of the text protocol, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get`, `gets`, `gat`, `gats`.
    Get(Get<'a>),
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Store(Store<'a>, Data<'a>),
    /// `delete`.
    Delete {
        /// The key.
        key: &'a [u8],
        /// Whether there is no answer.
        quiet: bool,
    },
    /// `incr`, `decr`.
    Arithmetic {
        /// The key.
        key: &'a [u8],
        /// Whether it is `incr`.
        increment: bool,
        /// By how much.
        delta: u64,
        /// Whether there is no answer.
        quiet: bool,
    },
    /// `touch`.
    Touch {
        /// The key.
        key: &'a [u8],
        /// The new expiry as the client put it.
        expiry: i32,
        /// Whether there is no answer.
        quiet: bool,
    },
    /// `flush_all`.
    Flush {
        /// The delay as the client put it.
        delay: i32,
        /// Whether there is no answer.
        quiet: bool,
    },
    /// `mg`.
    MetaGet(meta::Command<'a>),
    /// `ms`.
    MetaSet(meta::Command<'a>, Mode, Data<'a>),
    /// `md`.
    MetaDelete(meta::Command<'a>),
    /// `ma`; whether it adds.
    MetaArithmetic(meta::Command<'a>, bool),
    /// `me`: everything about one item, for people.
    MetaDebug {
        /// The key as it was sent.
        key: &'a [u8],
        /// Whether it is in base 64.
        base64: bool,
    },
    /// `mn`.
    MetaNoop,
    /// `version`.
    Version,
    /// `quit`.
    Quit,
    /// `verbosity`.
    Verbosity {
        /// How much to say.
        level: u32,
        /// Whether there is no answer.
        quiet: bool,
    },
    /// `cache_memlimit`.
    MemoryLimit {
        /// The new limit in MiB; `None` if it is no number.
        megabytes: Option<u32>,
        /// Whether there is no answer.
        quiet: bool,
    },
    /// A command that is about the server: `stats`, `shutdown`, `slabs`, `lru`, `lru_crawler`, `watch`,
    /// `debugtime` and the like.
    Admin(Admin<'a>),
    /// A line that is wrong.
    Error(&'static str),
    /// A line that is wrong, of a client that does not want to know.
    Nothing,
}

/// A retrieval command. All its keys have a legal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// The keys.
    pub keys: Words<'a>,
    /// Whether the answer has the version.
    pub with_cas: bool,
    /// The new expiry as the client put it, for `gat` and `gats`.
    pub touch: Option<i32>,
}

/// A storage command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// How to store.
    pub mode: Mode,
    /// The key.
    pub key: &'a [u8],
    /// The client's own flags.
    pub flags: u32,
    /// The expiry as the client put it.
    pub expiry: i32,
    /// The version that the client has seen; for [`Mode::Cas`].
    pub cas: u64,
    /// Whether there is no answer.
    pub quiet: bool,
}

/// A command about the server: its name and the words after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admin<'a> {
    /// The first word.
    pub name: &'a [u8],
    /// The others.
    pub arguments: Words<'a>,
}
