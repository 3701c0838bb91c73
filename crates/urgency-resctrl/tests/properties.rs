//! Any sequence of plans, right or wrong, on a kernel that refuses or takes commands in part.

#![allow(missing_docs)]

mod kernel;

use kernel::{
    Kernel,
    machine::{self, Fault, MemoryBandwidth, amd, code_and_data, intel, software_controller},
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use urgency_policy::cores::JobId;
use urgency_resctrl::{Error, Limits, MountOptions, Partition, Plan, Share};

fn options(machine: &machine::Machine) -> MountOptions {
    MountOptions {
        mba_mbps: machine.bandwidth == Some(MemoryBandwidth::SoftwareController),
    }
}

/// A plan, right or wrong: by processor, up to one beyond the last, its job; by job, its limits.
fn any_plan() -> impl Strategy<Value = Plan> {
    let run =
        (0u32..11, 1u32..12).prop_map(|(first, count)| ((1u64 << count) - 1) << first & 0x7ff);
    let ways = prop_oneof![8 => run, 1 => 0u64..0x2_0000];
    let bandwidth = prop_oneof![8 => (1u32..11).prop_map(|tens| tens * 10), 1 => 0u32..3000];
    let limits = (proptest::option::of(ways), proptest::option::of(bandwidth));
    let limits = limits.prop_map(|(ways, bandwidth)| Limits { ways, bandwidth });
    let owners = proptest::collection::vec(proptest::option::of(1u64..6), 8);
    let beyond = prop_oneof![15 => Just(None), 1 => Just(Some(1u64))];
    let all = proptest::collection::vec(limits.clone(), 6);
    (owners, beyond, all, limits).prop_map(|(mut owners, beyond, all, rest)| {
        owners.push(beyond);
        let mut jobs: BTreeMap<JobId, Share> = BTreeMap::new();
        for (cpu, owner) in owners.into_iter().enumerate() {
            if let Some(job) = owner {
                jobs.entry(JobId(job)).or_default().cpus.insert(cpu);
            }
        }
        for (job, share) in &mut jobs {
            share.limits = all[job.0 as usize];
        }
        Plan { rest, jobs }
    })
}

fn any_fault() -> impl Strategy<Value = (usize, Fault)> {
    let fault = prop_oneof![
        Just(Fault::Refused),
        Just(Fault::Denied),
        (0usize..12).prop_map(Fault::Part)
    ];
    (0usize..15, fault)
}

/// Whether the kernel has what the plan says.
fn is_in_force(kernel: &Kernel, machine: &machine::Machine, plan: &Plan) {
    let full = (1u64 << machine.ways) - 1;
    let most = machine.bandwidth.map_or(0, MemoryBandwidth::most);
    let expected = |limits: Limits| {
        (
            limits.ways.unwrap_or(full),
            limits.bandwidth.map_or(most, u64::from),
        )
    };
    for cache in &machine.caches {
        assert_eq!((kernel.rest(cache), kernel.rest("MB")), expected(plan.rest));
        for cpu in 0..machine.cpus {
            let owner = plan.jobs.values().find(|share| share.cpus.contains(cpu));
            let limits = owner
                .map(|share| share.limits)
                .filter(|limits| *limits != Limits::default());
            let shown = (kernel.value(cpu, cache), kernel.value(cpu, "MB"));
            assert_eq!(
                shown,
                expected(limits.unwrap_or(plan.rest)),
                "processor {cpu}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// After each call, each processor is in one group, the limits obey the machine's rules, and the plan is in force
    /// as a whole or not at all.
    #[test]
    fn a_plan_is_in_force_as_a_whole_or_not_at_all(
        machine in 0usize..4,
        steps in proptest::collection::vec((any_plan(), proptest::collection::vec(any_fault(), 0..3)), 1..8),
    ) {
        let machine = [intel, amd, code_and_data, software_controller][machine]();
        let kernel = Kernel::new(machine.clone());
        let found = kernel.in_force();
        let mut partition = Partition::open(&kernel, options(&machine), "t").unwrap();
        let mut is_stuck = false;
        for (plan, faults) in steps {
            let before = kernel.in_force();
            kernel.heal();
            faults.iter().for_each(|&(after, fault)| kernel.fail(after, fault));
            match partition.apply(&plan) {
                Ok(()) => is_in_force(&kernel, &machine, &plan),
                Err(Error::Stuck { .. }) => is_stuck = true,
                Err(Error::Unknown) => prop_assert!(is_stuck),
                Err(_) => prop_assert_eq!(before, kernel.in_force()),
            }
            kernel.in_force();
            kernel.check();
        }
        kernel.heal();
        partition.release().unwrap();
        prop_assert_eq!(found, kernel.in_force());
        prop_assert!(kernel.groups().is_empty());
    }

    /// The check before the first write knows all of the kernel's rules: without faults, the kernel refuses nothing.
    #[test]
    fn what_is_not_refused_here_is_not_refused_by_the_kernel(
        machine in 0usize..4,
        plans in proptest::collection::vec(any_plan(), 1..8),
    ) {
        let machine = [intel, amd, code_and_data, software_controller][machine]();
        let kernel = Kernel::new(machine.clone());
        let mut partition = Partition::open(&kernel, options(&machine), "t").unwrap();
        for plan in plans {
            if let Err(error) = partition.apply(&plan) {
                let is_from_the_kernel = matches!(error, Error::Io { .. } | Error::Short { .. } | Error::Stuck { .. });
                prop_assert!(!is_from_the_kernel, "{}", error);
            }
        }
    }
}
