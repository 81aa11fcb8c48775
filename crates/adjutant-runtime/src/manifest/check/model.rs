//! Providers, models, and request options.

use std::collections::BTreeMap;

use adjutant_providers::{Chooser, Provider, catalogue::Catalogue};
use serde_json::{Value, json};

use super::{Check, form};
use crate::manifest::{
    BudgetSpec, Manifest, ModelChoice, OptionsSpec, Span, near,
    node::At,
    problem::{Problem, quoted},
    read, vars,
};

/// The placeholder for an address from the environment.
const NOWHERE: &str = "http://127.0.0.1:9/v1";
/// The maximum number of retries.
const MAX_RETRIES: u32 = 20;
/// The maximum time in a manifest.
const MAX_DAYS: u64 = 366;

/// Creates a chooser with the providers and models of the manifest, independent of available keys.
pub(super) fn chooser(check: &mut Check<'_>, manifest: &Manifest, at: At<'_>) -> Option<Chooser> {
    let before = check.problems.iter().len();
    let mut providers: Vec<Provider> = Provider::all().collect();
    let names = |key: &'static str, list: &[Value]| -> Vec<String> {
        list.iter()
            .map(|it| {
                it.get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect()
    };
    let (own, models) = (
        names("name", &manifest.providers),
        names("id", &manifest.models),
    );
    check.differ(
        own.iter()
            .enumerate()
            .map(|(n, name)| (name.as_str(), at.key("providers").item(n).key("name"))),
        "a provider",
    );
    check.differ(
        models
            .iter()
            .enumerate()
            .map(|(n, id)| (id.as_str(), at.key("models").item(n).key("id"))),
        "a model",
    );
    for (n, value) in manifest.providers.iter().enumerate() {
        providers.extend(provider(check, value, at.key("providers").item(n)));
    }
    for (n, value) in manifest.models.iter().enumerate() {
        let wrong = Catalogue::read(&json!({ "models": [value] }).to_string()).err();
        let at = at.key("models").item(n);
        wrong
            .into_iter()
            .for_each(|error| check.problems.push(place(error.message(), at)));
    }
    if check.problems.iter().len() > before {
        return None;
    }
    let mut vars: BTreeMap<String, String> = BTreeMap::new();
    for provider in &providers {
        let own = provider
            .variables()
            .filter(|name| *name != provider.base_url_variable);
        vars.extend(own.map(|name| (name.to_owned(), "none".to_owned())));
        if provider.base_url.is_empty()
            || check.around.addresses.contains(&provider.base_url_variable)
        {
            vars.insert(provider.base_url_variable.clone(), NOWHERE.to_owned());
        }
    }
    let chooser = Chooser::new(move |name| vars.get(name).cloned());
    match chooser.configuration(
        &json!({ "providers": manifest.providers, "models": manifest.models }).to_string(),
    ) {
        Ok(chooser) => Some(chooser),
        Err(error) => {
            check.tell(at.key("providers"), error.message());
            None
        }
    }
}

fn provider(check: &mut Check<'_>, value: &Value, at: At<'_>) -> Option<Provider> {
    let provider: Provider = match read::one(at.node()?) {
        Ok(provider) => provider,
        Err(problem) => {
            check.problems.push(problem);
            return None;
        }
    };
    for (key, variable) in provider.key_variables.iter().enumerate() {
        variable_name(check, variable, at.key("key_variables").item(key));
    }
    if !provider.base_url_variable.is_empty() {
        variable_name(
            check,
            &provider.base_url_variable,
            at.key("base_url_variable"),
        );
    }
    headers(check, &provider.headers, at.key("headers"));
    // The chooser checks the parts that its own types do not.
    let alone = Chooser::new(|_| None).configuration(&json!({ "providers": [value] }).to_string());
    if let Err(error) = alone {
        check.problems.push(place(error.message(), at));
        return None;
    }
    Some(provider)
}

fn variable_name(check: &mut Check<'_>, name: &str, at: At<'_>) {
    check.must(
        vars::is_variable(name),
        at,
        format!("no variable can be called {}", quoted(name)),
    );
}

/// Finds the position of an error of the providers' crate: `provider NAME: FIELD: why`, or serde's message for a field.
fn place(message: &str, at: At<'_>) -> Problem {
    let (message, hint) = message
        .split_once("; hint: ")
        .map_or((message, None), |(it, hint)| (it, Some(hint.to_owned())));
    let parts: Vec<&str> = message.splitn(3, ": ").collect();
    if let [what, field, why] = parts.as_slice()
        && (what.starts_with("provider ") || what.starts_with("model "))
        && at
            .node()
            .and_then(|node| node.as_map()?.get(field))
            .is_some()
    {
        return Problem::new(at.key(field).mark, *why).hint(hint);
    }
    serde_problem(message.trim_start_matches("no catalogue: "), at).hint(hint)
}

/// Finds the position of a serde error about a mapping with known nodes: the named field.
pub(super) fn serde_problem(message: &str, at: At<'_>) -> Problem {
    let message = message.split(" at line ").next().unwrap_or(message);
    if let Some((field, known)) = near::unknown_field(message) {
        let hint = near::hint(field, &known);
        return Problem::new(
            at.name_of(field),
            format!("there is no field `{field}` here"),
        )
        .hint(hint);
    }
    match message.split_once("expected struct ") {
        Some((found, _)) => Problem::new(at.mark, format!("{found}expected a mapping")),
        None => Problem::new(at.mark, message),
    }
}

/// Checks headers of requests: their format, and that none contains a credential.
fn headers(check: &mut Check<'_>, headers: &BTreeMap<String, String>, at: At<'_>) {
    for (name, value) in headers {
        let at = at.key(name);
        if !form::is_header(name) || value.contains(|c: char| c.is_control()) {
            check.tell(at, format!("no header can be {}", quoted(name)));
        } else if form::is_secret_header(name) {
            let hint = "name the variable of the key in `key_variables` of a provider".to_owned();
            let message = format!("a manifest holds no credentials, and the header {name} is one");
            check.tell_hint(at, message, hint);
        }
    }
}

/// Checks the model of an agent.
pub(super) fn choice(check: &mut Check<'_>, choice: &ModelChoice, at: At<'_>) {
    let spec = match choice {
        ModelChoice::Name(it) => return name(check, it, at),
        ModelChoice::Spec(spec) => spec,
    };
    name(check, &spec.name, at.key("name"));
    for (n, fallback) in spec.fallbacks.iter().enumerate() {
        let at = at.key("fallbacks").item(n);
        name(check, fallback, at);
        let before = spec.fallbacks.iter().take(n).chain([&spec.name]);
        let is_new = before.into_iter().all(|it| it != fallback);
        check.must(
            is_new,
            at,
            format!("{} is asked before already", quoted(fallback)),
        );
    }
    let retries = spec.retries.unwrap_or_default();
    check.must(
        retries <= MAX_RETRIES,
        at.key("retries"),
        format!("`retries` is {MAX_RETRIES} at most"),
    );
    let at_least = |value: bool| !value;
    check.must(
        at_least(spec.requests_per_minute == Some(0)),
        at.key("requests_per_minute"),
        "`requests_per_minute` is at least 1",
    );
    check.must(
        at_least(spec.input_tokens_per_minute == Some(0)),
        at.key("input_tokens_per_minute"),
        "`input_tokens_per_minute` is at least 1",
    );
    time(check, spec.timeout, at, "timeout");
    let (times, at) = (&spec.timeouts, at.key("timeouts"));
    for (name, span) in [
        ("connect", times.connect),
        ("first_byte", times.first_byte),
        ("idle", times.idle),
        ("silence", times.silence),
        ("total", times.total),
    ] {
        time(check, span, at, name);
    }
}

/// Checks the name of a model.
fn name(check: &mut Check<'_>, name: &str, at: At<'_>) {
    let Some(chooser) = &check.chooser else {
        return;
    };
    let parts = &check.around.parts;
    if parts.models.contains(name)
        || name
            .split_once('/')
            .is_some_and(|(provider, _)| parts.providers.contains(provider))
    {
        return;
    }
    if let Err(error) = chooser.model(name) {
        let message = error.message();
        let (message, hint) = message
            .split_once("; hint: ")
            .map_or((message, None), |(it, hint)| (it, Some(hint)));
        let problem = Problem::new(at.mark, message).hint(hint.map(str::to_owned));
        check.problems.push(problem);
    }
}

/// Checks request options.
pub(super) fn options(check: &mut Check<'_>, options: &OptionsSpec, at: At<'_>) {
    let is_warm = options
        .temperature
        .is_none_or(|it| (0.0..=2.0).contains(&it));
    check.must(
        is_warm,
        at.key("temperature"),
        "`temperature` is from 0 to 2",
    );
    let is_part = options.top_p.is_none_or(|it| (0.0..=1.0).contains(&it));
    check.must(is_part, at.key("top_p"), "`top_p` is from 0 to 1");
    at_least_one(check, options.max_output_tokens, at, "max_output_tokens");
    for (n, stop) in options.stop.iter().enumerate() {
        check.must(
            !stop.is_empty(),
            at.key("stop").item(n),
            "an empty text ends every reply",
        );
    }
    headers(check, &options.headers, at.key("headers"));
}

/// Checks a budget.
pub(super) fn budget(check: &mut Check<'_>, budget: &BudgetSpec, at: At<'_>) {
    for (field, value) in [
        ("tokens", budget.tokens),
        ("requests", budget.requests),
        ("tool_calls", budget.tool_calls),
        ("agents", budget.agents.map(u64::from)),
    ] {
        at_least_one(check, value, at, field);
    }
    let is_money = budget.cost_usd.is_none_or(|it| it.is_finite() && it > 0.0);
    check.must(is_money, at.key("cost_usd"), "`cost_usd` is over 0");
    time(check, budget.time, at, "time");
}

pub(super) fn at_least_one(check: &mut Check<'_>, value: Option<u64>, at: At<'_>, field: &str) {
    check.must(
        value != Some(0),
        at.key(field),
        format!("`{field}` is at least 1"),
    );
}

pub(super) fn time(check: &mut Check<'_>, value: Option<Span>, at: At<'_>, field: &str) {
    let Some(Span(time)) = value else { return };
    let is_time = !time.is_zero() && time.as_secs() <= MAX_DAYS * 86_400;
    check.must(
        is_time,
        at.key(field),
        format!("`{field}` is over 0 and {MAX_DAYS} days at most"),
    );
}
