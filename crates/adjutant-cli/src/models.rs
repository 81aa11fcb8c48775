//! `adjutant models`: model names, their prices, and the available keys.

use adjutant::{
    Model,
    llm::ModelInfo,
    providers::{Chooser, Credential, Provider, WireKind, catalogue, offline::OfflineModel},
};

use crate::{
    amount::{grouped, price},
    args::Models,
    chooser,
    exit::Exit,
    problem::Problem,
    screen,
};

/// The number of columns of the table.
const COLUMNS: usize = 9;
/// The headers of the columns; all except the first are aligned to the right.
const HEADS: [&str; COLUMNS] = [
    "MODEL",
    "WINDOW",
    "OUTPUT",
    "THINKING",
    "IN",
    "OUT",
    "CACHE READ",
    "CACHE WRITE",
    "1 H WRITE",
];
/// The explanation of the table.
const LEGEND: &str = "\
Window and output in tokens, prices in US dollars for a million tokens; `1 h write` keeps the cache for an hour.
";

/// Lists the models on standard output.
pub(crate) fn models(args: &Models) -> Result<Exit, Problem> {
    let chooser = chooser::chooser()?;
    let text = match &args.provider {
        Some(name) => one(&chooser, name)?,
        None => every(&chooser, args.all),
    };
    screen::write(&text)?;
    Ok(Exit::Finished)
}

/// Formats every model, and the relevant keys: of providers with listed models, and the ones that are set.
fn every(chooser: &Chooser, all: bool) -> String {
    let planner = OfflineModel::new();
    // The published catalogue fills many screens.
    let is_shown = |info: &&ModelInfo| all || !catalogue::is_published(info.id.as_str());
    let mut text = table(chooser.models().filter(is_shown).chain([planner.info()]));
    text += LEGEND;
    let more = chooser.models().count() - chooser.models().filter(is_shown).count();
    if more > 0 {
        text += &format!(
            "{more} more are known by what others publish; --provider shows those of one, --all all.\n"
        );
    }
    text += "offline/planner is no language model.\n\n";
    if all {
        let blocks: Vec<String> = chooser
            .providers()
            .map(|provider| about(chooser, provider))
            .collect();
        return text + &blocks.join("\n");
    }
    let credentials = chooser.credentials();
    let is_listed = |provider: &str| {
        chooser
            .models()
            .filter(is_shown)
            .any(|info| info.provider() == provider)
    };
    let matters = |it: &Credential| it.present || is_listed(&it.provider);
    let width = credentials
        .iter()
        .filter(|it| matters(it))
        .map(|it| it.variable.len())
        .max()
        .unwrap_or_default();
    for credential in credentials.iter().filter(|it| matters(it)) {
        let present = if credential.present {
            "present"
        } else {
            "missing"
        };
        text += &format!(
            "{:<width$}  {present}, for {}/…\n",
            credential.variable, credential.provider
        );
    }
    let is_told = |name: &str| {
        is_listed(name)
            || credentials
                .iter()
                .any(|it| it.present && it.provider == name)
    };
    let others: Vec<&str> = chooser
        .providers()
        .map(|it| &*it.name)
        .filter(|name| !is_told(name))
        .collect();
    if !others.is_empty() {
        text += &format!(
            "Also: {}; --provider shows one of them, --all all.\n",
            others.join(", ")
        );
    }
    text + "Without a key: ollama/…, llama-server/… and lmstudio/… of a server on this machine, and offline/planner.\n"
}

/// Formats one provider and its models.
fn one(chooser: &Chooser, name: &str) -> Result<String, Problem> {
    let name = name.trim().trim_end_matches('/');
    let Some(provider) = chooser.providers().find(|it| it.name == name) else {
        if name == "offline" {
            return Ok(table([OfflineModel::new().info()].into_iter())
                + "offline/planner is no language model.\n");
        }
        // The chooser's error contains similar names.
        return Err(match chooser.model(&format!("{name}/model")) {
            Err(error) => Problem::from_error(Exit::Usage, &error),
            Ok(_) => Problem::new(Exit::Usage, format!("no provider is called {name:?}")),
        });
    };
    let models: Vec<&ModelInfo> = chooser
        .models()
        .filter(|info| info.provider() == name)
        .collect();
    let mut text = String::new();
    if !models.is_empty() {
        text = table(models.into_iter()) + LEGEND + "\n";
    }
    Ok(text + &about(chooser, provider))
}

/// Describes a provider: its wire, its address, and the variable of its key.
fn about(chooser: &Chooser, provider: &Provider) -> String {
    let wire = match &provider.wire {
        WireKind::Messages => "Anthropic Messages".to_owned(),
        WireKind::Responses => "OpenAI Responses".to_owned(),
        WireKind::Gemini => "Google Gemini".to_owned(),
        WireKind::Chat if provider.like.is_empty() => "OpenAI Chat Completions".to_owned(),
        WireKind::Chat => format!("OpenAI Chat Completions, like {}", provider.like),
        other => format!("{}, of this program's own", other.name()),
    };
    let address = [
        public(&provider.base_url),
        provider.base_url_variable.clone(),
    ];
    let address: Vec<String> = address.into_iter().filter(|it| !it.is_empty()).collect();
    let credentials = chooser.credentials();
    let state = |it: &Credential| {
        format!(
            "{} ({})",
            it.variable,
            if it.present { "present" } else { "missing" }
        )
    };
    let mut keys: Vec<String> = credentials
        .iter()
        .filter(|it| it.provider == provider.name)
        .map(state)
        .collect();
    keys.extend(
        provider
            .key_command
            .as_ref()
            .map(|it| format!("what `{}` prints", it.argv.join(" "))),
    );
    if keys.is_empty() || provider.key_optional {
        keys.push("none".to_owned());
    }
    let names = if provider.any_model {
        "any name"
    } else {
        "those of the list; any, if the address is set"
    };
    format!(
        "provider  {}\nwire      {wire}\naddress   {}\nkey       {}\nmodels    {names}\n",
        provider.name,
        address.join(", or what is set as "),
        keys.join(" or ")
    )
}

/// Returns an address without possible secrets.
fn public(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest
                .split_once('/')
                .map_or((rest, None), |(host, path)| (host, Some(path)));
            let host = host.rsplit('@').next().unwrap_or_default();
            path.map_or_else(
                || format!("{scheme}://{host}"),
                |path| format!("{scheme}://{host}/{path}"),
            )
        }
        None => url.to_owned(),
    }
}

fn row(info: &ModelInfo) -> [String; COLUMNS] {
    let [input, output, read, write, hour] = match info.price {
        Some(it) => [
            it.input,
            it.output,
            it.cache_read,
            it.cache_write,
            it.cache_write_1h,
        ]
        .map(price),
        None => ["?"; 5].map(str::to_owned),
    };
    let (window, reply) = (
        grouped(info.context_window),
        grouped(info.max_output_tokens),
    );
    let thinking = match &info.efforts[..] {
        [] => "-".to_owned(),
        [only] => only.to_string(),
        [least, .., most] => format!("{least}–{most}"),
    };
    [
        info.id.to_string(),
        window,
        reply,
        thinking,
        input,
        output,
        read,
        write,
        hour,
    ]
}

fn table<'a>(models: impl Iterator<Item = &'a ModelInfo>) -> String {
    let rows: Vec<[String; COLUMNS]> = [HEADS.map(str::to_owned)]
        .into_iter()
        .chain(models.map(row))
        .collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for [name, rest @ ..] in &rows {
        text += &format!("{name:<0$}", widths[0]);
        for (cell, width) in rest.iter().zip(&widths[1..]) {
            text += &format!("  {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use adjutant::llm::{Effort, NanoUsd, Price};
    use adjutant::providers::catalogue::Catalogue;

    use super::*;

    fn chooser() -> Chooser {
        let price = Price {
            cache_write_1h: NanoUsd(500_000_000),
            ..Price::dollars(0.25, 2.0, 0.025, 0.25)
        };
        let efforts = vec![Effort::Off, Effort::Low];
        let small = ModelInfo {
            price: Some(price),
            efforts,
            ..ModelInfo::new("acme/small")
        };
        let acme = Provider::new("acme", "https://user:secret@llm.acme.example/v1?key=secret")
            .key_variable("ACME_KEY");
        Chooser::new(|name| (name == "GROQ_API_KEY").then(|| "secret".into()))
            .provider(acme.like("vllm"))
            .catalogue(
                Catalogue::empty()
                    .with(small)
                    .with(ModelInfo::new("acme/other")),
            )
    }

    #[test]
    fn one_tells_everything_when_a_provider_is_named() {
        let expect = "\
MODEL        WINDOW  OUTPUT  THINKING     IN    OUT  CACHE READ  CACHE WRITE  1 H WRITE
acme/small  128,000   8,192   off–low  $0.25  $2.00      $0.025        $0.25      $0.50
acme/other  128,000   8,192         -      ?      ?           ?            ?          ?
Window and output in tokens, prices in US dollars for a million tokens; `1 h write` keeps the cache for an hour.

provider  acme
wire      OpenAI Chat Completions, like vllm
address   https://llm.acme.example/v1
key       ACME_KEY (missing)
models    any name
";
        assert_eq!(one(&chooser(), "acme").as_deref(), Ok(expect));
    }

    #[test]
    fn every_shows_the_keys_that_matter_when_there_are_many_providers() {
        let text = every(&chooser(), false);
        let keys: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(", for "))
            .collect();
        assert!(
            keys.contains(&"ACME_KEY           missing, for acme/…"),
            "{text}"
        );
        assert!(
            keys.contains(&"GROQ_API_KEY       present, for groq/…"),
            "{text}"
        );
        assert!(!keys.iter().any(|line| line.contains("TOGETHER")), "{text}");
        assert!(
            text.lines()
                .any(|line| line.starts_with("Also: ") && line.contains("together, ")),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        assert!(every(&chooser(), true).contains("provider  together\n"));
    }
}
