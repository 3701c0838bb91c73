//! [`ThreadPoolBuilder`]: its options, and the runtime that they describe.
//!
//! A pool with start or exit handlers, or with a stack size, makes its threads at once, so that the handlers run and a
//! refusal is an error of `build`. Any other pool makes one thread, with which it can do all that it is asked for, and
//! makes further threads when it needs them.

use crate::{
    error::{ErrorKind, ThreadPoolBuildError},
    handler::{self, Handled, Handler},
    pool::ThreadPool,
    registry::{PanicHandler, Registry},
    threads::{CustomSpawn, DefaultSpawn, ThreadBuilder, ThreadSpawn},
};
use std::{
    any::Any,
    env, fmt, io,
    sync::{Arc, Mutex},
    thread,
};
use urgency::{
    Builder, MAX_WORKERS, Runtime,
    embed::{self, Host},
};

/// Builds a [`ThreadPool`], or the global one.
///
/// # Examples
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
/// assert_eq!(pool.install(|| rayon_core::join(|| 6, || 7)), (6, 7));
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub struct ThreadPoolBuilder<S = DefaultSpawn> {
    num_threads: usize,
    use_current_thread: bool,
    panic_handler: Option<Arc<PanicHandler>>,
    thread_name: Option<Box<dyn FnMut(usize) -> String>>,
    stack_size: Option<usize>,
    start_handler: Option<Arc<Handler>>,
    exit_handler: Option<Arc<Handler>>,
    spawn: S,
    breadth_first: bool,
}

/// What a registry is made of.
pub(crate) struct RuntimeParts {
    pub(crate) builder: Builder,
    pub(crate) panic_handler: Option<Arc<PanicHandler>>,
    pub(crate) handled: Arc<Handled>,
}

impl Default for ThreadPoolBuilder {
    fn default() -> Self {
        ThreadPoolBuilder {
            num_threads: 0,
            use_current_thread: false,
            panic_handler: None,
            thread_name: None,
            stack_size: None,
            start_handler: None,
            exit_handler: None,
            spawn: DefaultSpawn,
            breadth_first: false,
        }
    }
}

/// How many threads a pool has if its builder does not say: `RAYON_NUM_THREADS`, else the older `RAYON_RS_NUM_CPUS`,
/// else one for each processor that the process may use. A number that is zero or none counts as not said.
pub(crate) fn default_num_threads() -> usize {
    let processors = || thread::available_parallelism().map_or(1, |n| n.get());
    let said = |name| {
        env::var(name)
            .ok()
            .and_then(|text| text.parse::<usize>().ok())
    };
    let number = match said("RAYON_NUM_THREADS") {
        Some(0) => processors(),
        Some(number) => number,
        None => match said("RAYON_RS_NUM_CPUS") {
            Some(number) if number > 0 => number,
            _ => processors(),
        },
    };
    number.min(MAX_WORKERS)
}

impl ThreadPoolBuilder {
    /// A builder with all defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a pool whose threads are scoped: each calls `wrapper`, which sets up what it needs and calls
    /// [`ThreadBuilder::run`]. Returns what `with_pool` returns, after all threads have ended.
    ///
    /// # Errors
    ///
    /// If a thread could not be made.
    pub fn build_scoped<W, F, R>(self, wrapper: W, with_pool: F) -> Result<R, ThreadPoolBuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        thread::scope(|scope| {
            let wrapper = &wrapper;
            let pool = self
                .spawn_handler(|thread| {
                    let builder = thread.std_builder();
                    builder.spawn_scoped(scope, move || wrapper(thread))?;
                    Ok(())
                })
                .build()?;
            Ok(with_pool(&pool))
        })
    }
}

impl<S: ThreadSpawn> ThreadPoolBuilder<S> {
    /// Builds the pool.
    ///
    /// # Errors
    ///
    /// If a thread could not be made, or if [`ThreadPoolBuilder::use_current_thread`] was asked for on a
    /// thread that is part of a pool already.
    pub fn build(self) -> Result<ThreadPool, ThreadPoolBuildError> {
        self.registry().map(ThreadPool::of)
    }

    /// Builds the global pool: the one that the free functions use outside any other. Without this call it is
    /// made with all defaults when it is first used.
    ///
    /// # Errors
    ///
    /// As [`ThreadPoolBuilder::build`]; and if the global pool is in use already.
    pub fn build_global(self) -> Result<(), ThreadPoolBuildError> {
        Registry::make_global(|| self.registry())
    }

    fn registry(mut self) -> Result<Arc<Registry>, ThreadPoolBuildError> {
        let workers = match self.num_threads {
            0 => default_num_threads(),
            number => number.min(MAX_WORKERS),
        };
        if self.use_current_thread && (Host::current().is_some() || handler::index().is_some()) {
            return Err(ErrorKind::InPoolAlready.into());
        }
        let provided = S::IS_CUSTOM || self.use_current_thread;
        let eager = self.start_handler.is_some()
            || self.exit_handler.is_some()
            || self.stack_size.is_some();
        // The code inside a placed pool does not know the pool, nor its panic handler.
        if !provided
            && !eager
            && self.panic_handler.is_none()
            && let Some(host) = Registry::place_for(workers)
        {
            return Ok(Registry::placed(host));
        }
        let names = Arc::new(Mutex::new(Vec::new()));
        let handled = Handled::new(self.panic_handler.clone());
        let registry = Registry::new(RuntimeParts {
            builder: self.runtime(workers, provided, names.clone(), &handled),
            panic_handler: self.panic_handler.clone(),
            handled,
        })?;
        // One after the other, as in rayon: if one fails, those before it have run, and end with the runtime.
        for index in 0..workers {
            let name = self.thread_name.as_mut().map(|name| name(index));
            if provided {
                self.bring(&registry.host, index, name)?;
                continue;
            }
            if let Some(name) = name {
                names
                    .lock()
                    .expect("nothing panics under this lock")
                    .push(name);
            }
            // A spare thread ends only beside others, so there will always be one.
            if eager || index == 0 {
                registry.host.prepare_thread()?;
            }
        }
        Ok(registry)
    }

    /// The runtime's builder.
    fn runtime(
        &self,
        workers: usize,
        provided: bool,
        names: Names,
        handled: &Arc<Handled>,
    ) -> Builder {
        let mut builder = Runtime::builder().workers(workers);
        if provided {
            builder = builder.provided_threads();
        }
        if self.thread_name.is_some() {
            builder = embed::name_threads(builder, move |number| name_of(&names, number));
        }
        if let Some(bytes) = self.stack_size {
            // As in rayon any size is taken; the least that there can be is used.
            builder = builder.thread_stack_size(bytes.max(64 << 10));
        }
        let calling = |handler: &Arc<Handler>| {
            let (handler, handled) = (handler.clone(), handled.clone());
            move |number| handled.call(&*handler, number % workers)
        };
        if let Some(handler) = &self.start_handler {
            builder = embed::on_thread_start(builder, calling(handler));
        }
        if let Some(handler) = &self.exit_handler {
            builder = embed::on_thread_stop(builder, calling(handler));
        }
        builder
    }

    /// Has the program make a thread; the current one may be the first.
    fn bring(&mut self, host: &Host, index: usize, name: Option<String>) -> io::Result<()> {
        if index == 0 && self.use_current_thread {
            host.stay(index);
            return Ok(());
        }
        let thread = ThreadBuilder::new(host.clone(), index, name, self.stack_size);
        self.spawn.spawn(thread)
    }
}

type Names = Arc<Mutex<Vec<String>>>;

/// The name of a thread; there may be more threads than names.
fn name_of(names: &Mutex<Vec<String>>, number: usize) -> String {
    let names = names.lock().expect("nothing panics under this lock");
    match names.len() {
        0 => "urgency".into(),
        count => names[number % count].clone(),
    }
}

impl<S> ThreadPoolBuilder<S> {
    /// Has `spawn` make the pool's threads: it gets a [`ThreadBuilder`] for each, whose
    /// [`run`](ThreadBuilder::run) is to be called on a thread of its own. The pool then has these threads
    /// and no others.
    pub fn spawn_handler<F>(self, spawn: F) -> ThreadPoolBuilder<CustomSpawn<F>>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        ThreadPoolBuilder {
            num_threads: self.num_threads,
            use_current_thread: self.use_current_thread,
            panic_handler: self.panic_handler,
            thread_name: self.thread_name,
            stack_size: self.stack_size,
            start_handler: self.start_handler,
            exit_handler: self.exit_handler,
            spawn: CustomSpawn::new(spawn),
            breadth_first: self.breadth_first,
        }
    }

    /// The names of the threads, in the order in which they are made; one beyond the pool's number has the name with
    /// its number modulo that. A thread need not have the index of its name: see "What differs from rayon" of the
    /// crate.
    pub fn thread_name<F>(mut self, closure: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        self.thread_name = Some(Box::new(closure));
        self
    }

    /// The number of threads that compute at a time: the workers of the pool's runtime, 1,024 at most. Zero, the
    /// default, stands for `RAYON_NUM_THREADS` if that is set, else for the number of processors.
    ///
    /// A thread that sleeps in the kernel does not count, so more closures may be in progress, and the pool may have
    /// more threads: see "What differs from rayon" of the crate for what bounds them.
    pub fn num_threads(mut self, num_threads: usize) -> Self {
        self.num_threads = num_threads;
        self
    }

    /// The calling thread becomes the pool's thread 0. It runs work of the pool when it calls into the pool,
    /// and only then.
    pub fn use_current_thread(mut self) -> Self {
        self.use_current_thread = true;
        self
    }

    /// Called with each panic that nobody waits for: the panic of a spawned closure or of another handler. Without a
    /// panic handler such a panic aborts the process. A panic of the panic handler aborts it, too.
    pub fn panic_handler<H>(mut self, panic_handler: H) -> Self
    where
        H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    {
        self.panic_handler = Some(Arc::new(panic_handler));
        self
    }

    /// The size of the threads' stacks, in bytes.
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.stack_size = Some(stack_size);
        self
    }

    /// Has no effect: a stack's own forks run youngest first.
    #[deprecated(note = "use `scope_fifo` and `spawn_fifo` for similar effect")]
    pub fn breadth_first(mut self) -> Self {
        self.breadth_first = true;
        self
    }

    /// Called first on each thread of the pool, with the thread's index. Threads beyond the pool's number,
    /// made because others wait, call it with their number modulo that.
    ///
    /// Inside, the free functions of this crate mean this pool. Closures that the handler waits for run on
    /// its thread, and [`broadcast`](crate::broadcast()) panics.
    pub fn start_handler<H>(mut self, start_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.start_handler = Some(Arc::new(start_handler));
        self
    }

    /// Called last on each thread of the pool; as [`ThreadPoolBuilder::start_handler`].
    pub fn exit_handler<H>(mut self, exit_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.exit_handler = Some(Arc::new(exit_handler));
        self
    }
}

impl<S> fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPoolBuilder")
            .field("num_threads", &self.num_threads)
            .field("use_current_thread", &self.use_current_thread)
            .field("stack_size", &self.stack_size)
            .field("breadth_first", &self.breadth_first)
            .finish_non_exhaustive()
    }
}
