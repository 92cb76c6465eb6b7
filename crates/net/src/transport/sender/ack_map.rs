//! Which packets have been acknowledged.

/// Which packets have been acknowledged: the largest, and a bit for each of the 64 before it.
#[derive(Debug, Default)]
pub(super) struct AckMap {
    pub(super) largest: u64,
    earlier: u64,
    any: bool,
}

impl AckMap {
    /// Adds an acknowledgement of `number` and of those before it whose bits are set. Returns which
    /// of them are new.
    #[inline]
    pub(super) fn fold(&mut self, number: u64, earlier: u64) -> (bool, u64) {
        if !self.any {
            *self = AckMap {
                largest: number,
                earlier,
                any: true,
            };
            return (true, earlier);
        }
        if number > self.largest {
            let shift = number - self.largest;
            let known = match shift {
                0..=63 => (self.earlier << shift) | 1 << (shift - 1),
                64 => 1 << 63,
                _ => 0,
            };
            *self = AckMap {
                largest: number,
                earlier: known | earlier,
                any: true,
            };
            return (true, earlier & !known);
        }
        let behind = self.largest - number;
        match behind {
            0 => {
                let new = earlier & !self.earlier;
                self.earlier |= earlier;
                (false, new)
            }
            1..=63 => {
                let own = 1 << (behind - 1);
                let is_new = self.earlier & own == 0;
                let new = earlier & !(self.earlier >> behind);
                self.earlier |= own | (earlier << behind);
                (is_new, new)
            }
            64 => {
                let is_new = self.earlier >> 63 == 0;
                self.earlier |= 1 << 63;
                (is_new, earlier)
            }
            // Further back, the entry's own state decides.
            _ => (true, earlier),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ack_map_agrees_with_a_set() {
        let mut stream = headway_cc::Stream::new(1, "acks");
        for spread in [2, 20, 63, 64, 65, 70] {
            let (mut map, mut known) = (AckMap::default(), BTreeSet::new());
            let mut front = 0u64;
            for _ in 0..5_000 {
                front += stream.below(3);
                let number = front.saturating_sub(stream.below(spread));
                let reach = number.min(64);
                let earlier = stream.bits()
                    & stream.bits()
                    & if reach == 64 {
                        u64::MAX
                    } else {
                        (1 << reach) - 1
                    };
                let (is_new, new) = map.fold(number, earlier);
                let largest = known.last().copied();
                // The map does not cover numbers more than 64 back.
                let recent = |n: u64| largest.is_none_or(|l| n + 64 >= l);
                if recent(number) {
                    assert_eq!(is_new, !known.contains(&number), "{number}");
                }
                for i in (0..64).filter(|i| earlier >> i & 1 == 1) {
                    let n = number - 1 - i;
                    if recent(n) {
                        assert_eq!(new >> i & 1 == 1, !known.contains(&n), "{n} after {number}");
                    }
                    known.insert(n);
                }
                known.insert(number);
                assert_eq!(map.largest, *known.last().unwrap());
            }
        }
    }
}
