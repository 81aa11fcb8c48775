//! Sends the functions and answers of the Berkeley Function-Calling Leaderboard over every wire, and records the requests.
//!
//! `bfcl CASES REQUESTS`: a JSON case a line, and a `{"case", "wire", "kind", "body"}` a line. Exit code 1 if an answer
//! does not arrive as it was sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs::{self, File},
    io::{BufWriter, Write},
    process::ExitCode,
};

use adjutant_testing::Received;
use adjutant_tests::{WIRES, Wire, bfcl::FunctionCase};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cases, requests] = &*arguments else {
        return Err("usage: bfcl CASES REQUESTS".into());
    };
    let cases = fs::read_to_string(cases)?;
    let cases: Vec<FunctionCase> = cases
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let mut out = BufWriter::new(File::create(requests)?);
    let mut failures = Vec::new();
    for wire in WIRES {
        let mut formats = BTreeSet::new();
        let before = failures.len();
        for case in &cases {
            match case.travel(wire).await {
                Ok(sent) => record(&mut out, case, wire, "tools", &sent)?,
                Err(why) => failures.push(format!("{wire}: {}: {why}", case.name)),
            }
            for tool in &case.tools {
                if formats.insert(tool.schema.to_string()) {
                    match case.format(wire, tool).await {
                        Ok(sent) => record(&mut out, case, wire, "format", &sent)?,
                        Err(why) => failures.push(format!("{wire}, format: {}: {why}", tool.name)),
                    }
                }
            }
        }
        let (cases, failed) = (cases.len(), failures.len() - before);
        println!(
            "{:<12}{cases} cases, {} formats, {failed} changed",
            wire.to_string(),
            formats.len()
        );
    }
    let disputed: Vec<_> = cases.iter().flat_map(FunctionCase::disputed).collect();
    println!("{} answers on which the validators differ", disputed.len());
    report(disputed.iter().chain(&failures));
    out.flush()?;
    Ok(ExitCode::from(u8::from(
        !failures.is_empty() || !disputed.is_empty(),
    )))
}

/// Prints one line for each kind of failure.
fn report<'a>(failures: impl Iterator<Item = &'a String>) {
    let mut kinds: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for line in failures {
        let kind = line.splitn(3, ": ").last().unwrap_or_default();
        let kind: String = kind
            .chars()
            .filter(|it| !it.is_ascii_digit())
            .take(80)
            .collect();
        kinds.entry(kind).or_insert((0, line)).0 += 1;
    }
    for (count, example) in kinds.values() {
        println!("{count:>6} like {example:.300}");
    }
}

fn record(
    out: &mut impl Write,
    case: &FunctionCase,
    wire: Wire,
    kind: &str,
    sent: &[Received],
) -> std::io::Result<()> {
    sent.iter().try_for_each(|received| {
        let line = json!({"case": case.name, "wire": wire.to_string(), "kind": kind, "body": received.json()});
        writeln!(out, "{line}")
    })
}
