//! [`spread`]: evenly spaced indices.

/// Up to `most` evenly spaced indices below `of`.
pub(crate) fn spread(of: usize, most: usize) -> Vec<usize> {
    let most = most.min(of);
    (0..most).map(|i| (i as u128 * of as u128 / most as u128) as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_spread_evenly() {
        assert_eq!(spread(10, 4), [0, 2, 5, 7]);
        assert_eq!((spread(3, 64), spread(0, 5)), (vec![0, 1, 2], vec![]));
    }
}
