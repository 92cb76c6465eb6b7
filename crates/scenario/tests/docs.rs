//! The examples that users copy are accepted.

use headway_scenario::Scenario;

#[test]
fn the_examples_of_the_documentation_parse() {
    let text = include_str!("../../../docs/scenarios.md");
    let examples: Vec<&str> = text
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(examples.len(), 4);
    let [short, long, random] = [0, 1, 2].map(|i| {
        Scenario::parse(examples[i], "docs/scenarios.md").unwrap_or_else(|e| panic!("{e}"))
    });
    assert_eq!(
        (short.flows(), short.varies()),
        (2, vec!["start time".into(), "link.bottleneck.delay".into()])
    );
    assert_eq!(
        long.traces(),
        ["Verizon-LTE-short.down", "Verizon-LTE-short.up"]
    );
    assert_eq!(long.varies(), ["trace offset", "background traffic"]);
    assert_eq!(random.flows(), 2);
    assert!(random.varies().contains(&"every.0.gap".to_owned()));
    let family = Scenario::parse_all(examples[3], "docs/scenarios.md").unwrap();
    assert_eq!(family[1].name(), "buffers:queue=50kB");
}
