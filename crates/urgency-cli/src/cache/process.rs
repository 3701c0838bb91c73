//! What is about the process: the background, descriptors, the user, the file with its id.

use super::Options;
use nix::unistd::{User, getuid, initgroups, setgid, setuid};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, setsid};
use std::{
    env,
    ffi::CString,
    fs, io,
    path::PathBuf,
    process::{Command, ExitCode, Stdio, id},
};

/// Descriptors that are not connections: listeners, the poller, files.
const DESCRIPTORS: u64 = 64;

/// `-d`: starts the server again as a process without a terminal, and leaves.
///
/// Not a fork: this way no state is shared, and an option that is wrong was said on the terminal before.
pub fn start_in_background() -> ExitCode {
    let start = || {
        let mut arguments = env::args_os();
        let program = env::current_exe()?;
        arguments.next();
        let mut command = Command::new(program);
        command.args(arguments).arg("--detached").current_dir("/");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn()
    };
    match start() {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("urgency cache: -d: the background process did not start: {error}");
            ExitCode::FAILURE
        }
    }
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
        let wanted = match limit.maximum {
            Some(maximum) if maximum < needed && getuid().is_root() => Rlimit {
                current: Some(needed),
                maximum: Some(needed),
            },
            Some(maximum) => Rlimit {
                current: Some(needed.min(maximum)),
                maximum: limit.maximum,
            },
            None => Rlimit {
                current: Some(needed),
                maximum: None,
            },
        };
        let allowed = wanted.current.unwrap_or(u64::MAX);
        if setrlimit(Resource::Nofile, wanted).is_err() || allowed < needed {
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
            // Who starts next writes it anew.
            let _ = fs::remove_file(path);
        }
    }
}
