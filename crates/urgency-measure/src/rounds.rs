//! Rounds: in each, every contender has a turn, so slow drifts of the machine hit all alike.
//!
//! Each second round has the order of the one before it reversed, so of two contenders each comes first as often as the
//! other; and each pair of rounds begins one place further on, so that in twice as many rounds as there are contenders
//! each is at each place twice. Rejected: to draw anew in each round. Few rounds of two contenders then often have the
//! same order three times, and the median of their ratios is the median of one order.

/// The contenders in the order of a round, from 0.
pub fn in_round<T: Clone>(round: u32, order: &[T]) -> Vec<T> {
    let mut order = order.to_vec();
    if !order.is_empty() {
        let first = round as usize / 2 % order.len();
        order.rotate_left(first);
    }
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// The middle one, or the mean of the two in the middle; none of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{in_round, median};

    const ALL: [&str; 5] = ["a", "b", "c", "d", "e"];

    fn place(round: u32, name: &str) -> usize {
        let order = in_round(round, &ALL);
        let place = order.iter().position(|other| *other == name);
        place.expect("every contender is in every round")
    }

    #[test]
    fn of_two_contenders_each_is_first_in_one_of_two_rounds() {
        let pairs = || ALL.iter().flat_map(|a| ALL.iter().map(move |b| (a, b)));
        for (a, b) in pairs().filter(|(a, b)| a != b) {
            for round in (0..20).step_by(2) {
                let first = |round| place(round, a) < place(round, b);
                assert_ne!(first(round), first(round + 1), "{round} {a} {b}");
            }
        }
    }

    #[test]
    fn each_contender_is_at_each_place_as_often_as_at_any_other() {
        for name in ALL {
            let mut times = [0; 5];
            (0..10).for_each(|round| times[place(round, name)] += 1);
            assert_eq!(times, [2; 5], "{name}");
        }
    }

    #[test]
    fn a_round_of_no_contenders_is_empty() {
        assert!(in_round::<&str>(3, &[]).is_empty());
    }

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_middle_two() {
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median([9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median([]), None);
    }
}
