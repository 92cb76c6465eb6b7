//! Finds the collection of recorded traces that has a file, so that an error can name it. Python
//! fetches collections.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Deserialize)]
struct Collection {
    /// The pinned hash of each file, by its name.
    sha256: BTreeMap<String, String>,
}

static COLLECTIONS: LazyLock<BTreeMap<String, Collection>> = LazyLock::new(|| {
    toml::from_str(include_str!(
        "../../../python/headway/data/collections.toml"
    ))
    .expect("collections.toml is checked by a test")
});

/// The collection with which `headway traces fetch` gets the trace `name`.
pub fn collection_of(name: &str) -> Option<&'static str> {
    COLLECTIONS
        .iter()
        .find(|(_, collection)| collection.sha256.contains_key(name))
        .map(|(name, _)| name.as_str())
}
