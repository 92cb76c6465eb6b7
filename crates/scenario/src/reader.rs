//! Reads TOML strictly: a table accepts only known keys, and every error has its place in the text.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::ScenarioError;
use crate::error::quoted;
use crate::quantity::{Dimension, PROBABILITY, Quantity};
use headway_cc::suggest;

/// The text to which errors refer.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub origin: &'a str,
    pub text: &'a str,
}

impl Document<'_> {
    fn line(&self, offset: usize) -> usize {
        1 + self
            .text
            .bytes()
            .take(offset)
            .filter(|&b| b == b'\n')
            .count()
    }

    /// The error that the text is not TOML.
    pub fn syntax_error(&self, error: &toml::de::Error) -> ScenarioError {
        ScenarioError::Syntax {
            origin: self.origin.to_owned(),
            line: self.line(error.span().map_or(0, |s| s.start)),
            what: format!("this is not TOML: {}", error.message().replace('\n', "; ")),
        }
    }
}

/// A place in the document, with the path of its key.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    document: &'a Document<'a>,
    key: String,
    offset: usize,
}

impl Place<'_> {
    /// An error at this place.
    pub fn error(&self, what: impl Into<String>) -> ScenarioError {
        ScenarioError::Invalid {
            origin: self.document.origin.to_owned(),
            line: self.document.line(self.offset),
            key: self.key.clone(),
            what: what.into(),
        }
    }
}

/// A table in which only `known` keys are allowed.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    pub place: Place<'a>,
    /// The beginning of its keys' paths.
    prefix: String,
    table: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// The document's root.
    pub fn root(
        document: &'a Document<'a>,
        table: &'a Spanned<DeTable<'a>>,
        known: &[&'static str],
    ) -> Result<Table<'a>, ScenarioError> {
        let place = Place {
            document,
            key: "the file".to_owned(),
            offset: 0,
        };
        Table::new(place, String::new(), table.get_ref(), known)
    }

    fn new(
        place: Place<'a>,
        prefix: String,
        table: &'a DeTable<'a>,
        known: &[&'static str],
    ) -> Result<Table<'a>, ScenarioError> {
        let unknown = table
            .keys()
            .filter(|k| !known.contains(&k.get_ref().as_ref()));
        match unknown.min_by_key(|k| k.span().start) {
            None => Ok(Table {
                place,
                prefix,
                table,
            }),
            Some(key) => {
                let name = key.get_ref();
                let path = format!("{prefix}{}", quoted(name).trim_matches('\''));
                let place = Place {
                    key: path,
                    offset: key.span().start,
                    ..place
                };
                Err(place.error(format!(
                    "unknown key; {}",
                    suggest(name, known.iter().copied())
                )))
            }
        }
    }

    /// The value at `key`, if there is one.
    pub fn get(&self, key: &str) -> Option<Item<'a>> {
        let (name, value) = self.table.get_key_value(key)?;
        let path = format!("{}{key}", self.prefix);
        let place = Place {
            key: path,
            offset: name.span().start,
            ..self.place
        };
        Some(Item { place, value })
    }

    /// The value at a path as errors write it, such as `flow[0].count`; any key is allowed.
    pub fn at(&self, path: &str) -> Option<Item<'a>> {
        let mut table = self.table;
        let mut steps = path.split('.');
        let mut step = steps.next()?;
        loop {
            let (key, index) = match step.strip_suffix(']').and_then(|s| s.split_once('[')) {
                Some((key, index)) => (key, Some(index.parse::<usize>().ok()?)),
                None => (step, None),
            };
            let mut value = table.get(key)?;
            if let Some(index) = index {
                value = value.get_ref().as_array()?.get(index)?;
            }
            match steps.next() {
                Some(next) => (step, table) = (next, value.get_ref().as_table()?),
                None => {
                    let place = Place {
                        document: self.place.document,
                        key: path.to_owned(),
                        offset: value.span().start,
                    };
                    return Some(Item { place, value });
                }
            }
        }
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The value at `key`, or an error that says what is missing.
    pub fn require(&self, key: &str, example: &str) -> Result<Item<'a>, ScenarioError> {
        self.get(key).ok_or_else(|| {
            self.place.error(format!(
                "{key} is missing; write for example {key} = {example}"
            ))
        })
    }

    /// A quantity at `key`, drawn by `component`, if there is one.
    pub fn quantity(
        &self,
        key: &str,
        dimension: &Dimension,
        component: &str,
    ) -> Result<Option<Quantity>, ScenarioError> {
        self.get(key)
            .map(|item| item.quantity(dimension, &format!("{component}.{key}")))
            .transpose()
    }

    /// The tables of a list (`[[key]]`); empty if there is no such list.
    pub fn list(&self, key: &str, known: &[&'static str]) -> Result<Vec<Table<'a>>, ScenarioError> {
        let Some(item) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wrong = |place: &Place<'_>| {
            place.error(format!("this must be a list of tables; write [[{key}]]"))
        };
        let DeValue::Array(array) = item.value.get_ref() else {
            return Err(wrong(&item.place));
        };
        array
            .iter()
            .enumerate()
            .map(|(i, value)| {
                let key = format!("{key}[{i}]");
                let place = Place {
                    document: item.place.document,
                    key,
                    offset: value.span().start,
                };
                let DeValue::Table(table) = value.get_ref() else {
                    return Err(wrong(&place));
                };
                let prefix = format!("{}.", place.key);
                Table::new(place, prefix, table, known)
            })
            .collect()
    }
}

/// A value with its place.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    pub place: Place<'a>,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Item<'a> {
    fn expected(&self, what: &str) -> ScenarioError {
        self.place.error(format!(
            "this is of type {}; write {what}",
            self.value.get_ref().type_str()
        ))
    }

    /// The place of the value in the text.
    pub fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// The place of its key and the value.
    pub fn written(&self) -> Range<usize> {
        self.place.offset..self.value.span().end
    }

    /// A value that may be a part of a name: text of letters, digits and `extra`, or a number.
    pub fn word_in_name(&self, extra: &str) -> Result<String, ScenarioError> {
        match self.value.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) => {
                Ok(self.place.document.text[self.span()].to_owned())
            }
            _ => self.name(extra).map(str::to_owned),
        }
    }

    pub fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    pub fn text(&self, wanted: &str) -> Result<&'a str, ScenarioError> {
        self.value
            .get_ref()
            .as_str()
            .ok_or_else(|| self.expected(wanted))
    }

    pub fn boolean(&self) -> Result<bool, ScenarioError> {
        self.value
            .get_ref()
            .as_bool()
            .ok_or_else(|| self.expected("true or false"))
    }

    /// Reads a whole number in `min..=max`.
    pub fn whole(&self, min: u64, max: u64) -> Result<u64, ScenarioError> {
        let wanted = format!("a whole number from {min} to {max}");
        let DeValue::Integer(n) = self.value.get_ref() else {
            return Err(self.expected(&wanted));
        };
        u64::from_str_radix(n.as_str(), n.radix())
            .ok()
            .filter(|n| (min..=max).contains(n))
            .ok_or_else(|| {
                self.place
                    .error(format!("{} is out of range; write {wanted}", n.as_str()))
            })
    }

    /// A number, whole or not.
    pub fn number(&self) -> Option<f64> {
        match self.value.get_ref() {
            DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix())
                .ok()
                .map(|n| n as f64),
            DeValue::Float(x) => x.as_str().parse().ok(),
            _ => None,
        }
    }

    /// Reads a probability, written as a number or as text.
    pub fn probability(&self, component: &str) -> Result<Quantity, ScenarioError> {
        self.plain(&PROBABILITY, component)
    }

    /// Reads a quantity that needs no unit, written as a number or as text.
    pub fn plain(&self, dimension: &Dimension, component: &str) -> Result<Quantity, ScenarioError> {
        match self.number() {
            Some(number) => dimension
                .number(number)
                .map(Quantity::fixed)
                .map_err(|what| self.place.error(what)),
            None => self.quantity(dimension, component),
        }
    }

    /// Reads a name: letters, digits and `extra`.
    pub fn name(&self, extra: &str) -> Result<&'a str, ScenarioError> {
        let wanted = format!(
            "a name of 1 to 100 letters, digits and {}",
            extra.escape_debug()
        );
        let text = self.text(&wanted)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || extra.contains(c);
        match (1..=100).contains(&text.len()) && text.chars().all(allowed) {
            true => Ok(text),
            false => Err(self
                .place
                .error(format!("{} is not {wanted}", quoted(text)))),
        }
    }

    /// Reads one line of text for people.
    pub fn line(&self) -> Result<&'a str, ScenarioError> {
        let wanted = "one line of text of at most 1000 bytes";
        let text = self.text(wanted)?;
        match text.len() <= 1000 && !text.chars().any(char::is_control) {
            true => Ok(text),
            false => Err(self
                .place
                .error(format!("{} is not {wanted}", quoted(text)))),
        }
    }

    /// Reads a quantity written as text.
    pub fn quantity(
        &self,
        dimension: &Dimension,
        component: &str,
    ) -> Result<Quantity, ScenarioError> {
        let text = self.text(&dimension.wanted())?;
        dimension
            .read(text, component)
            .map_err(|what| self.place.error(what))
    }

    /// Reads one of several words.
    pub fn word<T: Copy>(&self, words: &[(&'static str, T)]) -> Result<T, ScenarioError> {
        let names = || words.iter().map(|(w, _)| *w);
        let text = self.text(&format!(
            "one of {}",
            names().collect::<Vec<_>>().join(", ")
        ))?;
        words
            .iter()
            .find(|(w, _)| *w == text)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                self.place.error(format!(
                    "{} is unknown; {}",
                    quoted(text),
                    suggest(text, names())
                ))
            })
    }

    /// The entries of a list.
    pub fn entries(&self, wanted: &str) -> Result<Vec<Item<'a>>, ScenarioError> {
        let DeValue::Array(array) = self.value.get_ref() else {
            return Err(self.expected(wanted));
        };
        let entry = |(i, value): (usize, &'a Spanned<DeValue<'a>>)| Item {
            place: Place {
                key: format!("{}[{i}]", self.place.key),
                offset: value.span().start,
                ..self.place
            },
            value,
        };
        Ok(array.iter().enumerate().map(entry).collect())
    }

    pub fn table(&self, known: &[&'static str]) -> Result<Table<'a>, ScenarioError> {
        let table = self.any_table()?;
        Table::new(table.place, table.prefix, table.table, known)
    }

    /// A table whose keys are not checked.
    pub fn any_table(&self) -> Result<Table<'a>, ScenarioError> {
        let DeValue::Table(table) = self.value.get_ref() else {
            return Err(self.expected("a table"));
        };
        Ok(Table {
            place: self.place.clone(),
            prefix: format!("{}.", self.place.key),
            table,
        })
    }
}
