//! The drill of sessions that a Restate server has driven: `restate_drill service …` and the server are killed by
//! `restate_drill drill …`.
//!
//! `restate_drill drill <sqlite|postgres|all> --server PROGRAM [--sessions N] [--kills N] [--seed N]`. Exit code 1 if a promise
//! was broken.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program speaks to its terminal"
)]

use std::{
    collections::BTreeMap,
    fs::File,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use adjutant::{
    Cancel,
    agent::{DueWork, Journal, Lane, LogId, LogQuery, Post, Seq, Sessions, Waker, Work},
    llm::{Entry, UserMessage},
    store::{Postgres, Sqlite},
    tools::{Answer, Approval},
};
use adjutant_restate::{Ingress, SessionService};
use adjutant_testing::PostgresServer;
use adjutant_tests::{
    asked::chain,
    fleet::{Drill, agents, now_ms},
    kill::{Place, Rng},
};

const USAGE: &str = "usage: restate_drill drill <sqlite|postgres|all> --server PROGRAM [--sessions N] [--kills N] [--seed N]";
/// The longest time between two kills, and the downtime after one: a server that restarts immediately cannot bind its
/// port.
const KILLS: (u64, Duration) = (4_000, Duration::from_millis(700));
/// The longest time that a server may take to be there.
const READY: Duration = Duration::from_secs(60);
/// The time in which sessions must continue, in addition to the limit of the worker drill.
const GOES_ON: Duration = Duration::from_secs(15);
/// The pause between two rounds of answers.
const ROUND: Duration = Duration::from_millis(600);
/// The lease of a log on PostgreSQL.
const LEASE: Duration = Duration::from_secs(15);

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["service", place, files, address] => {
            service(&Place::parse(place), Path::new(files), address).await
        }
        ["drill", kind, "--server", server, options @ ..] => {
            drills(kind, Path::new(server), options).await
        }
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("restate: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// The process that is killed.
async fn service(place: &Place, files: &Path, address: &str) -> Result<(), Failure> {
    let agents = agents(files, Approval::Always)?;
    let service = match place {
        Place::Sqlite(path) => SessionService::new(Sqlite::open(path)?.journal(), agents),
        Place::Postgres(url) => SessionService::new(
            Postgres::connect(url.as_str())
                .lease(LEASE)
                .await?
                .journal(),
            agents,
        ),
        Place::Jsonl(_) => return Err("files of JSON lines do not know what is due".into()),
    };
    Ok(service
        .serve(TcpListener::bind(address)?, Cancel::new())
        .await?)
}

async fn drills(kind: &str, server: &Path, options: &[&str]) -> Result<(), Failure> {
    let mut asked: BTreeMap<&str, u64> =
        [("--sessions", 200), ("--kills", 16), ("--seed", 1)].into();
    for pair in options.chunks(2) {
        let [name, value] = pair else {
            return Err(USAGE.into());
        };
        *asked.get_mut(name).ok_or(USAGE)? = value.parse()?;
    }
    let count = |name: &str| usize::try_from(asked[name]).unwrap_or(usize::MAX);
    for kind in ["sqlite", "postgres"]
        .into_iter()
        .filter(|it| *it == kind || kind == "all")
    {
        let database = match (kind, PostgresServer::start()) {
            ("sqlite", _) => None,
            (_, Ok(database)) => Some(database),
            (_, Err(why)) => {
                println!("restate: skipped: postgres: {why}");
                continue;
            }
        };
        let files = tempfile::tempdir()?;
        let place = match &database {
            Some(database) => Place::Postgres(database.url("postgres")),
            None => Place::Sqlite(files.path().join("log.db")),
        };
        let drill = Drill {
            program: std::env::current_exe()?,
            place,
            server: None,
            files: files.path().to_owned(),
            sessions: count("--sessions"),
            workers: 1,
            kills: count("--kills"),
            lease: GOES_ON,
            asks: true,
        };
        let began = Instant::now();
        let told = Stage::new(&drill, server)?
            .run(&mut Rng::new(asked["--seed"]))
            .await;
        let told =
            told.map_err(|error| format!("{kind}, seed {}: {}", asked["--seed"], chain(&*error)))?;
        println!(
            "restate: {kind}: {asked:?}: {told}, {:.1} s: ok",
            began.elapsed().as_secs_f32()
        );
    }
    Ok(())
}

/// A Restate server, a service, and the operations on them.
struct Stage<'a> {
    drill: &'a Drill<'a>,
    server: PathBuf,
    /// The ports of the service; of the server: for calls, for operators, for its own nodes.
    ports: [u16; 4],
    http: reqwest::Client,
}

/// A process that is killed when it is dropped.
struct Killed(Child);

impl<'a> Stage<'a> {
    fn new(drill: &'a Drill<'a>, server: &Path) -> Result<Self, Failure> {
        // All are bound before one is given up: they differ.
        let bound = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0"));
        let mut ports = [0; 4];
        for (port, bound) in ports.iter_mut().zip(bound) {
            *port = bound?.local_addr()?.port();
        }
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .timeout(Duration::from_secs(10))
            .build()?;
        Ok(Self {
            drill,
            server: server.to_owned(),
            ports,
            http,
        })
    }

    async fn run(&self, rng: &mut Rng) -> Result<String, Failure> {
        let (journal, ingress) = (
            self.drill.open().await?,
            Ingress::connect(&self.url(1, ""))?,
        );
        let (server, service) = (self.serve()?, self.work()?);
        self.ready(2, "/health").await?;
        self.ready(1, "/restate/health").await?;
        let deployment = format!(r#"{{"uri": "{}"}}"#, self.url(0, ""));
        self.send(&self.url(2, "/deployments"), deployment).await?;
        let ids: Vec<LogId> = (0..self.drill.sessions)
            .map(|no| LogId::from(format!("bill/{no}")))
            .collect();
        for id in &ids {
            let content = Entry::from(UserMessage::text("Pay the bill."));
            ingress
                .say(
                    id,
                    Post::Message {
                        lane: Lane::FollowUp,
                        content,
                    },
                )
                .await?;
        }
        // As many a round that the last ones are answered when the last kills are done.
        let each = self.drill.sessions * 600 / (self.drill.kills.max(1) * 3_000) + 1;
        let mut killing = std::pin::pin!(self.kill(rng, server, service));
        let mut over = None;
        loop {
            tokio::select! {
                killed = &mut killing, if over.is_none() => over = Some(killed?),
                answered = self.answer(&journal, each) => if !answered? && over.is_some() { break },
            }
        }
        let Some((killed, told, _running)) = over else {
            return Ok(String::new());
        };
        self.drill.end().await?;
        let survived = self.drill.check(&journal, &ids, &killed).await?;
        Ok(format!("{told}: {survived:?}"))
    }

    /// Kills the service, both or the server repeatedly; returns which services were killed and when, and the
    /// processes that still run.
    async fn kill(
        &self,
        rng: &mut Rng,
        mut server: Killed,
        mut service: Killed,
    ) -> Result<(Vec<(u32, u128)>, String, [Killed; 2]), Failure> {
        let (mut killed, mut servers, mut slowest) = (Vec::new(), 0, Duration::ZERO);
        for _ in 0..self.drill.kills {
            tokio::time::sleep(Duration::from_millis(rng.below(KILLS.0))).await;
            let (at, which) = (Instant::now(), rng.below(4));
            if which < 2 {
                killed.push((service.0.id(), now_ms()));
                service.kill();
            }
            if which > 0 {
                server.kill();
            }
            tokio::time::sleep(KILLS.1).await;
            if which < 2 {
                service = self.work()?;
            }
            if which > 0 {
                servers += 1;
                server = self.serve()?;
                self.ready(1, "/restate/health").await?;
                slowest = slowest.max(at.elapsed());
            }
        }
        let told = format!(
            "services killed {}, servers {servers} (there again after {slowest:?})",
            killed.len()
        );
        Ok((killed, told, [server, service]))
    }

    /// Answers some of the sessions that wait; false if none of them does any more, nor will.
    async fn answer(&self, journal: &Arc<dyn DueWork>, most: usize) -> Result<bool, Failure> {
        tokio::time::sleep(ROUND).await;
        let backlog = journal.backlog().await?;
        let sessions = Sessions::new(Arc::clone(journal) as Arc<dyn Journal>);
        let query = LogQuery {
            limit: 1_000,
            ..LogQuery::default()
        };
        let waits = journal.list(&query).await?.logs.into_iter();
        let waits = waits.filter(|info| matches!(info.work, Some(Work::Parked { .. })));
        for info in waits.take(most) {
            let run = sessions.transcript(&info.log, Seq(u64::MAX)).await?;
            for pause in run.pauses() {
                let answered = pause.with_answer(Answer::Approve {
                    args: None,
                    for_run: false,
                });
                let path = format!("/Session/{}/answer", info.log.0.replace('/', "%2F"));
                // A server that is down is retried in the next round.
                let _ = self
                    .send(&self.url(1, &path), serde_json::to_string(&answered)?)
                    .await;
            }
        }
        Ok((backlog.due, backlog.at_work, backlog.parked) != (0, 0, 0))
    }

    fn url(&self, port: usize, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports[port])
    }

    async fn send(&self, url: &str, body: String) -> Result<(), Failure> {
        let answer = self
            .http
            .post(url)
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("{url}: {}: {}", answer.status(), answer.text().await?).into()),
        }
    }

    async fn ready(&self, port: usize, path: &str) -> Result<(), Failure> {
        let (began, url) = (Instant::now(), self.url(port, path));
        while !self
            .http
            .get(&url)
            .send()
            .await
            .is_ok_and(|answer| answer.status().is_success())
        {
            if began.elapsed() > READY {
                return Err(format!("{url} does not answer").into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    fn work(&self) -> Result<Killed, Failure> {
        let mut command = Command::new(&self.drill.program);
        command
            .arg("service")
            .arg(self.drill.place.to_string())
            .arg(&self.drill.files);
        command
            .arg(format!("127.0.0.1:{}", self.ports[0]))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Ok(Killed(command.spawn()?))
    }

    fn serve(&self) -> Result<Killed, Failure> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.drill.files.join("server.log"))?;
        let mut command = Command::new(&self.server);
        command.args([
            "--no-logo",
            "--bind-ip",
            "127.0.0.1",
            "--listen-mode",
            "tcp",
            "--node-name",
            "drill",
        ]);
        command
            .arg("--base-dir")
            .arg(self.drill.files.join("restate"))
            .current_dir(&self.drill.files);
        command
            .arg("--bind-port")
            .arg(self.ports[3].to_string())
            .env("RESTATE_DISABLE_TELEMETRY", "true");
        command.env("RESTATE_INGRESS__BIND_PORT", self.ports[1].to_string());
        command.env("RESTATE_ADMIN__BIND_PORT", self.ports[2].to_string());
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(Killed(command.spawn()?))
    }
}

impl Killed {
    fn kill(&mut self) {
        // It may already have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.kill();
    }
}
