//! Any program behind an emulated link: `headway shell`.
