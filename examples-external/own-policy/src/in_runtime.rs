//! The order and the schedule in a runtime: urgent tasks that never end, and a batch that ends all the same.
//!
//! Under the default schedule the urgent tasks would keep all workers, and the batch would wait for ever. The night
//! shift gives it one worker in four. Within each level the tasks are in the queues of [`SpillingQueues`].

use crate::{between_levels::NightShift, within_level::SpillingQueues};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use urgency::{Runtime, policy::Schedule};

urgency::levels! { Day: Request > Batch }

/// Runs a batch of so many tasks below endless requests. Returns the sum of their results.
pub fn run(tasks: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let runtime = Runtime::builder()
        .workers(4)
        .levels::<Day>()
        .pool(SpillingQueues)
        .schedule(Schedule::own(NightShift))
        .build()?;
    let ends = Arc::new(AtomicBool::new(false));
    let requests: Vec<_> = (0..8)
        .map(|_| {
            let ends = ends.clone();
            runtime.at(Request).spawn(async move {
                while !ends.load(Ordering::Relaxed) {
                    urgency::yield_now().await;
                }
            })
        })
        .collect();
    let batch: Vec<_> = (0..tasks)
        .map(|number| runtime.at(Batch).spawn(async move { number }))
        .collect();
    let mut sum = 0;
    for task in batch {
        sum += task.get()?;
    }
    ends.store(true, Ordering::Relaxed);
    for request in requests {
        request.get()?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_ends_below_endless_requests() {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(run(1000).unwrap()));
        let sum = told.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(sum, Ok(499_500));
    }
}
