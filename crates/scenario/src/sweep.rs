//! Families: one file, in which one value takes several in turn (`[sweep]`).

use crate::ScenarioError;
use crate::error::quoted;
use crate::parse::document;
use crate::reader::{Item, Table};

const MAX_VALUES: usize = 1000;
/// Characters that a value may have, since it is a part of the member's name.
const IN_NAMES: &str = "-_.%+";

/// How the members of a family differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The name of the family's file.
    pub family: String,
    /// The path of the value that differs, such as `bottleneck.queue` or `flow[0].count`.
    pub key: String,
    /// The values in turn, as in the members' names.
    pub values: Vec<String>,
}

impl Sweep {
    /// The names of the members: `family:key=value`, where the key is the path's last part.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let key = self.key.rsplit('.').next().unwrap_or(&self.key);
        self.values
            .iter()
            .map(move |value| format!("{}:{key}={value}", self.family))
    }
}

/// The sweep of a scenario's text, if it has one, and the text of each member.
pub(crate) fn expand(
    text: &str,
    origin: &str,
) -> Result<Option<(Sweep, Vec<String>)>, ScenarioError> {
    document(text, origin, |root| match root.get("sweep") {
        None => Ok(None),
        Some(item) => members(text, root, &item).map(Some),
    })
}

fn members(
    text: &str,
    root: &Table<'_>,
    item: &Item<'_>,
) -> Result<(Sweep, Vec<String>), ScenarioError> {
    let table = item.table(&["key", "values"])?;
    let header = item.span();
    if !text[header.clone()].starts_with('[') {
        return Err(item
            .place
            .error("write it as a table of its own: [sweep], with key and values below"));
    }
    let name = root.require("name", "\"my-family\"")?;
    let family = name.name("-_.")?.to_owned();
    let path = table.require("key", "\"bottleneck.queue\"")?;
    let key = path.text("the path of a value such as \"bottleneck.queue\"")?;
    let swept = match root.at(key) {
        // It is neither a list nor a table under a heading: those are not one value in one place.
        Some(swept)
            if key == "name" || key.starts_with("sweep") || text[swept.span()].starts_with('[') =>
        {
            return Err(path
                .place
                .error(format!("{} cannot be swept; name one value", quoted(key))));
        }
        Some(_) if key.ends_with(']') => {
            return Err(path.place.error(format!(
                "{} is an element of a list, so it cannot name members; sweep a value with a key, such as \"bottleneck.queue\"",
                quoted(key)
            )));
        }
        Some(swept) => swept,
        None => {
            return Err(path.place.error(format!(
                "{} is not in the file; write it there with any of the values, and its path here such as \"bottleneck.queue\" or \"flow[0].count\"",
                quoted(key)
            )));
        }
    };
    let list = table.require("values", "[\"10kB\", \"100kB\"]")?;
    let entries = list.entries("a list of values such as [\"10kB\", \"100kB\"]")?;
    if entries.is_empty() || entries.len() > MAX_VALUES {
        return Err(list.place.error(format!(
            "{} values; write from 1 to {MAX_VALUES}",
            entries.len()
        )));
    }
    let mut sweep = Sweep {
        family,
        key: key.to_owned(),
        values: Vec::new(),
    };
    for entry in &entries {
        let value = entry.word_in_name(IN_NAMES)?;
        if sweep.values.contains(&value) {
            return Err(entry
                .place
                .error(format!("{} is there twice; remove one", quoted(&value))));
        }
        sweep.values.push(value);
    }
    let texts = sweep.names().zip(&entries).map(|(name_of_member, value)| {
        // The lines of the sweep become empty, so that errors name the lines of the file.
        let mut edits = vec![
            (header.clone(), String::new()),
            (path.written(), String::new()),
            (list.written(), String::new()),
            (swept.span(), text[value.span()].to_owned()),
            (name.span(), format!("\"{name_of_member}\"")),
        ];
        edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        let mut member = text.to_owned();
        for (span, mut new) in edits {
            if new.is_empty() {
                new = "\n".repeat(text[span.clone()].matches('\n').count());
            }
            member.replace_range(span, &new);
        }
        member.truncate(member.trim_end().len());
        member.push('\n');
        member
    });
    let texts = texts.collect();
    Ok((sweep, texts))
}
