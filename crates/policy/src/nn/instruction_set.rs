//! The instruction set in use. It changes how many numbers are computed at once, and no result.

use std::fmt;

use pulp::{Arch, WithSimd};

/// An instruction set of this machine.
#[derive(Clone, Copy, Debug)]
pub struct InstructionSet(Arch);

impl InstructionSet {
    /// The widest one of this machine, which networks use by default.
    pub fn best() -> InstructionSet {
        InstructionSet(Arch::new())
    }

    /// All instruction sets of this machine, from narrow to wide.
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

    /// Runs `compute`, compiled for this instruction set where it is inlined.
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
