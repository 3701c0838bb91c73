//! Between levels: one worker in four serves the least urgent level that has work when its round begins.
//!
//! Prompt scheduling may keep batch work waiting for ever. Here it always has a quarter of the workers, and the others
//! stay prompt.

use urgency_policy::level::{LevelSchedule, Otherwise, Period, Seat};

/// A quarter of the workers for the least urgent work.
#[derive(Clone, Debug)]
pub struct NightShift;

impl LevelSchedule for NightShift {
    fn period(&self) -> Period {
        Period::EachWorker(5_000_000)
    }

    fn seat(&mut self, worker: usize, _workers: usize, with_work: u64) -> Seat {
        match with_work.checked_ilog2() {
            Some(least_urgent) if worker % 4 == 3 => {
                Seat::at(least_urgent as u8, Otherwise::Donate)
            }
            _ => Seat::PROMPT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urgency_policy::level::Schedule;
    use urgency_sim::{Machine, generate, run};

    #[test]
    fn batch_work_below_endless_urgent_work_gets_its_quarter() {
        let dag = generate::three_levels(8, 100_000_000, 20_000_000, 100_000_000, 100_000);
        let ended = |schedule| {
            let machine = Machine {
                workers: 8,
                schedule,
                ..Machine::default()
            };
            let report = run(&dag, &machine).unwrap();
            report.levels.last().unwrap().finished
        };
        let (prompt, shift) = (ended(Schedule::Prompt), ended(Schedule::own(NightShift)));
        assert!(shift < prompt, "{shift} and {prompt}");
    }
}
