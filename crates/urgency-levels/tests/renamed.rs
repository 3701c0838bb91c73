//! A program that depends on the library under another name, as one that was written for Tokio may.

runtime::levels! { App: Urgent > Usual }

#[test]
fn levels_are_declared_under_the_name_that_the_manifest_gives_the_library() {
    let runtime = runtime::Runtime::builder().workers(1).levels::<App>();
    let runtime = runtime.build().unwrap();
    let task = runtime.at(Urgent).spawn(async { Usual.id() });
    assert_eq!(task.get().unwrap(), Usual.id());
}
