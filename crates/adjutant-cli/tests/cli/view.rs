//! `adjutant view`: the page over a store.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command},
};

use adjutant::llm::Gate;

use crate::{
    command::{Seen, end, says, serve},
    sessions::Desk,
};

/// A page that is served; it is ended when it is dropped.
struct Served {
    child: Option<Child>,
    address: String,
    token: String,
}

impl Served {
    #[track_caller]
    fn start(desk: &Desk) -> Self {
        let mut child = desk.command(&["view"]).spawn().expect("the command starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped"))
            .read_line(&mut line)
            .expect("it tells its address");
        let url = line
            .trim()
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once("/#token="));
        let (address, token) = url.expect("an address with a token");
        Self {
            child: Some(child),
            address: address.to_owned(),
            token: token.to_owned(),
        }
    }

    /// The answer to a request that names this host: its status, and all of it.
    #[track_caller]
    fn get(&self, host: &str, path: &str, more: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{more}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        (answer.get(9..12).unwrap_or_default().to_owned(), answer)
    }

    /// Asks it to end: what it wrote beside its address, and the code.
    fn end(mut self, signal: &str) -> Seen {
        let child = self.child.take().expect("it runs");
        let killed = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(killed.expect("kill can be called").success());
        end(child)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn view_shows_a_store_to_who_has_its_address_and_ends_when_asked() {
    for (desk, (signal, code)) in Desk::each().into_iter().zip([("-TERM", 0), ("-INT", 130)]) {
        let server = serve([says("Yes.")]);
        desk.ask(&server, &["run", "Hi", "--session", "talk", "-q"])
            .check(0, "Yes.\n", "");
        let served = Served::start(&desk);
        let (address, token) = (served.address.clone(), served.token.clone());
        assert!(
            token.len() >= 32 && address.starts_with("127.0.0.1:"),
            "{address} {token}"
        );
        let (bearer, wrong) = (
            format!("authorization: Bearer {token}\r\n"),
            "authorization: Bearer no\r\n",
        );
        let (own, foreign) = (&*address, "evil.example");
        let origin = format!("{bearer}origin: http://evil.example\r\n");
        let (list, events) = (
            "/v1/agents/store/sessions",
            "/v1/agents/store/events?session=talk&after=0",
        );
        for (host, path, more, status, holds) in [
            (own, "/", "", "200", "/app/app.js"),
            (own, "/app/app.js", "", "200", "text/javascript"),
            (own, list, &bearer, "200", r#""name":"talk""#),
            (own, events, &bearer, "200", "event: run_finished"),
            (own, list, "", "401", "the token is missing or wrong"),
            (own, events, wrong, "401", "the token is missing or wrong"),
            (foreign, list, &bearer, "403", "for another host"),
            (foreign, "/", "", "403", "for another host"),
            (own, list, &origin, "403", "another origin"),
        ] {
            let (told, answer) = served.get(host, path, more);
            assert!(
                told == status && answer.contains(holds),
                "{host} {path}: {answer}"
            );
        }
        let seen = served.end(signal);
        assert_eq!(seen.code, Some(code), "{seen:#?}");
        assert!(
            seen.stderr.contains("the page is there until Ctrl-C") && !seen.stderr.contains(&token),
            "{seen:#?}"
        );
        assert!(
            TcpStream::connect(address).is_err(),
            "nobody listens any more"
        );
    }
}

#[test]
fn view_of_nothing_says_what_to_do_first() {
    let desk = Desk::new("store.db");
    let seen = desk.see(&["view"]);
    assert!(
        seen.code == Some(2) && seen.stdout.is_empty() && seen.stderr.starts_with("error: "),
        "{seen:#?}"
    );
    let seen = desk.see(&["view", "--agents"]);
    assert!(
        seen.code != Some(0)
            && seen.stdout.is_empty()
            && seen.stderr.contains("hint: `adjutant up"),
        "{seen:#?}"
    );
}

#[test]
fn who_drives_a_session_is_told_by_the_page_and_by_fleet_status() {
    let (desk, gate) = (Desk::new("store.db"), Gate::default());
    let server = serve([says("Yes.").wait_at(0, &gate)]);
    let child = desk.start(&server);
    let owner = format!("process {}", child.id());
    let told = desk.out(&["fleet", "status"]);
    let (numbers, works) = told.split_once('\n').expect("two lines");
    assert_eq!(numbers, "due 0  at work 1  waiting 0  set aside 0");
    assert!(works.starts_with(&format!("works   s  {owner}")), "{told}");
    let served = Served::start(&desk);
    let bearer = format!("authorization: Bearer {}\r\n", served.token);
    let (_, fleet) = served.get(&served.address, "/v1/agents/store/fleet", &bearer);
    assert!(fleet.contains(&format!(r#""owner":"{owner}"#)), "{fleet}");
    gate.open();
    assert_eq!(end(child).code, Some(0));
}
