//! One scheme with several models: trainings with several seeds that are measured together.

/// The specs of the members. A spec that names `model` several times has one member for each, any
/// other spec only itself.
///
/// `learned:model=a:model=b:interval=1ms` is `learned:model=a:interval=1ms` and
/// `learned:model=b:interval=1ms`.
pub fn members(spec: &str) -> Vec<String> {
    let parts: Vec<&str> = spec.split(':').collect();
    let is_model = |part: &str| part.starts_with("model=");
    let models: Vec<usize> = (1..parts.len()).filter(|&k| is_model(parts[k])).collect();
    if models.len() < 2 {
        return vec![spec.to_owned()];
    }
    let without_others = |model: &usize| {
        let kept = (0..parts.len()).filter(|k| k == model || !models.contains(k));
        kept.map(|k| parts[k]).collect::<Vec<_>>().join(":")
    };
    models.iter().map(without_others).collect()
}

#[cfg(test)]
mod tests {
    use super::members;

    #[test]
    fn each_model_gives_another_spec() {
        assert_eq!(members("cubic:beta=0.7"), ["cubic:beta=0.7"]);
        assert_eq!(members("owl:model=v1"), ["owl:model=v1"]);
        assert_eq!(
            members("learned:model=out/a-v1:model=out/b-v1"),
            ["learned:model=out/a-v1", "learned:model=out/b-v1"]
        );
        assert_eq!(
            members("learned:latency=1ms:model=a:interval=2ms:model=b"),
            [
                "learned:latency=1ms:model=a:interval=2ms",
                "learned:latency=1ms:interval=2ms:model=b"
            ]
        );
        // The first word is a scheme and not a parameter, whatever its name.
        assert_eq!(members("model=a:model=b"), ["model=a:model=b"]);
    }
}
