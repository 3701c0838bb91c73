//! Levels as types, on a running runtime: typed work runs at its level, and what the types cannot see
//! is an error at run time. What must not compile is in `compile_fail.rs`.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
};
use urgency::{
    JoinError, JoinErrorKind, LevelId, Runtime, current_level,
    level::{AtLeast, Cx, Level, Levels, Normal, OneLevel, TypedHandle, TypedShared},
    yield_now,
};

urgency::levels! {
    /// A diamond.
    App: Top > Left > Bottom; Top > Right > Bottom
}

mod other {
    urgency::levels! {
        /// An order with as many levels as `App`, so that only its type tells them apart.
        pub(super) Other: One > Two > Three > Four
    }
}

fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .levels::<App>()
        .build()
        .unwrap()
}

#[test]
fn levels_are_ranked_in_the_order_of_declaration() {
    assert_eq!(App::NAMES, ["Top", "Left", "Right", "Bottom"]);
    assert_eq!(App::ABOVE, [0, 0b1, 0b1, 0b111]);
    let ranks = [Top.id(), Left.id(), Right.id(), Bottom.id()].map(LevelId::rank);
    assert_eq!(ranks, [0, 1, 2, 3]);
    assert_eq!((App::NAME, Right::NAME), ("App", "Right"));
}

#[test]
fn typed_work_runs_at_its_level_and_says_so() {
    fn here<L: Level>(cx: Cx<L>) -> (LevelId, LevelId, String) {
        (cx.id(), current_level(), format!("{cx:?}"))
    }
    for workers in [1, 2] {
        let rt = runtime(workers);
        let handles = rt.run(|| {
            (
                Top.spawn_fn(here),
                Left.spawn(async |cx| {
                    yield_now().await;
                    here(cx)
                }),
                Bottom.spawn_fn(|cx| cx.level().spawn_fn(here).get(cx).unwrap()),
            )
        });
        let (top, left, bottom) = handles;
        for (found, level, name) in [
            (top.erase().get(), Top.id(), "Cx<Top>"),
            (left.erase().get(), Left.id(), "Cx<Left>"),
            (bottom.erase().get(), Bottom.id(), "Cx<Bottom>"),
        ] {
            assert_eq!(found.unwrap(), (level, level, name.to_owned()));
        }
    }
}

#[test]
fn allowed_waits_give_results_at_every_pair_of_levels() {
    fn up<L, A>(cx: Cx<L>, awaited: A, number: u32) -> Result<u32, JoinError>
    where
        L: Level,
        A: Level + AtLeast<L>,
    {
        let closure = awaited.spawn_fn(move |_| number).get(cx)?;
        let shared: TypedShared<u32, A> = awaited.spawn(async move |_| 1).share();
        Ok(closure + shared.get(cx)? + shared.clone().get(cx)?)
    }
    let rt = runtime(2);
    let sums = [
        Top.on(&rt).run(|cx| up(cx, Top, 0)),
        Left.on(&rt)
            .run(|cx| Ok(up(cx, Top, 10)? + up(cx, Left, 20)?)),
        Right
            .on(&rt)
            .run(|cx| Ok(up(cx, Top, 10)? + up(cx, Right, 20)?)),
        Bottom.on(&rt).run(|cx| {
            Ok(up(cx, Top, 1)? + up(cx, Left, 2)? + up(cx, Right, 3)? + up(cx, Bottom, 4)?)
        }),
    ];
    assert_eq!(sums.map(Result::unwrap), [2, 34, 34, 18]);
}

#[test]
fn an_erased_handle_gives_an_error_that_names_both_levels() {
    let rt = runtime(2);
    let both = |error: JoinError| match error.kind() {
        JoinErrorKind::Inversion { waiter, awaited } => {
            (waiter.name().unwrap(), awaited.name().unwrap())
        }
        other => panic!("{other:?}"),
    };
    let found = Top
        .on(&rt)
        .run(|_| Bottom.spawn(async |_| pending::<u32>().await).erase().get());
    let error = found.unwrap_err();
    let text = error.to_string();
    assert_eq!(both(error), ("Top", "Bottom"));
    assert!(
        text.contains("level `Top`") && text.contains("level `Bottom`"),
        "{text}"
    );
    let found = Left.on(&rt).run(|cx| {
        let inside = cx
            .level()
            .spawn(async |_| Right.spawn(async |_| pending::<u32>().await).erase().await);
        inside.get(cx).unwrap()
    });
    assert_eq!(found.map_err(both), Err(("Left", "Right")));
}

#[test]
fn both_sides_of_a_join_and_async_code_after_a_wait_keep_the_proof() {
    async fn sum<L: Level>(cx: Cx<'_, L>, numbers: Vec<TypedHandle<u64, L>>) -> u64 {
        let mut sum = 0;
        for number in numbers {
            sum += number.wait(cx).await.unwrap();
        }
        let (a, b) = urgency::join(
            || cx.level().spawn_fn(|_| 1).get(cx).unwrap(),
            || cx.level().spawn(async |_| 2).get(cx).unwrap(),
        );
        sum + a + b
    }
    let rt = runtime(2);
    let total = Left.on(&rt).run(|cx| {
        let numbers = (0..100).map(|n| cx.level().spawn_fn(move |_| n)).collect();
        cx.level()
            .spawn(async move |cx| sum(cx, numbers).await)
            .get(cx)
    });
    assert_eq!(total.unwrap(), 4953);
}

#[test]
fn levels_of_another_order_are_refused_by_name_before_any_work_exists() {
    let rt = runtime(1);
    let message = |call: &dyn Fn()| {
        let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("it is refused");
        *panic.downcast::<String>().expect("panics with a message")
    };
    for text in [
        message(&|| rt.run(|| drop(other::Two.spawn(async |_| ())))),
        message(&|| rt.run(|| drop(other::Two.spawn_fn(|_| ())))),
        message(&|| other::Two.on(&rt).run(|_| ())),
    ] {
        assert!(text.contains("`Other`") && text.contains("`App`"), "{text}");
    }
    let text = message(&|| drop(Top.spawn_fn(|_| ())));
    assert!(
        text.contains("`App`") && text.contains("`OneLevel`"),
        "{text}"
    );
    assert_eq!(rt.run(|| Top.spawn_fn(|_| 1)).erase().get().unwrap(), 1);
}

#[test]
fn a_program_without_levels_has_one_and_runs_polymorphic_code() {
    fn double<L: Level>(cx: Cx<L>, number: u32) -> Result<u32, JoinError> {
        cx.level().spawn_fn(move |_| number * 2).get(cx)
    }
    assert_eq!(
        Normal
            .spawn_fn(|cx| double(cx, 21))
            .erase()
            .get()
            .unwrap()
            .unwrap(),
        42
    );
    let rt = Runtime::builder().levels::<OneLevel>().build().unwrap();
    assert_eq!(Normal.on(&rt).run(|cx| double(cx, 4)).unwrap(), 8);
}

#[test]
fn a_level_is_accepted_where_a_number_is() {
    let rt = runtime(1);
    let found = rt.run(|| urgency::at(Left).spawn_fn(current_level)).get();
    assert_eq!(found.unwrap(), Left.id());
    let chosen: Vec<LevelId> = vec![Bottom.into(), Top.into()];
    assert_eq!(rt.at(chosen[0]).run(current_level), Bottom.id());
}

#[test]
fn detached_and_cancelled_typed_work_behaves_as_untyped_work() {
    let rt = runtime(1);
    let (sender, receiver) = mpsc::channel();
    rt.run(|| {
        Bottom.spawn_fn(move |_| sender.send(7).unwrap()).detach();
    });
    assert_eq!(receiver.recv(), Ok(7));
    let endless = rt.run(|| Left.spawn(async |_| pending::<()>().await));
    assert!(!endless.is_finished());
    endless.abort();
    let error = endless.erase().get().unwrap_err();
    assert_eq!(error.kind(), JoinErrorKind::Cancelled);
}

#[test]
fn a_panic_of_typed_work_is_the_waiters_error() {
    let rt = runtime(1);
    let error = Left.on(&rt).run(|cx| {
        let broken = Top.spawn_fn(|_| -> u32 { panic!("broken") });
        broken.get(cx).unwrap_err()
    });
    assert_eq!(error.into_panic().downcast_ref::<&str>(), Some(&"broken"));
}
