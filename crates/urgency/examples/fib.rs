//! fib without a cut-off: what a fork costs.
use std::time::Instant;

fn serial(n: u64) -> u64 {
    if n < 2 {
        n
    } else {
        serial(n - 1) + serial(n - 2)
    }
}

fn forked(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = urgency::join(|| forked(n - 1), || forked(n - 2));
    a + b
}

fn main() {
    let n = 38;
    let start = Instant::now();
    let expected = serial(std::hint::black_box(n));
    let base = start.elapsed();
    println!("serial     {base:.2?}");
    for workers in [1, 2] {
        let runtime = urgency::Runtime::builder()
            .workers(workers)
            .build()
            .unwrap();
        for _ in 0..3 {
            let start = Instant::now();
            assert_eq!(runtime.run(|| forked(n)), expected);
            let took = start.elapsed();
            println!(
                "{workers} worker(s) {took:.2?}  {:.2} x serial",
                took.as_secs_f64() / base.as_secs_f64()
            );
        }
    }
}
