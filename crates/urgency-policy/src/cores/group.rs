//! Groups: jobs that have one share together, as the jobs of one tenant.
//!
//! Without groups a tenant with four jobs has four times the share of a tenant with one. In a group the jobs together
//! have what the group's weight gives, and divide it by their own weights. The division is made twice by the same rule
//! (`divide.rs`): between the groups, whose bounds are the sums of their jobs' bounds, and within each group. So what a
//! job leaves goes to its group first, and what a group leaves to the other groups.
//!
//! The share of a group need not be whole. It is divided as it is, without rounding: four jobs of a group with half a
//! core have an eighth each.

use super::{Claim, Part, divide::Exact};
use alloc::{collections::BTreeMap, vec, vec::Vec};

/// Jobs that have one share together: see [`Demand::group`](super::Demand::group).
///
/// A policy sees the group of each job, so its number also tells whose job it is. [`Shares`](super::Shares) divide by
/// groups; the other built-in policies take no notice.
///
/// ```
/// use urgency_policy::cores::{Cores, Demand, Event, Group, JobId, Shares};
///
/// let (mut cores, mut shares) = (Cores::new(8), Shares::default());
/// let of = |group| Demand { group: Some(group), ..Demand::default() };
/// let (small, large) = (Group::new(1), Group::new(2).weight(3));
/// for (id, group) in [(1, small), (2, small), (3, large)] {
///     cores.start(&mut shares, JobId(id), of(group))?;
///     cores.decide(&mut shares, Event::Start(JobId(id)))?;
/// }
/// assert_eq!(cores.counts(), [1, 1, 6], "1 to 3, whatever the number of jobs");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The number that the program gave it, as the number of a tenant.
    pub id: u64,
    /// Its share relative to the other groups, and to the jobs without one, of the same priority; 1 or more. If its
    /// jobs say different weights, the largest counts.
    pub weight: u32,
}

impl Group {
    /// The group of this number, of the weight 1.
    pub const fn new(id: u64) -> Self {
        Group { id, weight: 1 }
    }

    /// The same with this weight.
    #[must_use]
    pub const fn weight(self, weight: u32) -> Self {
        Group { weight, ..self }
    }
}

/// The shares of the claims on so many cores, each of which may belong to a group.
pub(super) fn divide(
    total: usize,
    claims: &[Claim],
    groups: impl Iterator<Item = Option<Group>> + Clone,
) -> Vec<Part> {
    let least = claims.iter().map(|claim| claim.least);
    // The least of all are met one after the other, whosever they are.
    let meets_least = least.fold(0, usize::saturating_add) < total;
    if !meets_least || groups.clone().all(|group| group.is_none()) {
        return Part::of(total, claims);
    }
    let mut places = BTreeMap::new();
    let (mut together, mut members): (Vec<Claim>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
    for (index, (claim, group)) in claims.iter().zip(groups).enumerate() {
        let new = together.len();
        let place = group.map_or(new, |group| *places.entry(group.id).or_insert(new));
        let weight = group.map_or(claim.weight, |group| group.weight);
        if place == new {
            together.push(Claim { weight, ..*claim });
            members.push(vec![index]);
            continue;
        }
        let all = &mut together[place];
        all.weight = all.weight.max(weight);
        all.least += claim.least;
        all.most = all.most.saturating_add(claim.most);
        members[place].push(index);
    }
    let mut parts = vec![Part::default(); claims.len()];
    let shares: Vec<Exact> = Exact::whole(total).divide(&together);
    for (share, members) in shares.into_iter().zip(members) {
        let theirs: Vec<Claim> = members.iter().map(|&index| claims[index]).collect();
        for (index, share) in members.into_iter().zip(share.divide(&theirs)) {
            parts[index] = share;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(weight: u32) -> Claim {
        Claim {
            weight,
            least: 0,
            most: 9,
        }
    }

    fn shares(total: usize, claims: &[Claim], groups: &[Option<Group>]) -> Vec<f64> {
        let parts = divide(total, claims, groups.iter().copied());
        parts.into_iter().map(Part::share).collect()
    }

    #[test]
    fn a_group_of_four_has_what_a_group_of_one_has_and_its_jobs_divide_it_by_their_weights() {
        let [one, four] = [1, 2].map(|id| Some(Group::new(id)));
        let claims = [1, 1, 1, 1, 5].map(claim);
        let groups = [one, four, four, four, four];
        assert_eq!(
            shares(2, &claims, &groups),
            [1.0, 0.125, 0.125, 0.125, 0.625]
        );
        // Without groups the job with the weight 5 has most of it.
        assert_eq!(shares(9, &claims, &[None; 5]), [1.0, 1.0, 1.0, 1.0, 5.0]);
    }

    #[test]
    fn a_job_without_a_group_is_one_of_its_own_weight_and_the_largest_weight_of_a_group_counts() {
        let group = Group::new(7);
        let groups = [None, Some(group), Some(group.weight(4))];
        assert_eq!(shares(6, &[2, 1, 1].map(claim), &groups), [2.0, 2.0, 2.0]);
        assert_eq!(shares(5, &[1, 3, 1].map(claim), &groups), [1.0, 3.0, 1.0]);
    }

    #[test]
    fn what_a_job_leaves_goes_to_its_group_first_and_then_to_the_others() {
        let narrow = Claim {
            most: 1,
            ..claim(1)
        };
        let [one, other] = [1, 2].map(|id| Some(Group::new(id)));
        let groups = [one, one, other];
        assert_eq!(
            shares(8, &[narrow, claim(1), claim(1)], &groups),
            [1.0, 3.0, 4.0]
        );
        assert_eq!(
            shares(8, &[narrow, narrow, claim(1)], &groups),
            [1.0, 1.0, 6.0]
        );
    }

    fn any_claim() -> impl Strategy<Value = (Claim, Option<Group>)> {
        let claim = (1u32..9, 0usize..4, 0usize..9);
        let group =
            proptest::option::of((0u64..4).prop_map(|id| Group::new(id).weight(id as u32 + 1)));
        (claim, group).prop_map(|((weight, least, more), group)| {
            let most = least + more;
            (
                Claim {
                    weight,
                    least,
                    most,
                },
                group,
            )
        })
    }

    proptest! {
        #[test]
        fn everything_is_divided_every_bound_is_kept_and_groups_and_their_jobs_have_their_shares(
            total in 0usize..60,
            all in proptest::collection::vec(any_claim(), 1..12),
        ) {
            let (claims, groups): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let shares = shares(total, &claims, &groups);
            let sum = |bound: fn(&Claim) -> usize| claims.iter().map(bound).sum::<usize>();
            let (least, most) = (sum(|claim| claim.least), sum(|claim| claim.most));
            let given: f64 = shares.iter().sum();
            prop_assert!((given - total.min(most) as f64).abs() < 1e-6, "{shares:?}");
            for (share, claim) in shares.iter().zip(&claims) {
                prop_assert!(*share <= claim.most as f64 + 1e-9);
                prop_assert!(least > total || *share >= claim.least as f64 - 1e-9);
            }
            prop_assume!(least < total);
            // Of two jobs of a group, one that could have less has no more for its weight than one that could have
            // more.
            let may_fall = |i: usize| shares[i] > claims[i].least as f64 + 1e-9;
            let may_rise = |i: usize| shares[i] < claims[i].most as f64 - 1e-9;
            let each = |i: usize| shares[i] / f64::from(claims[i].weight);
            // And so two groups, or jobs without one: the lowest of its jobs stands for a group.
            let key = |i: usize| groups[i].map_or((1, i as u64), |group| (0, group.id));
            let together = |i: usize| {
                let all = (0..claims.len()).filter(|&other| key(other) == key(i));
                let sum: f64 = all.map(|other| shares[other]).sum();
                sum / f64::from(groups[i].map_or(claims[i].weight, |group| group.weight))
            };
            for a in 0..claims.len() {
                for b in 0..claims.len() {
                    if !(may_fall(a) && may_rise(b)) {
                        continue;
                    }
                    match key(a) == key(b) {
                        true => prop_assert!(each(a) <= each(b) + 1e-9, "{shares:?}"),
                        false => prop_assert!(together(a) <= together(b) + 1e-9, "{shares:?}"),
                    }
                }
            }
        }
    }
}
