//! Work stealing inside a job whose workers come and go: how often thieves look, and what their looks cost to simulate.

mod common;

use common::ends;
use urgency_sim::{
    bounds,
    jobs::{
        Crew, JobCosts, JobsMachine, Leftovers, Round, StealCosts, Stolen, feedback_pair, steal,
    },
};

const UNIT: StealCosts = StealCosts {
    attempt: 500,
    steal: 500,
    mug: 500,
};

#[test]
fn a_job_looks_at_victims_in_proportion_to_its_active_workers_whatever_number_sleeps() {
    for active in [2, 4, 8, 16, 32] {
        for exchange in [0, 5_000, 50_000] {
            for all in [active, 64, 256] {
                let crew = Crew {
                    active,
                    all,
                    exchange,
                    leftovers: Leftovers::MuggedFirst,
                };
                let stolen = steal(Round::BING, 200, crew, UNIT, 5);
                let check = bounds::steals_of_active(&stolen, &crew, UNIT.attempt);
                assert!(
                    check.holds() && check.broken.is_empty(),
                    "{crew:?} {check:?}"
                );
            }
        }
    }
    // The looks that it takes do not grow with the sleepers; without mugging they do, and so does the time.
    let with = |all, leftovers| {
        let crew = Crew {
            active: 8,
            all,
            exchange: 20_000,
            leftovers,
        };
        steal(Round::BING, 400, crew, UNIT, 5)
    };
    let few = with(16, Leftovers::MuggedFirst);
    let many = with(256, Leftovers::MuggedFirst);
    assert!(
        (many.attempts as f64) < 1.1 * few.attempts as f64,
        "{few:?} {many:?}"
    );
    let among = with(256, Leftovers::AmongAll);
    assert!(
        among.attempts > 2 * many.attempts && among.time as f64 > 1.3 * many.time as f64,
        "{many:?} {among:?}"
    );
}

/// The numbers are of a simulation that ran each look by itself (c717890).
#[test]
fn looks_in_vain_count_as_if_each_were_run() {
    for (active, exchange, leftovers, attempt, expected) in [
        (
            8,
            20_000,
            Leftovers::MuggedFirst,
            500,
            [4_262_706, 36_159, 515, 47],
        ),
        (
            8,
            0,
            Leftovers::MuggedFirst,
            500,
            [4_237_202, 35_795, 518, 0],
        ),
        (
            8,
            20_000,
            Leftovers::AmongAll,
            500,
            [4_650_208, 42_407, 540, 0],
        ),
        (
            3,
            7_000,
            Leftovers::MuggedFirst,
            130,
            [7_138_930, 39_351, 218, 438],
        ),
        (
            16,
            0,
            Leftovers::MuggedFirst,
            90,
            [3_200_889, 387_807, 758, 0],
        ),
        (
            5,
            50_000,
            Leftovers::AmongAll,
            1,
            [5_073_906, 9_117_432, 502, 0],
        ),
        (
            5,
            3_333,
            Leftovers::MuggedFirst,
            7,
            [5_087_193, 1_299_346, 435, 249],
        ),
    ] {
        let crew = Crew {
            active,
            all: 3 * active,
            exchange,
            leftovers,
        };
        let costs = StealCosts { attempt, ..UNIT };
        let stolen = steal(Round::BING, 50, crew, costs, 7);
        let [time, attempts, steals, mugs] = expected;
        let expected = Stolen {
            time,
            attempts,
            steals,
            mugs,
            span: 50 * Round::BING.span(),
        };
        assert_eq!(stolen, expected, "{crew:?} {attempt}");
    }
}

/// Look by look, these are 4 * 10^12 events.
#[test]
fn thieves_that_look_each_nanosecond_take_no_longer_to_simulate() {
    let round = Round {
        depth: 0,
        leaf: 1_000_000_000,
        inner: 0,
        serial: 1,
    };
    let costs = StealCosts { attempt: 1, ..UNIT };
    let stolen = ends(move || steal(round, 60, Crew::steady(64), costs, 1));
    assert_eq!(stolen.time, 60 * 1_000_000_001);
    assert_eq!(stolen.attempts, 63 * stolen.time);
    let machine = JobsMachine {
        cores: 64,
        costs: JobCosts {
            steal: StealCosts {
                attempt: 0,
                ..JobCosts::ZERO.steal
            },
            ..JobCosts::ZERO
        },
        ..JobsMachine::default()
    };
    let pair = ends(move || feedback_pair(&machine));
    assert_eq!(pair.speeds[1].time(64), 24_500.0);
}
