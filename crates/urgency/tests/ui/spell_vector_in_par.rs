//! A vector is given to a parallel algorithm as a slice.

use urgency::par;

fn main() {
    let numbers = vec![1, 2, 3];
    par::map(numbers, |n| n * 2);
}
