//! Requests that fork, beside a batch job on the same cores.
use std::{error::Error, ops::Range, time::Duration};
use urgency::{Runtime, join, time::interval};

urgency::levels! { App: Interactive > Batch }

fn primes(range: Range<u64>) -> usize {
    if range.end - range.start < 100 {
        let is_prime = |n: u64| n > 1 && (2..=n.isqrt()).all(|d| !n.is_multiple_of(d));
        return range.filter(|&n| is_prime(n)).count();
    }
    let middle = range.start.midpoint(range.end);
    let (low, high) = join(|| primes(range.start..middle), || primes(middle..range.end));
    low + high
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::builder().levels::<App>().build()?;

    // A batch job takes every core.
    let batch = Batch.on(&runtime).spawn_fn(|_| primes(0..6_000_000));

    // Beside it a request each 10 ms: async code that forks.
    let (median, slowest) = Interactive.on(&runtime).run(|cx| {
        let requests = Interactive.spawn(async |_| {
            let mut times = Vec::new();
            let mut ticks = interval(Duration::from_millis(10));
            for _ in 0..100 {
                let due = ticks.tick().await;
                let (a, b) = join(|| primes(0..1_000), || primes(1_000..2_000));
                assert_eq!(a + b, 303);
                times.push(due.elapsed());
            }
            times.sort();
            (times[50], times[99])
        });
        // `batch.get(cx)` here does not compile: interactive code would wait for batch work.
        requests.get(cx)
    })?;

    println!("100 requests: median {median:.1?}, slowest {slowest:.1?}");
    println!("{} primes below 6,000,000", batch.erase().get()?);
    Ok(())
}
