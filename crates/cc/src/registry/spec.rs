//! Reads a user's spec: `name:key=value:key=value`.

use super::values::Value;
use super::{Registry, SchemeError, Selection, Values};
use crate::{DigestInterval, suggest};

impl Registry {
    /// A scheme that gets [digests](crate::Batched) instead of each acknowledgement:
    /// `batched-cubic:interval=10ms`.
    pub const BATCHED: &str = "batched-";

    /// Reads `name` or `name:key=value:key=value`, with or without [`batched-`](Self::BATCHED) in
    /// front.
    ///
    /// # Errors
    /// [`SchemeError`], which says what is wrong and what would be right.
    pub fn select(&self, spec: &str) -> Result<Selection, SchemeError> {
        if let Some(rest) = spec.strip_prefix(Registry::BATCHED) {
            return self.select_batched(spec, rest);
        }
        let mut parts = spec.split(':');
        let name = parts.next().unwrap_or_default();
        let scheme = self.find(name).ok_or_else(|| {
            let names: Vec<&str> = self.iter().map(|s| s.name).collect();
            SchemeError(format!("unknown scheme '{name}'; {}", suggest(name, names)))
        })?;
        let mut values = Values::defaults(scheme.params);
        if let [(param, value)] = &mut values.0[..]
            && param.name.is_empty()
        {
            let text = spec[name.len()..].trim_start_matches(':');
            let read = match text {
                "" => Err(format!("needs {}: {name}:...", param.kind)),
                _ => param.kind.read(text),
            };
            *value = read.map_err(|why| SchemeError(format!("scheme '{spec}' {why}")))?;
            return Ok(Selection {
                spec: spec.to_owned(),
                scheme,
                values,
                digests: None,
            });
        }
        let mut seen = Vec::new();
        for part in parts {
            let (key, text) = part.split_once('=').ok_or_else(|| {
                SchemeError(format!(
                    "scheme '{spec}': '{part}' is not of the form key=value"
                ))
            })?;
            if seen.contains(&key) {
                return Err(SchemeError(format!(
                    "scheme '{spec}': '{key}' is given twice"
                )));
            }
            seen.push(key);
            let slot = values
                .0
                .iter_mut()
                .find(|(p, _)| p.name == key)
                .ok_or_else(|| {
                    let names: Vec<&str> = scheme.params.iter().map(|p| p.name).collect();
                    SchemeError(format!(
                        "scheme '{name}' has no parameter '{key}'; {}",
                        suggest(key, names)
                    ))
                })?;
            slot.1 = slot
                .0
                .kind
                .read(text)
                .map_err(|why| SchemeError(format!("scheme '{name}': {key}='{text}' {why}")))?;
        }
        for (param, value) in &mut values.0 {
            if matches!(value, Value::Missing) {
                *value = param.load_default().map_err(|why| {
                    SchemeError(format!("scheme '{name}' {why}: {name}:{}=...", param.name))
                })?;
            }
        }
        Ok(Selection {
            spec: spec.to_owned(),
            scheme,
            values,
            digests: None,
        })
    }

    /// Reads `batched-name:interval=10ms:key=value`.
    fn select_batched(&self, spec: &str, rest: &str) -> Result<Selection, SchemeError> {
        const KEY: &str = DigestInterval::KEY;
        let refused = |why: String| Err(SchemeError(format!("scheme '{spec}': {why}")));
        if rest.starts_with(Registry::BATCHED) {
            return refused("'batched-' is given twice; write it once".to_owned());
        }
        let is_interval = |part: &&str| part.split('=').next() == Some(KEY);
        let (intervals, others): (Vec<&str>, Vec<&str>) = rest.split(':').partition(is_interval);
        // The value of such a scheme is all text after the name, and loading it may run a user's
        // code. So it is refused before anything is loaded.
        if let Some(scheme) = others.first().and_then(|name| self.find(name))
            && scheme.params.iter().any(|param| param.name.is_empty())
        {
            let name = scheme.name;
            return refused(format!("{name} takes no digests; write {name}:..."));
        }
        let within = self.select(&others.join(":"))?;
        if let Some(need) = within
            .scheme
            .needs
            .iter()
            .find(|n| DigestInterval::lacks(**n))
        {
            return refused(format!(
                "it needs {}, which digests do not give",
                need.name()
            ));
        }
        let what = DigestInterval::WHAT;
        let text = match intervals[..] {
            [one] => one.split_once('=').unwrap_or_default().1,
            [] => return refused(format!("it needs {KEY}, {what}")),
            _ => return refused(format!("'{KEY}' is given twice")),
        };
        let Some(interval) = DigestInterval::read(text) else {
            return refused(format!("{KEY}='{text}' must be {what}"));
        };
        Ok(Selection {
            spec: spec.to_owned(),
            digests: Some(interval),
            ..within
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::schemes::SCHEMES;
    use crate::{Kind, Loaded, Param, Scheme};

    #[test]
    fn an_unnamed_parameter_takes_all_text_after_the_scheme() {
        static FILES: [Scheme; 1] = [Scheme {
            name: "file",
            params: &[Param {
                name: "",
                help: "",
                kind: Kind::Loaded {
                    what: "FILE",
                    default: None,
                    load: |text| {
                        Ok(Loaded {
                            id: text.to_uppercase(),
                            content: Arc::new(()),
                        })
                    },
                },
            }],
            ..Scheme::unlisted("", &[])
        }];
        let registry = Registry::new(&FILES);
        let found = registry.select("file:a/b=1.py:Mine").unwrap();
        assert_eq!(found.spec, "file:a/b=1.py:Mine");
        assert_eq!(found.canonical(), "file:A/B=1.PY:MINE");
        for spec in ["batched-file:x.py", "batched-file:x.py:interval=10ms"] {
            let error = registry.select(spec).unwrap_err().to_string();
            let why = "file takes no digests; write file:...";
            assert_eq!(error, format!("scheme '{spec}': {why}"));
        }
        for spec in ["file", "file:"] {
            let error = registry.select(spec).unwrap_err().to_string();
            assert_eq!(error, format!("scheme '{spec}' needs FILE: file:..."));
        }
    }

    #[test]
    fn a_scheme_has_one_canonical_spelling() {
        let registry = Registry::new(SCHEMES);
        let canonical = |spec: &str| registry.select(spec).unwrap().canonical();
        assert_eq!(
            canonical("fixed-rate:rate=12Mbps"),
            "fixed-rate:rate=12000000bps"
        );
        assert_eq!(
            canonical("fixed-rate:rate=12000kbps"),
            canonical("fixed-rate:rate=1.2e7bps")
        );
        for scheme in registry.iter() {
            let once = canonical(scheme.name);
            assert_eq!(canonical(&once), once, "it can be read back");
        }
    }
}
