//! `async-nats` spawns its connection's task by `tokio::spawn`, and sets Tokio's timers. Here its calls are awaited by tasks of Urgency. Needs
//! `nats-server`.

use futures_util::StreamExt;
use tokio_crates::{Batch, Interactive, Server, runtime};
use urgency_web::tokio_driver::TokioDriver;

#[test]
fn requests_of_an_urgent_task_are_answered_by_a_less_urgent_one() {
    let server = Server::start("nats-server", &["--addr", "127.0.0.1"], "--port");
    let (driver, runtime) = (TokioDriver::start().unwrap(), runtime());
    let address = format!("nats://127.0.0.1:{}", server.port);
    let connecting = driver.run(async move { async_nats::connect(address).await });
    let client = runtime.at(Interactive).spawn(connecting).get();
    let client = client.unwrap().unwrap();

    let theirs = client.clone();
    let subscribing = driver.run(async move {
        let requests = theirs.subscribe("double").await.unwrap();
        // The server knows of it before anything that is sent later.
        theirs.flush().await.unwrap();
        requests
    });
    let mut requests = runtime.at(Batch).spawn(subscribing).get().unwrap();
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
    let answers = runtime.at(Batch).spawn(answering);
    let asking = driver.run(async move {
        for n in 0..100 {
            let answer = client.request("double", n.to_string().into()).await;
            assert_eq!(answer.unwrap().payload, (2 * n).to_string());
            assert_eq!(urgency::current_level(), Interactive.into());
        }
    });
    runtime.at(Interactive).spawn(asking).get().unwrap();
    answers.get().unwrap();
}
