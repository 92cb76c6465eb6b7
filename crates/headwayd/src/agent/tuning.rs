//! The parameters of base controllers that a tuner may set.

use headway_cc::schemes::bbr;
use headway_cc::{Kind, Param, Registry, Values};

use crate::error::{Error, Result};

/// Reads settings such as `btlbw_window=4 rtprop_window=2s`, which are written as the parameters of
/// the scheme `bbr`. Returns times in seconds.
///
/// # Errors
/// One line, if a setting is wrong.
pub fn read(settings: &str) -> Result<Vec<(&'static str, f64)>> {
    let words: Vec<&str> = settings.split_whitespace().collect();
    let wrong = |text: String| Error::Usage(format!("set: {text}"));
    let selection = Registry::new(&[bbr::SCHEME])
        .select(&format!("bbr:{}", words.join(":")))
        .map_err(|e| wrong(e.to_string()))?;
    let named = |word: &str| {
        let name = word.split('=').next().unwrap_or_default();
        let found = bbr::TUNABLES.iter().find(|p| p.name == name);
        found.ok_or_else(|| {
            wrong(format!(
                "'{name}' cannot be set for a flow; {} can",
                names()
            ))
        })
    };
    let value = |param: &'static Param| (param.name, number(&selection.values, param));
    words
        .into_iter()
        .map(|word| named(word).map(value))
        .collect()
}

fn names() -> String {
    bbr::TUNABLES.each_ref().map(|p| p.name).join(" and ")
}

fn number(values: &Values, param: &Param) -> f64 {
    match param.kind {
        Kind::Time { .. } => values.time(param).as_secs_f64(),
        Kind::Count { .. } => values.count(param) as f64,
        _ => values.number(param),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_parameters_of_bbr() {
        let read = |text| read(text).map_err(|e| e.to_string());
        assert_eq!(
            read("btlbw_window=4 rtprop_window=200ms"),
            Ok(vec![("btlbw_window", 4.0), ("rtprop_window", 0.2)])
        );
        for (text, hint) in [
            ("btlbw_windw=4", "btlbw_window"),
            ("btlbw_window=0", "btlbw_window"),
            ("btlbw_window", "btlbw_window"),
        ] {
            let error = read(text).expect_err(hint);
            assert!(error.contains(hint) && !error.contains('\n'), "{error}");
        }
    }
}
