//! `urgency cache`: the cache server, with memcached's command line.
//!
//! `options` and `extended` say what can be asked for, `process` does what happens before there is a thread
//! (user, limits, background), `allocator` keeps memory within bounds, `sockets` binds, and this file
//! puts the server together and waits for its end.
//!
//! Exit codes: 0 the server was asked to end and did; 1 it could not start (an address in use, no such user); 2 the
//! command line is wrong, and nothing was started. With `-d` they tell how the background process got on up to the
//! moment at which it listens.

mod allocator;
mod extended;
mod options;
mod process;
mod sockets;

pub use options::Options;

use extended::Extended;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use std::{
    error::Error,
    future::{Future, poll_fn},
    io,
    os::unix::net::UnixStream as StdUnixStream,
    pin::pin,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
    time::{Duration, Instant},
};
use urgency::{Report, Runtime, Shutdown, net::UnixStream, time::sleep};
use urgency_cache::{
    server::{
        Ending, Server, Settings, VERSION, connection,
        listen::{self, CacheLevels, Levels},
    },
    store::{Limits, Store},
};
use urgency_measure::output;

/// How long the end may take.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Runs the server until it is asked to end.
pub fn run(options: &Options) -> ExitCode {
    if options.version {
        return say(&format!("memcached {VERSION}\n"));
    }
    if options.license {
        return say("urgency cache is licensed under MIT or Apache-2.0, as you choose.\n");
    }
    if options.extended.iter().any(|option| option == "help") {
        return say(extended::HELP);
    }
    let checked = match options.refusal() {
        Some(refusal) => Err(refusal),
        None => read(options),
    };
    let (extended, limits) = match checked {
        Ok(read) => read,
        Err(wrong) => {
            eprintln!("urgency cache: {wrong}");
            return ExitCode::from(2);
        }
    };
    // The background process was preceded by one that said them.
    if !options.detached {
        for notice in options.notices().iter().chain(&extended.notices) {
            eprintln!("urgency cache: {notice}");
        }
    }
    if options.daemon && !options.detached {
        return process::start_in_background();
    }
    match serve(options, &extended, &limits) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("urgency cache: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Says what was asked for, instead of a server.
fn say(text: &str) -> ExitCode {
    match output::say(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("urgency cache: standard output cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the options say beyond their own fields: `-o`, and the store that they ask for, which can be.
fn read(options: &Options) -> Result<(Extended, Limits), String> {
    let extended = Extended::parse(&options.extended)?;
    let limits = limits(options, &extended);
    match limits.check() {
        Ok(_) => Ok((extended, limits)),
        Err(wrong) => Err(wrong.to_string()),
    }
}

fn serve(options: &Options, extended: &Extended, limits: &Limits) -> Result<(), Box<dyn Error>> {
    process::prepare(options)?;
    allocator::return_large_buffers();
    let signals = Signals::listen()?;
    let runtime = {
        let builder = Runtime::builder()
            .levels::<CacheLevels>()
            .real_time_polling(options.real_time_polling);
        match options.threads {
            Some(threads) => builder.workers(threads),
            None => builder,
        }
        .build()?
    };
    if options.real_time_polling && !runtime.stats().real_time {
        eprintln!(
            "urgency cache: --real-time-polling is not permitted: give CAP_SYS_NICE, or an RLIMIT_RTPRIO above 0 (ulimit -r); requests are waited for in the usual class"
        );
    }
    let store = Store::new(limits)?;
    if options.unix_socket.is_some() {
        // The socket's file belongs to the user that makes it, and other users may not connect. Nothing after this
        // needs a privilege.
        process::drop_privileges(options)?;
    }
    let bound = runtime.run(|| sockets::bind(options))?;
    // Privileges are needed until the sockets are bound, and by no thread afterwards.
    process::drop_privileges(options)?;
    let server = Arc::new(Server::new(
        store,
        settings(options, extended, &runtime, &bound),
    ));
    server.set_verbosity(u32::from(options.verbose));
    let written = process::PidFile::write(options)?;
    bound.announce(options.verbose > 0)?;
    listen::start(&server, &runtime, Levels::default(), bound.sockets)?;
    if options.detached {
        process::detach()?;
    }

    let start = Instant::now();
    let why = runtime.block_on(end(&server, signals));
    let report = runtime.shutdown_within(Shutdown::Cancel, END_WITHIN);
    drop(written);
    say_goodbye(&server, why, start.elapsed(), &report);
    Ok(())
}

fn limits(options: &Options, extended: &Extended) -> Limits {
    Limits {
        memory: options.memory << 20,
        item_size_max: options.item_size as u64,
        evict: !options.no_evictions,
        hot_percent: extended.hot_percent,
        warm_percent: extended.warm_percent,
        temporary_ttl: extended.temporary_ttl,
        ..Limits::default()
    }
}

fn settings(
    options: &Options,
    extended: &Extended,
    runtime: &Runtime,
    bound: &sockets::Bound,
) -> Settings {
    let shown = vec![
        ("inter", options.listen.join(",")),
        (
            "domain_socket",
            options
                .unix_socket
                .as_ref()
                .map_or("NULL".into(), |path| path.display().to_string()),
        ),
        ("tcp_backlog", options.backlog.to_string()),
        ("umask", format!("{:o}", options.unix_mask)),
        (
            "binding_protocol",
            format!("{:?}", options.protocol).to_lowercase(),
        ),
    ];
    Settings {
        connections_max: options.connections,
        refuse_too_many: extended.refuse_too_many,
        item_size_max: options.item_size,
        threads: runtime.stats().workers.len(),
        protocol: match options.protocol {
            options::Protocol::Auto => connection::Protocol::Detect,
            options::Protocol::Ascii => connection::Protocol::Text,
            options::Protocol::Binary => connection::Protocol::Binary,
        },
        idle_timeout: extended.idle_timeout,
        requests_per_turn: options.requests_per_turn,
        flush_allowed: !options.no_flush,
        dump_allowed: !options.no_dumping,
        shutdown_allowed: options.shutdown_command,
        debug_commands: options.debug_commands,
        delimiter: options.delimiter.map_or(b':', |character| character as u8),
        detail: options.delimiter.is_some(),
        port: bound.tcp_port,
        udp_port: bound.udp_port,
        shown,
    }
}

/// The signals that end the server. SIGHUP does not, for memcached outlives it.
struct Signals {
    arrived: UnixStream,
    which: Arc<AtomicUsize>,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let (arrived, arrives) = StdUnixStream::pair()?;
        let which = Arc::new(AtomicUsize::new(0));
        signal_hook::flag::register(SIGHUP, Arc::default())?;
        for signal in [SIGTERM, SIGINT, SIGUSR1] {
            let number = usize::try_from(signal).expect("signals have positive numbers");
            signal_hook::flag::register_usize(signal, Arc::clone(&which), number)?;
            signal_hook::low_level::pipe::register(signal, arrives.try_clone()?)?;
        }
        let arrived = arrived.try_into()?;
        Ok(Signals { arrived, which })
    }

    async fn next(&self) -> (&'static str, Ending) {
        if self.arrived.read(&mut [0]).await.is_err() {
            // The pipe is our own; without it there would be no more signals, and no way to end.
            return ("its broken pipe of signals", Ending::Now);
        }
        match i32::try_from(self.which.load(Relaxed)) {
            Ok(SIGUSR1) => ("SIGUSR1", Ending::Graceful),
            Ok(SIGINT) => ("SIGINT", Ending::Now),
            _ => ("SIGTERM", Ending::Now),
        }
    }
}

/// Waits until the server is told to end, and says by what.
async fn end(server: &Server, signals: Signals) -> &'static str {
    let (why, ending) = {
        let (mut stopped, mut signal) = (pin!(server.stop.stopped()), pin!(signals.next()));
        poll_fn(|cx| match stopped.as_mut().poll(cx) {
            Poll::Ready(ending) => Poll::Ready(("the command shutdown", ending)),
            Poll::Pending => signal.as_mut().poll(cx),
        })
        .await
    };
    let start = Instant::now();
    while ending == Ending::Graceful
        && server.open_connections() > 0
        && start.elapsed() < END_WITHIN
    {
        sleep(END_WITHIN / 20).await;
    }
    why
}

fn say_goodbye(server: &Server, why: &str, after: Duration, report: &Report) {
    let (total, requests) = (server.total_connections(), server.requests());
    eprintln!(
        "urgency cache: ended by {why} after {:.1} s: {total} connections, {requests} requests; {} tasks cancelled, {} left",
        after.as_secs_f64(),
        report.cancelled,
        report.left,
    );
}
