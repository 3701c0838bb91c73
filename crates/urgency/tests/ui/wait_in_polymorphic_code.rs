use urgency::level::{AtLeast, Cx, Level, TypedHandle};

urgency::levels! { App: Interactive > Batch }

fn any_level<L: Level, A: Level>(cx: Cx<L>, awaited: TypedHandle<u32, A>) {
    let _ = awaited.get(cx);
}

fn at_least<L: Level, A: Level + AtLeast<L>>(cx: Cx<L>, awaited: TypedHandle<u32, A>) {
    let _ = awaited.get(cx);
}

fn main() {
    Interactive.spawn_fn(|cx| at_least(cx, Batch.spawn_fn(|_| 1)));
}
