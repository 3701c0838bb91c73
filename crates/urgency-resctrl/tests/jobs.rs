//! What a core policy decides is in force on a model of the kernel.

#![allow(missing_docs)]

mod kernel;

use kernel::{
    Kernel,
    machine::{Fault, MemoryBandwidth, amd, intel},
    newest_first::NewestFirst,
};
use urgency_policy::cores::{
    CorePolicy, Cores, Decision, DecisionError, Demand, Event, JobId, named,
};
use urgency_resctrl::{Error, JobPartition, Limits, MountOptions, Partition};

fn partition<'a>(kernel: &'a Kernel, cpus: &[usize]) -> JobPartition<&'a Kernel> {
    let partition = Partition::open(kernel, MountOptions::default(), "t").unwrap();
    JobPartition::new(partition, cpus.to_vec()).unwrap()
}

fn cores(partition: &JobPartition<&Kernel>, count: usize) -> Cores {
    let (cache, bandwidth) = partition.controls();
    Cores::new(count).with_controls(cache, bandwidth)
}

#[test]
fn a_decision_about_cores_ways_and_bandwidth_is_in_force() {
    let kernel = Kernel::new(intel());
    let mut partition = partition(&kernel, &[2, 3, 6]);
    let mut cores = cores(&partition, 3);
    for job in [JobId(1), JobId(2)] {
        cores
            .start(&mut NewestFirst, job, Demand::default())
            .unwrap();
        let decision = cores.decide(&mut NewestFirst, Event::Start(job)).unwrap();
        partition.apply(decision).unwrap();
    }
    let shown = |cpu| (kernel.value(cpu, "L3"), kernel.value(cpu, "MB"));
    assert_eq!(
        (shown(2), shown(3), shown(6)),
        ((0x00f, 10), (0x7f0, 100), (0x7f0, 100))
    );
    assert_eq!(shown(0), (0x7ff, 100), "a processor of no core");

    // The job ends: the other one has its cores, and keeps the bandwidth that it was told before.
    cores.exit(JobId(2)).unwrap();
    partition.exit(JobId(2));
    let decision = cores
        .decide(&mut NewestFirst, Event::Exit(JobId(2)))
        .unwrap();
    partition.apply(decision).unwrap();
    assert_eq!((shown(2), shown(6)), ((0x7f0, 10), (0x7f0, 10)));
    partition.release().unwrap();
    assert_eq!(shown(2), (0x7ff, 100));
}

#[test]
fn every_built_in_policy_moves_cores_without_a_group() {
    for (name, _) in urgency_policy::cores::NAMED {
        let kernel = Kernel::new(intel());
        let mut partition = partition(&kernel, &[0, 1, 2, 3]);
        let mut cores = cores(&partition, 4);
        let mut policy = named(name, 7, 2).unwrap();
        for job in [JobId(1), JobId(2)] {
            if cores.start(&mut policy, job, Demand::default()).is_ok() {
                let decision = cores.decide(&mut policy, Event::Start(job)).unwrap();
                partition.apply(decision).unwrap();
            }
        }
        assert_eq!(
            kernel.commands(),
            [""; 0],
            "{name} gives no cache and no bandwidth"
        );
    }
}

#[test]
fn a_decision_that_the_kernel_refuses_is_forgotten() {
    let kernel = Kernel::new(intel());
    let mut partition = partition(&kernel, &[2, 3, 6]);
    let mut cores = cores(&partition, 3);
    cores
        .start(&mut NewestFirst, JobId(1), Demand::default())
        .unwrap();
    let before = kernel.in_force();
    let decision = cores
        .decide(&mut NewestFirst, Event::Start(JobId(1)))
        .unwrap();
    kernel.fail(2, Fault::Refused);
    partition.apply(decision).unwrap_err();
    assert_eq!(kernel.in_force(), before);
    partition.apply(decision).unwrap();
    assert_eq!(kernel.value(2, "L3"), 0x7f0);
}

#[test]
fn the_rest_of_the_machine_is_limited_on_demand() {
    let kernel = Kernel::new(intel());
    let mut partition = partition(&kernel, &[2]);
    partition.set_rest(Limits {
        ways: Some(0x00f),
        bandwidth: None,
    });
    let mut cores = cores(&partition, 1);
    cores
        .start(&mut NewestFirst, JobId(1), Demand::default())
        .unwrap();
    let decision = cores
        .decide(&mut NewestFirst, Event::Start(JobId(1)))
        .unwrap();
    partition.apply(decision).unwrap();
    assert_eq!(
        (kernel.value(0, "L3"), kernel.value(2, "L3")),
        (0x00f, 0x7f0)
    );
}

#[test]
fn percent_needs_to_know_what_all_of_it_is_where_the_machine_counts_gigabytes() {
    let kernel = Kernel::new(amd());
    let without = partition(&kernel, &[0]);
    assert_eq!(without.controls().1, None);
    let mut cores_without = cores(&without, 1);
    cores_without
        .start(&mut Tenth, JobId(1), Demand::default())
        .unwrap();
    let error = cores_without
        .decide(&mut Tenth, Event::Start(JobId(1)))
        .unwrap_err();
    assert_eq!(error, DecisionError::NoBandwidthControl);
    drop(without);

    // 100 GB/s.
    let with = Partition::open(&kernel, MountOptions::default(), "t").unwrap();
    let mut with = JobPartition::new(with.with_full_bandwidth(800), vec![0]).unwrap();
    let mut cores = cores(&with, 1);
    cores
        .start(&mut Tenth, JobId(1), Demand::default())
        .unwrap();
    with.apply(cores.decide(&mut Tenth, Event::Start(JobId(1))).unwrap())
        .unwrap();
    assert_eq!(kernel.value(0, "MB"), 80);
}

/// One job with a tenth of the bandwidth.
struct Tenth;

impl CorePolicy for Tenth {
    fn decide(
        &mut self,
        _: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        decision.give(0, cores.jobs()[0].id())?;
        decision.set_bandwidth(cores.jobs()[0].id(), 10)
    }
}

#[test]
fn a_core_needs_a_processor_of_its_own_that_is_there() {
    let kernel = Kernel::new(intel());
    let open = || Partition::open(&kernel, MountOptions::default(), "t").unwrap();
    let error = JobPartition::new(open(), vec![1, 1]).unwrap_err();
    assert!(matches!(error, Error::TwoCores(1)), "{error}");
    let error = JobPartition::new(open(), vec![1, 8]).unwrap_err();
    assert!(matches!(error, Error::NotOurs { cpu: 8, .. }), "{error}");
}

#[test]
fn a_machine_whose_least_bandwidth_is_above_its_most_is_an_error_and_no_panic() {
    let mut machine = intel();
    machine.bandwidth = Some(MemoryBandwidth::Percent {
        least: 200,
        step: 10,
    });
    let kernel = Kernel::new(machine);
    let mut partition = partition(&kernel, &[0]);
    let job = JobId(1);
    let refused = partition.carry_out(&[Some(job)], &[], &[(job, 50)]);
    assert!(
        matches!(refused, Err(Error::Bandwidth { .. })),
        "{refused:?}"
    );
}
