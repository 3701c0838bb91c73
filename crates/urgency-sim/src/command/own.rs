//! Policies of your own, by name, for a program that brings them and runs `urgency sim` with them.

use urgency_policy::{cores::BoxedPolicy, level::Schedule, pool::AnyOrder};

/// Makes a core policy; its lots come from the seed.
type MakePolicy = Box<dyn Fn(u64) -> BoxedPolicy>;

/// Policies of your own beside the built-in ones. A name that a built-in one has as well stands for yours.
///
/// ```
/// use urgency_policy::{cores::{Drep, Shares}, level::{Prompt, Schedule}, pool::Kind};
/// use urgency_sim::command::Own;
///
/// let own = Own::default()
///     .with_pool("mine", Kind::Aging)
///     .with_schedule("mine", Schedule::own(Prompt))
///     .with_core_policy("mine", |seed| Box::new(Drep::new(seed)));
/// // `urgency_sim::command::run_with(&options, &own)` knows `--pool mine`, `--schedule mine` and
/// // `jobs --policies mine`.
/// # let _ = own;
/// ```
#[derive(Default)]
pub struct Own {
    pools: Vec<(String, AnyOrder)>,
    schedules: Vec<(String, Schedule)>,
    core_policies: Vec<(String, MakePolicy)>,
}

impl Own {
    /// For `--pool`, and a row of `--compare`.
    #[must_use]
    pub fn with_pool(mut self, name: &str, order: impl Into<AnyOrder>) -> Self {
        self.pools.push((name.to_owned(), order.into()));
        self
    }

    /// For `--schedule`.
    #[must_use]
    pub fn with_schedule(mut self, name: &str, schedule: impl Into<Schedule>) -> Self {
        self.schedules.push((name.to_owned(), schedule.into()));
        self
    }

    /// For `jobs --policies`. The function is called for each run, with the seed.
    #[must_use]
    pub fn with_core_policy(
        mut self,
        name: &str,
        make: impl Fn(u64) -> BoxedPolicy + 'static,
    ) -> Self {
        self.core_policies.push((name.to_owned(), Box::new(make)));
        self
    }

    pub(super) fn pools(&self) -> impl Iterator<Item = (&str, AnyOrder)> {
        let pools = self.pools.iter();
        pools.map(|(name, pool)| (name.as_str(), pool.clone()))
    }

    pub(super) fn pool(&self, name: &str) -> Option<AnyOrder> {
        let found = self.pools.iter().find(|(known, _)| known == name);
        found.map(|(_, pool)| pool.clone())
    }

    pub(super) fn schedule(&self, name: &str) -> Option<Schedule> {
        let found = self.schedules.iter().find(|(known, _)| known == name);
        found.map(|(_, schedule)| schedule.clone())
    }

    pub(super) fn core_policy(&self, name: &str, seed: u64) -> Option<BoxedPolicy> {
        let found = self.core_policies.iter().find(|(known, _)| known == name);
        found.map(|(_, make)| make(seed))
    }
}
