//! What a reply means: it is counted, a value is compared with what it must be, and the history of its key goes on.
//!
//! A right reply to a get is a miss or the value of that key in some version. If this client has written all
//! keys itself, the version must be one that was sent, and not below the floor at the time when the get was
//! sent (see [`crate::value`]). A wrong or stale value is counted, and the first one is kept in words; the
//! run goes on. `ERROR` and `CLIENT_ERROR` end it: the client's requests are well-formed, so the server does
//! not speak the protocol, and what follows cannot be trusted.

use crate::Error;
use crate::protocol::{Command, Reply, shorten};
use crate::record::Record;
use crate::shared::Shared;
use crate::traffic::Request;
use crate::value;
use std::sync::atomic::Ordering;

/// Notes what a reply says and whether it may say that.
pub fn settle(
    shared: &Shared,
    request: &Request,
    reply: Reply<'_>,
    record: &mut Record,
    counts: bool,
) -> Result<(), Error> {
    let Request { command, key, .. } = *request;
    let once = u64::from(counts);
    match reply {
        Reply::Stored => record.counts.stored += once,
        Reply::NotStored => record.counts.not_stored += once,
        Reply::Miss => record.counts.gets += once,
        Reply::Value {
            key: named,
            flags,
            data,
        } => {
            record.counts.gets += once;
            record.counts.hits += once;
            if shared.load.workload.verify {
                verify(shared, request, named, flags, data, record);
            }
        }
        Reply::ServerError(line) => {
            record.counts.server_errors += 1;
            record.fault(|| format!("a {} got {:?}", command.name(), shorten(line)));
        }
        Reply::Refused(line) => {
            return Err(Error::Refused {
                command: command.name(),
                line: shorten(line),
            });
        }
    }
    if command == Command::Set
        && let Some(mut versions) = shared.versions(key)
    {
        versions.answered(reply == Reply::Stored);
    }
    Ok(())
}

/// Compares a value with what it must be.
fn verify(
    shared: &Shared,
    request: &Request,
    named: Option<&[u8]>,
    version: u32,
    data: &[u8],
    record: &mut Record,
) {
    let workload = &shared.load.workload;
    let key = request.key;
    if let Some(named) = named {
        let mut asked = Vec::with_capacity(workload.key_size);
        workload.write_key(key, &mut asked);
        if named != asked {
            record.counts.wrong_values += 1;
            record.fault(|| {
                format!(
                    "a get of {} was answered with the key {}",
                    shorten(&asked),
                    shorten(named)
                )
            });
            return;
        }
    }
    if let Some(position) = value::first_difference(&workload.values, key, version, data) {
        record.counts.wrong_values += 1;
        record.fault(|| {
            format!(
                "the value of key number {key} with flags {version} and {} bytes is not what was written: it differs at byte {position}",
                data.len()
            )
        });
        return;
    }
    if !shared.filled.load(Ordering::Relaxed) {
        return;
    }
    let Some(sent) = shared.versions(key).map(|versions| versions.sent()) else {
        return;
    };
    if version < request.version {
        record.counts.stale_values += 1;
        record.fault(|| {
            format!(
                "key number {key} was read in version {version} after version {} had been acknowledged",
                request.version
            )
        });
    } else if version > sent {
        record.counts.wrong_values += 1;
        record.fault(|| {
            format!("key number {key} was read in version {version}; only {sent} were ever sent")
        });
    }
}
