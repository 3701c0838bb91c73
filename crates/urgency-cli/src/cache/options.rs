//! The options of `urgency cache`: memcached's, with its letters.
//!
//! Each option of memcached 1.6 is here. One that has no meaning for this server is accepted with a notice, for a
//! start script should work unchanged; one whose loss would be a danger (authentication, encryption) is refused.

use clap::{ArgAction, Args, builder::RangedU64ValueParser};
use std::path::PathBuf;

const MIB: usize = 1 << 20;
/// The most memory that can be asked for, in MiB: an exbibyte.
const MEMORY_MOST: u64 = 1 << 40;
/// The port of an address that has one of its own.
type OwnPort = Option<u16>;

/// See the module's text.
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true, disable_version_flag = true)]
// Of an option that is given twice the last counts, as with getopt. An option of several values takes them all.
#[command(args_override_self = true)]
pub struct Options {
    /// The TCP port; 0 is off, -1 any free one. With -s it is off
    /// [default: 11211, or the UDP port if that is given alone]
    #[arg(short = 'p', long = "port", value_name = "NUM", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1..=65535))]
    pub port: Option<i32>,
    /// The UDP port; 0 is off, -1 any free one
    #[arg(short = 'U', long = "udp-port", value_name = "NUM", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1..=65535))]
    pub udp_port: i32,
    /// Listen on a Unix socket instead of TCP and UDP
    #[arg(short = 's', long = "unix-socket", value_name = "FILE")]
    pub unix_socket: Option<PathBuf>,
    /// The access mask of the Unix socket, in octal
    #[arg(short = 'a', long = "unix-mask", value_name = "MASK", default_value = "700", value_parser = octal)]
    pub unix_mask: u32,
    /// The addresses to listen on: ADDR or ADDR:PORT, several with commas or repeated
    #[arg(
        short = 'l',
        long = "listen",
        value_name = "ADDR",
        value_delimiter = ',',
        default_value = "127.0.0.1"
    )]
    pub listen: Vec<String>,
    /// The memory for items, in MiB
    #[arg(
        short = 'm',
        long = "memory-limit",
        value_name = "NUM",
        default_value_t = 64,
        value_parser = clap::value_parser!(u64).range(1..=MEMORY_MOST)
    )]
    pub memory: u64,
    /// Answer with an error when the memory is used up, instead of evicting
    #[arg(short = 'M', long = "disable-evictions")]
    pub no_evictions: bool,
    /// The most connections at a time
    #[arg(short = 'c', long = "conn-limit", value_name = "NUM", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// The workers of the runtime: cores in use at a time [default: one for each CPU]
    #[arg(short = 't', long = "threads", value_name = "NUM", value_parser = workers())]
    pub threads: Option<usize>,
    /// The largest item, with a suffix k or m: 1k to 1024m
    #[arg(short = 'I', long = "max-item-size", value_name = "SIZE", default_value = "1m", value_parser = item_size)]
    pub item_size: usize,
    /// Say where it listens and what goes wrong; -vv: connections that come and go as well
    #[arg(short = 'v', long = "verbose", action = ArgAction::Count)]
    pub verbose: u8,
    /// How many requests of a connection are executed before others have their turn
    #[arg(short = 'R', long = "max-reqs-per-event", value_name = "NUM", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_turn: u32,
    /// How many connections may wait to be accepted
    #[arg(short = 'b', long = "listen-backlog", value_name = "NUM", default_value_t = 4096, value_parser = clap::value_parser!(i32).range(1..))]
    pub backlog: i32,
    /// Run in the background
    #[arg(short = 'd', long = "daemon")]
    pub daemon: bool,
    /// Write the process id to a file
    #[arg(short = 'P', long = "pidfile", value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// The user to become when started by root; without it a server of root's runs as root (memcached
    /// refuses that)
    #[arg(short = 'u', long = "user", value_name = "USER")]
    pub user: Option<String>,
    /// Allow the command `shutdown`
    #[arg(short = 'A', long = "enable-shutdown")]
    pub shutdown_command: bool,
    /// Do not allow `flush_all`
    #[arg(short = 'F', long = "disable-flush-all")]
    pub no_flush: bool,
    /// Do not allow `stats cachedump` and `lru_crawler metadump`
    #[arg(short = 'X', long = "disable-dumping")]
    pub no_dumping: bool,
    /// Do not allow `watch`
    #[arg(short = 'W', long = "disable-watch")]
    pub no_watch: bool,
    /// The protocol: auto, ascii or binary
    #[arg(
        short = 'B',
        long = "protocol",
        value_name = "NAME",
        default_value = "auto"
    )]
    pub protocol: Protocol,
    /// The character between the prefix of a key and the rest; turns `stats detail` on
    #[arg(short = 'D', value_name = "CHAR", value_parser = delimiter)]
    pub delimiter: Option<char>,
    /// Raise the limit of core files to the most that is allowed
    #[arg(short = 'r', long = "enable-coredumps")]
    pub core_files: bool,
    /// Further options, name or name=value, with commas; `-o help` lists them
    #[arg(
        short = 'o',
        long = "extended",
        value_name = "OPTION",
        value_delimiter = ','
    )]
    pub extended: Vec<String>,
    /// This text
    #[arg(short = 'h', long = "help", action = ArgAction::Help)]
    help: Option<bool>,
    /// The licence
    #[arg(short = 'i', long = "license")]
    pub license: bool,
    /// The version
    #[arg(short = 'V', long = "version")]
    pub version: bool,

    /// The factor between the sizes of chunks
    #[arg(short = 'f', long = "slab-growth-factor", value_name = "FACTOR", help_heading = NO_MEANING)]
    pub growth_factor: Option<f64>,
    /// The least space of an item
    #[arg(short = 'n', long = "slab-min-size", value_name = "BYTES", help_heading = NO_MEANING)]
    pub min_size: Option<usize>,
    /// Large pages
    #[arg(short = 'L', long = "enable-largepages", help_heading = NO_MEANING)]
    pub large_pages: bool,
    /// Lock the memory
    #[arg(short = 'k', long = "lock-memory", help_heading = NO_MEANING)]
    pub lock_memory: bool,
    /// Do without CAS
    #[arg(short = 'C', long = "disable-cas", help_heading = NO_MEANING)]
    pub no_cas: bool,
    /// A file for a restart with the items
    #[arg(short = 'e', long = "memory-file", value_name = "FILE", help_heading = NO_MEANING)]
    pub memory_file: Option<PathBuf>,
    /// One thread for each queue of the network card
    #[arg(short = 'N', long = "napi-ids", help_heading = NO_MEANING)]
    pub napi_ids: Option<u32>,
    /// Authentication by SASL
    #[arg(short = 'S', long = "enable-sasl", help_heading = REFUSED)]
    pub authenticate: bool,
    /// A file of users and passwords
    #[arg(short = 'Y', long = "auth-file", value_name = "FILE", help_heading = REFUSED)]
    pub auth_file: Option<PathBuf>,
    /// Encryption
    #[arg(short = 'Z', long = "enable-ssl", help_heading = REFUSED)]
    pub encrypt: bool,

    /// Wait for requests in the real-time class (needs CAP_SYS_NICE or RLIMIT_RTPRIO): prompt beside other
    /// busy processes
    #[arg(long)]
    pub real_time_polling: bool,
    /// For tests: the command `debugtime`
    #[arg(long, hide = true)]
    pub debug_commands: bool,
    /// The background process of -d
    #[arg(long, hide = true)]
    pub detached: bool,
}

const NO_MEANING: &str = "Without a meaning here (a notice says so)";
const REFUSED: &str = "Not there (refused)";

/// Which protocol a connection may speak.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Its first byte says.
    Auto,
    /// The text protocol.
    Ascii,
    /// The binary protocol.
    Binary,
}

fn workers() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=urgency::MAX_WORKERS as u64)
}

fn delimiter(text: &str) -> Result<char, String> {
    match text.parse::<char>() {
        Ok(character) if character.is_ascii() => Ok(character),
        _ => Err("it is one character of ASCII".into()),
    }
}

fn octal(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|&mask| mask <= 0o777)
        .ok_or_else(|| format!("{text:?} is no access mask; it is octal, 0 to 777"))
}

fn item_size(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], MIB),
        _ => (text, 1),
    };
    let size = digits
        .parse::<usize>()
        .ok()
        .and_then(|n| n.checked_mul(unit));
    match size {
        Some(size) if (1 << 10..=1024 * MIB).contains(&size) => Ok(size),
        Some(size) if size < 1 << 10 => Err("Item max size cannot be less than 1024 bytes.".into()),
        Some(_) => Err("Cannot set item size limit higher than a gigabyte.".into()),
        None => Err(format!(
            "{text:?} is no size; it is bytes, or a number with the suffix k or m"
        )),
    }
}

impl Options {
    /// What the user should know about options that do nothing here.
    pub fn notices(&self) -> Vec<String> {
        let own_store = "the store has no classes of chunks";
        let all = [
            (self.growth_factor.is_some(), "-f", own_store),
            (self.min_size.is_some(), "-n", own_store),
            (
                self.large_pages,
                "-L",
                "large pages are left to the kernel (transparent huge pages)",
            ),
            (self.lock_memory, "-k", "the memory is not locked"),
            (self.no_cas, "-C", "versions are part of each item"),
            (
                self.memory_file.is_some(),
                "-e",
                "items do not outlive the process",
            ),
            (
                self.napi_ids.is_some(),
                "-N",
                "connections belong to no thread",
            ),
        ];
        let said = all.iter().filter(|(given, ..)| *given);
        said.map(|(_, letter, why)| format!("{letter} has no meaning here: {why}"))
            .collect()
    }

    /// Why the server must not start with these options.
    pub fn refusal(&self) -> Option<String> {
        let refused = |letter, what| {
            Some(format!(
                "{letter}: there is no {what}; the server would be open to everybody"
            ))
        };
        if self.authenticate {
            return refused("-S", "authentication by SASL");
        }
        if self.auth_file.is_some() {
            return refused("-Y", "authentication by password");
        }
        if self.encrypt {
            return refused("-Z", "encryption");
        }
        self.addresses().err()
    }

    /// The addresses of TCP and UDP: with the port that was given with the address, if one was.
    ///
    /// # Errors
    /// Which of them is none.
    pub fn addresses(&self) -> Result<Vec<(String, OwnPort)>, String> {
        self.listen.iter().map(|text| address(text)).collect()
    }
}

/// `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`; an address of IPv6 alone may have its colons without brackets.
fn address(text: &str) -> Result<(String, OwnPort), String> {
    let own_port = |port: &str| match port.parse() {
        Ok(port) => Ok(Some(port)),
        Err(_) => Err(format!("-l {text}: {port:?} is no port; it is 0 to 65535")),
    };
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, after)) => match after.strip_prefix(':') {
                Some(port) => (host, own_port(port)?),
                None => return Err(format!("-l {text}: after ] there can only be :PORT")),
            },
            None => return Err(format!("-l {text}: the ] is missing")),
        },
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, own_port(port)?),
            _ => (text, None),
        },
    };
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_brackets_and_a_port_and_what_is_no_port_is_refused() {
        for (text, host, port) in [
            ("127.0.0.1", "127.0.0.1", None),
            ("host:7", "host", Some(7)),
            ("::1", "::1", None),
            ("::1:11211", "::1:11211", None),
            ("[::1]", "::1", None),
            ("[::1]:7", "::1", Some(7)),
            ("*", "*", None),
            ("*:7", "*", Some(7)),
        ] {
            assert_eq!(address(text), Ok((host.to_owned(), port)), "{text}");
        }
        for text in ["host:99999", "host:", "[::1", "[::1]7", "[::1]:x"] {
            let refusal = address(text).expect_err(text);
            assert!(refusal.contains(text), "{refusal}");
        }
    }

    #[test]
    fn of_an_option_that_is_given_twice_the_last_counts() {
        use clap::FromArgMatches;
        let command = Options::augment_args(clap::Command::new("cache"));
        let words = "cache -m 64 -m 128 -M -M -l a,b -l c -o modern -o no_modern -v -v";
        let matches = command.try_get_matches_from(words.split(' ')).unwrap();
        let options = Options::from_arg_matches(&matches).unwrap();
        assert_eq!((options.memory, options.no_evictions), (128, true));
        assert_eq!(options.listen, ["a", "b", "c"]);
        assert_eq!(options.extended, ["modern", "no_modern"]);
        assert_eq!(options.verbose, 2);
    }
}
