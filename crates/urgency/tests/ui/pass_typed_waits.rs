//! Waiting upwards, at the same level, by boost, and in level-polymorphic code.

use urgency::level::{AtLeast, Cx, Level, TypedHandle};
use urgency::{Runtime, JoinError};

urgency::levels! {
    /// The levels.
    App: Interactive > Query > Batch; Interactive > Audit
}

/// Creates work at the caller's level and waits for it.
fn twice<L: Level>(cx: Cx<L>, number: u32) -> Result<u32, JoinError> {
    cx.level().spawn_fn(move |_| number * 2).get(cx)
}

/// The same for async code.
async fn twice_async<L: Level>(cx: Cx<'_, L>, number: u32) -> Result<u32, JoinError> {
    cx.level().spawn(async move |_| number * 2).wait(cx).await
}

/// Waits for work that is at least as urgent as the caller, whatever either is.
fn take<L, A>(cx: Cx<L>, awaited: TypedHandle<u32, A>) -> Result<u32, JoinError>
where
    L: Level,
    A: Level + AtLeast<L>,
{
    awaited.get(cx)
}

fn main() {
    let rt = Runtime::builder()
        .workers(1)
        .levels::<App>()
        .build()
        .unwrap();
    let result = Batch.on(&rt).run(|cx| {
        let seven = take(cx, Interactive.spawn(async |_| 7))?;
        let (same, above) = urgency::join(|| twice(cx, seven), || take(cx, Query.spawn_fn(|_| 1)));
        Ok::<u32, JoinError>(same? + above?)
    });
    assert_eq!(result.unwrap(), 15);

    let result = Interactive.on(&rt).run(|cx| {
        let audit = Audit.spawn_fn(|_| 1);
        let batch = Batch.spawn(async |cx| {
            let query = Query.spawn_fn(|_| 20);
            Ok::<u32, JoinError>(query.wait(cx).await? + twice_async(cx, 10).await?)
        });
        Ok::<u32, JoinError>(audit.boost_get(cx)? + batch.boost_get(cx)??)
    });
    assert_eq!(result.unwrap(), 41);
}
