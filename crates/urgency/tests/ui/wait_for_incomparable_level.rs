urgency::levels! { App: Interactive > Query > Batch; Interactive > Audit }

fn main() {
    Query.spawn_fn(|cx| {
        let log = Audit.spawn_fn(|_| 1);
        log.get(cx)
    });
    Audit.spawn(async |cx| {
        let shared = Query.spawn_fn(|_| 1).share();
        shared.wait(cx).await
    });
}
