//! What is about the process: the background, descriptors, the user, the file with its id.

use super::Options;
use nix::unistd::{User, getuid, initgroups, setgid, setuid};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit, setsid},
    stdio::{dup2_stderr, dup2_stdout},
};
use std::{
    env,
    ffi::CString,
    fs,
    io::{self, Read, Write},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio, id},
};

/// Descriptors that are not connections: listeners, the poller, files.
const DESCRIPTORS: u64 = 64;

/// What the background process writes when it listens.
const READY: &[u8] = b"ready\n";

/// `-d`: starts the server again as a process of its own, and leaves when it listens, or when it has failed.
///
/// Not a fork: this way no state is shared. The new process keeps the standard error until it listens, so what
/// is wrong is said on the terminal; its standard output is a pipe to here, for [`READY`].
pub fn start_in_background() -> ExitCode {
    let start = || {
        let mut arguments = env::args_os();
        let program = env::current_exe()?;
        arguments.next();
        let mut command = Command::new(program);
        command.args(arguments).arg("--detached").current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        await_ready(command.spawn()?)
    };
    match start() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("urgency cache: -d: the background process did not start: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Waits until the background process listens, or until it has ended: then with its exit code.
fn await_ready(mut server: Child) -> io::Result<ExitCode> {
    let output = server.stdout.take().expect("its standard output is piped");
    let mut said = Vec::new();
    output.take(READY.len() as u64).read_to_end(&mut said)?;
    if said == READY {
        return Ok(ExitCode::SUCCESS);
    }
    let code = server.wait()?.code();
    Ok(code
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The background process says that it listens, and lets go of the terminal.
pub fn detach() -> io::Result<()> {
    let nowhere = fs::OpenOptions::new().write(true).open("/dev/null")?;
    // First, so that a reader that waits for the end of this stream waits no longer than for the word.
    dup2_stderr(&nowhere)?;
    // The process that started this one may be gone; the server is needed all the same.
    let _ = io::stdout()
        .write_all(READY)
        .and_then(|()| io::stdout().flush());
    dup2_stdout(&nowhere)?;
    Ok(())
}

/// What must happen first.
pub fn prepare(options: &Options) -> io::Result<()> {
    if options.detached {
        setsid()?;
    }
    if options.core_files {
        let limit = getrlimit(Resource::Core);
        setrlimit(
            Resource::Core,
            Rlimit {
                current: limit.maximum,
                ..limit
            },
        )?;
    }
    let limit = getrlimit(Resource::Nofile);
    let needed = u64::from(options.connections) + DESCRIPTORS;
    if limit.current.is_some_and(|current| current < needed) {
        let raise = |current, maximum| setrlimit(Resource::Nofile, Rlimit { current, maximum });
        // Only root may go beyond the maximum, and not always: the kernel and a container have limits of their own.
        let is_beyond = limit.maximum.is_some_and(|maximum| maximum < needed);
        if !is_beyond || !getuid().is_root() || raise(Some(needed), Some(needed)).is_err() {
            let most = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
            // How many there are then is said below.
            let _ = raise(Some(most), limit.maximum);
        }
        let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        if allowed < needed {
            eprintln!(
                "urgency cache: -c {} needs {needed} descriptors; {allowed} are allowed (ulimit -n), the others will have to wait",
                options.connections
            );
        }
    }
    Ok(())
}

/// `-u`: becomes another user, if started by root.
pub fn drop_privileges(options: &Options) -> Result<(), String> {
    let Some(name) = &options.user else {
        return Ok(());
    };
    if !getuid().is_root() {
        return Ok(());
    }
    let user = User::from_name(name).ok().flatten();
    let user = user.ok_or_else(|| format!("-u {name}: there is no such user"))?;
    if user.uid.is_root() {
        return Ok(());
    }
    let text = CString::new(user.name.clone()).map_err(|error| format!("-u {name}: {error}"))?;
    let became = initgroups(&text, user.gid)
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid));
    became.map_err(|error| format!("-u {name}: cannot become this user: {error}"))
}

/// `-P`: a file with the process id, as long as this lives.
pub struct PidFile {
    path: Option<PathBuf>,
}

impl PidFile {
    pub fn write(options: &Options) -> Result<Self, String> {
        if let Some(path) = &options.pid_file {
            fs::write(path, format!("{}\n", id()))
                .map_err(|error| format!("-P {}: {error}", path.display()))?;
        }
        Ok(PidFile {
            path: options.pid_file.clone(),
        })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The next server writes it anew.
            let _ = fs::remove_file(path);
        }
    }
}
