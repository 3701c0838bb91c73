//! The `redis` crate spawns its connection's task by `tokio::spawn`. Its commands are awaited here by tasks of Urgency. Needs `redis-server`.

use redis::AsyncCommands;
use tokio_crates::{Interactive, Server, either_level, runtime};
use urgency_web::tokio_driver::TokioDriver;

#[test]
fn commands_of_two_levels_share_a_multiplexed_connection() {
    let quiet = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    let server = Server::start("redis-server", &quiet, "--port");
    let (driver, runtime) = (TokioDriver::start().unwrap(), runtime());
    let client = redis::Client::open(format!("redis://127.0.0.1:{}/", server.port)).unwrap();
    let connecting = driver.run(async move { client.get_multiplexed_async_connection().await });
    let connection = runtime.at(Interactive).spawn(connecting).get();
    let connection = connection.unwrap().unwrap();
    let tasks: Vec<_> = (0..100)
        .map(|n: usize| {
            let (mut connection, level) = (connection.clone(), either_level(n));
            let key = format!("key {n}");
            let setting = driver.run(async move {
                connection.set::<_, _, ()>(&key, n).await?;
                assert_eq!(urgency::current_level(), level);
                connection.get::<_, usize>(&key).await
            });
            runtime.at(level).spawn(setting)
        })
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.get().unwrap().unwrap(), n);
    }
}
