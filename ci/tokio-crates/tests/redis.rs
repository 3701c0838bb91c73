//! The `redis` crate spawns its connection's task by `tokio::spawn`. Its commands are awaited here by tasks of Urgency. Needs `redis-server`.

use redis::AsyncCommands;
use std::{
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
};
use urgency::Runtime;
use urgency_web::tokio_driver::TokioDriver;

urgency::levels! { App: Interactive > Batch }

struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start() -> Server {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .spawn()
            .expect("Debian's package redis-server is installed");
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        Server { process, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn commands_of_two_levels_share_a_multiplexed_connection() {
    let server = Server::start();
    let driver = TokioDriver::start().unwrap();
    let runtime = Runtime::builder()
        .workers(2)
        .levels::<App>()
        .build()
        .unwrap();
    let client = redis::Client::open(format!("redis://127.0.0.1:{}/", server.port)).unwrap();
    let connecting = driver.run(async move { client.get_multiplexed_async_connection().await });
    let connection = runtime
        .spawn_at(Interactive, connecting)
        .get()
        .unwrap()
        .unwrap();
    let tasks: Vec<_> = (0..100)
        .map(|n: usize| {
            let mut connection = connection.clone();
            let level: urgency::LevelId = if n % 2 == 0 {
                Interactive.into()
            } else {
                Batch.into()
            };
            let key = format!("key {n}");
            runtime.spawn_at(
                level,
                driver.run(async move {
                    connection.set::<_, _, ()>(&key, n).await?;
                    assert_eq!(urgency::current_level(), level);
                    connection.get::<_, usize>(&key).await
                }),
            )
        })
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.get().unwrap().unwrap(), n);
    }
}
