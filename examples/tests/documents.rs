//! The JSON of the documents is what the library reads.

use adjutant::providers::{Chooser, catalogue::Catalogue};

/// The JSON blocks of a document.
fn blocks(document: &str) -> Vec<&str> {
    let after = document.split("```json\n").skip(1);
    after
        .filter_map(|rest| rest.split_once("```"))
        .map(|(block, _)| block)
        .collect()
}

#[test]
fn configuration_is_read_when_it_is_that_of_the_document() {
    let blocks = blocks(include_str!("../../docs/providers.md"));
    let json = blocks
        .into_iter()
        .find(|block| block.contains("acme/large"))
        .expect("the document shows a configuration");
    let chooser =
        Chooser::new(|name| (name == "ACME_KEY").then(|| "secret".to_owned())).configuration(json);
    let chooser = chooser.expect("the configuration is read");
    let model = chooser.model("acme/large").expect("its model is known");
    assert_eq!(model.info().context_window, 131_072);
    assert!(chooser.model("acme/other").is_ok(), "it takes any name");
}

#[test]
fn catalogue_is_read_when_it_is_that_of_the_document() {
    let blocks = blocks(include_str!("../../docs/models.md"));
    let [json] = blocks[..] else {
        panic!("the document shows one catalogue: {blocks:?}")
    };
    let catalogue = Catalogue::read(json).expect("the catalogue is read");
    assert_eq!(
        catalogue.default_model("acme").map(|info| info.id.as_str()),
        Some("acme/large")
    );
}

#[test]
fn providers_are_all_in_the_document_when_they_are_known() {
    let document = include_str!("../../docs/providers.md");
    for provider in adjutant::providers::Provider::all() {
        let line = document
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` | ", provider.name)));
        let line = line.unwrap_or_else(|| panic!("{} is missing", provider.name));
        let variables = provider
            .key_variables
            .iter()
            .chain([&provider.base_url_variable, &provider.base_url]);
        for word in variables.filter(|word| !word.is_empty()) {
            assert!(
                line.contains(&format!("`{word}`")),
                "{word} is missing in: {line}"
            );
        }
    }
}
