//! `sqlx` asks for Tokio's timers, tasks and locks; its SQLite connections are threads of their own. Here a pool of them is shared by tasks of two
//! levels.

use sqlx::{Row, sqlite::SqliteConnectOptions, sqlite::SqlitePoolOptions};
use tokio_crates::{Interactive, either_level, runtime};
use urgency_web::tokio_driver::TokioDriver;

#[test]
fn a_pool_of_connections_is_shared_by_tasks_of_two_levels() {
    let (driver, runtime) = (TokioDriver::start().unwrap(), runtime());
    let file = std::env::temp_dir().join(format!("urgency-sqlx-{}.db", std::process::id()));
    let options = SqliteConnectOptions::new().filename(&file);
    let opening = driver.run(async move {
        let pool = SqlitePoolOptions::new().max_connections(3);
        let pool = pool.connect_with(options.create_if_missing(true)).await?;
        let creating = sqlx::query("create table numbers (n integer)");
        creating.execute(&pool).await?;
        Ok::<_, sqlx::Error>(pool)
    });
    let pool = runtime.at(Interactive).spawn(opening).get();
    let pool = pool.unwrap().unwrap();
    let tasks: Vec<_> = (0..60)
        .map(|n: usize| {
            let (pool, level) = (pool.clone(), either_level(n));
            let inserting = driver.run(async move {
                let mut transaction = pool.begin().await?;
                let inserting = sqlx::query("insert into numbers values (?)").bind(n as i64);
                inserting.execute(&mut *transaction).await?;
                transaction.commit().await?;
                assert_eq!(urgency::current_level(), level);
                Ok::<_, sqlx::Error>(())
            });
            runtime.at(level).spawn(inserting)
        })
        .collect();
    for task in tasks {
        task.get().unwrap().unwrap();
    }
    let closing = driver.run(async move {
        let query = sqlx::query("select count(*), sum(n) from numbers");
        let row = query.fetch_one(&pool).await?;
        pool.close().await;
        Ok::<(i64, i64), sqlx::Error>((row.get(0), row.get(1)))
    });
    let found = runtime.at(Interactive).spawn(closing).get();
    assert_eq!(found.unwrap().unwrap(), (60, (0..60).sum()));
    let _ = std::fs::remove_file(file);
}
