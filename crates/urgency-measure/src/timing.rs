//! How contenders measure themselves.
//!
//! [`repeat`] is for programs: run once to warm up (threads started, pages touched, branch predictors
//! trained), then `times` times, each result compared with the expected one; the sample is the median time.
//! [`repeat_on`] is the same for programs that consume an input: neither its preparation nor the verification
//! counts. Distributions are [`Latencies`](crate::latencies::Latencies).
//!
//! Three kinds of work that no compiler removes. [`compute`] is an *amount*: it takes what it takes, and a contender
//! with more amounts under way than there are processors gets each done later. [`use_processor`] is a *time on a
//! processor*: the same holds, but a slower processor does not make it longer. It is for loads that are a share of the
//! machine: the host's clock changes by up to half within minutes, and two threads of one core slow each other down.
//! [`spin`] is a *time*: it ends when the time is over, whether its thread had a processor or not, so contenders that
//! are preempted do less. `spin` is for what must last (a poll of 200 ms, a gap), never for what is compared.

use crate::machine;
use crate::rounds::median;
use crate::sample::Sample;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Median time of `times` runs of `work` after one that is not measured; panics if a result differs from `expected`.
pub fn repeat<R: PartialEq + Debug>(
    times: usize,
    expected: &R,
    mut work: impl FnMut() -> R,
) -> Sample {
    let verify = |result: R| assert_eq!(&result, expected, "wrong result");
    repeat_on(times, || (), |()| work(), verify)
}

/// The same for `work` that consumes what `prepare` makes; `verify` panics at a wrong result.
pub fn repeat_on<I, R>(
    times: usize,
    mut prepare: impl FnMut() -> I,
    mut work: impl FnMut(I) -> R,
    verify: impl Fn(R),
) -> Sample {
    verify(work(prepare()));
    let mut elapsed = Vec::with_capacity(times);
    let mut cpu = Duration::ZERO;
    for _ in 0..times {
        let input = prepare();
        let (before, start) = (machine::cpu_time(), Instant::now());
        let result = work(input);
        elapsed.push(start.elapsed().as_nanos() as f64);
        cpu += machine::cpu_time().saturating_sub(before);
        verify(result);
    }
    Sample::new()
        .with("time_ns", median(elapsed).expect("it ran"))
        .with("cpu_ns", cpu.as_nanos() as f64 / times as f64)
        .with("peak_rss_bytes", machine::peak_rss())
}

/// Computes so much on this thread: `units` times fib(18), each some 10 us on the machine on which Urgency is
/// developed.
pub fn compute(units: u32) {
    for _ in 0..units {
        assert_eq!(serial_fib(std::hint::black_box(18)), 2584, "wrong result");
    }
}

/// Computes on this thread for so long, without the time in which the thread was kept from its processor.
///
/// Reading the thread's own clock is a system call of up to 1.5 us. So this reads the machine's clock after each step
/// of some 0.3 us, and a step that took longer than 2 us counts as one that did not: the thread was preempted, or the
/// host took its processor.
pub fn use_processor(time: Duration) {
    let (mut used, mut last) = (Duration::ZERO, Instant::now());
    while used < time {
        assert_eq!(serial_fib(std::hint::black_box(10)), 55, "wrong result");
        let now = Instant::now();
        used += (now - last).min(LONGEST_STEP);
        last = now;
    }
}

/// An interrupt that takes less counts as work, as it does in the kernel's accounts.
const LONGEST_STEP: Duration = Duration::from_micros(2);

/// Occupies this thread until `duration` has passed, with or without a processor.
pub fn spin(duration: Duration) {
    let start = Instant::now();
    while start.elapsed() < duration {
        std::hint::spin_loop();
    }
}

/// The serial Fibonacci function: work that takes the time of about 1.6^n calls.
pub fn serial_fib(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    serial_fib(n - 1) + serial_fib(n - 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class;

    #[test]
    #[should_panic(expected = "wrong result")]
    fn a_wrong_result_fails_the_sample() {
        let mut runs = 0;
        repeat(2, &1, || {
            runs += 1;
            runs
        });
    }

    #[test]
    fn work_is_no_less_where_threads_wait_for_a_processor() {
        let cpu_of = |threads: usize| {
            let run = || {
                class::bind_to_one_processor();
                let before = machine::thread_cpu_time();
                compute(2000);
                machine::thread_cpu_time() - before
            };
            std::thread::scope(|scope| {
                let all: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
                let each = all.into_iter().map(|thread| thread.join().unwrap());
                each.sum::<Duration>()
            })
        };
        let (one, four) = (cpu_of(1), cpu_of(4));
        assert!(four > one * 2, "four took {four:?}, one {one:?}");
    }

    #[test]
    fn time_without_a_processor_does_not_count_as_time_on_it() {
        let time = Duration::from_millis(20);
        let used = || {
            class::bind_to_one_processor();
            let before = machine::thread_cpu_time();
            use_processor(time);
            machine::thread_cpu_time() - before
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(used)).collect();
            for thread in all {
                let used = thread.join().unwrap();
                assert!(used * 10 > time * 9, "{used:?} of {time:?}");
            }
        });
    }

    #[test]
    fn neither_the_input_nor_the_verification_is_timed() {
        let pause = || std::thread::sleep(Duration::from_millis(10));
        let start = Instant::now();
        let sample = repeat_on(2, pause, |()| (), |()| pause());
        let (time, whole) = (sample.get("time_ns").unwrap(), start.elapsed());
        assert!(
            time * 8.0 < whole.as_nanos() as f64,
            "{time} ns of {whole:?}"
        );
    }
}
