//! What an item costs in memory beyond its key and its value.
//!
//! Each server is filled with the same items, twice. With room for all of them: the memory that its process
//! has taken meanwhile, by the kernel's account, over their number. And with a limit that they exceed: how
//! many it still has, and how large its process became. memcached's limit is about its slabs only; its table
//! and its threads' memory come on top. Ours is about everything.

use super::process::{Process, statistics};
use super::turns::{Titled as _, Turns, take};
use super::{Contender, Error, MEGABYTES, Options, Verdict, start};
use serde::{Deserialize, Serialize};
use urgency_load::{Client, Popularity, Waiting};
use urgency_measure::rounds::median;

const KEY: u64 = 20;
/// Bytes of the values.
const VALUES: [u64; 4] = [10, 100, 500, 1000];
/// Keys and values together come to so many bytes, at most.
const FILLED: u64 = 400 << 20;
/// The limit that the items exceed.
const SMALL: u64 = 64;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    contender: Contender,
    /// Bytes of each value.
    value: u64,
    items: u64,
    /// Bytes of the process for each item, beyond its key and value.
    overhead: f64,
    /// Items that stay below the limit of [`SMALL`] MiB.
    stay: f64,
    /// MiB of the process then.
    resident_mib: f64,
}

/// Measures this part.
pub fn measure(options: &Options) -> Result<Verdict, Error> {
    let contenders = [Contender::Urgency, Contender::Memcached];
    let contenders = contenders.into_iter().filter(|c| options.admits(*c));
    let contenders: Vec<_> = contenders.collect();
    // The account of memory does not vary, and does not depend on what else runs.
    let once = Options {
        rounds: 1,
        retries: 0,
        ..options.clone()
    };
    let Turns { rows, failures } = take(
        &once,
        "memory",
        &contenders,
        |row: &Row| row.contender,
        |_, contender| {
            let each = VALUES.into_iter();
            each.map(|value| one(options, contender, value)).collect()
        },
    )?;
    say!("\nMemory, keys of {KEY} bytes:");
    say!(
        "{:>6} {:12} {:>8} {:>24} {:>20} {:>14}",
        "value",
        "",
        "items",
        "bytes beyond key + value",
        format!("stay within -m {SMALL}"),
        "MiB resident"
    );
    for value in VALUES {
        for contender in &contenders {
            let here = |row: &&Row| row.contender == *contender && row.value == value;
            let of = |field: fn(&Row) -> f64| median(rows.iter().filter(here).map(field));
            let say = |field| of(field).map_or("failed".to_owned(), |value| format!("{value:.0}"));
            say!(
                "{value:6} {:12} {:>8} {:>24} {:>20} {:>14}",
                contender.title(),
                say(|row| row.items as f64),
                say(|row| row.overhead),
                say(|row| row.stay),
                say(|row| row.resident_mib),
            );
        }
    }
    Ok(Verdict {
        failures,
        ..Verdict::default()
    })
}

fn one(options: &Options, contender: Contender, value: u64) -> Result<Row, Error> {
    let most = if options.quick { 20_000 } else { 1_000_000 };
    let items = (FILLED / (KEY + value)).min(most);
    let (process, before, _) = filled(options, contender, MEGABYTES, (items, value))?;
    let each = (process.resident_bytes() - before) / items as f64;
    drop(process);
    let (process, _, stay) = filled(options, contender, SMALL, (items, value))?;
    Ok(Row {
        contender,
        value,
        items,
        overhead: each - (KEY + value) as f64,
        stay,
        resident_mib: process.resident_bytes() / f64::from(1 << 20),
    })
}

/// A server into which so many items of this size were written, the memory that it had before, and the number
/// of items that it has now.
fn filled(
    options: &Options,
    contender: Contender,
    megabytes: u64,
    (items, value): (u64, u64),
) -> Result<(Process, f64, f64), Error> {
    let (process, port) = start(options, contender, megabytes, &[])?;
    let mut load = options.load(port);
    load.connections = 4;
    load.threads = 1;
    load.waiting = Waiting::Sleep;
    load.workload.key_size = KEY as usize;
    load.workload.keys = items as u32;
    load.workload.popularity = Popularity::Uniform;
    load.workload.values = value.to_string().parse().expect("a size");
    let before = process.resident_bytes();
    Client::connect(load)?.fill(&mut |_| ())?;
    let has = statistics(port, "").get("curr_items").copied();
    Ok((process, before, has.unwrap_or(0.0)))
}
