//! Strassen's product of two matrices of `f64` in Z-order: seven products of half the size instead of eight,
//! all in parallel.
//!
//! The entries are small integers, so sums and differences are exact and the check of `matmul` applies.

use super::kernel::Kernel;
use crate::matmul::{matrix, quarters, quarters_mut, serial};
use urgency::{join, par};

/// From this many rows down the usual product takes over.
const BASE: usize = 64;
/// Entries that are added without a scheduling point.
const GRAIN: usize = 1 << 12;

/// The factors and the product.
pub struct Strassen {
    size: usize,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Strassen {
    /// Matrices of `size` rows, a power of two.
    pub fn new(size: usize) -> Self {
        Strassen {
            size,
            a: matrix::filled(size, |row, column| ((row * 7 + column * 3) % 8) as f64),
            b: matrix::filled(size, |row, column| ((row * 5 + column) % 9) as f64 - 4.0),
            c: vec![0.0; size * size],
        }
    }
}

impl Kernel for Strassen {
    fn run(&mut self) {
        multiply(&mut self.c, &self.a, &self.b);
    }

    fn verify(&self) {
        let right = matrix::is_product(self.size, &self.c, &self.a, &self.b);
        assert!(right, "wrong product");
    }
}

/// One of the seven products, of sums of quadrants.
struct Product<'a> {
    a: (&'a [f64], f64, &'a [f64]),
    b: (&'a [f64], f64, &'a [f64]),
    product: Vec<f64>,
}

impl Product<'_> {
    fn compute(&mut self) {
        self.product = vec![0.0; self.a.0.len()];
        multiply(&mut self.product, &sum(self.a), &sum(self.b));
    }
}

/// `first + factor * second`.
fn sum((first, factor, second): (&[f64], f64, &[f64])) -> Vec<f64> {
    if factor == 0.0 {
        return first.to_vec();
    }
    let mut sums = vec![0.0; first.len()];
    fill(&mut sums, |at| first[at] + factor * second[at]);
    sums
}

/// Computes each entry, in parallel.
fn fill(entries: &mut [f64], entry: impl Fn(usize) -> f64 + Sync) {
    let mut parts: Vec<_> = entries.chunks_mut(GRAIN).enumerate().collect();
    par::for_each(&mut parts[..], |(index, part)| {
        let from = *index * GRAIN;
        for (offset, place) in part.iter_mut().enumerate() {
            *place = entry(from + offset);
        }
    });
}

fn compute_all(products: &mut [Product<'_>]) {
    match products {
        [] => {}
        [product] => product.compute(),
        _ => {
            let (some, others) = products.split_at_mut(products.len() / 2);
            join(|| compute_all(some), || compute_all(others));
        }
    }
}

/// Sets `c`, which is zero, to the product of `a` and `b`.
fn multiply(c: &mut [f64], a: &[f64], b: &[f64]) {
    if c.len() <= BASE * BASE {
        return serial::multiply(c, a, b);
    }
    let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (quarters(a), quarters(b));
    let mut products = [
        ((a0, 1.0, a3), (b0, 1.0, b3)),
        ((a2, 1.0, a3), (b0, 0.0, b0)),
        ((a0, 0.0, a0), (b1, -1.0, b3)),
        ((a3, 0.0, a3), (b2, -1.0, b0)),
        ((a0, 1.0, a1), (b3, 0.0, b3)),
        ((a2, -1.0, a0), (b0, 1.0, b1)),
        ((a1, -1.0, a3), (b2, 1.0, b3)),
    ]
    .map(|(a, b)| Product {
        a,
        b,
        product: Vec::new(),
    });
    compute_all(&mut products);
    let [p1, p2, p3, p4, p5, p6, p7] = products.map(|product| product.product);
    let [c0, c1, c2, c3] = quarters_mut(c);
    fill(c0, |i| p1[i] + p4[i] - p5[i] + p7[i]);
    fill(c1, |i| p3[i] + p5[i]);
    fill(c2, |i| p2[i] + p4[i]);
    fill(c3, |i| p1[i] - p2[i] + p3[i] + p6[i]);
}
