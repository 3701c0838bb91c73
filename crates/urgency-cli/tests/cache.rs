//! `urgency cache` as a process: how it starts, what it says, how it ends, and what happens when descriptors run out.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    os::unix::{
        fs::{MetadataExt, chown},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    thread,
    time::Duration,
};

/// A server on any free port, which is killed if it does not end by itself.
struct Running {
    process: Child,
    stderr: BufReader<ChildStderr>,
    port: u16,
    /// What it said before it listened.
    said: String,
}

impl Running {
    /// Starts it through a shell that does `before` first.
    fn start(before: &str, options: &str) -> Running {
        let binary = env!("CARGO_BIN_EXE_urgency");
        let script = format!("{before} exec {binary} cache -v -p -1 {options}");
        let mut process = Command::new("sh")
            .args(["-c", &script])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        let mut said = String::new();
        let port = loop {
            let mut line = String::new();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended: {said}");
            if let Some((_, address)) = line.trim_end().split_once("listens on TCP ") {
                break address.parse::<SocketAddr>().unwrap().port();
            }
            said += &line;
        };
        Running {
            process,
            stderr,
            port,
            said,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    /// Ends it, and returns what it said since the start.
    fn end(mut self) -> String {
        let id = self.process.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(killed.success());
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        assert!(self.process.wait().unwrap().success());
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn ask(stream: &mut (impl Read + Write), request: &str, answer: &str) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut got = vec![0; answer.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), answer);
}

fn run(options: &[&str]) -> (Option<i32>, String) {
    // A server that starts although it must not is ended.
    let output = Command::new("timeout")
        .args(["20", env!("CARGO_BIN_EXE_urgency"), "cache"])
        .args(options)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_server_that_is_asked_to_end_reports_what_it_did() {
    let running = Running::start("", "");
    let mut client = running.connect();
    ask(
        &mut client,
        "set k 0 0 1\r\nx\r\nget k\r\n",
        "STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n",
    );
    let said = running.end();
    assert!(said.contains("ended by SIGTERM"), "{said}");
    assert!(said.contains("1 connections, 2 requests"), "{said}");
    assert!(said.contains(" 0 left"), "{said}");
}

#[test]
fn the_command_shutdown_ends_a_server_that_allows_it() {
    let mut running = Running::start("", "-A");
    let mut client = running.connect();
    client.write_all(b"shutdown\r\n").unwrap();
    assert_eq!(client.read(&mut [0; 10]).unwrap(), 0);
    assert!(running.process.wait().unwrap().success());
}

#[test]
fn clients_wait_while_there_is_no_descriptor_and_are_served_when_there_is() {
    let running = Running::start("ulimit -n 40;", "-c 100");
    let mut clients: Vec<_> = (0..60).map(|_| running.connect()).collect();
    ask(&mut clients[0], "mn\r\n", "MN\r\n");
    // The last one is in the kernel's queue: nobody has accepted it.
    let last = clients.last_mut().unwrap();
    last.write_all(b"mn\r\n").unwrap();
    last.set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    assert!(last.read(&mut [0; 4]).is_err());
    // Those before it leave.
    let mut last = clients.pop().unwrap();
    clients.truncate(1);
    last.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    ask(&mut last, "", "MN\r\n");
    ask(&mut clients[0], "mn\r\n", "MN\r\n");
    let said = running.end();
    assert!(said.contains("no new connections for a while"), "{said}");
}

#[test]
fn a_shortage_of_descriptors_is_said_and_counted_once_however_long_it_lasts() {
    let running = Running::start("ulimit -n 40;", "-c 100");
    let mut clients: Vec<_> = (0..60).map(|_| running.connect()).collect();
    ask(&mut clients[0], "mn\r\n", "MN\r\n");
    // In this time the listener tries a hundred times.
    std::thread::sleep(Duration::from_secs(1));
    clients[0].write_all(b"stats\r\nquit\r\n").unwrap();
    let mut statistics = String::new();
    clients[0].read_to_string(&mut statistics).unwrap();
    let count = statistics.split("STAT listen_disabled_num ").nth(1);
    let count: u32 = count.unwrap().lines().next().unwrap().parse().unwrap();
    drop(clients);
    let said = running.end();
    let times = said.matches("no new connections for a while").count();
    // Another descriptor of the process may have been closed in between.
    assert!((1..20).contains(&count), "{statistics}");
    assert!((1..40).contains(&times), "{said}");
}

#[test]
fn ten_thousand_connections_are_served_and_one_more_client_is_not_disturbed() {
    // Where fewer descriptors are allowed there are fewer connections.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let hard = line.unwrap().split_whitespace().nth(4).unwrap();
    let connections = hard
        .parse()
        .map_or(10_000, |hard: u32| (hard - 200).min(10_000));
    let running = Running::start("", &format!("-c {}", connections + 10));
    let server = format!("127.0.0.1:{}", running.port);
    let mut load = Command::new(env!("CARGO_BIN_EXE_urgency"))
        .args([
            "load", "cache", &server, "--quiet", "-d", "2", "--keys", "1000",
        ])
        .args(["--rate", "300", "-c", &connections.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut client = running.connect();
    while load.try_wait().unwrap().is_none() {
        ask(&mut client, "mn\r\n", "MN\r\n");
        std::thread::sleep(Duration::from_millis(5));
    }
    // It fails if a request is not answered, or with another value than that which was stored.
    let output = load.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = running.end();
    let count = said.split_once(" connections, ").unwrap().0;
    let count: u32 = count.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(count > connections, "{said}");
    assert!(said.contains(" 0 left"), "{said}");
}

#[test]
fn an_option_without_a_meaning_says_so_and_one_whose_loss_is_a_danger_is_refused() {
    let running = Running::start("", "");
    let port = running.port.to_string();
    // It does not start, for the port is taken, but speaks before.
    let (code, said) = run(&[
        "-p",
        &port,
        "-L",
        "-f",
        "1.5",
        "-o",
        "hashpower=20,modern,no_hashexpand",
    ]);
    assert_eq!(code, Some(1), "{said}");
    for part in [
        "-L has no meaning",
        "-f has no meaning",
        "-o hashpower has no meaning",
        "-o no_hashexpand has no meaning",
        "is there another server?",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert!(!said.contains("modern has"), "{said}");
    for (options, part) in [
        (&["-S"][..], "-S: there is no authentication"),
        (&["-Z"], "-Z: there is no encryption"),
        (&["--enable-ssl"], "-Z: there is no encryption"),
        (&["--enable-sasl"], "-S: there is no authentication"),
        (&["-Y", "file"], "-Y: there is no authentication"),
        (&["-o", "nonsense"], "Illegal suboption \"nonsense\""),
        (&["-o", "ext_path=/x:1G"], "ext_path is not there"),
        (&["-o", "ssl_verify_mode=2"], "ssl_verify_mode is not there"),
        (&["-o", "idle_timeout=soon"], "takes a number"),
        (&["-c", "0"], "--conn-limit"),
        (&["-I", "12"], "cannot be less than 1024 bytes"),
        (&["-I", "2048m"], "higher than a gigabyte"),
        (&["-a", "999"], "no access mask"),
        (&["-B", "http"], "auto, ascii, binary"),
        (&["-t", "0"], "1..=1024"),
        (&["-t", "99999"], "1..=1024"),
        (&["-m", "0"], "1..=1099511627776"),
        (&["-m", "17592186044480"], "1..=1099511627776"),
        (&["-I", "40m"], "item size limit of 41943040 bytes"),
        (&["-o", "hot_lru_pct=95"], "95 % hot"),
        (&["-D", "é"], "one character of ASCII"),
        (&["-l", "127.0.0.1:99999"], "is no port"),
    ] {
        let (code, said) = run(options);
        assert_eq!(code, Some(2), "{options:?}: {said}");
        assert!(said.contains(part), "{options:?}: no {part:?} in {said}");
    }
}

#[test]
fn help_and_version_are_as_memcached_has_them() {
    let (code, said) = run(&["-h"]);
    assert_eq!(code, Some(0));
    assert!(
        said.contains("unix-socket") && said.contains("conn-limit"),
        "{said}"
    );
    assert!(run(&["-V"]).1.starts_with("memcached 1.6."));
    let (_, extended) = run(&["-o", "help"]);
    assert!(extended.contains("idle_timeout=SECONDS"), "{extended}");
    assert!(
        extended.contains("ext_*, proxy_* and ssl_* are refused"),
        "{extended}"
    );
}

/// A new directory for `name`, with a path short enough for sockets.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("urgency-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn a_background_server_that_cannot_start_says_why_and_its_exit_code_is_one() {
    let running = Running::start("", "");
    let port = running.port.to_string();
    let (code, said) = run(&["-d", "-L", "-p", &port]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is there another server?"), "{said}");
    assert_eq!(said.matches("-L has no meaning").count(), 1, "{said}");
    let (code, said) = run(&["-d", "-p", "-1", "-P", "/no/such/place/id"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("-P /no/such/place/id"), "{said}");
    let (code, said) = run(&["-d", "-p", "-1", "-I", "40m"]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn a_background_server_listens_when_its_start_returns_and_lets_go_of_the_terminal() {
    let place = directory("background");
    let (socket, id) = (place.join("s"), place.join("id"));
    // This returns at the end of both streams: the server has none of them any more.
    let (code, said) = run(&["-d", "-s", text(&socket), "-P", text(&id)]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let mut client = UnixStream::connect(&socket).unwrap();
    ask(&mut client, "mn\r\n", "MN\r\n");
    let number = fs::read_to_string(&id).unwrap();
    let killed = Command::new("kill").arg(number.trim()).status().unwrap();
    assert!(killed.success());
    assert_eq!(client.read(&mut [0; 10]).unwrap(), 0);
    while id.exists() {
        thread::sleep(Duration::from_millis(5));
    }
    fs::remove_dir_all(&place).unwrap();
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_server_outlives_the_signal_of_a_terminal_that_goes() {
    let running = Running::start("", "");
    let id = running.process.id().to_string();
    let killed = Command::new("kill").args(["-HUP", &id]).status().unwrap();
    assert!(killed.success());
    ask(&mut running.connect(), "mn\r\n", "MN\r\n");
    assert!(running.end().contains("ended by SIGTERM"));
}

/// A port on which nobody listens, of whichever family.
fn free_port() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn a_name_stands_for_each_of_its_addresses() {
    let port = free_port();
    let _running = Running::start("", &format!("-l localhost:{port}"));
    for address in ("localhost", port).to_socket_addrs().unwrap() {
        // One that this machine does not have is none.
        if TcpListener::bind((address.ip(), 0)).is_ok() {
            ask(
                &mut TcpStream::connect(address).unwrap(),
                "mn\r\n",
                "MN\r\n",
            );
        }
    }
}

#[test]
fn both_families_can_be_listened_on_side_by_side() {
    if TcpListener::bind("[::]:0").is_err() {
        return;
    }
    for listen in ["0.0.0.0:PORT,[::]:PORT", "*:PORT"] {
        let port = free_port();
        let options = format!("-l '{}'", listen.replace("PORT", &port.to_string()));
        let running = Running::start("", &options);
        ask(&mut running.connect(), "mn\r\n", "MN\r\n");
        let mut client = TcpStream::connect(("::1", port)).unwrap();
        ask(&mut client, "mn\r\n", "MN\r\n");
        let said = running.end();
        assert!(said.contains("2 connections"), "{said}");
    }
    // memcached takes brackets without a port as well.
    let running = Running::start("", "-l '[::1]'");
    let mut client = TcpStream::connect(("::1", running.port)).unwrap();
    ask(&mut client, "mn\r\n", "MN\r\n");
}

/// The number of the user nobody.
fn nobody() -> Option<u32> {
    let output = Command::new("id").args(["-u", "nobody"]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

#[test]
fn the_unix_socket_belongs_to_the_user_that_the_server_becomes() {
    let place = directory("owner");
    let Some(nobody) = nobody() else {
        return;
    };
    if chown(&place, Some(nobody), None).is_err() {
        // Only root can give something away, and only root's server becomes another user.
        return;
    }
    let (socket, id) = (place.join("s"), place.join("id"));
    let options = ["-d", "-u", "nobody", "-s", text(&socket), "-P", text(&id)];
    let (code, said) = run(&options);
    assert_eq!(code, Some(0), "{said}");
    let owner = fs::metadata(&socket).unwrap().uid();
    let number = fs::read_to_string(&id).unwrap();
    let killed = Command::new("kill").arg(number.trim()).status().unwrap();
    assert!(killed.success());
    assert_eq!(owner, nobody);
}

/// Resident memory of a process, in MiB.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() / 1024
}

/// docs/cache.md: `-m`, the program, 80 MiB in each direction, and 192 KiB for each connection. And when the clients
/// have gone, what they needed is the system's again.
#[test]
fn memory_stays_within_its_bound_over_cycles_of_slow_readers_and_writers() {
    const READERS: u64 = 150;
    const WRITERS: u64 = 100;
    const PROGRAM: u64 = 40;
    let running = Running::start("", "-m 64 -t 2 -c 2000");
    let id = running.process.id();
    let value = "x".repeat(900_000);
    let mut filler = running.connect();
    for key in 0..40 {
        let set = format!("set k{key} 0 0 900000\r\n{value}\r\n");
        ask(&mut filler, &set, "STORED\r\n");
    }
    let half = format!("set half 0 0 900000\r\n{}", &value[..600_000]);
    let bound = 64 + PROGRAM + 2 * 80 + (READERS + WRITERS) * 192 / 1024;
    let mut left = Vec::new();
    for cycle in 0..5 {
        let mut clients: Vec<_> = (0..READERS + WRITERS).map(|_| running.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let timeout = Some(Duration::from_millis(1));
            client.set_write_timeout(timeout).unwrap();
            client.set_read_timeout(timeout).unwrap();
            // A connection that has to wait for memory is not read from.
            let _ = if (number as u64) < READERS {
                let get = |key| format!("get k{}\r\n", (number + key) % 40);
                client.write_all((0..20).map(get).collect::<String>().as_bytes())
            } else {
                client.write_all(half.as_bytes())
            };
        }
        let mut most = 0;
        for _ in 0..3 {
            for client in &mut clients[..READERS as usize] {
                // Nothing yet, or the connection has lost its place.
                let _ = client.read(&mut [0; 50_000]);
            }
            most = most.max(resident(id));
        }
        assert!(most <= bound, "{most} MiB of {bound} in cycle {cycle}");
        drop(clients);
        let mut ended = running.connect();
        let is_alone = |ended: &mut TcpStream| {
            ended.write_all(b"stats\r\n").unwrap();
            let mut said = String::new();
            while !said.ends_with("END\r\n") {
                let mut piece = [0; 4096];
                let length = ended.read(&mut piece).unwrap();
                said += str::from_utf8(&piece[..length]).unwrap();
            }
            said.contains("STAT curr_connections 2\r\n")
        };
        for _ in 0..2000 {
            if is_alone(&mut ended) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(
            is_alone(&mut ended),
            "connections are left in cycle {cycle}"
        );
        left.push(resident(id));
    }
    // The items, the program and the buffers that are kept: nothing that grows with the cycles.
    let most = 64 + PROGRAM + 2 * 16;
    assert!(
        left.iter().all(|&left| left <= most),
        "{left:?} MiB of {most} are left"
    );
    assert!(left[4] <= left[1] + 16, "it grows: {left:?} MiB");
    running.end();
}

#[test]
fn a_server_that_cannot_have_all_its_descriptors_takes_what_is_allowed_and_says_how_many() {
    let running = Running::start("ulimit -Sn 256; ulimit -Hn 1000;", "-c 4294967295");
    let limits = fs::read_to_string(format!("/proc/{}/limits", running.process.id())).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<_> = files.unwrap().split_whitespace().collect();
    assert_eq!(words[3..5], ["1000", "1000"], "{limits}");
    assert!(
        running.said.contains("; 1000 are allowed"),
        "{}",
        running.said
    );
}
