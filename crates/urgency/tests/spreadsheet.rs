//! A spreadsheet, as a newcomer writes it from the public documentation: each cell is a task that waits for the cells
//! it reads, an edit cancels the cells that it makes stale and starts new ones, views raise what they show and give up
//! after a while, and the program may end in the middle. Each cell has the value that a serial program computes. In a
//! file of its own, because it counts what the process has.

mod common;

use common::{Random, ends, number, quiet, threads_and_descriptors, until};
use std::{sync::Arc, time::Duration};
use urgency::{
    At, JoinError, JoinErrorKind, JoinHandle, LevelId, Runtime, Shared, Shutdown,
    life::CancellationToken,
    par, select, spawn,
    sync::{RwLock, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

urgency::levels! { Sheet: View > Edit > Recalc > Save }

const COLUMNS: u64 = 8;
const CELLS: u64 = 160;
const EDITS: u64 = 40;

/// A number, or why there is none.
type Value = Result<u64, String>;

#[derive(Clone)]
enum Formula {
    Number(u64),
    /// Mixes the cells that it reads.
    Mix(Vec<usize>),
    /// Panics where the remainder of the cell that it reads is 0.
    Divide(usize),
}

fn mix(a: u64, b: u64) -> u64 {
    (a ^ b.rotate_left(17)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 7
}

impl Formula {
    fn random(cell: u64, random: &mut Random) -> Self {
        if cell < COLUMNS {
            return Formula::Number(random.below(1000));
        }
        let first = cell.saturating_sub(3 * COLUMNS);
        let row = cell - cell % COLUMNS;
        let mut reads = || (first + random.below(row - first)) as usize;
        match (reads(), reads(), reads()) {
            (one, ..) if cell.is_multiple_of(5) => Formula::Divide(one),
            (one, two, _) if cell.is_multiple_of(3) => Formula::Mix(vec![one, two]),
            (one, two, three) => Formula::Mix(vec![one, two, three]),
        }
    }

    fn reads(&self) -> Vec<usize> {
        match self {
            Formula::Number(_) => Vec::new(),
            Formula::Mix(cells) => cells.clone(),
            Formula::Divide(cell) => vec![*cell],
        }
    }

    fn value(&self, read: &[u64]) -> u64 {
        match self {
            Formula::Number(number) => *number,
            Formula::Mix(_) => read.iter().fold(7, |all, &one| mix(all, one)),
            Formula::Divide(_) => {
                assert!(!read[0].is_multiple_of(11), "divides by zero on purpose");
                read[0] / (read[0] % 11)
            }
        }
    }

    /// As `value`, with the work of a large sheet, in parallel.
    fn compute(&self, read: Vec<Value>) -> Value {
        let read = read.into_iter().collect::<Result<Vec<_>, _>>()?;
        let work = par::reduce(0..200u64, |n| mix(n, read.len() as u64), mix);
        assert!(work.is_some());
        Ok(self.value(&read))
    }
}

/// What a cell that was read gave. Work that waits without a right to it has another error than these.
fn read(result: Result<Value, JoinError>) -> Value {
    result.unwrap_or_else(|error| match error.kind() {
        JoinErrorKind::Panicked => Err("no number".to_string()),
        JoinErrorKind::Cancelled | JoinErrorKind::ShutDown => Err("stale".to_string()),
        _ => Err(error.to_string()),
    })
}

/// Starts the task of a cell: as a closure, as async code, or as async code with a task for each cell that it reads.
fn start(
    at: &At,
    formula: Formula,
    reads: Vec<Shared<Value>>,
    stale: CancellationToken,
) -> Shared<Value> {
    let handle: JoinHandle<Value> = match reads.len() {
        0 | 1 => at.spawn_fn(move || {
            let values = reads.iter().map(|cell| read(cell.get())).collect();
            formula.compute(values)
        }),
        2 => at.spawn(async move {
            let all = async {
                let mut values = Vec::new();
                for cell in reads {
                    values.push(read(cell.await));
                }
                values
            };
            match stale.run_until_cancelled(all).await {
                Some(values) => formula.compute(values),
                None => Err("stale".to_string()),
            }
        }),
        _ => at.spawn(async move {
            let mut set = JoinSet::new();
            for (place, cell) in reads.into_iter().enumerate() {
                set.spawn(async move { (place, read(cell.await)) });
            }
            let mut values = set.join_all().await;
            values.sort_by_key(|(place, _)| *place);
            let values = values.into_iter().map(|(_, value)| value).collect();
            read(spawn(async move { formula.compute(values) }).await)
        }),
    };
    handle.share()
}

struct Cell {
    formula: Formula,
    value: Shared<Value>,
    stale: CancellationToken,
}

/// Cells read what is before them.
struct Book {
    cells: RwLock<Vec<Cell>>,
    recalc: At,
}

impl Book {
    fn new(runtime: &Runtime, random: &mut Random) -> Self {
        let recalc = runtime.at(LevelId::from(Recalc));
        let mut cells = Vec::new();
        for cell in 0..CELLS {
            let cell = Self::cell(&recalc, &cells, Formula::random(cell, random));
            cells.push(cell);
        }
        Book {
            cells: RwLock::new(cells),
            recalc,
        }
    }

    fn cell(recalc: &At, before: &[Cell], formula: Formula) -> Cell {
        let reads = formula.reads().into_iter();
        let reads = reads.map(|cell| before[cell].value.clone()).collect();
        let stale = CancellationToken::new();
        let value = start(recalc, formula.clone(), reads, stale.clone());
        Cell {
            formula,
            value,
            stale,
        }
    }

    /// Writes a number into a cell, and starts anew what reads it, and what reads that, and so on.
    async fn edit(&self, edited: usize, number: u64) {
        let mut cells = self.cells.write().await;
        let mut changed = vec![false; cells.len()];
        for cell in edited..cells.len() {
            let mut formula = cells[cell].formula.clone();
            if cell == edited {
                formula = Formula::Number(number);
            } else if !formula.reads().into_iter().any(|read| changed[read]) {
                continue;
            }
            changed[cell] = true;
            cells[cell].stale.cancel();
            if cell.is_multiple_of(2) {
                cells[cell].value.abort();
            }
            cells[cell] = Self::cell(&self.recalc, &cells, formula);
        }
    }

    async fn value(&self, cell: u64) -> Shared<Value> {
        self.cells.read().await[cell as usize].value.clone()
    }
}

/// The values of a serial program.
fn serially(cells: &[Cell]) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for cell in cells {
        let read = cell.formula.reads().into_iter();
        let read: Result<Vec<u64>, _> = read.map(|cell| values[cell].clone()).collect();
        values.push(read.and_then(|read| match cell.formula {
            Formula::Divide(_) if read[0].is_multiple_of(11) => Err("no number".to_string()),
            _ => Ok(cell.formula.value(&read)),
        }));
    }
    values
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Drained,
    Cancelled,
    Dropped,
}

fn round(workers: usize, seed: u64, end: End) {
    let runtime = Runtime::builder().workers(workers).levels::<Sheet>();
    let runtime = runtime.build().unwrap();
    let mut random = Random::new(seed);
    let book = Arc::new(Book::new(&runtime, &mut random));
    let (stop, (edits, seen)) = (CancellationToken::new(), watch::channel(0));
    let mut tasks: Vec<JoinHandle<()>> = (0..3)
        .map(|view| {
            let (book, stop, mut seen) = (book.clone(), stop.clone(), seen.clone());
            let mut random = Random::new(seed + view);
            runtime.at(LevelId::from(View)).spawn(async move {
                while stop.run_until_cancelled(seen.changed()).await == Some(Ok(())) {
                    let value = book.value(random.below(CELLS)).await;
                    value.boost();
                    let patience = Duration::from_millis(random.below(20));
                    // What is late is not shown.
                    let _ = timeout(patience, value).await;
                }
            })
        })
        .collect();
    let (saved, stopped) = (book.clone(), stop.clone());
    tasks.push(runtime.at(LevelId::from(Save)).spawn(async move {
        loop {
            select! {
                () = stopped.cancelled() => break,
                () = sleep(Duration::from_millis(2)) => {
                    let cells = saved.cells.read().await;
                    let there = cells.iter().filter_map(|cell| cell.value.try_get());
                    assert!(there.count() as u64 <= CELLS);
                }
            }
        }
    }));
    let edited = book.clone();
    let editor = runtime.at(LevelId::from(Edit)).spawn(async move {
        for edit in 0..EDITS {
            edited.edit(random.below(40) as usize, edit).await;
            edits.send(edit).unwrap();
            sleep(Duration::from_micros(random.below(1500))).await;
        }
    });
    if end == End::Drained {
        editor.get().unwrap();
        let cells = book.cells.blocking_read();
        let values: Vec<Value> = cells.iter().map(|cell| read(cell.value.get())).collect();
        assert_eq!(values, serially(&cells), "{workers} workers, seed {seed}");
        stop.cancel();
        tasks.into_iter().for_each(|task| task.get().unwrap());
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!(report.left, 0, "{report:?}");
    } else {
        std::thread::sleep(Duration::from_millis(seed % 30));
        if end == End::Cancelled {
            assert_eq!(runtime.shutdown(Shutdown::Cancel).left, 0);
        }
        drop(runtime);
        // Each waiter is told.
        let _ = editor.get();
        tasks.into_iter().for_each(|task| drop(task.get()));
        let cells = book.cells.blocking_read();
        cells.iter().for_each(|cell| drop(cell.value.get()));
    }
}

#[test]
#[cfg_attr(miri, ignore = "many threads and timers")]
fn each_cell_of_a_spreadsheet_has_its_value_after_edits_that_cancel_and_views_that_raise() {
    quiet();
    let first = number("URGENCY_TEST_SEED", 1);
    ends(move || {
        let before = threads_and_descriptors();
        for (seed, workers) in (first..).zip([2, 1, 8]) {
            for end in [End::Drained, End::Cancelled, End::Dropped] {
                round(workers, seed, end);
                until(|| {
                    let after = threads_and_descriptors();
                    after.0 <= before.0 && after.1 <= before.1
                });
            }
        }
    });
}
