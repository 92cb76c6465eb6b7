//! Suggestions for a mistyped word.

/// "did you mean 'x'?" if a known word is similar; otherwise a list of the known words.
pub fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(word, k), *k))
        .filter(|&(distance, k)| distance <= 1 + k.len() / 3)
        .min();
    match nearest {
        Some((_, k)) => format!("did you mean '{k}'?"),
        None if known.len() > 30 => format!("there are {} others", known.len()),
        None if known.is_empty() => "there are none".to_owned(),
        None => format!("there are: {}", known.join(", ")),
    }
}
