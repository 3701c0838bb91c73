//! Trees of files as machines show them: what is read of resctrl, of cgroups and of mounts, without any privilege.

#![allow(missing_docs)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use urgency_resctrl::{
    Cgroup, Cpus, Disk, Entitlement, Error, Machine, MountOptions, Partition, Quota, Resource,
    Unit, mounted_at,
};

/// A directory with these files; removed at the end.
struct Tree(PathBuf);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("urgency-resctrl-{}-{number}", std::process::id());
        let tree = Tree(std::env::temp_dir().join(name));
        files.iter().for_each(|(path, text)| tree.write(path, text));
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn machine(&self, options: &str) -> Result<Machine, Error> {
        Machine::read(&Disk::new(&self.0), MountOptions::parse(options))
    }

    fn open(&self, options: &str) -> Result<Partition<Disk>, Error> {
        Partition::open(Disk::new(&self.0), MountOptions::parse(options), "t")
    }

    fn entitlement(&self, affinity: &str) -> Result<Entitlement, Error> {
        Entitlement::read_at(&self.0, affinity.parse().unwrap())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const MONITORING: [(&str, &str); 2] = [
    ("info/L3_MON/num_rmids", "224\n"),
    (
        "info/L3_MON/mon_features",
        "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n",
    ),
];

/// Two sockets of a Xeon Gold, kernel 6.8.
fn intel() -> Tree {
    Tree::new(&[
        ("info/last_cmd_status", "ok\n"),
        ("info/L3/num_closids", "16\n"),
        ("info/L3/cbm_mask", "7ff\n"),
        ("info/L3/min_cbm_bits", "1\n"),
        ("info/L3/shareable_bits", "600\n"),
        ("info/L3/bit_usage", "0=XXSSSSSSSSS;1=XXSSSSSSSSS\n"),
        ("info/L3/sparse_masks", "0\n"),
        ("info/MB/num_closids", "8\n"),
        ("info/MB/min_bandwidth", "10\n"),
        ("info/MB/bandwidth_gran", "10\n"),
        ("info/MB/delay_linear", "1\n"),
        ("info/MB/thread_throttle_mode", "max\n"),
        MONITORING[0],
        MONITORING[1],
        ("schemata", "    MB:0=100;1=100\n    L3:0=7ff;1=7ff\n"),
        ("cpus_list", "0-79\n"),
    ])
}

/// An EPYC with four core complexes, kernel 6.6: the kernel says of no mask that it may be sparse.
fn amd() -> Tree {
    Tree::new(&[
        ("info/L3/num_closids", "16\n"),
        ("info/L3/cbm_mask", "ffff\n"),
        ("info/L3/min_cbm_bits", "1\n"),
        ("info/L3/shareable_bits", "0\n"),
        ("info/MB/num_closids", "16\n"),
        ("info/MB/min_bandwidth", "0\n"),
        ("info/MB/bandwidth_gran", "1\n"),
        ("info/MB/delay_linear", "0\n"),
        ("info/SMBA/num_closids", "16\n"),
        MONITORING[0],
        MONITORING[1],
        (
            "schemata",
            "  SMBA:0=2048;1=2048;2=2048;3=2048\n    MB:0=2048;1=  16;2=2048;3=2048\n    L3:0=ffff;1=ffff;2=ffff;3=ffff\n",
        ),
        ("cpus_list", "0-31\n"),
    ])
}

#[test]
fn a_xeon_is_read() {
    let tree = intel();
    let machine = tree.machine("rw,relatime").unwrap();
    let cache = &machine.caches[0];
    assert_eq!(
        (
            cache.resource,
            cache.ways,
            cache.least,
            cache.shareable,
            cache.sparse
        ),
        (Resource::L3, 0x7ff, 1, 0x600, false)
    );
    let bandwidth = machine.bandwidth.as_ref().unwrap();
    assert_eq!(
        (
            bandwidth.unit,
            bandwidth.least,
            bandwidth.most,
            bandwidth.step
        ),
        (Unit::Percent, 10, 100, 10)
    );
    assert_eq!(machine.monitoring.as_ref().unwrap().groups, 224);
    assert_eq!(
        machine.groups(),
        7,
        "bandwidth has fewer classes than the cache, and the default group has one"
    );
    let partition = tree.open("rw").unwrap();
    assert_eq!(partition.cpus().to_string(), "0-79");
}

#[test]
fn bandwidth_is_in_mebibytes_where_the_kernel_keeps_it_by_a_loop() {
    let bandwidth = intel()
        .machine("rw,relatime,mba_MBps")
        .unwrap()
        .bandwidth
        .unwrap();
    assert_eq!(bandwidth.unit, Unit::Mebibytes);
    assert!(bandwidth.check(1234).is_ok());
    assert!(bandwidth.check(0).is_err());
}

#[test]
fn an_epyc_is_read() {
    let tree = amd();
    let machine = tree.machine("rw").unwrap();
    let bandwidth = machine.bandwidth.as_ref().unwrap();
    assert_eq!(
        (bandwidth.unit, bandwidth.most),
        (Unit::EighthGigabytes, 2048)
    );
    assert_eq!(machine.l3().count(), 1, "slow memory is no cache");
    assert!(
        machine.caches[0].check(0b101).is_err(),
        "this kernel does not say that masks may be sparse"
    );
    tree.write("info/L3/sparse_masks", "1\n");
    assert!(tree.machine("rw").unwrap().caches[0].check(0b101).is_ok());
    tree.open("rw").unwrap();
}

#[test]
fn a_machine_with_code_and_data_apart_is_read() {
    let tree = Tree::new(&[
        ("schemata", "L3DATA:0=fffff\nL3CODE:0=fffff\n"),
        ("cpus_list", "0-7\n"),
    ]);
    for cache in ["L3CODE", "L3DATA"] {
        for (file, text) in [
            ("num_closids", "8"),
            ("cbm_mask", "fffff"),
            ("min_cbm_bits", "1"),
            ("shareable_bits", "0"),
        ] {
            tree.write(&format!("info/{cache}/{file}"), text);
        }
    }
    let partition = tree.open("rw,cdp").unwrap();
    assert_eq!(partition.machine().l3().count(), 2);
    assert_eq!(partition.machine().cache_control().unwrap().ways, 20);
    assert_eq!(partition.machine().bandwidth, None);
}

#[test]
fn a_machine_that_only_measures_is_read_and_gives_nothing() {
    let tree = Tree::new(&[MONITORING[0], MONITORING[1], ("cpus_list", "0-7\n")]);
    let machine = tree.machine("rw").unwrap();
    assert_eq!((machine.groups(), machine.cache_control()), (0, None));
    assert_eq!(machine.monitoring.unwrap().features.len(), 3);
    let error = tree.open("rw").unwrap_err();
    assert!(matches!(error, Error::NothingToGive), "{error}");
}

#[test]
fn a_file_that_does_not_say_what_it_must_is_named_with_its_text() {
    let cases = [
        ("info/L3/cbm_mask", "many", "hexadecimal"),
        ("info/L3/num_closids", "7ff", "decimal"),
        ("info/MB/min_bandwidth", "-1", "decimal"),
        ("schemata", "L3:0=7ff;1", "L3:0=ff"),
        ("schemata", "L3 0=7ff", "L3:0=ff"),
        ("schemata", "MB:0=7ff", "L3:0=ff"),
        ("cpus_list", "all", "0-3,8"),
    ];
    for (path, text, expected) in cases {
        let tree = intel();
        tree.write(path, text);
        let error = tree.open("rw").unwrap_err().to_string();
        assert!(
            error.contains(path) && error.contains(text) && error.contains(expected),
            "{error}"
        );
    }
    let tree = intel();
    fs::remove_file(tree.0.join("info/L3/cbm_mask")).unwrap();
    let error = tree.open("rw").unwrap_err().to_string();
    assert!(error.contains("info/L3/cbm_mask"), "{error}");
}

#[test]
fn what_this_crate_does_not_know_is_left_alone() {
    let tree = intel();
    tree.write("info/NEW/num_closids", "one\n");
    tree.write(
        "schemata",
        "   NEW:0=a b c\n    MB:0=100;1=100\n    L3:0=7ff;1=7ff\n",
    );
    tree.open("rw").unwrap();
}

#[test]
fn where_resctrl_is_missing_the_error_says_how_far_it_is() {
    let tree = Tree::new(&[
        ("proc/self/mounts", "proc /proc proc rw 0 0\n"),
        ("proc/filesystems", "nodev\tproc\n\text4\n"),
    ]);
    let error = mounted_at(&tree.0).unwrap_err();
    assert!(matches!(error, Error::NotSupported), "{error}");
    assert!(
        error.to_string().contains("CONFIG_X86_CPU_RESCTRL")
            && error.to_string().contains("cpuset.cpus"),
        "{error}"
    );

    tree.write("proc/filesystems", "nodev\tproc\nnodev\tresctrl\n\text4\n");
    let error = mounted_at(&tree.0).unwrap_err();
    assert!(matches!(error, Error::NotMounted), "{error}");
    assert!(error.to_string().contains("mount -t resctrl"), "{error}");

    tree.write(
        "proc/self/mounts",
        "proc /proc proc rw 0 0\nresctrl /sys/fs/resctrl resctrl rw,relatime,mba_MBps 0 0\n",
    );
    let (files, options) = mounted_at(&tree.0).unwrap();
    assert_eq!(files.root(), tree.0.join("sys/fs/resctrl"));
    assert!(options.mba_mbps);
}

const MOUNT_2: &str =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

#[test]
fn the_least_quota_on_the_way_up_counts() {
    let tree = Tree::new(&[
        ("proc/self/mountinfo", MOUNT_2),
        ("proc/self/cgroup", "0::/a/b\n"),
        ("sys/fs/cgroup/a/cpu.max", "250000 100000\n"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/a/b/cpuset.cpus.effective", "0-3\n"),
    ]);
    let entitlement = tree.entitlement("1-15").unwrap();
    assert_eq!(entitlement.cpus().to_string(), "1-3");
    assert_eq!(entitlement.workers(), 2, "two and a half processors' time");
    assert_eq!(
        entitlement.to_string(),
        "processors 1-3, 2.50 processors' time, by 100 ms"
    );
    assert_eq!(entitlement.cgroup, Some(tree.0.join("sys/fs/cgroup/a/b")));

    // Each of the three may change while the process runs.
    tree.write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    assert_eq!(
        tree.entitlement("1-15").unwrap().workers(),
        1,
        "half a processor is one worker"
    );
    tree.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    tree.write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
    assert_eq!(tree.entitlement("1-15").unwrap().workers(), 3);
    assert_eq!(tree.entitlement("3").unwrap().workers(), 1);
}

#[test]
fn a_container_sees_its_own_group_at_the_mount_point() {
    let tree = Tree::new(&[
        (
            "proc/self/mountinfo",
            "30 23 0:26 /pods/x /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
        ),
        ("proc/self/cgroup", "0::/pods/x/worker\n"),
        ("sys/fs/cgroup/cpu.max", "300000 100000\n"),
        ("sys/fs/cgroup/worker/cpu.max", "400000 100000\n"),
    ]);
    assert_eq!(tree.entitlement("0-7").unwrap().workers(), 3);
}

#[test]
fn version_1_has_its_quota_in_two_files() {
    let tree = Tree::new(&[
        (
            "proc/self/mountinfo",
            "33 23 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n34 23 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        ),
        ("proc/self/cgroup", "4:memory:/m\n1:cpu,cpuacct:/x\n0::/\n"),
        ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "200000\n"),
        ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
    ]);
    let entitlement = tree.entitlement("0-7").unwrap();
    assert_eq!((entitlement.workers(), entitlement.cgroup), (2, None));
}

#[test]
fn without_cgroups_the_affinity_counts() {
    let entitlement = Tree::new(&[]).entitlement("0,2,4").unwrap();
    assert_eq!((entitlement.workers(), entitlement.quota), (3, None));
}

#[test]
fn a_cgroup_file_that_says_nothing_known_is_an_error() {
    let tree = Tree::new(&[
        ("proc/self/mountinfo", MOUNT_2),
        ("proc/self/cgroup", "0::/a\n"),
        ("sys/fs/cgroup/a/cpu.max", "lots\n"),
    ]);
    let error = tree.entitlement("0").unwrap_err().to_string();
    assert!(
        error.contains("cpu.max") && error.contains("lots") && error.contains("max"),
        "{error}"
    );
}

#[test]
fn a_cgroup_takes_processors_and_time() {
    let tree = Tree::new(&[("cpuset.cpus", "\n"), ("cpu.max", "max 100000\n")]);
    let group = Cgroup::new(Disk::new(&tree.0));
    group.set_cpus(&"0-1,3".parse::<Cpus>().unwrap()).unwrap();
    assert_eq!(
        fs::read_to_string(tree.0.join("cpuset.cpus")).unwrap(),
        "0-1,3\n"
    );
    let quota = Quota {
        time: Duration::from_millis(150),
        period: Duration::from_millis(100),
    };
    group.set_quota(Some(quota)).unwrap();
    assert_eq!(group.quota().unwrap(), Some(quota));
    group.set_quota(None).unwrap();
    assert_eq!(group.quota().unwrap(), None);
}

#[test]
fn a_cgroup_without_the_controller_says_which_one_to_enable() {
    let tree = Tree::new(&[("cgroup.procs", "")]);
    let group = Cgroup::new(Disk::new(&tree.0));
    let error = group
        .set_cpus(&"0".parse().unwrap())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("cpuset.cpus") && error.contains("+cpuset"),
        "{error}"
    );
    let error = group.set_quota(None).unwrap_err().to_string();
    assert!(
        error.contains("cpu.max") && error.contains("+cpu"),
        "{error}"
    );
    assert!(
        !Path::new(&tree.0.join("cpu.max")).exists(),
        "no file is made"
    );
}
