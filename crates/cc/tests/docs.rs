//! Checks that the guide shows the code that is compiled and tested.

#[test]
fn the_guide_quotes_the_toy_controller() {
    let guide = include_str!("../../../docs/add-a-controller.md");
    let toy = include_str!("../examples/toy.rs");
    assert!(
        guide.contains(&format!("```rust\n{toy}```\n")),
        "docs/add-a-controller.md must quote crates/cc/examples/toy.rs to the letter"
    );
}
