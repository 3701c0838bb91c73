//! A proxy of lines, as a program has it: its control, its connections and its back end at three levels or at one, with
//! a time limit on each read and write, so that each is given up and begun again all the time.
//!
//! Clients wait for each answer, close their half and read slowly, go away with answers unread, or stay. Each byte that
//! came in at one end went out at the other, in its order. A shutdown lets the ones that end by themselves do so, stops
//! the others, and accounts for each task. In a file of its own, because it counts what the process has.

mod common;

use common::{ends, threads_and_descriptors, until};
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{self, Shutdown as Ways, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use urgency::{
    LevelId, Runtime, Shutdown, at,
    level::Levels,
    life::CancellationToken,
    net::{TcpListener, TcpStream},
    par, select,
    task::TaskTracker,
    time::{sleep, timeout},
    try_join,
};

urgency::levels! { Three: Control > Lines > Backend }
urgency::levels! { One: Only }

const BRIEF: Duration = Duration::from_millis(2);

/// How connections of the proxy ended.
#[derive(Default)]
struct Ended {
    whole: AtomicUsize,
    broken: AtomicUsize,
    stopped: AtomicUsize,
}

/// One direction of a connection, to the end of what comes in.
async fn forward(from: &TcpStream, to: &TcpStream, bytes: [&AtomicU64; 2]) -> io::Result<()> {
    let mut buffer = vec![0; 3000];
    loop {
        let count = match timeout(BRIEF, from.read(&mut buffer)).await {
            Err(_) => continue,
            Ok(count) => count?,
        };
        bytes[0].fetch_add(count as u64, SeqCst);
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            select! {
                count = to.write(rest) => {
                    let count = count?;
                    bytes[1].fetch_add(count as u64, SeqCst);
                    rest = &rest[count..];
                }
                () = sleep(BRIEF) => {}
            }
        }
        if count == 0 {
            return to.shutdown_direction(Ways::Write);
        }
    }
}

async fn connection(
    client: TcpStream,
    backend: SocketAddr,
    stop: CancellationToken,
    ended: Arc<Ended>,
) {
    let [came, went, came_back, went_back] = [(); 4].map(|()| AtomicU64::new(0));
    let both = async {
        let server = TcpStream::connect(backend).await?;
        let there = forward(&client, &server, [&came, &went]);
        try_join!(there, forward(&server, &client, [&came_back, &went_back])).map(|_| ())
    };
    let how = match stop.run_until_cancelled(both).await {
        Some(Ok(())) => {
            assert_eq!(came.load(SeqCst), went.load(SeqCst));
            assert_eq!(came_back.load(SeqCst), went_back.load(SeqCst));
            &ended.whole
        }
        Some(Err(_)) => &ended.broken,
        None => &ended.stopped,
    };
    how.fetch_add(1, SeqCst);
}

/// A closure for each connection: it answers each line in upper case, which forks compute.
fn answer(stream: &TcpStream) -> io::Result<()> {
    let (mut lines, mut line) = (BufReader::new(stream.blocking()), Vec::new());
    while lines.read_until(b'\n', &mut line)? != 0 {
        par::for_each(
            par::chunks_mut(&mut line, 256),
            <[u8]>::make_ascii_uppercase,
        );
        stream.blocking().write_all(&line)?;
        line.clear();
    }
    Ok(())
}

/// Serves until `stop`, then waits for the connections that there are. Returns how many there were.
async fn serve(
    listener: TcpListener,
    stop: CancellationToken,
    mut begin: impl FnMut(&TaskTracker, TcpStream),
) -> usize {
    let (tasks, mut count) = (TaskTracker::new(), 0);
    while let Some(stream) = stop.run_until_cancelled(listener.accept()).await {
        begin(&tasks, stream.unwrap().0);
        count += 1;
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
    count
}

fn line(client: usize, number: usize, length: usize) -> Vec<u8> {
    let mut line = format!("line {number} of {client} ").into_bytes();
    line.resize(length, b'a' + (client + number) as u8 % 26);
    line.push(b'\n');
    line
}

/// A plain thread. Returns its stream, if that stays.
fn client(number: usize, proxy: SocketAddr) -> Option<net::TcpStream> {
    let mut stream = net::TcpStream::connect(proxy).unwrap();
    let ask = |stream: &mut net::TcpStream, which| {
        let line = line(number, which, 40);
        stream.write_all(&line).unwrap();
        let mut answer = vec![0; line.len()];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, line.to_ascii_uppercase());
    };
    match number % 4 {
        0 => {
            (0..10).for_each(|which| ask(&mut stream, which));
            stream.shutdown(Ways::Write).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        }
        1 => {
            let (mut all, mut rest) = (Vec::new(), vec![0; 7001]);
            (0..50).for_each(|which| all.extend(line(number, which, 3000)));
            let (mut writes, sent) = (stream.try_clone().unwrap(), all.clone());
            let writer = thread::spawn(move || {
                writes.write_all(&sent).unwrap();
                writes.shutdown(Ways::Write).unwrap();
            });
            all.make_ascii_uppercase();
            let mut expected = &all[..];
            loop {
                let count = stream.read(&mut rest).unwrap();
                if count == 0 {
                    break;
                }
                assert_eq!(rest[..count], expected[..count]);
                expected = &expected[count..];
                thread::sleep(Duration::from_millis(1));
            }
            assert!(expected.is_empty());
            writer.join().unwrap();
        }
        2 => {
            // It goes away with a part of the first answer in its buffer, so that its end is a reset.
            (0..20).for_each(|which| stream.write_all(&line(number, which, 2000)).unwrap());
            stream.read_exact(&mut [0; 100]).unwrap();
        }
        _ => {
            ask(&mut stream, 0);
            return Some(stream);
        }
    }
    None
}

fn program<L: Levels>(levels: [LevelId; 3], workers: usize, of_each: usize) {
    let runtime = Runtime::builder().workers(workers).levels::<L>();
    let runtime = runtime.build().unwrap();
    let listen = || {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    };
    let [no_more, stop, end] = [(); 3].map(|()| CancellationToken::new());
    let (listener, backend) = listen();
    let begin = |tasks: &TaskTracker, stream: TcpStream| {
        drop(tasks.spawn_fn(move || answer(&stream)));
    };
    let serves = serve(listener, end.clone(), begin);
    let servers = runtime.at(levels[2]).spawn(serves);
    let ((listener, proxy), ended) = (listen(), Arc::new(Ended::default()));
    let (its, stops) = (ended.clone(), stop.clone());
    let begin = move |tasks: &TaskTracker, stream| {
        let task = connection(stream, backend, stops.clone(), its.clone());
        drop(at(levels[1]).spawn(tasks.track_future(task)));
    };
    let proxies = runtime
        .at(levels[0])
        .spawn(serve(listener, no_more.clone(), begin));
    let clients: Vec<_> = (0..4 * of_each)
        .map(|number| thread::spawn(move || client(number, proxy)))
        .collect();
    let stay: Vec<_> = clients
        .into_iter()
        .filter_map(|client| client.join().unwrap())
        .collect();
    until(|| ended.whole.load(SeqCst) == 2 * of_each);
    until(|| ended.broken.load(SeqCst) == of_each);
    no_more.cancel();
    until(|| net::TcpStream::connect(proxy).is_err());
    assert_eq!((stay.len(), proxies.is_finished()), (of_each, false));
    stop.cancel();
    // More than the clients: a look above may have come in before the listener was gone.
    assert!(proxies.get().unwrap() >= 4 * of_each);
    assert!(ended.stopped.load(SeqCst) >= of_each);
    for mut stream in stay {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }
    end.cancel();
    servers.get().unwrap();
    let report = runtime.shutdown(Shutdown::Drain);
    assert_eq!((report.spawned, report.left), (report.finished, 0));
}

#[test]
fn through_a_proxy_whose_operations_are_given_up_all_the_time_each_byte_comes_in_its_order() {
    ends(|| {
        let before = threads_and_descriptors();
        for workers in [1, 2, 8] {
            program::<Three>([Control.into(), Lines.into(), Backend.into()], workers, 6);
            program::<One>([Only.into(); 3], workers, 6);
        }
        until(|| threads_and_descriptors() == before);
    });
}
