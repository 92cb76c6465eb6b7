//! The schemes. Each is a module, or a folder for a family. To add one, add a file here and a line
//! in this list.

use crate::Scheme;

macro_rules! schemes {
    ($($module:ident: $($scheme:ident),+;)*) => {
        $(pub mod $module;)*
        /// All schemes of this crate.
        pub static SCHEMES: &[Scheme] = &[$($($module::$scheme),+),*];
    };
}

schemes! {
    fixed_window: SCHEME;
    fixed_rate: SCHEME;
    newreno: SCHEME;
    dctcp: SCHEME;
    compound: SCHEME;
    ledbat: SCHEME;
    vegas: SCHEME;
    cubic: SCHEME;
    copa: SCHEME;
    bbr: SCHEME;
    scream: SCHEME;
    sprout: SCHEME;
    verus: SCHEME;
    bbr3: SCHEME;
    gcc: SCHEME;
    pcc: ALLEGRO, VIVACE, VIVACE_LOSS, PROTEUS_P, PROTEUS_S;
    abc: SCHEME;
    xcp: SCHEME, WINDOWED;
}
