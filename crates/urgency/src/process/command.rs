//! What to run: the standard library's `Command`, with children that can be awaited.

use super::{Child, orphans, usual::as_usual_thread};
use std::{
    ffi::OsStr,
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{self, ExitStatus, Output, Stdio},
};

/// A program to run as a child process, with its arguments, environment and standard streams.
///
/// ```
/// use std::process::Stdio;
/// use urgency::process::Command;
///
/// # fn main() -> std::io::Result<()> {
/// let mut command = Command::new("sh");
/// command
///     .arg("-c")
///     .args(["echo $0: $GREETING from $PWD, $HOME$1", "sh"])
///     .env_clear()
///     .envs([("GREETING", "hello"), ("HOME", "nowhere")])
///     .env_remove("HOME")
///     .current_dir("/")
///     .stdin(Stdio::null());
/// let output = urgency::block_on(command.output())?;
/// assert_eq!(output.stdout, b"sh: hello from /,\n");
///
/// command.env("GREETING", "hi").stdout(Stdio::null()).stderr(Stdio::null());
/// assert!(urgency::block_on(command.status())?.success());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Command {
    std: process::Command,
    kill_on_drop: bool,
}

impl Command {
    /// Runs `program`, which is looked for in `PATH` unless it is a path. It has no arguments, the environment and the
    /// folder of this process, and its standard streams, but for [`output`](Command::output).
    pub fn new<S: AsRef<OsStr>>(program: S) -> Self {
        process::Command::new(program).into()
    }

    /// The standard library's form, to read.
    ///
    /// ```
    /// let mut command = urgency::process::Command::new("ls");
    /// command.as_std_mut().arg("-l");
    /// assert_eq!(command.as_std().get_args().collect::<Vec<_>>(), ["-l"]);
    /// assert_eq!(command.into_std().get_program(), "ls");
    /// ```
    pub fn as_std(&self) -> &process::Command {
        &self.std
    }

    /// The standard library's form, to change. See [`as_std`](Command::as_std).
    pub fn as_std_mut(&mut self) -> &mut process::Command {
        &mut self.std
    }

    /// The standard library's form. What [`kill_on_drop`](Command::kill_on_drop) said is lost.
    pub fn into_std(self) -> process::Command {
        self.std
    }

    /// Adds an argument. No shell sees it: a space or a `*` in it means itself.
    pub fn arg<S: AsRef<OsStr>>(&mut self, arg: S) -> &mut Self {
        self.std.arg(arg);
        self
    }

    /// Adds several arguments.
    pub fn args<I, S>(&mut self, args: I) -> &mut Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.std.args(args);
        self
    }

    /// Sets a variable of the child's environment.
    pub fn env<K, V>(&mut self, key: K, value: V) -> &mut Self
    where
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.std.env(key, value);
        self
    }

    /// Sets several variables of the child's environment.
    pub fn envs<I, K, V>(&mut self, variables: I) -> &mut Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.std.envs(variables);
        self
    }

    /// The child does not have this variable.
    pub fn env_remove<K: AsRef<OsStr>>(&mut self, key: K) -> &mut Self {
        self.std.env_remove(key);
        self
    }

    /// The child has no variables but the ones that are set after this.
    pub fn env_clear(&mut self) -> &mut Self {
        self.std.env_clear();
        self
    }

    /// The folder in which the child begins. Name the program by its name or an absolute path then: whether a relative
    /// path is meant from here or from there differs between systems.
    pub fn current_dir<P: AsRef<Path>>(&mut self, folder: P) -> &mut Self {
        self.std.current_dir(folder);
        self
    }

    /// The child's standard input: inherited, unless this says otherwise. With [`Stdio::piped`] the program writes to
    /// it through [`Child::stdin`].
    pub fn stdin<T: Into<Stdio>>(&mut self, stream: T) -> &mut Self {
        self.std.stdin(stream);
        self
    }

    /// The child's standard output: inherited, unless this says otherwise. With [`Stdio::piped`] the program reads it
    /// through [`Child::stdout`].
    pub fn stdout<T: Into<Stdio>>(&mut self, stream: T) -> &mut Self {
        self.std.stdout(stream);
        self
    }

    /// The child's standard error output: inherited, unless this says otherwise. With [`Stdio::piped`] the program
    /// reads it through [`Child::stderr`].
    pub fn stderr<T: Into<Stdio>>(&mut self, stream: T) -> &mut Self {
        self.std.stderr(stream);
        self
    }

    /// Whether a [`Child`] that is dropped before it was waited for is killed (SIGKILL). It is not, unless this says
    /// so. The same holds for a dropped future of [`status`](Command::status), [`output`](Command::output) or
    /// [`Child::wait_with_output`].
    ///
    /// ```
    /// use urgency::process::Command;
    ///
    /// let mut command = Command::new("sleep");
    /// command.arg("600").kill_on_drop(true);
    /// assert!(command.get_kill_on_drop());
    /// drop(command.spawn()?); // and is gone
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Self {
        self.kill_on_drop = kill;
        self
    }

    /// What [`kill_on_drop`](Command::kill_on_drop) said.
    pub fn get_kill_on_drop(&self) -> bool {
        self.kill_on_drop
    }

    /// The child's user. See [`CommandExt::uid`](std::os::unix::process::CommandExt::uid).
    ///
    /// ```
    /// use rustix::process::{getgid, getuid};
    /// use urgency::process::Command;
    ///
    /// let mut id = Command::new("id");
    /// id.arg("-u").uid(getuid().as_raw()).gid(getgid().as_raw());
    /// let said = urgency::block_on(id.output())?.stdout;
    /// assert_eq!(String::from_utf8_lossy(&said).trim(), getuid().as_raw().to_string());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn uid(&mut self, id: u32) -> &mut Self {
        self.std.uid(id);
        self
    }

    /// The child's group. See [`CommandExt::gid`](std::os::unix::process::CommandExt::gid).
    pub fn gid(&mut self, id: u32) -> &mut Self {
        self.std.gid(id);
        self
    }

    /// What the child finds as its own name: its argument 0.
    ///
    /// ```
    /// let mut shell = urgency::process::Command::new("sh");
    /// shell.arg0("of another name").args(["-c", "echo $0"]);
    /// assert_eq!(urgency::block_on(shell.output())?.stdout, b"of another name\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn arg0<S: AsRef<OsStr>>(&mut self, arg: S) -> &mut Self {
        self.std.arg0(arg);
        self
    }

    /// The group of processes that the child joins; 0 is a new one of its own. A ctrl-c at the terminal goes to all
    /// processes of the group in the foreground.
    ///
    /// ```
    /// use std::os::unix::process::ExitStatusExt;
    /// use rustix::process::{Pid, Signal, kill_process_group};
    ///
    /// let mut child = urgency::process::Command::new("sleep").arg("600").process_group(0).spawn()?;
    /// let group = child.id().and_then(|id| Pid::from_raw(id as i32)).unwrap();
    /// kill_process_group(group, Signal::TERM)?;
    /// assert_eq!(urgency::block_on(child.wait())?.signal(), Some(15));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.std.process_group(group);
        self
    }

    /// Runs `f` in the child before its program begins. If it gives an error, so does [`spawn`](Command::spawn).
    ///
    /// ```
    /// use std::io;
    /// use urgency::process::Command;
    ///
    /// let mut command = Command::new("true");
    /// // SAFETY: the closure makes a value, and no system call.
    /// unsafe { command.pre_exec(|| Err(io::Error::from_raw_os_error(13))) };
    /// assert_eq!(command.spawn().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    /// ```
    ///
    /// # Safety
    ///
    /// The closure runs in a copy of the process that has one thread only, and in which the locks of the other threads
    /// stay locked, the allocator's among them. So it may do what a handler of a signal may do: system calls, as a
    /// rule. It has copies of all descriptors, and shares what they name with the parent.
    pub unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Self
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static,
    {
        // SAFETY: the caller promises what the standard library asks for.
        unsafe { self.std.pre_exec(f) };
        self
    }

    /// Starts the child, at once, and returns when it has begun its program: a blocking call of about a millisecond, in
    /// which the caller's worker does something else. So it is a scheduling point.
    ///
    /// The child begins in the usual class of the kernel's scheduler and with the usual time slices, also where the
    /// runtime has changed both for the thread that spawns it. (If the process may not raise a thread that it lowered,
    /// the child of a lowered thread is lowered for good: [`Builder::lower_threads`](crate::Builder::lower_threads).)
    ///
    /// ```
    /// use std::io::ErrorKind;
    /// use urgency::process::Command;
    ///
    /// let mut child = Command::new("true").spawn()?;
    /// assert!(urgency::block_on(child.wait())?.success());
    /// assert_eq!(Command::new("no such program").spawn().unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the system says: `NotFound` if there is no such program, `PermissionDenied`, `WouldBlock` if no more
    /// processes are allowed, and the limits of descriptors and memory. Then there is no child.
    pub fn spawn(&mut self) -> io::Result<Child> {
        orphans::look();
        let kill_on_drop = self.kill_on_drop;
        as_usual_thread(|| Child::new(self.std.spawn()?, kill_on_drop))
    }

    /// Starts the child, at once, and gives a future of its end. Pipes that were asked for are closed at once.
    ///
    /// Dropping the future drops the [`Child`].
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn) and [`Child::wait`]. The future gives all of them.
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + Send + use<> {
        let child = self.spawn();
        async {
            let mut child = child?;
            drop((child.stdin.take(), child.stdout.take(), child.stderr.take()));
            child.wait().await
        }
    }

    /// Starts the child, at once, and gives a future of its end and of what it has written: its standard output and
    /// error output are pipes, whatever was said before.
    ///
    /// Dropping the future drops the [`Child`], and what was read.
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn) and [`Child::wait_with_output`]. The future gives all of them.
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + Send + use<> {
        self.std.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn();
        async { child?.wait_with_output().await }
    }
}

impl From<process::Command> for Command {
    fn from(std: process::Command) -> Self {
        Command {
            std,
            kill_on_drop: false,
        }
    }
}
