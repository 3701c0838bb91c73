//! The text protocol: a line, and for storage commands a value after it.
//!
//! Errors are part of the protocol, so a wrong line is a request, too: one that is answered with an error.
//! Two details are memcached's and matter to clients. `noreply` is looked for in the last word only, before
//! anything else is checked. A storage command with too few or too many words is answered with `ERROR`, and
//! its value is then taken for the next line.
//!
//! Lines end with a line feed, with or without a carriage return before it. A client that sends
//! [`LINE_MAX`] bytes without one is cut off, unless they begin a command that takes several keys, whose line
//! may be [`GET_LINE_MAX`] long.

mod request;

pub use request::{Admin, Get, Request, Store};

use super::{Data, KEY_MAX, Limits, Mode, Next, meta, number, words::Words};

/// The longest line of a command that takes one key or none.
pub const LINE_MAX: usize = 2048;

/// The longest line of a command that takes several keys. (memcached has no limit but its memory for `get` and `gets`,
/// and some 16 KiB for the others.)
pub const GET_LINE_MAX: usize = 1 << 20;

/// The longest value that can be announced: two bytes less than an `int` holds.
const ANNOUNCED_MAX: i32 = i32::MAX - 2;

/// The commands that take several keys.
const MULTI_KEY: [&[u8]; 5] = [b"get", b"gets", b"gat", b"gats", b"bget"];

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";

/// What `input` begins with. The first `scanned` bytes are known to have no line feed; if there is none at
/// all, that is noted, so that a long line that comes in many pieces is not searched again and again. 0 for a
/// new request.
#[must_use]
pub fn parse<'a>(input: &'a [u8], scanned: &mut usize, limits: Limits) -> Next<Request<'a>> {
    let Some(end) = memchr::memchr(b'\n', &input[*scanned..]) else {
        *scanned = input.len();
        return unfinished(input);
    };
    let end = *scanned + end;
    let length = end + 1;
    let line = match input[..end].split_last() {
        Some((b'\r', line)) if !line.is_empty() => line,
        _ => &input[..end],
    };
    let mut words = Words::new(line);
    let Some(name) = words.next() else {
        return Next::whole(Request::Error("ERROR"), length);
    };
    let mode = match name {
        b"get" => return Next::whole(get(words, false, false), length),
        b"set" => Mode::Set,
        b"gets" => return Next::whole(get(words, true, false), length),
        b"mg" => return Next::whole(with_key(words, meta_get), length),
        b"ms" => return meta_set(words, input, length, limits),
        b"add" => Mode::Add,
        b"replace" => Mode::Replace,
        b"append" => Mode::Append,
        b"prepend" => Mode::Prepend,
        b"cas" => Mode::Cas,
        _ => return other(name, words, length),
    };
    store(mode, words, input, length, limits)
}

#[cold]
fn unfinished<'a>(input: &[u8]) -> Next<Request<'a>> {
    let blanks = input.iter().take_while(|&&byte| byte == b' ').count();
    // The longest of them and the blank after it.
    let begins = &input[blanks..input.len().min(blanks + 5)];
    let mut words = begins.split(|&byte| byte == b' ');
    let name = words.next().filter(|_| words.next().is_some());
    let is_get = name.is_some_and(|name| MULTI_KEY.contains(&name));
    let limit = if is_get && blanks <= 100 {
        GET_LINE_MAX
    } else {
        LINE_MAX
    };
    if input.len() > limit {
        return Next::Close {
            reply: "CLIENT_ERROR line too long\r\n",
        };
    }
    Next::Incomplete {
        at_least: input.len() + 1,
    }
}

fn get(mut words: Words<'_>, with_cas: bool, touches: bool) -> Request<'_> {
    if words.clone().next().is_none() {
        return Request::Error("ERROR");
    }
    let mut touch = None;
    if touches {
        touch = words.next().and_then(number::signed_32);
        if touch.is_none() {
            return Request::Error("CLIENT_ERROR invalid exptime argument");
        }
    }
    // Checked here, for memcached takes back the items that it has found before a key that is too long.
    if words.rest().len() > KEY_MAX && words.clone().any(|key| key.len() > KEY_MAX) {
        return Request::Error(BAD_FORMAT);
    }
    Request::Get(Get {
        keys: words,
        with_cas,
        touch,
    })
}

/// Whether the last word says that there is to be no answer.
fn is_quiet(words: &Words<'_>) -> bool {
    words.last_word() == Some(b"noreply")
}

/// An error for a client that perhaps does not want to know.
fn error<'a>(reply: &'static str, quiet: bool) -> Request<'a> {
    if quiet {
        Request::Nothing
    } else {
        Request::Error(reply)
    }
}

/// So many words, and perhaps one more.
type Counted<'a, const N: usize> = ([&'a [u8]; N], Option<&'a [u8]>);

/// The words of a line if there are `N`, or one more, which is then returned apart.
fn exactly<const N: usize>(mut words: Words<'_>) -> Option<Counted<'_, N>> {
    let mut array = [&b""[..]; N];
    for place in &mut array {
        *place = words.next()?;
    }
    let last = words.next();
    words.next().is_none().then_some((array, last))
}

fn store<'a>(
    mode: Mode,
    words: Words<'a>,
    input: &'a [u8],
    line: usize,
    limits: Limits,
) -> Next<Request<'a>> {
    let plain = |words| exactly::<4>(words).map(|([k, f, e, l], last)| ([k, f, e, l, b"0"], last));
    let counted = if mode == Mode::Cas {
        exactly::<5>(words)
    } else {
        plain(words)
    };
    let Some(([key, flags, expiry, bytes, cas], last)) = counted else {
        return Next::whole(Request::Error("ERROR"), line);
    };
    let quiet = last == Some(b"noreply");
    let numbers = || {
        Some((
            number::unsigned_32(flags)?,
            number::signed_32(expiry)?,
            announced(bytes)?,
            number::unsigned(cas)?,
        ))
    };
    let (true, Some((flags, expiry, bytes, cas))) = (key.len() <= KEY_MAX, numbers()) else {
        return Next::whole(error(BAD_FORMAT, is_quiet(&words)), line);
    };
    let store = Store {
        mode,
        key,
        flags,
        expiry,
        cas,
        quiet,
    };
    with_data(input, line, bytes, limits, |data| {
        Request::Store(store, data)
    })
}

/// The announced length of a value.
fn announced(word: &[u8]) -> Option<usize> {
    let length = number::signed_32(word)?;
    (0..=ANNOUNCED_MAX)
        .contains(&length)
        .then_some(length as usize)
}

/// The request that the value of `bytes` after the line completes.
fn with_data<'a>(
    input: &'a [u8],
    line: usize,
    bytes: usize,
    limits: Limits,
    request: impl FnOnce(Data<'a>) -> Request<'a>,
) -> Next<Request<'a>> {
    if bytes > limits.value_max {
        return Next::Request {
            request: request(Data::TooLarge),
            length: line,
            swallow: bytes as u64 + 2,
        };
    }
    let length = line + bytes + 2;
    let Some(body) = input.get(line..length) else {
        return Next::Incomplete { at_least: length };
    };
    let data = match body.split_at(bytes) {
        (value, b"\r\n") => Data::Whole(value),
        _ => Data::Unterminated,
    };
    Next::whole(request(data), length)
}

/// What a meta command with its key and flags becomes.
fn with_key<'a>(
    mut words: Words<'a>,
    read: impl FnOnce(&'a [u8], &'a [u8]) -> Result<Request<'a>, &'static str>,
) -> Request<'a> {
    let Some(key) = words.next() else {
        return Request::Error("ERROR");
    };
    if key.len() > KEY_MAX {
        return Request::Error(BAD_FORMAT);
    }
    read(key, words.rest()).unwrap_or_else(Request::Error)
}

fn meta_get<'a>(key: &'a [u8], words: &'a [u8]) -> Result<Request<'a>, &'static str> {
    if meta::are_too_many(words, 2) {
        return Err("CLIENT_ERROR options flags are too long");
    }
    meta::Command::parse(key, words).map(Request::MetaGet)
}

/// The commands that say less about what is wrong with their flags.
fn vague<'a>(key: &'a [u8], words: &'a [u8]) -> Result<meta::Command<'a>, &'static str> {
    if meta::are_too_many(words, 2) {
        return Err("CLIENT_ERROR options flags too long");
    }
    meta::Command::parse(key, words).map_err(|_| "CLIENT_ERROR invalid or duplicate flag")
}

fn meta_delete<'a>(key: &'a [u8], words: &'a [u8]) -> Result<Request<'a>, &'static str> {
    let command = vague(key, words)?;
    if command.has_long_opaque() {
        return Err(meta::OPAQUE_TOO_LONG);
    }
    Ok(Request::MetaDelete(command))
}

fn meta_arithmetic<'a>(key: &'a [u8], words: &'a [u8]) -> Result<Request<'a>, &'static str> {
    let command = vague(key, words)?;
    let adds = match command.flags.mode {
        0 | b'I' | b'+' => true,
        b'D' | b'-' => false,
        _ => return Err("CLIENT_ERROR invalid mode for ma M token"),
    };
    Ok(Request::MetaArithmetic(command, adds))
}

fn meta_set<'a>(
    mut words: Words<'a>,
    input: &'a [u8],
    line: usize,
    limits: Limits,
) -> Next<Request<'a>> {
    let Some(key) = words.next() else {
        return Next::whole(Request::Error("ERROR"), line);
    };
    let (true, Some(bytes)) = (key.len() <= KEY_MAX, words.next()) else {
        return Next::whole(Request::Error(BAD_FORMAT), line);
    };
    if meta::are_too_many(words.rest(), 3) {
        return Next::whole(Request::Error("CLIENT_ERROR options flags too long"), line);
    }
    let Some(bytes) = announced(bytes) else {
        return Next::whole(Request::Error(BAD_FORMAT), line);
    };
    let command = meta::Command::parse(key, words.rest()).and_then(|command| {
        let mode = match (command.flags.mode, command.flags.cas) {
            (0 | b'S', None) => Mode::Set,
            (b'R', None) => Mode::Replace,
            (0 | b'S' | b'R', Some(_)) => Mode::Cas,
            (b'E', _) => Mode::Add,
            (b'A', _) => Mode::Append,
            (b'P', _) => Mode::Prepend,
            _ => return Err("CLIENT_ERROR invalid mode for ms M token"),
        };
        if command.has_long_opaque() {
            return Err(meta::OPAQUE_TOO_LONG);
        }
        Ok((command, mode))
    });
    match command {
        Ok((command, mode)) => with_data(input, line, bytes, limits, |data| {
            Request::MetaSet(command, mode, data)
        }),
        Err(error) => Next::Request {
            request: Request::Error(error),
            length: line,
            swallow: bytes as u64 + 2,
        },
    }
}

fn meta_debug(mut words: Words<'_>) -> Request<'_> {
    match words.next() {
        Some(key) if key.len() <= KEY_MAX => Request::MetaDebug {
            key,
            base64: words.next() == Some(b"b"),
        },
        _ => Request::Error(BAD_FORMAT),
    }
}

/// The commands that need not be fast to find.
fn other<'a>(name: &'a [u8], words: Words<'a>, length: usize) -> Next<Request<'a>> {
    let request = match name {
        b"gat" => get(words, false, true),
        b"gats" => get(words, true, true),
        b"bget" => get(words, false, false),
        b"delete" => delete(words),
        b"incr" => arithmetic(words, true),
        b"decr" => arithmetic(words, false),
        b"touch" => touch(words),
        b"mn" => Request::MetaNoop,
        b"md" => with_key(words, meta_delete),
        b"ma" => with_key(words, meta_arithmetic),
        b"me" => meta_debug(words),
        b"version" => Request::Version,
        b"quit" => Request::Quit,
        b"flush_all" => flush(words),
        b"verbosity" => verbosity(words),
        b"cache_memlimit" => memory_limit(words),
        b"stats" | b"shutdown" | b"slabs" | b"lru" | b"lru_crawler" | b"watch" | b"debugtime"
        | b"misbehave" | b"extstore" | b"refresh_certs" => Request::Admin(Admin {
            name,
            arguments: words,
        }),
        _ => {
            // A browser, or a page that makes one talk to us. memcached looks for them after the letters of its
            // own commands.
            let is_near = name.len() == 2 && name[0] == b'm' || b"gsacidt".contains(&name[0]);
            if !is_near
                && words
                    .last_word()
                    .is_some_and(|word| word.starts_with(b"HTTP/"))
            {
                return Next::Close { reply: "" };
            }
            Request::Error("ERROR")
        }
    };
    Next::whole(request, length)
}

fn delete(words: Words<'_>) -> Request<'_> {
    let mut rest = words;
    let (Some(key), first, second, None) = (rest.next(), rest.next(), rest.next(), rest.next())
    else {
        return Request::Error("ERROR");
    };
    let quiet = is_quiet(&words) && first.is_some();
    // The 0 is the hold time of old clients.
    let is_valid = matches!(
        (first, second),
        (None, _) | (Some(b"0" | b"noreply"), None) | (Some(b"0"), Some(b"noreply"))
    );
    if !is_valid {
        return error(
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
            quiet,
        );
    }
    if key.len() > KEY_MAX {
        return error(BAD_FORMAT, quiet);
    }
    Request::Delete { key, quiet }
}

fn arithmetic(words: Words<'_>, increment: bool) -> Request<'_> {
    let Some(([key, delta], _)) = exactly(words) else {
        return Request::Error("ERROR");
    };
    let quiet = is_quiet(&words);
    if key.len() > KEY_MAX {
        return error(BAD_FORMAT, quiet);
    }
    match number::unsigned(delta) {
        Some(delta) => Request::Arithmetic {
            key,
            increment,
            delta,
            quiet,
        },
        None => error("CLIENT_ERROR invalid numeric delta argument", quiet),
    }
}

fn touch(words: Words<'_>) -> Request<'_> {
    let Some(([key, expiry], _)) = exactly(words) else {
        return Request::Error("ERROR");
    };
    let quiet = is_quiet(&words);
    if key.len() > KEY_MAX {
        return error(BAD_FORMAT, quiet);
    }
    match number::signed_32(expiry) {
        Some(expiry) => Request::Touch { key, expiry, quiet },
        None => error("CLIENT_ERROR invalid exptime argument", quiet),
    }
}

fn flush(words: Words<'_>) -> Request<'_> {
    let quiet = is_quiet(&words);
    let mut rest = words;
    match (rest.next(), rest.next(), rest.next()) {
        (None, ..) => Request::Flush { delay: 0, quiet },
        (Some(b"noreply"), None, _) => Request::Flush { delay: 0, quiet },
        (Some(delay), _, None) => match number::signed_32(delay) {
            Some(delay) => Request::Flush { delay, quiet },
            None => error("CLIENT_ERROR invalid exptime argument", quiet),
        },
        _ => Request::Error("ERROR"),
    }
}

fn verbosity(words: Words<'_>) -> Request<'_> {
    let Some(([level], _)) = exactly(words) else {
        return Request::Error("ERROR");
    };
    let quiet = is_quiet(&words);
    match number::unsigned_32(level) {
        Some(level) => Request::Verbosity { level, quiet },
        None => error(BAD_FORMAT, quiet),
    }
}

fn memory_limit(words: Words<'_>) -> Request<'_> {
    let Some(([megabytes], _)) = exactly(words) else {
        return Request::Error("ERROR");
    };
    Request::MemoryLimit {
        megabytes: number::unsigned_32(megabytes),
        quiet: is_quiet(&words),
    }
}
