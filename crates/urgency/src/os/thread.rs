//! Thread identity, and the kernel's own priorities for relief.
//!
//! A thread that overruns is *demoted* to the idle scheduling class while it overruns, so that the
//! spare thread that got its worker runs first. The class can be left again without privileges (nice
//! often cannot), which [`can_demote`] probes once. Elsewhere relief works without demotion.

#[cfg(target_os = "linux")]
mod imp {
    use std::sync::OnceLock;

    const SCHED_OTHER: i32 = 0;
    const SCHED_IDLE: i32 = 5;

    #[repr(C)]
    struct Param {
        priority: i32,
    }

    unsafe extern "C" {
        fn sched_setscheduler(pid: i32, policy: i32, param: *const Param) -> i32;
        fn gettid() -> i32;
    }

    fn set_class(tid: i32, class: i32) -> bool {
        let param = Param { priority: 0 };
        // SAFETY: the C library's own signature; `param` outlives the call.
        unsafe { sched_setscheduler(tid, class, &param) == 0 }
    }

    pub(crate) fn current_id() -> i32 {
        // SAFETY: no arguments, cannot fail.
        unsafe { gettid() }
    }

    pub(crate) fn can_demote() -> bool {
        static CAN: OnceLock<bool> = OnceLock::new();
        *CAN.get_or_init(|| {
            // On a thread of its own: were leaving the class refused, this thread would be stuck in it.
            std::thread::spawn(|| {
                let me = current_id();
                set_class(me, SCHED_IDLE) && set_class(me, SCHED_OTHER)
            })
            .join()
            .unwrap_or(false)
        })
    }

    pub(crate) fn demote(tid: i32) -> bool {
        can_demote() && set_class(tid, SCHED_IDLE)
    }

    pub(crate) fn promote(tid: i32) {
        set_class(tid, SCHED_OTHER);
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    pub(crate) fn current_id() -> i32 {
        0
    }

    pub(crate) fn can_demote() -> bool {
        false
    }

    pub(crate) fn demote(_: i32) -> bool {
        false
    }

    pub(crate) fn promote(_: i32) {}
}

pub(crate) use imp::{can_demote, current_id, demote, promote};
