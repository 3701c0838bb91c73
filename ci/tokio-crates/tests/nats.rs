//! `async-nats` spawns its connection's task by `tokio::spawn`, and sets Tokio's timers. Here its calls are awaited by tasks of Urgency. Needs
//! `nats-server`.

use futures_util::StreamExt;
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
        let process = Command::new("nats-server")
            .args(["--addr", "127.0.0.1", "--port", &port.to_string()])
            .stderr(Stdio::null())
            .spawn()
            .expect("Debian's package nats-server is installed");
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
fn requests_of_an_urgent_task_are_answered_by_a_less_urgent_one() {
    let server = Server::start();
    let driver = TokioDriver::start().unwrap();
    let builder = Runtime::builder().workers(2).levels::<App>();
    let runtime = builder.build().unwrap();
    let address = format!("nats://127.0.0.1:{}", server.port);
    let connecting = driver.run(async move { async_nats::connect(address).await });
    let client = runtime.spawn_at(Interactive, connecting).get();
    let client = client.unwrap().unwrap();

    let theirs = client.clone();
    let subscribing = driver.run(async move {
        let requests = theirs.subscribe("double").await.unwrap();
        // The server knows of it before anything that is sent later.
        theirs.flush().await.unwrap();
        requests
    });
    let mut requests = runtime.spawn_at(Batch, subscribing).get().unwrap();
    let theirs = client.clone();
    let answering = driver.run(async move {
        for _ in 0..100 {
            let request = requests.next().await.unwrap();
            assert_eq!(urgency::current_level(), Batch.into());
            let text = std::str::from_utf8(&request.payload).unwrap();
            let answer = (2 * text.parse::<u32>().unwrap()).to_string();
            let to = request.reply.unwrap();
            theirs.publish(to, answer.into()).await.unwrap();
        }
    });
    let answers = runtime.spawn_at(Batch, answering);
    let asking = driver.run(async move {
        for n in 0..100 {
            let answer = client.request("double", n.to_string().into()).await;
            assert_eq!(answer.unwrap().payload, (2 * n).to_string());
            assert_eq!(urgency::current_level(), Interactive.into());
        }
    });
    runtime.spawn_at(Interactive, asking).get().unwrap();
    answers.get().unwrap();
}
