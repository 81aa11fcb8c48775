//! The environment variables that models, stores, peers and servers need: names, never values.

use std::collections::BTreeSet;

use adjutant_providers::Provider;

use super::{Manifest, ServerSpec, vars};

/// The variable that names the default model.
const USUAL: &str = "ADJUTANT_MODEL";

/// Returns the sorted names of the variables that a manifest needs.
pub(crate) fn find_variables(manifest: &Manifest) -> Vec<String> {
    // Errors of a provider were reported before.
    let own = manifest
        .providers
        .iter()
        .filter_map(|it| serde_json::from_value::<Provider>(it.clone()).ok());
    let own: Vec<Provider> = own.collect();
    let known = Provider::all().filter(|it| own.iter().all(|mine| mine.name != it.name));
    let providers: Vec<Provider> = known.chain(own.iter().cloned()).collect();
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut take = |provider: &Provider| names.extend(provider.variables().map(str::to_owned));
    let models = manifest
        .agents
        .iter()
        .filter_map(|agent| agent.model.as_ref())
        .flat_map(|it| it.names());
    for prefix in models.filter_map(|name| Some(name.trim().split_once('/')?.0)) {
        providers
            .iter()
            .filter(|it| it.name == prefix)
            .for_each(&mut take);
    }
    // An entry agent without a model uses the one from the environment.
    if manifest.entry().is_some_and(|agent| agent.model.is_none()) {
        providers.iter().for_each(&mut take);
        names.insert(USUAL.to_owned());
    }
    names.extend(
        manifest
            .peers
            .iter()
            .filter_map(|peer| peer.token_variable.clone()),
    );
    let texts = manifest.mcp.servers.values().flat_map(ServerSpec::texts);
    names.extend(texts.filter_map(|text| vars::names(text).ok()).flatten());
    names.extend(manifest.sessions.store.url_variable.clone());
    names.into_iter().collect()
}
