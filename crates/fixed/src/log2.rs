//! Logarithms in whole numbers (`fixed.h`).

use crate::native;

/// log2(x) in units of 1/65536, off by less than two of them; 0 for x = 0.
pub fn log2(x: u64) -> u32 {
    native::headway_native_log2(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_floating_point() {
        assert_eq!(log2(0), 0);
        let powers = (0..64).map(|n| 1u64 << n);
        let others = (1..2000)
            .map(|i| (1.0222f64.powi(i)) as u64)
            .chain([u64::MAX, 3, 5, 7]);
        for x in powers.chain(others) {
            let exact = libm::log2(x as f64) * 65536.0;
            let error = f64::from(log2(x)) - exact;
            assert!((-2.0..=0.5).contains(&error), "{x}: {error}");
        }
    }
}
