//! What agents in processes of their own cost: time from a start to being ready, and memory while they do nothing.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use adjutant::runtime::{
    Backend, Manifest, Overrides, Resolved,
    backend::{Process, ProcessOptions},
};

use super::{field::host, trace};

/// How often one agent is started.
const STARTS: usize = 20;

/// Starts one agent again and again, then so many at a time, and tells what that took.
///
/// # Errors
/// If an agent cannot be made or started, in words.
pub async fn measure(
    program: &Path,
    directory: &Path,
    agents: usize,
) -> Result<Vec<String>, String> {
    let told = |error: adjutant::runtime::Error| crate::asked::chain(&error);
    let home = adjutant::runtime::Home::at(directory.join("run"));
    let backend =
        Process::new(home.root(), Some(program.to_owned()), ProcessOptions::new()).map_err(told)?;
    let mut lines = Vec::new();
    let one = backend
        .create(uuid::Uuid::now_v7(), resolved(directory, "one")?)
        .await
        .map_err(told)?;
    one.prepare().await.map_err(told)?;
    let mut times = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let began = Instant::now();
        one.start().await.map_err(told)?;
        times.push(began.elapsed());
        one.stop().await.map_err(told)?;
    }
    times.sort_unstable();
    let [least, middle, most] = [times[0], times[STARTS / 2], times[STARTS - 1]].map(millis);
    lines.push(format!(
        "start to ready, one agent with SQLite: {least} to {most} ms, {middle} ms in the middle"
    ));
    let began = Instant::now();
    for number in 0..agents {
        let resolved = resolved(directory, &format!("agent-{number}"))?;
        let instance = backend
            .create(uuid::Uuid::now_v7(), resolved)
            .await
            .map_err(told)?;
        instance.start().await.map_err(told)?;
    }
    lines.push(format!(
        "{agents} agents made and started one after the other: {} ms",
        millis(began.elapsed())
    ));
    let entries = home.entries().map_err(told)?.all;
    let memory: Vec<(u64, u64)> = entries
        .iter()
        .filter_map(|it| trace::memory(host(it)?.pid))
        .collect();
    let count = memory.len().max(1) as u64;
    let sum = |of: fn(&(u64, u64)) -> u64| memory.iter().map(of).sum::<u64>() / count;
    let most = memory
        .iter()
        .map(|(resident, _)| *resident)
        .max()
        .unwrap_or_default();
    lines.push(format!(
        "memory of {} idle agents: {:.1} MiB resident each ({:.1} MiB at most), {:.1} MiB each when shared pages are shared out",
        memory.len(),
        mib(sum(|it| it.0)),
        mib(most),
        mib(sum(|it| it.1)),
    ));
    backend.destroy().await.map_err(told)?;
    Ok(lines)
}

fn resolved(directory: &Path, name: &str) -> Result<Resolved, String> {
    let text = format!("name: {name}\nmodel: offline/planner\n");
    let file = directory.join("measured.yaml");
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let loaded = Manifest::load(&file, |name| std::env::var(name).ok())
        .map_err(|error| error.to_string())?;
    loaded
        .resolve(Overrides::default())
        .map_err(|error| error.to_string())
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1_024.0
}
