//! What the threads of a client have in common: what was asked for, the history of the keys, and how a
//! request is written that takes its place in it.

use crate::protocol::Command;
use crate::record::Live;
use crate::traffic::Request;
use crate::value::Versions;
use crate::{Load, workload::Draw};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the threads of a client share.
#[derive(Debug)]
pub struct Shared {
    /// What was asked for.
    pub load: Load,
    /// Draws keys.
    pub draw: Draw,
    /// The history of each key; empty if values are not verified.
    pub versions: Vec<Mutex<Versions>>,
    /// Whether this client has written every key, so that the versions of all values are known.
    pub filled: AtomicBool,
    /// For a display.
    pub live: Live,
    /// A thread has failed: the others end.
    pub stop: AtomicBool,
}

impl Shared {
    /// The history of `key`, if values are verified.
    pub fn versions(&self, key: u32) -> Option<MutexGuard<'_, Versions>> {
        let versions = self.versions.get(key as usize)?;
        Some(versions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes a request and returns its version.
    pub fn write(&self, request: &Request, to: &mut Vec<u8>) -> u32 {
        let Load {
            protocol, workload, ..
        } = &self.load;
        let mut versions = self.versions(request.key);
        match request.command {
            Command::Get => {
                protocol.write_get(workload, request.key, to);
                versions.map_or(0, |versions| versions.floor())
            }
            Command::Set => {
                let version = versions.as_mut().map_or(1, |versions| versions.send());
                drop(versions);
                protocol.write_set(workload, request.key, version, to);
                version
            }
        }
    }
}
