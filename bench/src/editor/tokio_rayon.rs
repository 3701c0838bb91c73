//! The editor is a task of Tokio, which hands forks to the urgent pool and waits for them.
//!
//! Where there is one pool, a keystroke waits for the files under way. (A parallel iterator over all files would let it
//! wait for the whole project: a rayon worker looks at what comes from outside when there is nothing else left.)

use super::{AT_ONCE, Config, Editor, best};
use crate::engines::pair::{self, Arrangement, Pair, run_in};
use rayon::{ThreadPool, prelude::*};
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;
use urgency_measure::Sample;
use urgency_measure::client::pacer::{ARRIVAL, arrival, socket};

/// One sample.
pub fn run(config: Config, arrangement: Arrangement) -> Sample {
    let pair = Pair::new(2, arrangement);
    let editor = Editor::new(config);
    pair.tokio.spawn(index(editor.clone(), pair.batch.clone()));
    let (press, pressed) = socket();
    pair.tokio
        .spawn(edit(editor.clone(), pair.urgent.clone(), pressed));
    let sample = editor.measure(config, press);
    // Indexing never ends; the pools end with the process.
    std::mem::forget(pair);
    sample
}

async fn edit(editor: Arc<Editor>, pool: Arc<ThreadPool>, pressed: std::os::unix::net::UnixStream) {
    let mut pressed = pair::stream(pressed);
    let mut bytes = [0; ARRIVAL];
    while pressed.read_exact(&mut bytes).await.is_ok() {
        let keystroke = arrival(bytes);
        let shown = editor.clone();
        let highlight = move || shown.visible.par_iter().map(|chunk| chunk.run()).sum();
        let tokens = run_in(&pool, highlight).await;
        editor.highlighted(keystroke, tokens);
        let editor = editor.clone();
        pool.spawn(move || {
            let typed = editor.typed(keystroke);
            let fits = editor.names.par_iter().map(|part| part.best(typed));
            editor.completed(keystroke, best(fits.max()));
        });
    }
}

async fn index(editor: Arc<Editor>, pool: Arc<ThreadPool>) {
    let under_way = Arc::new(Semaphore::new(AT_ONCE));
    for file in (0..editor.files.len()).cycle() {
        let permit = under_way.clone().acquire_owned().await;
        let editor = editor.clone();
        pool.spawn(move || {
            editor.parse(&editor.files[file]);
            drop(permit);
        });
    }
}
