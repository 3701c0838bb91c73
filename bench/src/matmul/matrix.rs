//! Matrices in Z-order: blocks, quadrants, the block product, and the check.

/// Rows and columns of a block, which is stored by rows.
pub const BLOCK: usize = 32;

const BLOCK_LEN: usize = BLOCK * BLOCK;

fn position(size: usize, row: usize, column: usize) -> usize {
    if size == BLOCK {
        return row * BLOCK + column;
    }
    let half = size / 2;
    let quadrant = 2 * (row / half) + column / half;
    quadrant * half * half + position(half, row % half, column % half)
}

/// A matrix whose entries are given by row and column.
pub fn filled(size: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    assert!(
        size.is_power_of_two() && size >= BLOCK,
        "{size} is no power of two from {BLOCK} up"
    );
    let mut matrix = vec![0.0; size * size];
    for row in 0..size {
        for column in 0..size {
            matrix[position(size, row, column)] = entry(row, column);
        }
    }
    matrix
}

/// The quadrants: upper left, upper right, lower left, lower right.
pub fn quarters(matrix: &[f64]) -> [&[f64]; 4] {
    let (upper, lower) = matrix.split_at(matrix.len() / 2);
    let (a, b) = upper.split_at(upper.len() / 2);
    let (c, d) = lower.split_at(lower.len() / 2);
    [a, b, c, d]
}

/// The quadrants, to be written.
pub fn quarters_mut(matrix: &mut [f64]) -> [&mut [f64]; 4] {
    let (upper, lower) = matrix.split_at_mut(matrix.len() / 2);
    let (a, b) = upper.split_at_mut(upper.len() / 2);
    let (c, d) = lower.split_at_mut(lower.len() / 2);
    [a, b, c, d]
}

/// Adds the product of the blocks `a` and `b` to the block `c`.
pub fn multiply_block(c: &mut [f64], a: &[f64], b: &[f64]) {
    let message = "a block has its size";
    let c: &mut [f64; BLOCK_LEN] = c.try_into().expect(message);
    let a: &[f64; BLOCK_LEN] = a.try_into().expect(message);
    let b: &[f64; BLOCK_LEN] = b.try_into().expect(message);
    for (row, c) in c.chunks_exact_mut(BLOCK).enumerate() {
        for (k, b) in b.chunks_exact(BLOCK).enumerate() {
            let factor = a[row * BLOCK + k];
            for (c, b) in c.iter_mut().zip(b) {
                *c += factor * b;
            }
        }
    }
}

/// Whether `c` is the product of `a` and `b`, by their action on a vector of small integers (exact in `f64`).
pub fn is_product(size: usize, c: &[f64], a: &[f64], b: &[f64]) -> bool {
    let mut random = fastrand::Rng::with_seed(3);
    let x: Vec<f64> = (0..size).map(|_| f64::from(random.u8(0..16))).collect();
    let apply = |matrix: &[f64], x: &[f64]| -> Vec<f64> {
        let row = |row| {
            (0..size)
                .map(|column| matrix[position(size, row, column)] * x[column])
                .sum()
        };
        (0..size).map(row).collect()
    };
    apply(c, &x) == apply(a, &apply(b, &x))
}
