//! Project tasks, run as `cargo xtask <command>`. Each command is one module; nothing here is published.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command speaks to its terminal"
)]

mod bench;
mod bfcl;
mod cargo;
mod chaos;
mod check;
mod conformance;
mod crash;
mod features;
mod fuzz;
mod local_model;
mod mcp_conformance;
mod metadata;
mod models;
mod npm;
mod page;
mod programs;
mod protocols;
mod python;
mod release;
mod restate;
mod sandbox_projects;
mod scan;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  check               formatting, tidy, cargo deny, clippy, docs, then all tests
  tidy                sizes, crate edges, file headers, the driver, attributes, documents, manifests
  conformance         every hazard over every wire, as a matrix
  crash [--seed N]    the kill test and the crew drill, on every kind of storage; or one drill: --fleet, --mcp
  chaos [ARGS]        agents and their operator are killed for a minute; --agents N --seconds S --seed X; or: chaos measure
  features            every feature of every published crate builds alone
  bench [NAME] [ARGS] the benchmarks, or one, in a table of rows with limits; --instructions: what valgrind counts; --build: hello
  fuzz --smoke        every fuzz target for a minute; or one: fuzz <TARGET> [ARGS]
  bfcl                published functions and answers over every wire, judged by the vendors' own types, from PyPI
  local-model         a small real model behind llama-server, from PyPI, asked over Chat, Responses and Messages, as a table
  mcp-conformance     the official conformance suite of the Model Context Protocol, from npm; or one side: client, server
  protocols           the streams of other people's pages, read by those pages' own clients, from npm
  page [--picture]    the page of the view in a browser, with playwright-core and axe-core from npm; --picture: that of the README
  models FILE         the model catalogue from a file like models.dev's; --add PROVIDER/NAME adds a model
  restate [ARGS]      sessions under a Restate server from npm, both killed at any moment; sqlite or postgres, --sessions N --kills N --seed X
  sandbox-projects    builds and tests twelve real projects outside and inside the sandbox, as a table; --sandbox KIND, NAME...
  release --dry-run   what a release would publish, and in which order; fails if a crate lacks something";

/// Why a command did not succeed.
#[derive(Debug)]
enum Failure {
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// A step of the command failed: exit code 1.
    Step(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["check"] => check::run(),
        ["tidy"] => tidy::run(),
        ["conformance"] => conformance::run(),
        ["chaos", rest @ ..] => chaos::run(rest),
        ["crash", rest @ ..] => crash::run(rest),
        ["features"] => features::run(),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["bfcl", rest @ ..] => bfcl::run(rest),
        ["local-model", rest @ ..] => local_model::run(rest),
        ["mcp-conformance", rest @ ..] => mcp_conformance::run(rest),
        ["protocols"] => protocols::run(),
        ["page", rest @ ..] => page::run(rest),
        ["models", rest @ ..] => models::run(rest),
        ["restate", rest @ ..] => restate::run(rest),
        ["sandbox-projects", rest @ ..] => sandbox_projects::run(rest),
        ["release", rest @ ..] => release::run(rest),
        _ => Err(Failure::Usage(format!(
            "unknown command: `{}`",
            arguments.join(" ")
        ))),
    };
    let (code, message) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Step(message)) => (1, message),
        Err(Failure::Usage(message)) => (2, format!("{message}\n\n{USAGE}")),
    };
    eprintln!("xtask: {message}");
    ExitCode::from(code)
}
