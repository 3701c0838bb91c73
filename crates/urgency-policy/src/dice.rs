//! Pseudo-random numbers for the policies that draw lots.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): one addition
//! and a mixing function. The seed comes from the caller, so that the same seed makes the same decisions.

/// How far a roll moves the state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of pseudo-random numbers.
///
/// ```
/// use urgency_policy::dice::Dice;
///
/// let (mut a, mut b) = (Dice::new(7), Dice::new(7));
/// assert_eq!(a.below(1000), b.below(1000));
/// assert_ne!(a.split(0), a.split(1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Dice { state: seed }
    }

    /// The next number, any of the 2^64.
    #[inline]
    pub fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let z = self.state;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// As so many calls of [`roll`](Self::roll), in the time of one.
    ///
    /// ```
    /// use urgency_policy::dice::Dice;
    ///
    /// let (mut a, mut b) = (Dice::new(7), Dice::new(7));
    /// for _ in 0..1000 {
    ///     a.roll();
    /// }
    /// b.skip(1000);
    /// assert_eq!(a.roll(), b.roll());
    /// ```
    pub fn skip(&mut self, rolls: u64) {
        self.state = self.state.wrapping_add(rolls.wrapping_mul(STEP));
    }

    /// A number below `bound`; 0 if that is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high word of a product: uneven by less than bound / 2^64.
        ((u128::from(self.roll()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Another sequence: the one for the `index`-th of several players with the same seed.
    #[must_use]
    pub fn split(&self, index: u64) -> Self {
        let mut mixed = Dice::new(self.state ^ index.wrapping_mul(0xd134_2543_de82_ef95));
        Dice::new(mixed.roll())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_are_below_it_and_all_occur() {
        let mut dice = Dice::new(1);
        let mut seen = [0u32; 6];
        for _ in 0..6000 {
            seen[dice.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert_eq!(dice.below(0), 0);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&dice.unit())));
    }

    #[test]
    fn players_of_one_seed_differ() {
        let dice = Dice::new(3);
        assert_ne!(dice.split(0), dice.split(1));
        assert_eq!(dice.split(5), dice.split(5));
    }
}
