//! `sqlx` asks for Tokio's timers, tasks and locks; its SQLite connections are threads of their own. Here a pool of them is shared by tasks of two
//! levels.

use sqlx::{Row, sqlite::SqliteConnectOptions, sqlite::SqlitePoolOptions};
use urgency::{LevelId, Runtime};
use urgency_web::tokio_driver::TokioDriver;

urgency::levels! { App: Interactive > Batch }

#[test]
fn a_pool_of_connections_is_shared_by_tasks_of_two_levels() {
    let driver = TokioDriver::start().unwrap();
    let builder = Runtime::builder().workers(2).levels::<App>();
    let runtime = builder.build().unwrap();
    let file = std::env::temp_dir().join(format!("urgency-sqlx-{}.db", std::process::id()));
    let options = SqliteConnectOptions::new().filename(&file);
    let opening = driver.run(async move {
        let pool = SqlitePoolOptions::new().max_connections(3);
        let pool = pool.connect_with(options.create_if_missing(true)).await?;
        sqlx::query("create table numbers (n integer)")
            .execute(&pool)
            .await?;
        Ok::<_, sqlx::Error>(pool)
    });
    let pool = runtime.spawn_at(Interactive, opening).get();
    let pool = pool.unwrap().unwrap();
    let tasks: Vec<_> = (0..60)
        .map(|n: i64| {
            let pool = pool.clone();
            let level = [LevelId::from(Interactive), Batch.into()][n as usize % 2];
            let inserting = driver.run(async move {
                let mut transaction = pool.begin().await?;
                sqlx::query("insert into numbers values (?)")
                    .bind(n)
                    .execute(&mut *transaction)
                    .await?;
                transaction.commit().await?;
                assert_eq!(urgency::current_level(), level);
                Ok::<_, sqlx::Error>(())
            });
            runtime.spawn_at(level, inserting)
        })
        .collect();
    for task in tasks {
        task.get().unwrap().unwrap();
    }
    let closing = driver.run(async move {
        let row = sqlx::query("select count(*), sum(n) from numbers")
            .fetch_one(&pool)
            .await?;
        pool.close().await;
        Ok::<(i64, i64), sqlx::Error>((row.get(0), row.get(1)))
    });
    let found = runtime.spawn_at(Interactive, closing).get();
    assert_eq!(found.unwrap().unwrap(), (60, (0..60).sum()));
    let _ = std::fs::remove_file(file);
}
