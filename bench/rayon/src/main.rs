//! The shapes of rayon's demos and benchmarks, on whatever `rayon-core` this is built with.
//!
//! Prints a line for each shape: its name, the median time in nanoseconds, and a digest of its result, which must be
//! the same for both. Each shape is called from the main thread, as programs do: the call into the pool is part of it.

use rayon::prelude::*;
use std::{hint::black_box, time::Instant};

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let shapes: [(&str, fn() -> Shape); 20] = [
        ("nbody", nbody),
        ("nqueens", nqueens),
        ("quicksort", quicksort),
        ("mergesort", || sort(|v| v.par_sort())),
        ("sort-unstable", || sort(|v| v.par_sort_unstable())),
        ("matmul", matmul),
        ("sieve", sieve),
        ("tsp", tsp),
        ("life", life),
        ("vec-collect", vec_collect),
        ("vec-filter", vec_filter),
        ("str-split", str_split),
        ("find", find),
        ("chain-zip", chain_zip),
        ("flat-map", flat_map),
        ("bridge", bridge),
        ("fib-join", fib_join),
        ("fib-scope", fib_scope),
        ("scope-spawn", scope_spawn),
        ("small-calls", small_calls),
    ];
    for (name, shape) in shapes {
        if name.contains(&filter) {
            let mut run = shape();
            let digest = run();
            let mut times: Vec<u128> = (0..7)
                .map(|_| {
                    let start = Instant::now();
                    assert_eq!(black_box(run()), digest, "{name}");
                    start.elapsed().as_nanos()
                })
                .collect();
            times.sort();
            println!("{name} {} {digest}", times[3]);
        }
    }
}

type Shape = Box<dyn FnMut() -> u64>;

fn mix(n: u64) -> u64 {
    (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (n >> 32)
}

/// Forces of all on all, one parallel loop for each step.
fn nbody() -> Shape {
    let mut random = fastrand::Rng::with_seed(1);
    let bodies: Vec<[f64; 3]> = (0..800)
        .map(|_| [random.f64(), random.f64(), random.f64()])
        .collect();
    Box::new(move || {
        let mut bodies = bodies.clone();
        for _ in 0..10 {
            bodies = bodies
                .par_iter()
                .map(|a| {
                    let mut force = [0.0; 3];
                    for b in &bodies {
                        let d: [f64; 3] = std::array::from_fn(|i| b[i] - a[i]);
                        let r = d.iter().map(|d| d * d).sum::<f64>() + 0.01;
                        let f = 1.0 / (r * r.sqrt());
                        force
                            .iter_mut()
                            .zip(d)
                            .for_each(|(force, d)| *force += f * d);
                    }
                    std::array::from_fn(|i| a[i] + 1e-9 * force[i])
                })
                .collect();
        }
        bodies
            .iter()
            .flatten()
            .fold(0, |sum, x| mix(sum ^ x.to_bits()))
    })
}

fn nqueens() -> Shape {
    fn go(n: u32, columns: u32, left: u32, right: u32) -> u64 {
        let all = (1 << n) - 1;
        if columns == all {
            return 1;
        }
        let free = all & !(columns | left | right);
        (0..n)
            .into_par_iter()
            .filter(|c| free >> c & 1 == 1)
            .map(|c| {
                let bit = 1 << c;
                go(
                    n,
                    columns | bit,
                    (left | bit) << 1 & all,
                    (right | bit) >> 1,
                )
            })
            .sum()
    }
    Box::new(|| go(9, 0, 0, 0))
}

fn numbers(len: usize) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(2);
    (0..len).map(|_| random.u64(..)).collect()
}

fn digest(numbers: &[u64]) -> u64 {
    numbers.iter().step_by(97).fold(0, |sum, n| mix(sum ^ n))
}

fn quicksort() -> Shape {
    fn go(v: &mut [u64]) {
        if v.len() <= 1 {
            return;
        }
        let pivot = v.len() / 2;
        v.swap(pivot, v.len() - 1);
        let last = v.len() - 1;
        let mut low = 0;
        for i in 0..last {
            if v[i] <= v[last] {
                v.swap(low, i);
                low += 1;
            }
        }
        v.swap(low, last);
        let (a, b) = v.split_at_mut(low);
        rayon::join(|| go(a), || go(&mut b[1..]));
    }
    let input = numbers(300_000);
    Box::new(move || {
        let mut v = input.clone();
        rayon::join(|| go(&mut v), || ());
        digest(&v)
    })
}

fn sort(sort: fn(&mut Vec<u64>)) -> Shape {
    let input = numbers(600_000);
    Box::new(move || {
        let mut v = input.clone();
        sort(&mut v);
        digest(&v)
    })
}

fn matmul() -> Shape {
    const N: usize = 256;
    let a: Vec<f32> = numbers(N * N).iter().map(|n| (n >> 40) as f32).collect();
    Box::new(move || {
        let mut c = vec![0.0f32; N * N];
        c.par_chunks_mut(N).enumerate().for_each(|(i, row)| {
            for k in 0..N {
                let x = a[i * N + k];
                row.iter_mut()
                    .zip(&a[k * N..])
                    .for_each(|(c, b)| *c += x * b);
            }
        });
        c.iter().fold(0, |sum, x| mix(sum ^ u64::from(x.to_bits())))
    })
}

fn sieve() -> Shape {
    const MAX: usize = 6_000_000;
    const CHUNK: usize = 100_000;
    Box::new(|| {
        let root = MAX.isqrt() + 1;
        let mut small = vec![true; root];
        let mut primes = Vec::new();
        for n in 2..root {
            if small[n] {
                primes.push(n);
                (n * n..root).step_by(n).for_each(|m| small[m] = false);
            }
        }
        let mut all = vec![true; MAX];
        all.par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(i, chunk)| {
                let base = i * CHUNK;
                for &p in &primes {
                    let first = (p * p).max(base.div_ceil(p) * p);
                    let mut m = first.saturating_sub(base);
                    while m < chunk.len() {
                        chunk[m] = false;
                        m += p;
                    }
                }
            });
        all.par_iter().filter(|&&prime| prime).count() as u64 - 2
    })
}

/// Branch and bound with a shared best, scopes that spawn scopes.
fn tsp() -> Shape {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    const N: usize = 10;
    fn go<'s>(
        s: &rayon::Scope<'s>,
        d: &'s [[u64; N]; N],
        best: &'s AtomicU64,
        at: usize,
        seen: u32,
        far: u64,
    ) {
        if seen == (1 << N) - 1 {
            best.fetch_min(far + d[at][0], Relaxed);
            return;
        }
        for to in (0..N).filter(|to| seen >> to & 1 == 0) {
            let far = far + d[at][to];
            if far >= best.load(Relaxed) {
                continue;
            }
            if seen.count_ones() < 5 {
                s.spawn(move |s| go(s, d, best, to, seen | 1 << to, far));
            } else {
                go(s, d, best, to, seen | 1 << to, far);
            }
        }
    }
    let mut random = fastrand::Rng::with_seed(3);
    let d: [[u64; N]; N] = std::array::from_fn(|_| std::array::from_fn(|_| random.u64(800..1000)));
    Box::new(move || {
        let best = AtomicU64::new(u64::MAX);
        rayon::scope(|s| go(s, &d, &best, 0, 1, 0));
        best.into_inner()
    })
}

fn life() -> Shape {
    const N: usize = 400;
    let start: Vec<u8> = numbers(N * N).iter().map(|n| (n & 1) as u8).collect();
    Box::new(move || {
        let mut board = start.clone();
        for _ in 0..20 {
            board = (0..N * N)
                .into_par_iter()
                .map(|i| {
                    let (y, x) = (i / N, i % N);
                    let mut alive = 0;
                    for dy in [N - 1, 0, 1] {
                        for dx in [N - 1, 0, 1] {
                            alive += board[(y + dy) % N * N + (x + dx) % N];
                        }
                    }
                    u8::from(alive == 3 || (alive == 4 && board[i] == 1))
                })
                .collect();
        }
        board.iter().fold(0, |sum, &n| mix(sum ^ u64::from(n)))
    })
}

fn vec_collect() -> Shape {
    Box::new(|| {
        let v: Vec<u64> = (0..4_000_000u32)
            .into_par_iter()
            .map(|n| mix(u64::from(n)))
            .collect();
        digest(&v)
    })
}

fn vec_filter() -> Shape {
    Box::new(|| {
        let v: Vec<u64> = (0..3_000_000u64)
            .into_par_iter()
            .map(mix)
            .filter(|n| n & 1 == 0)
            .collect();
        digest(&v)
    })
}

fn str_split() -> Shape {
    let text: String = (0..500_000)
        .map(|n| format!("{} ", mix(n) % 1000))
        .collect();
    Box::new(move || text.par_split(' ').map(|word| word.len() as u64).sum())
}

fn find() -> Shape {
    let v = numbers(4_000_000);
    let last = v[3_900_000];
    Box::new(move || {
        let first = v.par_iter().position_first(|&n| n == last);
        u64::from(v.par_iter().find_any(|&&n| n == last).is_some()) + first.unwrap() as u64
    })
}

fn chain_zip() -> Shape {
    let v = numbers(2_000_000);
    Box::new(move || {
        let pairs = v.par_iter().chain(v.par_iter()).zip(0..4_000_000usize);
        pairs
            .map(|(a, b)| mix(a ^ b as u64))
            .reduce(|| 0, u64::wrapping_add)
    })
}

fn flat_map() -> Shape {
    Box::new(|| {
        let inner = |n: u64| (0..n % 100).into_par_iter().map(move |m| mix(n ^ m));
        (0..20_000u64)
            .into_par_iter()
            .flat_map(inner)
            .reduce(|| 0, u64::wrapping_add)
    })
}

fn bridge() -> Shape {
    Box::new(|| {
        (0..50_000u64)
            .par_bridge()
            .map(|n| (0..20).fold(n, |n, _| mix(n)))
            .reduce(|| 0, u64::wrapping_add)
    })
}

fn fib_join() -> Shape {
    fn go(n: u32) -> u64 {
        if n < 2 {
            return u64::from(n);
        }
        let (a, b) = rayon::join(|| go(n - 1), || go(n - 2));
        a + b
    }
    Box::new(|| go(27))
}

fn fib_scope() -> Shape {
    fn go(n: u32) -> u64 {
        if n < 2 {
            return u64::from(n);
        }
        let (mut a, mut b) = (0, 0);
        rayon::scope(|s| {
            s.spawn(|_| a = go(n - 1));
            b = go(n - 2);
        });
        a + b
    }
    Box::new(|| go(20))
}

fn scope_spawn() -> Shape {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    Box::new(|| {
        let sum = AtomicU64::new(0);
        rayon::scope(|s| {
            for n in 0..50_000u64 {
                let sum = &sum;
                s.spawn(move |_| {
                    sum.fetch_add(mix(n), Relaxed);
                });
            }
        });
        sum.into_inner()
    })
}

/// A thousand short loops, one after the other.
fn small_calls() -> Shape {
    Box::new(|| {
        let one = |n: u64| {
            (0..200u64)
                .into_par_iter()
                .map(|m| mix(n ^ m))
                .reduce(|| 0, u64::wrapping_add)
        };
        (0..1000).map(one).fold(0, u64::wrapping_add)
    })
}
