//! Four sorts at once, in runs one after the other.

use super::stream::Stream;
use super::{Beside, Places, Sizes, random, sorted, verify};
use std::sync::Arc;
use std::time::{Duration, Instant};
use urgency::jobs::CoreSet;
use urgency_measure::latencies::Latencies;
use urgency_measure::{Sample, machine};

/// How many sorts.
const SORTS: usize = 4;

/// One sample: so many runs, after one to warm up.
pub fn run(sizes: Sizes, runs: usize, beside: Beside) -> Sample {
    let places = Places::with_stream(24);
    let each = (places.sorts.len() / SORTS).max(1);
    let set = CoreSet::builder().pinned_to(places.sorts).build();
    let like = set.expect("the processors are this process's own").job();
    let like = like.max_cpus(each);
    let inputs = (0..SORTS as u64).map(|seed| Arc::new(random(sizes.long, seed)));
    let inputs: Vec<_> = inputs.collect();
    let at_once = || -> Vec<Duration> {
        let jobs = inputs.iter().map(|input| {
            let input = input.clone();
            let job = like.clone().spawn_fn(move || {
                let began = Instant::now();
                let sorted = sorted(&input);
                let time = began.elapsed();
                verify(&input, &sorted);
                time
            });
            job.expect("four jobs may run")
        });
        let jobs: Vec<_> = jobs.collect();
        let times = jobs.into_iter().map(|job| job.get());
        times.map(|time| time.expect("it is sorted")).collect()
    };
    let stream = beside.map(|walls| Stream::start(&places.stream, sizes.stream, walls));
    let modified = || {
        stream
            .as_ref()
            .map_or(0, |stream| stream.tally().modified())
    };
    at_once();
    let (before, began) = (modified(), Instant::now());
    let times: Vec<_> = (0..runs).flat_map(|_| at_once()).collect();
    let per_s = (modified() - before) as f64 / began.elapsed().as_secs_f64();
    if let Some(stream) = stream {
        stream.end();
    }
    sample(&times)
        .with("units_per_s", per_s)
        .with("peak_rss_bytes", machine::peak_rss())
}

/// Mean, percentiles and standard deviation.
fn sample(times: &[Duration]) -> Sample {
    let mut latencies = Latencies::new();
    times.iter().for_each(|&time| latencies.record(time));
    let nanos = || times.iter().map(|time| time.as_nanos() as f64);
    let mean = nanos().sum::<f64>() / times.len() as f64;
    let variance = nanos().map(|nanos| (nanos - mean).powi(2)).sum::<f64>() / times.len() as f64;
    latencies.sample("").with("sd_ns", variance.sqrt())
}
