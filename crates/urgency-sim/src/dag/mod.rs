//! Computations as DAGs: threads of vertices, edges with latencies, levels, release times.
//!
//! The model is the fairness paper's (section 2.2), with the weighted edges of the latency-hiding paper (section 3): a
//! *thread* is a sequence of vertices, with a level. A thread may *spawn* another (an edge to its first vertex) and
//! *join* it (an edge from its last). An edge with a *latency* is I/O: its target is ready so many nanoseconds after
//! its source has run. A thread that nobody spawns is a **root**; it has a release time, and is what a user waits for.
//!
//! The order of a vertex's edges is the order of a serial execution, which runs the first target first. A DAG whose
//! threads spawn before they go on gets the work-first order of Cilk. A DAG whose threads go on and spawn later gets
//! the help-first order of most libraries.
//!
//! A vertex that begins with a join is a *get* (its thread may find the other one unfinished at any time) or
//! a *sync* ([`Builder::sync`]: in fork-join code the last child to return goes on with the parent).

mod error;

pub use error::DagError;

/// The number of a vertex.
pub type Vertex = u32;

/// The number of a thread.
pub type Thread = u32;

/// The most that a computation's work and its longest path (latencies and release times included) may be
/// together: 2^53 ns, some 104 days. So the time of 1,024 workers fits into 64 bits with room to spare, and
/// any of its sums into a floating-point number.
pub const LONGEST: u64 = 1 << 53;

/// No vertex.
pub(crate) const NONE: u32 = u32::MAX;

/// What is special about the point after a vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Yields {
    /// Nothing: the thread goes on.
    #[default]
    No,
    /// It gives way once.
    Near,
    /// It gives way until others have done something.
    Far,
}

/// An edge as it leaves its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it goes.
    pub to: Vertex,
    /// In nanoseconds; 0 for a plain dependency.
    pub latency: u64,
}

/// A thread of a DAG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// The rank of its level.
    pub level: u8,
    /// Its first vertex.
    pub first: Vertex,
    /// Its last vertex.
    pub last: Vertex,
    /// How many spawns lie between it and a root.
    pub depth: u32,
    /// That root; the thread itself, if it is one.
    pub root: Thread,
    /// When it is released, in nanoseconds, if it is a root.
    pub release: Option<u64>,
}

/// A computation. The text at the top of the file says more.
#[derive(Clone, Debug, PartialEq)]
pub struct Dag {
    pub(crate) work: Vec<u64>,
    pub(crate) thread_of: Vec<Thread>,
    pub(crate) next: Vec<Vertex>,
    pub(crate) parents: Vec<u32>,
    pub(crate) is_sync: Vec<bool>,
    pub(crate) yields: Vec<Yields>,
    first_edge: Vec<u32>,
    edges: Vec<Edge>,
    pub(crate) threads: Vec<ThreadInfo>,
    /// The vertices in an order in which they could run.
    pub(crate) sorted: Vec<Vertex>,
    levels: usize,
}

impl Dag {
    /// How many vertices there are.
    #[expect(clippy::len_without_is_empty, reason = "a DAG is never empty")]
    pub fn len(&self) -> usize {
        self.work.len()
    }

    /// How many levels: one more than the largest rank.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Its threads, by number.
    pub fn threads(&self) -> &[ThreadInfo] {
        &self.threads
    }

    /// What a vertex enables, in serial order.
    pub fn edges(&self, vertex: Vertex) -> &[Edge] {
        let at = vertex as usize;
        &self.edges[self.first_edge[at] as usize..self.first_edge[at + 1] as usize]
    }

    /// The level of a vertex.
    pub fn level(&self, vertex: Vertex) -> u8 {
        self.threads[self.thread_of[vertex as usize] as usize].level
    }

    /// The work of a vertex in nanoseconds.
    pub fn work(&self, vertex: Vertex) -> u64 {
        self.work[vertex as usize]
    }

    /// T1: the work of all vertices in nanoseconds.
    pub fn total_work(&self) -> u64 {
        self.work.iter().sum()
    }

    /// The work of each level in nanoseconds, by rank.
    pub fn work_by_level(&self) -> Vec<u64> {
        let mut by_level = vec![0; self.levels];
        for vertex in 0..self.len() {
            by_level[usize::from(self.level(vertex as u32))] += self.work[vertex];
        }
        by_level
    }

    /// T∞: the longest path in nanoseconds, with latencies and release times.
    pub fn span(&self) -> u64 {
        let mut ready = self.releases();
        let mut span = 0;
        for &vertex in &self.sorted {
            // While it is built this may be more than fits.
            let done = ready[vertex as usize].saturating_add(self.work[vertex as usize]);
            span = span.max(done);
            for edge in self.edges(vertex) {
                let at = &mut ready[edge.to as usize];
                *at = (*at).max(done.saturating_add(edge.latency));
            }
        }
        span
    }

    /// For each vertex when its root is released, else 0.
    fn releases(&self) -> Vec<u64> {
        let mut ready = vec![0; self.len()];
        for thread in &self.threads {
            ready[thread.first as usize] = thread.release.unwrap_or(0);
        }
        ready
    }

    /// How many edges have a latency: an upper bound of the suspension width.
    pub fn latencies(&self) -> usize {
        self.edges.iter().filter(|edge| edge.latency > 0).count()
    }

    /// How many vertices wait for another thread: an upper bound of the futures that are in parallel.
    pub fn joins(&self) -> usize {
        (0..self.len())
            .filter(|&v| self.parents[v] > 1 && !self.is_sync[v])
            .count()
    }
}

/// Builds a [`Dag`], vertex by vertex.
///
/// ```
/// use urgency_sim::dag::Builder;
///
/// let mut dag = Builder::new();
/// let main = dag.root(0, 0);
/// let fork = dag.step(main, 10);
/// let child = dag.spawn(fork, 0);
/// dag.step(child, 30);
/// dag.step(main, 20);
/// dag.sync(main, child, 5);
/// let dag = dag.build()?;
/// assert_eq!((dag.total_work(), dag.span()), (65, 45));
/// # Ok::<(), urgency_sim::dag::DagError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    work: Vec<u64>,
    thread_of: Vec<Thread>,
    next: Vec<Vertex>,
    is_sync: Vec<bool>,
    yields: Vec<Yields>,
    edges: Vec<(Vertex, Edge)>,
    threads: Vec<ThreadInfo>,
    /// By thread: the vertex that spawned it, until it has a vertex of its own.
    spawner: Vec<Vertex>,
}

impl Builder {
    /// A computation without vertices.
    pub fn new() -> Self {
        Builder::default()
    }

    fn thread(&mut self, level: u8, depth: u32, release: Option<u64>, spawner: Vertex) -> Thread {
        let number = self.threads.len() as Thread;
        let root = match self.thread_of.get(spawner as usize) {
            Some(&of) => self.threads[of as usize].root,
            None => number,
        };
        self.threads.push(ThreadInfo {
            level,
            first: NONE,
            last: NONE,
            depth,
            root,
            release,
        });
        self.spawner.push(spawner);
        number
    }

    /// Whether there is no vertex yet.
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// The rank of a thread's level.
    ///
    /// # Panics
    ///
    /// If there is no such thread.
    pub fn level_of(&self, thread: Thread) -> u8 {
        self.threads[thread as usize].level
    }

    /// A thread that nobody spawns, at the level of this rank, released at a time in nanoseconds.
    pub fn root(&mut self, level: u8, release: u64) -> Thread {
        self.thread(level, 0, Some(release), NONE)
    }

    /// A thread that `from` spawns, at the level of this rank.
    ///
    /// # Panics
    ///
    /// If there is no such vertex.
    pub fn spawn(&mut self, from: Vertex, level: u8) -> Thread {
        let depth = self.threads[self.thread_of[from as usize] as usize].depth + 1;
        self.thread(level, depth, None, from)
    }

    /// The next vertex of a thread, with so much work in nanoseconds (at least 1).
    ///
    /// # Panics
    ///
    /// If there is no such thread.
    pub fn step(&mut self, thread: Thread, work: u64) -> Vertex {
        self.step_after(thread, 0, work)
    }

    /// The next vertex of a thread, ready `latency` nanoseconds after the vertex before: it waits for I/O that the
    /// vertex before started.
    ///
    /// # Panics
    ///
    /// If there is no such thread.
    pub fn step_after(&mut self, thread: Thread, latency: u64, work: u64) -> Vertex {
        let vertex = self.work.len() as Vertex;
        self.work.push(work.max(1));
        self.thread_of.push(thread);
        self.next.push(NONE);
        self.is_sync.push(false);
        self.yields.push(Yields::No);
        let info = &mut self.threads[thread as usize];
        let before = if info.first == NONE {
            info.first = vertex;
            self.spawner[thread as usize]
        } else {
            self.next[info.last as usize] = vertex;
            info.last
        };
        info.last = vertex;
        if before != NONE {
            self.edge(before, vertex, latency);
        }
        vertex
    }

    /// `to` cannot run before `from` has, and `latency` nanoseconds have passed.
    pub fn edge(&mut self, from: Vertex, to: Vertex, latency: u64) {
        self.edges.push((from, Edge { to, latency }));
    }

    /// The next vertex of `thread` waits for the end of `awaited`, whose vertices are all there: a get.
    ///
    /// # Panics
    ///
    /// If there is no such thread, or `awaited` has no vertex.
    pub fn get(&mut self, thread: Thread, awaited: Thread, work: u64) -> Vertex {
        let vertex = self.step(thread, work);
        self.also_joins(vertex, awaited);
        vertex
    }

    /// As [`get`](Self::get), but the worker that ends `awaited` goes on with the waiting thread at once.
    ///
    /// # Panics
    ///
    /// As `get`.
    pub fn sync(&mut self, thread: Thread, awaited: Thread, work: u64) -> Vertex {
        let vertex = self.get(thread, awaited, work);
        self.is_sync[vertex as usize] = true;
        vertex
    }

    /// After this vertex its thread gives way.
    ///
    /// # Panics
    ///
    /// If there is no such vertex.
    pub fn yields(&mut self, vertex: Vertex, how: Yields) {
        self.yields[vertex as usize] = how;
    }

    /// A vertex joins one more thread, whose vertices are all there.
    ///
    /// # Panics
    ///
    /// If there is no thread `awaited`, or it has no vertex.
    pub fn also_joins(&mut self, vertex: Vertex, awaited: Thread) {
        let last = self.threads[awaited as usize].last;
        assert_ne!(last, NONE, "a thread has its vertices before it is joined");
        self.edge(last, vertex, 0);
    }

    /// Marks a vertex as one that the last of the awaited goes on with.
    ///
    /// # Panics
    ///
    /// If there is no such vertex.
    pub fn as_sync(&mut self, vertex: Vertex) {
        self.is_sync[vertex as usize] = true;
    }

    /// The computation.
    ///
    /// # Errors
    ///
    /// If it is empty, a thread is empty, a level's rank is above 63, an edge leads to no vertex, the edges
    /// form a cycle, or all of it takes more than [`LONGEST`].
    pub fn build(self) -> Result<Dag, DagError> {
        let len = self.work.len();
        if len == 0 {
            return Err(DagError::Empty);
        }
        for (number, thread) in self.threads.iter().enumerate() {
            let number = number as Thread;
            if thread.first == NONE {
                return Err(DagError::EmptyThread(number));
            }
            if thread.level > 63 {
                return Err(DagError::Level {
                    thread: number,
                    level: thread.level,
                });
            }
        }
        let mut parents = vec![0; len];
        let mut first_edge = vec![0u32; len + 1];
        for &(from, edge) in &self.edges {
            for number in [from, edge.to] {
                if number as usize >= len {
                    return Err(DagError::Unknown {
                        what: "vertex",
                        number,
                    });
                }
            }
            parents[edge.to as usize] += 1;
            first_edge[from as usize + 1] += 1;
        }
        for at in 0..len {
            first_edge[at + 1] += first_edge[at];
        }
        let mut place = first_edge.clone();
        let mut edges = vec![Edge { to: 0, latency: 0 }; self.edges.len()];
        for (from, edge) in self.edges {
            let at = &mut place[from as usize];
            edges[*at as usize] = edge;
            *at += 1;
        }
        let levels = self.threads.iter().map(|t| usize::from(t.level) + 1).max();
        let mut dag = Dag {
            work: self.work,
            thread_of: self.thread_of,
            next: self.next,
            parents,
            is_sync: self.is_sync,
            yields: self.yields,
            first_edge,
            edges,
            threads: self.threads,
            sorted: Vec::new(),
            levels: levels.unwrap_or(1),
        };
        dag.sorted = sort(&dag)?;
        let work = dag.work.iter().try_fold(0u64, |sum, &w| sum.checked_add(w));
        let most = work.and_then(|work| work.checked_add(dag.span()));
        match most {
            Some(0..=LONGEST) => Ok(dag),
            _ => Err(DagError::TooLong),
        }
    }
}

/// A topological order.
fn sort(dag: &Dag) -> Result<Vec<Vertex>, DagError> {
    let mut pending = dag.parents.clone();
    let is_source = |v: &u32| pending[*v as usize] == 0;
    let mut sorted: Vec<Vertex> = (0..dag.len() as u32).filter(is_source).collect();
    let mut at = 0;
    while at < sorted.len() {
        for edge in dag.edges(sorted[at]) {
            let pending = &mut pending[edge.to as usize];
            *pending -= 1;
            if *pending == 0 {
                sorted.push(edge.to);
            }
        }
        at += 1;
    }
    match pending.iter().position(|&pending| pending > 0) {
        Some(vertex) => Err(DagError::Cycle(vertex as Vertex)),
        None => Ok(sorted),
    }
}

#[cfg(test)]
mod tests;
