//! `adjutant models`: what can be named, what it costs, and which keys are there.

use std::io::{self, Write};

use adjutant::{
    Model,
    llm::ModelInfo,
    providers::{Chooser, Credential, catalogue, offline::OfflineModel},
};

use crate::{
    amount::{grouped, price},
    exit::Exit,
    problem::Problem,
};

/// The heads of the columns; all but the first are numbers.
const HEADS: [&str; 7] = ["MODEL", "WINDOW", "OUTPUT", "IN", "OUT", "CACHE READ", "CACHE WRITE"];

/// Lists the models on standard output.
pub(crate) fn models() -> Result<Exit, Problem> {
    let credentials = Chooser::new(|name| std::env::var(name).ok()).credentials();
    let text = text(catalogue::known(), &credentials);
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Problem::new(Exit::Failed, "cannot write to standard output").cause(&error))
        }
        _ => Ok(Exit::Finished),
    }
}

fn text(known: impl Iterator<Item = ModelInfo>, credentials: &[Credential]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(known.map(|info| row(&info)));
    rows.push(row(OfflineModel::new().info()));
    let mut text = table(&rows);
    text += "Window and output in tokens, prices in US dollars for a million tokens. offline/planner is no language model.\n\n";
    for credential in credentials {
        let present = if credential.present { "present" } else { "missing" };
        text += &format!("{:<18} {present}, for {}/…\n", credential.variable, credential.provider);
    }
    text + "Without a key: ollama/…, llama-server/… and lmstudio/… of a server on this machine, and offline/planner.\n"
}

fn row(info: &ModelInfo) -> [String; 7] {
    let [input, output, read, write] = match info.price {
        Some(it) => [it.input, it.output, it.cache_read, it.cache_write].map(price),
        None => ["?"; 4].map(str::to_owned),
    };
    let (window, reply) = (grouped(info.context_window), grouped(info.max_output_tokens));
    [info.id.to_string(), window, reply, input, output, read, write]
}

fn table(rows: &[[String; 7]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = String::new();
    for [name, numbers @ ..] in rows {
        text += &format!("{name:<0$}", widths[0]);
        for (number, width) in numbers.iter().zip(&widths[1..]) {
            text += &format!("  {number:>width$}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use adjutant::llm::Price;

    use super::*;

    #[test]
    fn text_lists_models_and_keys_when_some_are_present() {
        let known = ModelInfo::new("p/small").price(Price::dollars(0.25, 2.0, 0.025, 0.25));
        let credentials = Chooser::new(|name| (name == "OPENAI_API_KEY").then(|| "secret".into())).credentials();
        let expect = "\
MODEL                WINDOW  OUTPUT     IN    OUT  CACHE READ  CACHE WRITE
p/small             128,000   8,192  $0.25  $2.00      $0.025        $0.25
p/other             128,000   8,192      ?      ?           ?            ?
offline/planner  10,000,000   8,192  $0.00  $0.00       $0.00        $0.00
Window and output in tokens, prices in US dollars for a million tokens. offline/planner is no language model.

ANTHROPIC_API_KEY  missing, for anthropic/…
OPENAI_API_KEY     present, for openai/…
Without a key: ollama/…, llama-server/… and lmstudio/… of a server on this machine, and offline/planner.
";
        assert_eq!(text([known, ModelInfo::new("p/other")].into_iter(), &credentials), expect);
    }
}
