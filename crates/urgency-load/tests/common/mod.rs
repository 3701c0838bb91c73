//! A server for tests: a map behind a lock, a plain thread for each connection, and a fault on demand.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use urgency_load::Server;

/// What is wrong with the server.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(dead_code)]
pub enum Fault {
    /// Nothing.
    None,
    /// From this get on, the last byte of each value has a wrong bit.
    WrongBit(usize),
    /// From this get on, each value is another key's.
    OtherKey(usize),
    /// From this set on, sets are acknowledged and forgotten.
    Forgets(usize),
    /// Nothing is stored: `SERVER_ERROR` for each set from this one on.
    Full(usize),
    /// Before this get, once, the server sleeps so long, with all connections.
    Stalls(usize, Duration),
    /// At this get the server closes the connection.
    Closes(usize),
    /// From this get on there are no replies.
    Mute(usize),
    /// This get is answered with a line of nonsense.
    Babbles(usize),
    /// Gets are unknown.
    NoGets,
}

/// Flags and value.
type Item = (String, Vec<u8>);

struct State {
    fault: Fault,
    items: Mutex<HashMap<Vec<u8>, Item>>,
    gets: AtomicUsize,
    sets: AtomicUsize,
}

/// Starts a server on a free port; it lives as long as the test's process.
pub fn start(fault: Fault) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let state = state(fault);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = stream.set_nodelay(true);
            let state = Arc::clone(&state);
            let reader = stream.try_clone().expect("a second handle");
            thread::spawn(move || serve(&state, reader, stream));
        }
    });
    address.to_string().parse().expect("an address")
}

/// The same on a Unix socket.
#[allow(dead_code)]
pub fn start_unix(path: &Path) -> Server {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).expect("a free path");
    let state = state(Fault::None);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&state);
            let reader = stream.try_clone().expect("a second handle");
            thread::spawn(move || serve(&state, reader, stream));
        }
    });
    Server::Unix(path.to_owned())
}

fn state(fault: Fault) -> Arc<State> {
    Arc::new(State {
        fault,
        items: Mutex::new(HashMap::new()),
        gets: AtomicUsize::new(0),
        sets: AtomicUsize::new(0),
    })
}

fn serve(state: &State, reader: impl Read, mut writer: impl Write) {
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let words: Vec<_> = line.split_whitespace().collect();
        let reply = match words.as_slice() {
            ["get", key] => get(state, key, false),
            ["mg", key, "f", "v"] => get(state, key, true),
            ["set", key, flags, "0", size] => set(state, &mut reader, key, flags, size, "STORED"),
            ["ms", key, size, flags] => set(state, &mut reader, key, &flags[1..], size, "HD"),
            other => panic!("the client sent {other:?}"),
        };
        match reply {
            Some(reply) if writer.write_all(&reply).is_ok() => {}
            _ => return,
        }
    }
}

fn get(state: &State, key: &str, meta: bool) -> Option<Vec<u8>> {
    let number = state.gets.fetch_add(1, Ordering::SeqCst) + 1;
    let items = state.items.lock().expect("nobody panics with the lock");
    let mut name = key.to_owned();
    match state.fault {
        Fault::Stalls(at, pause) if number == at => thread::sleep(pause),
        Fault::Closes(at) if number >= at => return None,
        Fault::Mute(at) if number >= at => return Some(Vec::new()),
        Fault::Babbles(at) if number == at => return Some(b"HTTP/1.1 400\r\n".to_vec()),
        Fault::NoGets => return Some(b"ERROR\r\n".to_vec()),
        Fault::OtherKey(at) if number >= at => name.replace_range(key.len() - 1.., "7"),
        _ => {}
    }
    let Some((flags, data)) = items.get(name.as_bytes()).or(items.get(key.as_bytes())) else {
        return Some(if meta {
            b"EN\r\n".to_vec()
        } else {
            b"END\r\n".to_vec()
        });
    };
    let mut data = data.clone();
    if matches!(state.fault, Fault::WrongBit(at) if number >= at)
        && let Some(last) = data.last_mut()
    {
        *last ^= 1;
    }
    let mut reply = match meta {
        true => format!("VA {} f{flags}\r\n", data.len()).into_bytes(),
        false => format!("VALUE {key} {flags} {}\r\n", data.len()).into_bytes(),
    };
    reply.extend_from_slice(&data);
    reply.extend_from_slice(if meta { b"\r\n" } else { b"\r\nEND\r\n" });
    Some(reply)
}

fn set(
    state: &State,
    reader: &mut impl BufRead,
    key: &str,
    flags: &str,
    size: &str,
    stored: &str,
) -> Option<Vec<u8>> {
    let number = state.sets.fetch_add(1, Ordering::SeqCst) + 1;
    let mut data = vec![0; size.parse::<usize>().expect("a size") + 2];
    reader.read_exact(&mut data).ok()?;
    assert!(data.ends_with(b"\r\n"));
    data.truncate(data.len() - 2);
    match state.fault {
        Fault::Full(at) if number >= at => {
            return Some(b"SERVER_ERROR out of memory storing object\r\n".to_vec());
        }
        Fault::Forgets(at) if number >= at => {}
        _ => {
            let mut items = state.items.lock().expect("nobody panics with the lock");
            items.insert(key.as_bytes().to_vec(), (flags.to_owned(), data));
        }
    }
    Some(format!("{stored}\r\n").into_bytes())
}
