//! What `stats` says, for both protocols: names and values.

use super::{Server, VERSION, counters::Count};
use crate::{protocol::words::Words, store::StoreStats};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeVal,
};
use std::{process, sync::atomic::Ordering::Relaxed};

type Push<'p> = &'p mut dyn FnMut(&str, &str);

/// The statistics that are counted, by memcached's names.
const COUNTED: [(&str, Count); 23] = [
    ("cmd_get", Count::GetCmds),
    ("cmd_set", Count::SetCmds),
    ("cmd_flush", Count::FlushCmds),
    ("cmd_touch", Count::TouchCmds),
    ("cmd_meta", Count::MetaCmds),
    ("get_hits", Count::GetHits),
    ("get_misses", Count::GetMisses),
    ("delete_misses", Count::DeleteMisses),
    ("delete_hits", Count::DeleteHits),
    ("incr_misses", Count::IncrMisses),
    ("incr_hits", Count::IncrHits),
    ("decr_misses", Count::DecrMisses),
    ("decr_hits", Count::DecrHits),
    ("cas_misses", Count::CasMisses),
    ("cas_hits", Count::CasHits),
    ("cas_badval", Count::CasBadval),
    ("touch_hits", Count::TouchHits),
    ("touch_misses", Count::TouchMisses),
    ("store_too_large", Count::StoreTooLarge),
    ("store_no_memory", Count::StoreNoMemory),
    ("bytes_read", Count::BytesRead),
    ("bytes_written", Count::BytesWritten),
    ("conn_yields", Count::ConnYields),
];

/// What memcached counts for each class of its slabs: of them all here, for there is one class.
const OF_CLASS: [(&str, Count); 8] = [
    ("get_hits", Count::GetHits),
    ("cmd_set", Count::SetCmds),
    ("delete_hits", Count::DeleteHits),
    ("incr_hits", Count::IncrHits),
    ("decr_hits", Count::DecrHits),
    ("cas_hits", Count::CasHits),
    ("cas_badval", Count::CasBadval),
    ("touch_hits", Count::TouchHits),
];

/// What the segments did, in `stats` and in `stats items`.
fn of_lru(store: &StoreStats) -> [(&'static str, u64); 10] {
    [
        ("evicted_unfetched", store.evicted_unfetched),
        ("evicted_active", store.evicted_active),
        ("expired_unfetched", store.expired_unfetched),
        ("reclaimed", store.reclaimed),
        ("crawler_reclaimed", store.crawler_reclaimed),
        ("crawler_items_checked", store.crawler_items_checked),
        ("moves_to_cold", store.moves_to_cold),
        ("moves_to_warm", store.moves_to_warm),
        ("moves_within_lru", store.moves_within_lru),
        ("direct_reclaims", store.direct_reclaims),
    ]
}

fn yes(on: bool) -> &'static str {
    if on { "yes" } else { "no" }
}

impl Server {
    /// Calls `push` with each name and value of the statistics that `words` ask for; `false` if `words` name no
    /// statistics that exist.
    pub(super) fn stats(&self, mut words: Words<'_>, now: u32, push: Push<'_>) -> bool {
        match words.next() {
            None => self.general(now, push),
            Some(b"settings") => self.say_settings(push),
            Some(b"items") => self.items(now, push),
            Some(b"slabs") => self.slabs(now, push),
            Some(b"sizes") => push("sizes_status", "disabled"),
            Some(b"conns") => self.registry.each(now, push),
            Some(b"reset") => self.reset_stats(),
            Some(b"detail") => match words.next() {
                Some(b"on") => self.prefixes.turn(true),
                Some(b"off") => self.prefixes.turn(false),
                Some(b"dump") => push("detailed", &(self.prefixes.dump() + "END\r\n")),
                _ => return false,
            },
            Some(_) => return false,
        }
        true
    }

    /// Sets the counters back.
    pub(super) fn reset_stats(&self) {
        self.counters.reset();
        self.registry.reset();
        self.prefixes.reset();
        self.store.reset_stats();
        self.listen_disabled.store(0, Relaxed);
    }

    fn general(&self, now: u32, push: Push<'_>) {
        let store = self.store.stats(now);
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
        let processor_time = |time: Option<TimeVal>| match time {
            Some(time) => format!("{}.{:06}", time.tv_sec(), time.tv_usec()),
            None => "0.000000".to_owned(),
        };
        let mut number = |name: &str, value: u64| push(name, &value.to_string());
        number("pid", u64::from(process::id()));
        number("uptime", u64::from(self.clock.uptime()));
        number("time", u64::try_from(self.clock.unix(now)).unwrap_or(0));
        push("version", VERSION);
        push("pointer_size", &usize::BITS.to_string());
        push(
            "rusage_user",
            &processor_time(usage.map(|usage| usage.user_time())),
        );
        push(
            "rusage_system",
            &processor_time(usage.map(|usage| usage.system_time())),
        );
        let mut number = |name: &str, value: u64| push(name, &value.to_string());
        number("max_connections", u64::from(self.settings.connections_max));
        number("curr_connections", u64::from(self.registry.open()));
        number("total_connections", self.registry.total());
        number("rejected_connections", self.registry.rejected());
        for (name, count) in COUNTED {
            number(name, self.counters.get(count));
        }
        if self.settings.idle_timeout.is_some() {
            number("idle_kicks", self.counters.get(Count::IdleKicks));
        }
        number("limit_maxbytes", store.limit);
        number("accepting_conns", u64::from(self.accepting.load(Relaxed)));
        number("listen_disabled_num", self.listen_disabled.load(Relaxed));
        number(
            "time_in_listen_disabled_us",
            self.listen_disabled_us.load(Relaxed),
        );
        number("threads", self.settings.threads as u64);
        number("hash_power_level", u64::from(store.hash_power_level));
        number("hash_bytes", store.hash_bytes);
        number("hash_is_expanding", u64::from(store.hash_is_expanding));
        number("bytes", store.bytes);
        number("curr_items", store.curr_items);
        number("total_items", store.total_items);
        number("allocated_bytes", store.allocated);
        number("free_bytes", store.free_bytes);
        number("evictions", store.evictions);
        // No item is held while it is sent, so none is in the way of an eviction.
        number("lrutail_reflocked", 0);
        for (name, value) in of_lru(&store) {
            number(name, value);
        }
        number("pages_moved", store.pages_moved);
        number("items_moved", store.items_moved);
    }

    fn say_settings(&self, push: Push<'_>) {
        let settings = &self.settings;
        let limits = self.store.limits();
        push("maxbytes", &limits.memory.to_string());
        push("maxconns", &settings.connections_max.to_string());
        push("tcpport", &settings.port.to_string());
        push("udpport", &settings.udp_port.to_string());
        push("verbosity", &self.verbosity().to_string());
        push("evictions", if limits.evict { "on" } else { "off" });
        push("shutdown_command", yes(settings.shutdown_allowed));
        push("num_threads", &settings.threads.to_string());
        push(
            "stat_key_prefix",
            char::from(settings.delimiter).encode_utf8(&mut [0; 4]),
        );
        push("detail_enabled", yes(self.prefixes.is_on()));
        push("reqs_per_event", &settings.requests_per_turn.to_string());
        push("cas_enabled", "yes");
        push("auth_enabled_sasl", "no");
        push("auth_enabled_ascii", "no");
        push("item_size_max", &limits.item_size_max.to_string());
        push("maxconns_fast", yes(settings.refuse_too_many));
        push("flush_enabled", yes(settings.flush_allowed));
        push("dump_enabled", yes(settings.dump_allowed));
        push("lru_segmented", "yes");
        push("hot_lru_pct", &limits.hot_percent.to_string());
        push("warm_lru_pct", &limits.warm_percent.to_string());
        push("temp_lru", yes(limits.temporary_ttl.is_some()));
        push(
            "temporary_ttl",
            &limits.temporary_ttl.unwrap_or(0).to_string(),
        );
        push(
            "idle_timeout",
            &settings
                .idle_timeout
                .map_or(0, |time| time.as_secs())
                .to_string(),
        );
        for (name, value) in &settings.shown {
            push(name, value);
        }
    }

    /// The items as one class, for there is one.
    fn items(&self, now: u32, push: Push<'_>) {
        let store = self.store.stats(now);
        if store.curr_items == 0 {
            return;
        }
        let names = ["hot", "warm", "cold", "temp"];
        let mut number =
            |name: &str, value: u64| push(&format!("items:1:{name}"), &value.to_string());
        number("number", store.curr_items);
        for (name, segment) in names.iter().zip(&store.segments) {
            number(&format!("number_{name}"), segment.items);
        }
        for (name, segment) in names.iter().zip(&store.segments) {
            number(&format!("age_{name}"), u64::from(segment.age));
        }
        number("age", u64::from(store.segments[2].age));
        number("mem_requested", store.bytes);
        number("evicted", store.evictions);
        number("evicted_nonzero", store.evicted_nonzero);
        number("evicted_time", u64::from(store.evicted_time));
        number("outofmemory", store.outofmemory);
        // No item is ever lost, or held while it is sent.
        number("tailrepairs", 0);
        number("lrutail_reflocked", 0);
        for (name, value) in of_lru(&store) {
            number(name, value);
        }
        for (name, segment) in names.iter().zip(&store.segments) {
            number(&format!("hits_to_{name}"), segment.hits);
        }
    }

    /// The memory: pages of one size, as one class whose chunks have the mean size of an item.
    fn slabs(&self, now: u32, push: Push<'_>) {
        let store = self.store.stats(now);
        if store.curr_items > 0 {
            let mut number =
                |name: &str, value: u64| push(&format!("1:{name}"), &value.to_string());
            let size = store.bytes.div_ceil(store.curr_items).max(1);
            let free = store.free_bytes / size;
            number("chunk_size", size);
            number("chunks_per_page", (store.page_size / size).max(1));
            number("total_pages", store.pages);
            number("total_chunks", store.curr_items + free);
            number("used_chunks", store.curr_items);
            number("free_chunks", free);
            number("free_chunks_end", 0);
            number("mem_requested", store.bytes);
            for (name, count) in OF_CLASS {
                number(name, self.counters.get(count));
            }
        }
        push("active_slabs", if store.curr_items > 0 { "1" } else { "0" });
        push("page_size", &store.page_size.to_string());
        push("total_malloced", &store.allocated.to_string());
    }
}
