//! The instruction set in use. It decides how many numbers are computed at once, never which.

use std::fmt;

use pulp::{Arch, WithSimd};

/// One that this machine has.
#[derive(Clone, Copy, Debug)]
pub struct InstructionSet(Arch);

impl InstructionSet {
    /// The widest at hand: what a network uses unless told.
    pub fn best() -> InstructionSet {
        InstructionSet(Arch::new())
    }

    /// All at hand, the plainest first.
    pub fn available() -> Vec<InstructionSet> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
        let mut all = vec![InstructionSet(Arch::Scalar)];
        #[cfg(target_arch = "x86_64")]
        {
            use pulp::x86::{V3, V4};
            all.extend(V3::try_new().map(|v3| InstructionSet(Arch::V3(v3))));
            all.extend(V4::try_new().map(|v4| InstructionSet(Arch::V4(v4))));
        }
        all
    }

    /// Runs `compute`, compiled for it as far as it is inlined.
    #[inline(always)]
    pub(super) fn run<T: WithSimd>(self, compute: T) -> T::Output {
        self.0.dispatch(compute)
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Arch::Scalar => "portable",
            #[cfg(target_arch = "x86_64")]
            Arch::V3(_) => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Arch::V4(_) => "AVX-512",
            _ => "native",
        })
    }
}
