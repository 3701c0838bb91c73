//! Sample sort (after Blelloch, Gibbons and Simhadri, 2010): splitters from a sample, a histogram per chunk,
//! every chunk dealt into its places in the buckets, and the buckets sorted. Each step is parallel, and all
//! but the last move the whole input through memory.
//!
//! The places are carved out of the output with `split_at_mut`, so they are known to be disjoint.

use super::kernel::Kernel;
use urgency::{join, par};

const BUCKETS: usize = 512;
const OVERSAMPLING: usize = 32;
const CHUNK: usize = 1 << 17;
/// Elements that are dealt, or sorted, between two scheduling points.
const GRAIN: usize = 1 << 13;

/// What is to be sorted, and the result.
pub struct SampleSort {
    input: Vec<u64>,
    output: Vec<u64>,
}

impl SampleSort {
    /// So many random elements.
    pub fn new(len: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(11);
        SampleSort {
            input: (0..len).map(|_| random.u64(..)).collect(),
            output: vec![1; len],
        }
    }
}

impl Kernel for SampleSort {
    fn run(&mut self) {
        sort(&self.input, &mut self.output);
    }

    fn verify(&self) {
        let sum = |data: &[u64]| data.iter().fold(0u64, |sum, x| sum.wrapping_add(*x));
        assert!(
            self.output.is_sorted() && sum(&self.output) == sum(&self.input),
            "not sorted, or not the same elements"
        );
    }
}

/// One chunk of the input, and its place in each bucket.
struct Deal<'a> {
    chunk: &'a [u64],
    places: Vec<&'a mut [u64]>,
}

fn sort(input: &[u64], output: &mut [u64]) {
    let splitters = splitters(input);
    let bucket_of = |x: &u64| splitters.partition_point(|splitter| splitter <= x);
    let counts = par::map(par::chunks(input, CHUNK), |chunk| {
        let mut counts = vec![0usize; BUCKETS];
        for block in chunk.chunks(GRAIN) {
            block.iter().for_each(|x| counts[bucket_of(x)] += 1);
            scheduling_point();
        }
        counts
    });
    let mut deals: Vec<Deal<'_>> = input
        .chunks(CHUNK)
        .map(|chunk| Deal {
            chunk,
            places: Vec::with_capacity(BUCKETS),
        })
        .collect();
    let mut rest = &mut *output;
    for bucket in 0..BUCKETS {
        for (deal, counts) in deals.iter_mut().zip(&counts) {
            let place;
            (place, rest) = rest.split_at_mut(counts[bucket]);
            deal.places.push(place);
        }
    }
    par::for_each(&mut deals[..], |deal| {
        let mut next = vec![0usize; BUCKETS];
        for block in deal.chunk.chunks(GRAIN) {
            for x in block {
                let bucket = bucket_of(x);
                deal.places[bucket][next[bucket]] = *x;
                next[bucket] += 1;
            }
            scheduling_point();
        }
    });
    drop(deals);
    let mut rest = output;
    let mut buckets = Vec::with_capacity(BUCKETS);
    for bucket in 0..BUCKETS {
        let size = counts.iter().map(|counts| counts[bucket]).sum();
        let elements;
        (elements, rest) = rest.split_at_mut(size);
        buckets.push(elements);
    }
    par::for_each(&mut buckets[..], |bucket| sort_bucket(bucket));
}

fn splitters(input: &[u64]) -> Vec<u64> {
    let step = (input.len() / (BUCKETS * OVERSAMPLING)).max(1);
    let mut sample: Vec<u64> = input.iter().step_by(step).copied().collect();
    sample.sort_unstable();
    let each = sample.len() / BUCKETS;
    (1..BUCKETS).map(|bucket| sample[bucket * each]).collect()
}

fn sort_bucket(bucket: &mut [u64]) {
    if bucket.len() <= GRAIN {
        return bucket.sort_unstable();
    }
    let (below, _, above) = bucket.select_nth_unstable(bucket.len() / 2);
    join(|| sort_bucket(below), || sort_bucket(above));
}

/// A fork of nothing.
fn scheduling_point() {
    join(|| (), || ());
}
