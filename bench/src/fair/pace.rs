//! How fast the machine is, while something else is measured.
//!
//! On a virtual machine the same loop takes 128 ns one second and 190 the next, though the thread has its
//! processor all the time: the core beneath is shared, or changes its frequency. Two samples of a second
//! each, one after the other, then differ by half, whatever the scheduler does. So a thread on each processor
//! runs a serial fib(22) 50 times a second, 100 us each, in the class SCHED_FIFO where that is permitted, and
//! measures its own processor time. It costs half a per cent of the machine, and what it cannot know is how
//! much of it the caches are.
//!
//! The two processors differ as much from each other as each from itself a second later, and one worker is on
//! one of them for as long as nothing moves it. So a processor's probes count by how busy it was
//! (`/proc/stat`, in hundredths of a second).

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use urgency_measure::class::{self, Cpus};
use urgency_measure::machine;
use urgency_measure::timing::serial_fib;

const PROBE: u32 = 22;
const EVERY: Duration = Duration::from_millis(20);

/// Probes under way.
pub struct Pace {
    ends: Arc<AtomicBool>,
    /// Each with how busy its processor had been by then.
    probes: Vec<(usize, f64, JoinHandle<Vec<f64>>)>,
}

impl Pace {
    /// Starts a thread for each processor.
    pub fn start() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let allowed = Cpus::allowed().expect("a thread has an affinity");
        let probe = |&cpu: &usize| {
            let ends = ends.clone();
            (cpu, busy(cpu), thread::spawn(move || probe(cpu, &ends)))
        };
        Pace {
            probes: allowed.numbers().iter().map(probe).collect(),
            ends,
        }
    }

    /// The mean time of a probe in nanoseconds, by how busy the processors were.
    pub fn end(self) -> f64 {
        self.ends.store(true, Relaxed);
        let (mut sum, mut weights) = (0.0, 0.0);
        for (cpu, before, probe) in self.probes {
            let times = probe.join().expect("a probe does not panic");
            // Something, in a run that is shorter than what the kernel counts in.
            let weight = (busy(cpu) - before).max(1.0);
            sum += weight * times.iter().sum::<f64>() / times.len() as f64;
            weights += weight;
        }
        sum / weights
    }
}

/// How long a processor has run processes since the start of the machine, in the kernel's unit.
fn busy(cpu: usize) -> f64 {
    let all = std::fs::read_to_string("/proc/stat").expect("the kernel counts");
    let name = format!("cpu{cpu} ");
    let line = all.lines().find_map(|line| line.strip_prefix(&name));
    let mut times = line.expect("a processor has a line").split_whitespace();
    let time = |text: Option<&str>| text.and_then(|t| t.parse::<f64>().ok());
    let user = time(times.next()).expect("a time in user code");
    user + time(times.next()).expect("a time in code that is nice")
        + time(times.next()).expect("a time in the kernel")
}

fn probe(cpu: usize, ends: &AtomicBool) -> Vec<f64> {
    let bound = Cpus::new(vec![cpu]).bind();
    bound.expect("the processor is allowed");
    // Where that is refused, probes are late for all criteria alike.
    let _ = class::enter_real_time(class::CLIENT);
    let mut times = Vec::new();
    loop {
        // The first one fetches the code.
        black_box(serial_fib(black_box(PROBE / 2)));
        let before = machine::thread_cpu_time();
        assert_eq!(serial_fib(black_box(PROBE)), 17_711, "wrong result");
        times.push((machine::thread_cpu_time() - before).as_nanos() as f64);
        if ends.load(Relaxed) {
            return times;
        }
        thread::sleep(EVERY);
    }
}
