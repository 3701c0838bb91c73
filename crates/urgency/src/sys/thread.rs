//! Thread identity, and what the kernel's scheduler lets a process say about its own threads.
//!
//! Each means is probed: where it is missing or not permitted, the runtime does without. A probe changes the class of a
//! thread of its own. The kernel's answer is remembered. If no thread could be had for the question, there is no
//! answer, and the next caller asks again. Under miri, which interprets none of these calls, all are missing.
//!
//! - *Lowering*: a thread whose worker was revoked for more urgent work gets a higher niceness, or goes to the idle
//!   class, so that the thread that got its worker runs first. Any process may do that. To come back the kernel
//!   wants a privilege, or an `RLIMIT_NICE` of 20, which many systems do not give (`protocol/demotion.rs`). Threads and
//!   processes inherit the class, with `SCHED_RESET_ON_FORK`, too: the flag is for the real-time classes and
//!   negative niceness (tried on Linux 6.18).
//! - *Short slices*: a thread that waits in the poller asks for short time slices. Since Linux 6.12 a woken
//!   thread with a shorter slice than the running one preempts it at once; otherwise it may have to wait
//!   until the running one has used up its own, 3 ms here. Its share of the processor stays the same.
//! - *Long slices*: a thread that came from the poller asks for long ones when it begins what may be long. With
//!   slices of the usual length it was not preempted in one wake-up of fifty, until the kernel's next tick (4 ms
//!   here): a thread of the idle class had run before it, and the kernel owed it more than its own slice.
//! - *The processor of a hand-off*: a woken thread goes to an idle processor if there is one, which takes ten
//!   times as long as a switch on this one (30 and 2 µs here). A thread that leaves its stack for more urgent work is
//!   about to sleep; so the thread for that work is called here, and may run everywhere again as soon as it runs.
//! - *The real-time class* for that thread instead, if the program asks for it and the system permits it.

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use crate::sys::{IDLE, fork::Process};
    use std::{
        cell::Cell,
        mem, ptr,
        sync::{
            OnceLock,
            atomic::{AtomicU8, Ordering::Relaxed},
        },
    };

    /// What a probe has found.
    struct Permission(AtomicU8);

    const UNKNOWN: u8 = 0;
    const REFUSED: u8 = 1;
    const GRANTED: u8 = 2;

    impl Permission {
        const fn unknown() -> Self {
            Permission(AtomicU8::new(UNKNOWN))
        }

        /// What `probe` says on a thread of its own; `false` for now if no thread can be had.
        fn is_granted(&self, probe: fn() -> bool) -> bool {
            match self.0.load(Relaxed) {
                UNKNOWN => self.find_out(probe),
                known => known == GRANTED,
            }
        }

        #[cold]
        fn find_out(&self, probe: fn() -> bool) -> bool {
            let Ok(thread) = std::thread::Builder::new().spawn(probe) else {
                return false;
            };
            let granted = thread.join().unwrap_or(false);
            // Several may ask at once: they get the same answer.
            self.0
                .store(if granted { GRANTED } else { REFUSED }, Relaxed);
            granted
        }
    }

    /// The niceness of the program's usual threads: of the thread that built the first runtime.
    fn usual_niceness() -> i32 {
        static USUAL: OnceLock<i32> = OnceLock::new();
        *USUAL.get_or_init(|| niceness(0))
    }

    /// Remembers the calling thread's niceness as the program's, if none is remembered yet.
    pub(crate) fn note_usual_niceness() {
        usual_niceness();
    }

    fn niceness(tid: i32) -> i32 {
        // SAFETY: plain numbers in, a plain number out.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, tid as libc::id_t) }
    }

    fn attributes(policy: i32, nice: i32) -> Attributes {
        Attributes {
            size: mem::size_of::<Attributes>() as u32,
            policy: policy as u32,
            flags: 0,
            nice,
            priority: 0,
            runtime: 0,
            deadline: 0,
            period: 0,
        }
    }

    fn set_attributes(tid: i32, attributes: &Attributes) -> bool {
        // SAFETY: the kernel reads `size` bytes of the struct. A refusal changes nothing.
        unsafe { libc::syscall(libc::SYS_sched_setattr, tid, ptr::from_ref(attributes), 0) == 0 }
    }

    /// Puts a thread into this class: so much nicer than usual, or idle.
    fn set_class(tid: i32, class: u8) -> bool {
        let attributes = match class {
            IDLE => attributes(libc::SCHED_IDLE, 0),
            nicer => {
                let nice = (usual_niceness() + i32::from(nicer)).min(19);
                attributes(libc::SCHED_OTHER, nice)
            }
        };
        set_attributes(tid, &attributes)
    }

    thread_local! {
        /// In this process. The system call was a third of what a plain thread's `block_on` costs.
        static ID: Cell<Option<(Process, i32)>> = const { Cell::new(None) };
    }

    pub(crate) fn current_id() -> i32 {
        let ask = || {
            // SAFETY: no arguments, cannot fail.
            let asked = (Process::this(), unsafe { libc::gettid() });
            ID.set(Some(asked));
            asked
        };
        ID.get().filter(|it| it.0.is_this()).unwrap_or_else(ask).1
    }

    /// The processor that the calling thread runs on, as a hint.
    #[inline]
    pub(crate) fn current_cpu() -> i32 {
        // SAFETY: no arguments; -1 if the kernel does not say.
        unsafe { libc::sched_getcpu() }
    }

    /// Whether a thread that was lowered may come back.
    pub(crate) fn can_raise() -> bool {
        static CAN: Permission = Permission::unknown();
        // A process that is in the idle class as a whole stays there.
        CAN.is_granted(|| {
            let me = current_id();
            own_class() != IDLE && set_class(me, IDLE) && set_class(me, 0)
        })
    }

    /// The processors that a thread may run on.
    pub(crate) type Processors = rustix::thread::CpuSet;

    /// On how many processors the calling thread may run. A quota of their time does not count: one and a half
    /// processors are two that rest at times. If the system does not tell, as many as one likes.
    pub(crate) fn processors() -> usize {
        let affinity = rustix::thread::sched_getaffinity(None);
        affinity.map_or(usize::MAX, |set| set.count() as usize)
    }

    /// How many processors the system has, in use or not.
    pub(crate) fn known_processors() -> usize {
        // SAFETY: a plain number in, a plain number out; -1 if the system does not say.
        let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        usize::try_from(count).unwrap_or(0)
    }

    /// The program's first thread.
    pub(crate) fn first_id() -> i32 {
        rustix::process::getpid().as_raw_nonzero().get()
    }

    /// The processors that any of these threads may run on; 0 is the calling one. A thread that has ended counts
    /// nothing. `None`: the system does not tell.
    pub(crate) fn affinity(tids: &[i32]) -> Option<urgency_resctrl::Cpus> {
        use rustix::thread::{CpuSet, Pid, sched_getaffinity};
        let sets = tids
            .iter()
            .filter_map(|&tid| sched_getaffinity(Pid::from_raw(tid)).ok());
        let sets: Vec<_> = sets.collect();
        let all = (0..CpuSet::MAX_CPU).filter(|&cpu| sets.iter().any(|set| set.is_set(cpu)));
        (!sets.is_empty()).then(|| all.collect())
    }

    /// Until [`send_home`], a thread of this process, which sleeps, runs on the calling thread's processor
    /// only. Returns where it may run otherwise; `None`: it is left as it is.
    pub(crate) fn call_here(tid: i32) -> Option<Processors> {
        bind(tid, |_, here| only(&[here]))
    }

    /// As [`call_here`], and the thread runs on any other processor.
    pub(crate) fn send_away(tid: i32) -> Option<Processors> {
        bind(tid, |home, here| {
            let mut others = *home;
            others.unset(here);
            others
        })
    }

    /// A thread that sleeps may run on these of its processors, of which the calling thread's is one.
    fn bind(tid: i32, to: impl FnOnce(&Processors, usize) -> Processors) -> Option<Processors> {
        use rustix::thread::{Pid, sched_getaffinity, sched_getcpu, sched_setaffinity};
        let pid = Pid::from_raw(tid)?;
        let home = sched_getaffinity(Some(pid)).ok()?;
        let here = sched_getcpu();
        if home.count() < 2 || !home.is_set(here) {
            return None;
        }
        sched_setaffinity(Some(pid), &to(&home, here)).ok()?;
        Some(home)
    }

    /// The calling thread may run on all these processors again.
    pub(crate) fn send_home(home: &Processors) {
        allow(None, home);
    }

    /// The calling thread goes to a processor that `is_free`, if there is one where it may run, to `rather` before any
    /// other. Then it may run everywhere again.
    pub(crate) fn go_where(rather: i32, is_free: impl Fn(i32) -> bool) {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let Ok(home) = sched_getaffinity(None) else {
            return;
        };
        let mut free = (0..CpuSet::MAX_CPU).filter(|&cpu| home.is_set(cpu) && is_free(cpu as i32));
        let first = free.next();
        let cpu = free.find(|&cpu| cpu as i32 == rather).or(first);
        if cpu.is_some_and(|cpu| sched_setaffinity(None, &only(&[cpu])).is_ok()) {
            send_home(&home);
        }
    }

    fn allow(thread: Option<rustix::thread::Pid>, home: &Processors) {
        // Some of these processors may have been forbidden meanwhile; the kernel takes the ones that are left.
        let _ = rustix::thread::sched_setaffinity(thread, home);
    }

    /// These processors. Each is one that some thread may use.
    pub(crate) fn only(cpus: &[usize]) -> Processors {
        let mut set = Processors::new();
        cpus.iter().for_each(|&cpu| set.set(cpu));
        set
    }

    /// A thread of this process, or the calling one (0), runs on this processor only from now on. The kernel refuses a
    /// processor that the process has lost.
    pub(crate) fn pin(tid: i32, cpu: usize) {
        allow(rustix::thread::Pid::from_raw(tid), &only(&[cpu]));
    }

    /// How long a thread of this process has run, in nanoseconds.
    pub(crate) fn cpu_time(tid: i32) -> Option<u64> {
        // The kernel's encoding of a thread's scheduler clock: see `clock_getcpuclockid`.
        let clock = (!tid << 3) | 6;
        // SAFETY: all-zero is a valid value of this plain C struct.
        let mut time: libc::timespec = unsafe { mem::zeroed() };
        // SAFETY: the call writes one `timespec`.
        let got = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
        got.then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// How often another thread got the processor of the calling one although that went on. `None`: the system does not
    /// tell.
    pub(crate) fn preemptions() -> Option<i64> {
        // SAFETY: all-zero is a valid value of this plain C struct.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        // SAFETY: the call writes one `rusage`.
        let got = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } == 0;
        got.then_some(usage.ru_nivcsw)
    }

    /// Whether a thread of this process sleeps in the kernel, rather than running or waiting for a
    /// processor. `true` if that cannot be known.
    pub(crate) fn is_blocked(tid: i32) -> bool {
        // One call reads what is needed: the number, the name of at most 64 bytes in parentheses, and the state. The
        // name may contain anything.
        let mut start = [0; 128];
        let stat = std::fs::File::open(format!("/proc/self/task/{tid}/stat"));
        let read = stat.and_then(|mut stat| std::io::Read::read(&mut stat, &mut start));
        let state = read.ok().and_then(|length| {
            let end = start[..length].windows(2).rposition(|pair| pair == b") ")?;
            start.get(end + 2)
        });
        state != Some(&b'R')
    }

    /// `false`: the program has put the thread into another class than the usual one, where nobody would put it
    /// back; or the system refuses.
    pub(crate) fn lower(tid: i32, class: u8) -> bool {
        // SAFETY: a plain number in, a plain number out.
        let policy = unsafe { libc::sched_getscheduler(tid) };
        let is_ours = policy == libc::SCHED_OTHER || policy == libc::SCHED_IDLE;
        is_ours && set_class(tid, class)
    }

    pub(crate) fn raise(tid: i32) {
        set_class(tid, 0);
    }

    /// The calling thread's class: by how much it is nicer than usual, or idle.
    pub(crate) fn own_class() -> u8 {
        // SAFETY: a plain number in, a plain number out.
        if unsafe { libc::sched_getscheduler(0) } == libc::SCHED_IDLE {
            return IDLE;
        }
        (niceness(0) - usual_niceness()).clamp(0, 19) as u8
    }

    /// Puts the calling thread into the real-time class, or back. `false`: not permitted.
    pub(crate) fn set_real_time(on: bool) -> bool {
        // SAFETY: all-zero is a valid value of this plain C struct.
        let mut param: libc::sched_param = unsafe { mem::zeroed() };
        param.sched_priority = i32::from(on);
        let class = if on {
            libc::SCHED_RR
        } else {
            libc::SCHED_OTHER
        };
        // SAFETY: `param` outlives the call.
        unsafe { libc::sched_setscheduler(0, class, &param) == 0 }
    }

    /// The calling thread is in no real-time class, although one that is in such a class made it.
    pub(crate) fn leave_real_time() {
        // SAFETY: a plain number in, a plain number out.
        let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
        if policy == libc::SCHED_FIFO || policy == libc::SCHED_RR {
            set_class(0, 0);
        }
    }

    /// Whether this process may use the real-time class.
    pub(crate) fn can_real_time() -> bool {
        static CAN: Permission = Permission::unknown();
        CAN.is_granted(|| set_real_time(true))
    }

    /// As the kernel's `struct sched_attr`, first version.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }

    /// The shortest slice that the kernel grants, in nanoseconds.
    const SHORT_SLICE: u64 = 100_000;

    /// Twice the time between two ticks of the slowest kernels, in nanoseconds: for so long a thread of the idle class
    /// runs beside one that sleeps, until the kernel looks at their accounts.
    const LONG_SLICE: u64 = 20_000_000;

    /// Asks for short slices for the calling thread, or for long ones.
    pub(crate) fn set_slices(short: bool) {
        ask_for_slices(if short { SHORT_SLICE } else { LONG_SLICE });
    }

    /// The calling thread has slices of the usual length, if the ones that it has are the runtime's: inherited from the
    /// thread that made it, or its own while it was a thread of the runtime.
    pub(crate) fn usual_slices() {
        end_own_slices();
    }

    /// As [`usual_slices`]. Returns how long the slices were that the runtime had asked for, if it had.
    fn end_own_slices() -> Option<u64> {
        let length = own_attributes()?.runtime;
        [SHORT_SLICE, LONG_SLICE].contains(&length).then(|| {
            ask_for_slices(0);
            length
        })
    }

    /// Calls `f` on the calling thread, which has slices of the usual length meanwhile, if the ones that it has are the
    /// runtime's. What `f` makes inherits them.
    pub(crate) fn in_usual_slices<R>(f: impl FnOnce() -> R) -> R {
        let own = end_own_slices();
        let result = f();
        own.into_iter().for_each(ask_for_slices);
        result
    }

    /// Asks for slices of this length for the calling thread: 0 is the usual length.
    fn ask_for_slices(length: u64) {
        if let Some(mut attributes) = own_attributes()
            && attributes.policy == libc::SCHED_OTHER as u32
        {
            attributes.runtime = length;
            attributes.flags = 0;
            set_attributes(0, &attributes);
        }
    }

    /// How long the calling thread's slices are, in nanoseconds.
    #[cfg(all(test, not(urgency_loom)))]
    pub(crate) fn slice() -> Option<u64> {
        own_attributes().map(|attributes| attributes.runtime)
    }

    fn own_attributes() -> Option<Attributes> {
        let mut attributes = attributes(libc::SCHED_OTHER, 0);
        let size = attributes.size;
        // SAFETY: the kernel writes at most `size` bytes to a struct of that size.
        let got =
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
        (got == 0).then_some(attributes)
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod imp {
    pub(crate) type Processors = ();

    pub(crate) fn processors() -> usize {
        std::thread::available_parallelism().map_or(1, |count| count.get())
    }

    macro_rules! always {
        ($($name:ident($($argument:ty),*) $(-> $type:ty: $value:expr)?;)*) => {$(
            pub(crate) fn $name($(_: $argument),*) $(-> $type)? {
                $($value)?
            }
        )*};
    }

    pub(crate) fn in_usual_slices<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    always! {
        affinity(&[i32]) -> Option<urgency_resctrl::Cpus>: None;
        call_here(i32) -> Option<Processors>: None;
        can_raise() -> bool: false;
        can_real_time() -> bool: false;
        cpu_time(i32) -> Option<u64>: None;
        current_cpu() -> i32: -1;
        current_id() -> i32: 0;
        first_id() -> i32: 0;
        go_where(i32, impl Fn(i32) -> bool);
        is_blocked(i32) -> bool: true;
        known_processors() -> usize: 0;
        leave_real_time();
        lower(i32, u8) -> bool: false;
        note_usual_niceness();
        only(&[usize]) -> Processors: ();
        own_class() -> u8: 0;
        pin(i32, usize);
        preemptions() -> Option<i64>: None;
        raise(i32);
        send_away(i32) -> Option<Processors>: None;
        send_home(&Processors);
        set_real_time(bool) -> bool: false;
        set_slices(bool);
        usual_slices();
    }
}

#[cfg(test)]
thread_local! {
    static PRETENDED: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
}

/// The runtimes that the calling thread builds believe that there are so many processors.
#[cfg(test)]
pub(crate) fn pretend_processors(count: Option<usize>) {
    PRETENDED.set(count);
}

/// Whether the calling thread's runtimes believe that there are so many processors.
pub(crate) fn pretends() -> bool {
    #[cfg(test)]
    return PRETENDED.get().is_some();
    #[cfg(not(test))]
    false
}

/// About where the calling function's frame is, as an address.
#[inline(never)]
pub(crate) fn frame() -> usize {
    let local = 0_u8;
    (&raw const local).addr()
}

/// On how many processors the calling thread may run.
pub(crate) fn processors() -> usize {
    #[cfg(test)]
    if let Some(pretended) = PRETENDED.get() {
        return pretended;
    }
    imp::processors()
}

pub(crate) use imp::{
    Processors, affinity, call_here, can_raise, can_real_time, cpu_time, current_cpu, current_id,
    first_id, go_where, in_usual_slices, is_blocked, known_processors, leave_real_time, lower,
    note_usual_niceness, only, own_class, pin, preemptions, raise, send_away, send_home,
    set_real_time, set_slices, usual_slices,
};

#[cfg(all(test, target_os = "linux", not(any(miri, urgency_loom))))]
pub(crate) use imp::slice;
