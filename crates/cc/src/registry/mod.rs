//! The schemes that a host can run by name: what each needs, which parameters it takes, how to
//! build it.

mod members;
mod param;
mod quantity;
mod scheme;
mod selection;
mod setup;
mod spec;
mod unlisted;
mod values;

pub(crate) use self::quantity::{seconds, split_unit};
pub use self::{
    members::members,
    param::{Kind, Param},
    scheme::{BuildReceiver, Family, Need, Router, Scheme, World},
    selection::Selection,
    setup::Setup,
    values::{Loaded, Values},
};

/// The schemes that a host can run by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    schemes: Vec<&'static Scheme>,
}

impl Registry {
    /// A registry of the schemes of `list`.
    ///
    /// # Panics
    /// If two schemes have the same name.
    pub fn new(list: &'static [Scheme]) -> Registry {
        let mut registry = Registry::default();
        registry.add(list);
        registry
    }

    /// Adds the schemes of `list`.
    ///
    /// # Panics
    /// If two schemes have the same name.
    pub fn add(&mut self, list: &'static [Scheme]) {
        for scheme in list {
            assert!(
                self.find(scheme.name).is_none(),
                "two schemes are named {}",
                scheme.name
            );
            self.schemes.push(scheme);
        }
    }

    /// All schemes, in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &'static Scheme> + '_ {
        self.schemes.iter().copied()
    }

    /// The scheme of that name.
    pub fn find(&self, name: &str) -> Option<&'static Scheme> {
        self.iter().find(|s| s.name == name)
    }
}

/// A scheme that does not exist in this form. The error is one line for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemeError(pub String);
