//! The options after `-o`.

use std::time::Duration;

/// What `-o help` prints.
pub const HELP: &str = "\
Extended options (-o NAME or -o NAME=VALUE, several with commas):
  idle_timeout=SECONDS     close a connection that is silent for so long (0: never)
  maxconns_fast            refuse a connection too many; the default
  no_maxconns_fast         let it wait in the kernel's queue
  hot_lru_pct=PERCENT      the share of the memory for new items (20)
  warm_lru_pct=PERCENT     the share of the memory for items read more than once (40)
  temporary_ttl=SECONDS    items that live no longer go to a segment of their own
  modern                   accepted: memcached's modern defaults are the only ones
memcached's other options for tuning are accepted with a notice that they have no meaning here.
ext_*, proxy_* and ssl_* are refused: what they ask for is not there.
";

/// Options that say what is so here anyway.
const ALREADY_SO: [&str; 8] = [
    "modern",
    "lru_crawler",
    "lru_maintainer",
    "slab_reassign",
    "slab_automove",
    "relaxed_privileges",
    "no_drop_privileges",
    "inline_ascii_resp",
];

/// Options of memcached that have no object here.
const NO_MEANING: [&str; 30] = [
    "no_hashexpand",
    "drop_privileges",
    "track_sizes",
    "hashpower",
    "tail_repair_time",
    "hash_algorithm",
    "slab_chunk_max",
    "slab_automove_ratio",
    "slab_automove_window",
    "slab_automove_freeratio",
    "lru_crawler_sleep",
    "lru_crawler_tocrawl",
    "hot_max_factor",
    "warm_max_factor",
    "no_lru_crawler",
    "no_lru_maintainer",
    "no_slab_reassign",
    "no_slab_automove",
    "slab_sizes",
    "watcher_logbuf_size",
    "worker_logbuf_size",
    "resp_obj_mem_limit",
    "read_buf_mem_limit",
    "no_inline_ascii_resp",
    "no_modern",
    "no_chunked_items",
    "reqs_per_event",
    "lru_maintainer_thread",
    "no_lru_segmented",
    "read_obj_mem_limit",
];

/// The beginnings of names of options for features that this server does not have, and the names of the features.
const NOT_THERE: [(&str, &str); 3] = [
    ("ext_", "storage beside the memory"),
    ("proxy_", "proxy"),
    ("ssl_", "encryption"),
];

/// See the module's text.
#[derive(Debug)]
pub struct Extended {
    /// How long a connection may be silent.
    pub idle_timeout: Option<Duration>,
    /// Whether a connection too many is refused.
    pub refuse_too_many: bool,
    /// The share of the hot segment.
    pub hot_percent: u32,
    /// The share of the warm segment.
    pub warm_percent: u32,
    /// What counts as temporary.
    pub temporary_ttl: Option<u32>,
    /// What the user should know.
    pub notices: Vec<String>,
}

impl Extended {
    /// Reads the options.
    ///
    /// # Errors
    /// What is wrong with which.
    pub fn parse(options: &[String]) -> Result<Self, String> {
        let mut extended = Extended {
            idle_timeout: None,
            refuse_too_many: true,
            hot_percent: 20,
            warm_percent: 40,
            temporary_ttl: None,
            notices: Vec::new(),
        };
        for option in options.iter().filter(|option| !option.is_empty()) {
            extended.read(option)?;
        }
        Ok(extended)
    }

    fn read(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let number = || {
            let value = value.and_then(|value| value.parse::<u32>().ok());
            value.ok_or_else(|| format!("-o {option}: {name} takes a number, as in {name}=60"))
        };
        match name {
            "idle_timeout" => {
                let seconds = number()?;
                self.idle_timeout = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
            }
            "maxconns_fast" => self.refuse_too_many = true,
            "no_maxconns_fast" => self.refuse_too_many = false,
            "hot_lru_pct" => self.hot_percent = number()?,
            "warm_lru_pct" => self.warm_percent = number()?,
            "temporary_ttl" => self.temporary_ttl = Some(number()?),
            _ if ALREADY_SO.contains(&name) => {}
            _ if NO_MEANING.contains(&name) => {
                self.notices.push(format!("-o {name} has no meaning here"));
            }
            _ => {
                let is_of = |(prefix, _): &&(&str, &str)| name.starts_with(prefix);
                if let Some((_, what)) = NOT_THERE.iter().find(is_of) {
                    return Err(format!("-o {name} is not there: there is no {what}"));
                }
                return Err(format!(
                    "Illegal suboption \"{option}\"; `-o help` lists what there is"
                ));
            }
        }
        Ok(())
    }
}
