//! Groups on a model of the kernel: what is in force after a plan, after a refusal, and at the end.

#![allow(missing_docs)]

mod kernel;

use kernel::{
    Kernel,
    machine::{self, Fault, code_and_data, intel},
};
use urgency_policy::cores::JobId;
use urgency_resctrl::{Cpus, Error, Limits, MountOptions, Partition, Plan, Reading, Share};

fn open(kernel: &Kernel) -> Partition<&Kernel> {
    Partition::open(kernel, MountOptions::default(), "t").unwrap()
}

fn share(cpus: &str, ways: u64) -> Share {
    Share {
        cpus: cpus.parse().unwrap(),
        limits: Limits {
            ways: Some(ways),
            bandwidth: None,
        },
    }
}

fn plan(jobs: &[(u64, Share)]) -> Plan {
    Plan {
        rest: Limits::default(),
        jobs: jobs
            .iter()
            .map(|(job, share)| (JobId(*job), share.clone()))
            .collect(),
    }
}

#[test]
fn a_core_that_moves_from_job_to_job_is_one_write() {
    let kernel = Kernel::new(intel());
    let mut partition = open(&kernel);
    partition
        .apply(&plan(&[(1, share("0-3", 0xf0)), (2, share("4-5", 0x0f))]))
        .unwrap();
    kernel.commands();
    partition
        .apply(&plan(&[(1, share("0-2", 0xf0)), (2, share("3-5", 0x0f))]))
        .unwrap();
    assert_eq!(kernel.commands(), ["3-5 > t-1/cpus_list"]);
    assert_eq!(
        (
            kernel.value(3, "L3"),
            kernel.value(2, "L3"),
            kernel.value(7, "L3")
        ),
        (0x0f, 0xf0, 0x7ff)
    );
}

#[test]
fn a_plan_that_is_in_force_is_not_written_again() {
    let kernel = Kernel::new(intel());
    let mut partition = open(&kernel);
    let plan = plan(&[(1, share("0-3", 0xf0)), (2, share("4-5", 0x0f))]);
    partition.apply(&plan).unwrap();
    kernel.commands();
    partition.apply(&plan).unwrap();
    assert_eq!(kernel.commands(), [""; 0]);
}

#[test]
fn a_group_has_its_limits_before_its_processors() {
    let kernel = Kernel::new(intel());
    open(&kernel)
        .apply(&plan(&[(1, share("0-3", 0xf0))]))
        .unwrap();
    let expected = [
        "mkdir t-0",
        "L3:0=f0;1=f0 > t-0/schemata",
        "0-3 > t-0/cpus_list",
    ];
    assert_eq!(kernel.commands()[..3], expected);
}

#[test]
fn an_ended_jobs_group_is_used_again() {
    let kernel = Kernel::new(intel());
    let mut partition = open(&kernel);
    for job in 1..20 {
        partition
            .apply(&plan(&[(job, share("0-3", 0xf0))]))
            .unwrap();
        assert_eq!(partition.group(JobId(job)), Some("t-0"));
    }
    assert_eq!(kernel.groups(), ["t-0"]);
}

#[test]
fn release_and_drop_leave_the_machine_as_it_was() {
    let kernel = Kernel::new(intel());
    let before = kernel.in_force();
    let limited = Plan {
        rest: Limits {
            ways: Some(0x0f),
            bandwidth: Some(50),
        },
        ..plan(&[(1, share("0-3", 0xf0))])
    };
    for dropped in [false, true] {
        let mut partition = open(&kernel);
        partition.apply(&limited).unwrap();
        assert_eq!((kernel.rest("L3"), kernel.rest("MB")), (0x0f, 50));
        if dropped {
            drop(partition);
        } else {
            partition.release().unwrap();
        }
        assert_eq!(
            (kernel.in_force(), kernel.groups()),
            (before.clone(), vec![])
        );
    }
}

#[test]
fn both_halves_of_a_cache_for_code_and_data_get_the_ways() {
    let kernel = Kernel::new(code_and_data());
    let mut partition = open(&kernel);
    partition.apply(&plan(&[(1, share("0-3", 0xf0))])).unwrap();
    assert_eq!(
        (kernel.value(0, "L3CODE"), kernel.value(0, "L3DATA")),
        (0xf0, 0xf0)
    );
}

#[test]
fn limits_that_are_lifted_are_what_the_kernel_gives_a_new_group() {
    let kernel = Kernel::new(intel());
    kernel.make_foreign("other", &[7], 0x600, true);
    let mut partition = open(&kernel);
    let both = Limits {
        ways: Some(0xf0),
        bandwidth: Some(10),
    };
    let mut share = share("0-3", 0xf0);
    share.limits = both;
    partition.apply(&plan(&[(1, share.clone())])).unwrap();
    share.limits.ways = None;
    partition.apply(&plan(&[(1, share)])).unwrap();
    assert_eq!((kernel.value(0, "L3"), kernel.value(0, "MB")), (0x1ff, 10));
}

/// The error of a plan that must change nothing.
fn refusal(kernel: &Kernel, partition: &mut Partition<&Kernel>, plan: &Plan) -> Error {
    let before = kernel.in_force();
    let error = partition.apply(plan).unwrap_err();
    assert_eq!(kernel.in_force(), before, "{error}");
    error
}

#[test]
fn what_breaks_a_rule_of_the_machine_is_refused_before_anything_is_written() {
    let kernel = Kernel::new(intel());
    let mut partition = open(&kernel);
    let bandwidth = |value| Share {
        limits: Limits {
            ways: None,
            bandwidth: Some(value),
        },
        ..share("0", 0)
    };
    let cases = [
        (
            plan(&[(1, share("0", 0x5))]),
            "0x5 of L3 cannot be given: they must lie side by side",
        ),
        (
            plan(&[(1, share("0", 0x1))]),
            "0x1 of L3 cannot be given: at least 2",
        ),
        (
            plan(&[(1, share("0", 0x0))]),
            "0x0 of L3 cannot be given: at least 2",
        ),
        (
            plan(&[(1, share("0", 0xf00))]),
            "0xf00 of L3 cannot be given: it has the ways 0x7ff",
        ),
        (
            plan(&[(1, bandwidth(5))]),
            "the bandwidth 5 % cannot be set; this machine takes 10 to 100 in steps of 10",
        ),
        (plan(&[(1, bandwidth(15))]), "the bandwidth 15 %"),
        (plan(&[(1, bandwidth(110))]), "the bandwidth 110 %"),
        (plan(&[(1, share("8", 0xf))]), "processor 8 is not there"),
        (
            plan(&[(1, share("0-1", 0xf)), (2, share("1", 0xf))]),
            "processor 1 was given to job 1 and to job 2",
        ),
        (
            plan(&[
                (1, share("0", 3)),
                (2, share("1", 3)),
                (3, share("2", 3)),
                (4, share("3", 3)),
            ]),
            "4 jobs have limits of their own, and this machine has groups for 3 (num_closids",
        ),
    ];
    for (plan, words) in cases {
        let error = refusal(&kernel, &mut partition, &plan).to_string();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(kernel.commands(), [""; 0]);
}

#[test]
fn what_a_machine_does_not_have_is_refused_by_name() {
    let kernel = Kernel::new(machine::Machine {
        caches: vec![],
        ..intel()
    });
    let error = refusal(&kernel, &mut open(&kernel), &plan(&[(1, share("0", 0xf))]));
    assert!(matches!(error, Error::NoCache), "{error}");
    let kernel = Kernel::new(machine::Machine {
        bandwidth: None,
        ..intel()
    });
    let limited = Plan {
        rest: Limits {
            ways: None,
            bandwidth: Some(50),
        },
        ..Plan::default()
    };
    let error = refusal(&kernel, &mut open(&kernel), &limited);
    assert!(matches!(error, Error::NoBandwidth), "{error}");
}

#[test]
fn a_machine_that_only_measures_is_refused_as_a_whole() {
    let kernel = Kernel::new(machine::Machine {
        caches: vec![],
        bandwidth: None,
        ..intel()
    });
    let error = Partition::open(&kernel, MountOptions::default(), "t").unwrap_err();
    assert!(
        error.to_string().contains("L3_MON") && error.to_string().contains("affinity"),
        "{error}"
    );
}

#[test]
fn a_refused_group_says_why_and_what_to_do() {
    // All classes are another program's.
    let kernel = Kernel::new(intel());
    for name in ["a", "b", "c"] {
        kernel.make_foreign(name, &[], 0x7ff, false);
    }
    let error = refusal(&kernel, &mut open(&kernel), &plan(&[(1, share("0", 0xf))])).to_string();
    assert!(
        error.contains("Out of CLOSIDs") && error.contains("remove a group of another program"),
        "{error}"
    );

    // All monitoring numbers are in limbo.
    let kernel = Kernel::new(machine::Machine {
        rmids: 2,
        ..intel()
    });
    let mut partition = open(&kernel);
    partition.apply(&plan(&[(1, share("0", 0xf))])).unwrap();
    partition.release().unwrap();
    let error = refusal(&kernel, &mut open(&kernel), &plan(&[(1, share("0", 0xf))])).to_string();
    assert!(
        error.contains("try again later") && error.contains("max_threshold_occupancy"),
        "{error}"
    );
}

#[test]
fn the_kernels_own_reason_is_in_the_error() {
    let kernel = Kernel::new(intel());
    kernel.make_foreign("other", &[7], 0x600, true);
    let mut partition = open(&kernel);
    let error = refusal(&kernel, &mut partition, &plan(&[(1, share("0", 0x700))])).to_string();
    assert!(
        error.contains("L3:0=700;1=700") && error.contains("Overlaps with exclusive group"),
        "{error}"
    );
    let error = refusal(&kernel, &mut partition, &plan(&[(1, share("7", 0xf))])).to_string();
    assert!(
        error.contains("processor 7") && error.contains("0-6"),
        "{error}"
    );
}

#[test]
fn without_permission_the_error_says_how_to_get_it() {
    let kernel = Kernel::new(intel());
    let mut partition = open(&kernel);
    kernel.fail(0, Fault::Denied);
    let error = refusal(&kernel, &mut partition, &plan(&[(1, share("0", 0xf))])).to_string();
    assert!(
        error.contains("\"t-0\"") && error.contains("run as root"),
        "{error}"
    );
}

#[test]
fn groups_of_the_same_name_are_named_and_not_taken_over() {
    let kernel = Kernel::new(intel());
    kernel.make_foreign("t-4", &[1], 0xf, false);
    let error = Partition::open(&kernel, MountOptions::default(), "t")
        .unwrap_err()
        .to_string();
    assert!(error.contains("rmdir /sys/fs/resctrl/t-4"), "{error}");
    for prefix in ["", "../x", "a b", "ä"] {
        let error = Partition::open(&kernel, MountOptions::default(), prefix).unwrap_err();
        assert!(matches!(error, Error::Prefix(_)), "{error}");
    }
}

#[test]
fn after_a_way_back_that_failed_only_release_is_left() {
    let kernel = Kernel::new(intel());
    let before = kernel.in_force();
    let mut partition = open(&kernel);
    partition.apply(&plan(&[(1, share("0-3", 0xf0))])).unwrap();
    (0..20).for_each(|after| kernel.fail(after, Fault::Refused));
    let error = partition
        .apply(&plan(&[(1, share("0-2", 0x0f))]))
        .unwrap_err();
    assert!(matches!(error, Error::Stuck { .. }), "{error}");
    kernel.heal();
    let error = partition.apply(&plan(&[])).unwrap_err();
    assert!(matches!(error, Error::Unknown), "{error}");
    partition.release().unwrap();
    assert_eq!((kernel.in_force(), kernel.groups()), (before, vec![]));
}

#[test]
fn a_counter_without_a_value_says_so() {
    let kernel = Kernel::new(intel());
    let mut partition = open(&kernel);
    partition.apply(&plan(&[(1, share("0-3", 0xf0))])).unwrap();
    let cases = [
        ("4096", Reading::Bytes(4096)),
        ("Unavailable", Reading::Unavailable),
        ("Unassigned", Reading::Unassigned),
        ("Error", Reading::Error),
    ];
    for (text, reading) in cases {
        kernel.set_counter(text);
        let counters = partition.counters(Some(JobId(1))).unwrap();
        assert_eq!(counters.len(), 2);
        assert_eq!(
            (counters[1].0.as_str(), counters[1].1.total),
            ("mon_L3_01", Some(reading))
        );
    }
    kernel.set_counter("many");
    let error = partition.counters(None).unwrap_err().to_string();
    assert!(
        error.contains("\"many\"") && error.contains("mon_L3_00"),
        "{error}"
    );
}

#[test]
fn cpus_outside_all_jobs_stay_in_the_default_group() {
    let kernel = Kernel::new(intel());
    let mut partition = open(&kernel);
    assert_eq!(partition.cpus().to_string(), "0-7");
    let unlimited = Share {
        cpus: "2-3".parse::<Cpus>().unwrap(),
        limits: Limits::default(),
    };
    partition
        .apply(&plan(&[(1, share("0-1", 0xf0)), (2, unlimited)]))
        .unwrap();
    assert_eq!(partition.group(JobId(2)), None);
    assert_eq!(kernel.groups(), ["t-0"]);
}
