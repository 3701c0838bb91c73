//! One runtime of two workers with three levels. The editor is a task, and forks as it is.

use super::{AT_ONCE, Config, Editor};
use crate::engines::ours::{runtime_with, with_stats};
use std::sync::Arc;
use urgency::net::UnixStream;
use urgency::par;
use urgency::sync::Semaphore;
use urgency_measure::Sample;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};

urgency::levels! {
    /// What an editor does.
    pub Levels:
        /// The next picture.
        Key >
        /// What pops up a little later.
        Complete >
        /// What nobody looks at.
        Index
}

/// One sample.
pub fn run(config: Config) -> Sample {
    let runtime = runtime_with::<Levels>(2);
    let editor = Editor::new(config);
    runtime.at(Index).spawn(index(editor.clone())).detach();
    let (press, pressed) = socket();
    runtime
        .at(Key)
        .spawn(edit(editor.clone(), pressed))
        .detach();
    let sample = with_stats(editor.measure(config, press), &runtime);
    // Indexing never ends; the runtime ends with the process.
    std::mem::forget(runtime);
    sample
}

async fn edit(editor: Arc<Editor>, pressed: std::os::unix::net::UnixStream) {
    let pressed = UnixStream::try_from(pressed).expect("a socket can be non-blocking");
    let mut bytes = [0; ARRIVAL];
    while pressed.read_exact(&mut bytes).await.is_ok() {
        let keystroke = arrival(bytes);
        let tokens = par::reduce(&editor.visible[..], |chunk| chunk.run(), |a, b| a + b);
        editor.highlighted(keystroke, tokens.unwrap_or(0));
        let editor = editor.clone();
        let complete = move || {
            let typed = editor.typed(keystroke);
            let best = par::reduce(&editor.names[..], |part| part.best(typed), Ord::max);
            editor.completed(keystroke, best.unwrap_or_default());
        };
        urgency::at(Complete).spawn_fn(complete).detach();
    }
}

async fn index(editor: Arc<Editor>) {
    let under_way = Arc::new(Semaphore::new(AT_ONCE));
    for file in (0..editor.files.len()).cycle() {
        let permit = under_way.clone().acquire_owned().await;
        let editor = editor.clone();
        let parse = move || {
            editor.parse(&editor.files[file]);
            drop(permit);
        };
        urgency::at(Index).spawn_fn(parse).detach();
    }
}
