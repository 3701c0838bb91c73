//! The real-time class for the load client: SCHED_FIFO, above every normal thread of the machine, so that a
//! reply is seen when it comes and a request is sent when it is due, however busy the processors are. It
//! needs a privilege (CAP_SYS_NICE, or a limit RLIMIT_RTPRIO above 0).
//!
//! Threads inherit the class of the thread that starts them. The kernel keeps 5 % of each second for
//! everybody else in any case.

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Raises the calling thread, or says why that was not permitted.
pub fn enter() -> Result<(), String> {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, fifo).map_err(|error| {
        match error {
            thread_priority::Error::OS(code) => std::io::Error::from_raw_os_error(code).to_string(),
            other => format!("{other:?}"),
        }
    })
}
