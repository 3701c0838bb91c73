//! What the service searches: documents in SQLite, and a copy in memory that is made anew by each reindex.
//!
//! SQLite blocks its thread, on the disk and on its own locks. So each call is declared by [`blocking`]: its worker
//! does something else meanwhile. The connection is behind the runtime's mutex and not the standard library's: while a
//! search waits for it, a reindex that holds it runs at the search's level.

use rusqlite::{Connection, params};
use std::sync::{Arc, PoisonError, RwLock};
use urgency::{block_on, blocking, par, sync::Mutex};

/// How many documents are read at a time: the lock is free in between.
const PAGE: usize = 500;

pub struct Store {
    database: Mutex<Connection>,
    /// The documents, ready to be searched. Replaced as a whole.
    index: RwLock<Arc<Vec<String>>>,
}

impl Store {
    /// A database in memory with some documents.
    pub fn with_documents(count: usize) -> rusqlite::Result<Store> {
        let mut database = Connection::open_in_memory()?;
        database.execute_batch(
            "CREATE TABLE documents (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
             CREATE TABLE searches (word TEXT NOT NULL, hits INTEGER NOT NULL);",
        )?;
        let all = database.transaction()?;
        let words = [
            "Urgent", "work", "goes", "first", "and", "the", "rest", "later",
        ];
        for id in 0..count {
            let text: Vec<_> = (0..40)
                .map(|n| words[(id * 7 + n * n) % words.len()])
                .collect();
            let insert = "INSERT INTO documents (id, text) VALUES (?1, ?2)";
            all.execute(insert, params![id as i64, text.join(" ")])?;
        }
        all.commit()?;
        Ok(Store {
            database: Mutex::new(database),
            index: RwLock::default(),
        })
    }

    /// Runs on a stack of its own, or on a plain thread.
    fn with_database<R>(&self, f: impl FnOnce(&Connection) -> R) -> R {
        let database = block_on(self.database.lock());
        blocking(|| f(&database))
    }

    /// How often `word` occurs, counted on all cores; and notes that it was asked for.
    pub fn search(&self, word: &str) -> rusqlite::Result<usize> {
        let index = self
            .index
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let word = word.to_lowercase();
        let in_document = |text: &String| text.matches(&*word).count();
        let hits = par::reduce(&index[..], in_document, |a, b| a + b).unwrap_or(0);
        let note = "INSERT INTO searches (word, hits) VALUES (?1, ?2)";
        self.with_database(|database| database.execute(note, params![word, hits as i64]))?;
        Ok(hits)
    }

    /// Reads everything and makes the copy in memory anew. Returns the number of documents.
    ///
    /// A leaf of this is one document, some microseconds: a search that arrives waits for one leaf on each core.
    pub fn reindex(&self) -> rusqlite::Result<usize> {
        let mut index = Vec::new();
        loop {
            let page = self.with_database(|database| page(database, index.len()))?;
            if page.is_empty() {
                break;
            }
            index.append(&mut par::map(&page[..], |text| text.to_lowercase()));
        }
        let count = index.len();
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(index);
        Ok(count)
    }

    /// How many searches were noted.
    pub fn searches(&self) -> rusqlite::Result<i64> {
        let count = "SELECT count(*) FROM searches";
        self.with_database(|database| database.query_row(count, [], |row| row.get(0)))
    }
}

fn page(database: &Connection, from: usize) -> rusqlite::Result<Vec<String>> {
    let select = "SELECT text FROM documents WHERE id >= ?1 ORDER BY id LIMIT ?2";
    let mut statement = database.prepare_cached(select)?;
    let rows = statement.query_map(params![from as i64, PAGE as i64], |row| row.get(0))?;
    rows.collect()
}
