//! The schemes, one module each. Adding one is a new file here and a line in this list.

use crate::Scheme;

macro_rules! schemes {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*
        /// Every scheme of this crate.
        pub static SCHEMES: &[Scheme] = &[$($module::SCHEME),*];
    };
}

schemes! {
    fixed_window,
    fixed_rate,
    newreno,
    vegas,
    cubic,
    copa,
    bbr,
}
