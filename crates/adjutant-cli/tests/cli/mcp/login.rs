//! `adjutant mcp login`, from the address that is shown to the call that needs the token.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    process::Stdio,
};

use adjutant::llm::Script;
use serde_json::json;

use super::Place;
use crate::{
    command::{self, Seen, Vendor, says, serve, usage},
    issuer::{Birds, browse},
};

impl Place {
    /// Signs in: shows a browser the address, and gives it back with what it was sent to.
    fn signs_in(&self, browser: impl FnOnce(&str)) -> Seen {
        let mut child = self
            .command(&["mcp", "login", "birds"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut told = String::new();
        let mut url = None;
        while url.is_none() {
            let mut line = String::new();
            assert_ne!(
                stderr.read_line(&mut line).expect("it tells"),
                0,
                "it shows no address: {told}"
            );
            url = line
                .trim()
                .strip_prefix("http://")
                .map(|rest| format!("http://{rest}"));
            told += &line;
        }
        browser(&url.expect("an address"));
        stderr.read_to_string(&mut told).expect("it tells");
        let mut seen = command::end(child);
        seen.stderr = told;
        seen
    }

    /// The files of tokens, with their modes.
    fn tokens(&self) -> Vec<(String, u32)> {
        let files = std::fs::read_dir(self.path("home/.local/state/adjutant/mcp"))
            .into_iter()
            .flatten();
        let files = files
            .map(|file| file.expect("a file"))
            .filter(|file| file.path().extension() == Some("json".as_ref()));
        let about = |file: std::fs::DirEntry| {
            let mode = file.metadata().expect("it is there").permissions().mode() & 0o777;
            (
                std::fs::read_to_string(file.path()).expect("it is ours"),
                mode,
            )
        };
        files.map(about).collect()
    }
}

/// A browser whose user agrees.
fn agrees(url: &str) {
    let (line, back) = browse(url);
    assert!(line.contains("302"), "{line}");
    assert_eq!(browse(&back.expect("it is sent back")).0, "HTTP/1.1 200 OK");
}

#[test]
fn login_gets_a_token_that_calls_use_and_that_is_renewed() {
    let (place, birds) = (Place::new(), Birds::guarded());
    assert_eq!(
        place
            .see(&[
                "mcp",
                "add",
                "birds",
                "--url",
                &format!("{}/mcp", birds.base)
            ])
            .code,
        Some(0)
    );
    let hint = "adjutant mcp login birds";
    let before = place.see(&["mcp", "test", "birds"]);
    assert!(
        before.code == Some(1) && before.stderr.contains(hint),
        "{before:#?}"
    );
    assert!(place.see(&["mcp", "list"]).stdout.contains("wants a login"));

    // One who answers for another issuer gets nothing, and neither does one who does not know the state.
    birds.issued().says = Some("https://evil.example".to_owned());
    let seen = place.signs_in(agrees);
    assert!(
        seen.code == Some(1) && seen.stderr.contains("evil.example"),
        "{seen:#?}"
    );
    assert_eq!((birds.issued().given, place.tokens()), ([0, 0], Vec::new()));
    birds.issued().says = None;
    birds.issued().life = 0;
    let seen = place.signs_in(|url| {
        let back = browse(url).1.expect("it is sent back");
        let (forged, _) = back.split_once("&state=").expect("it has a state");
        assert_eq!(
            browse(&format!("{forged}&state=x&iss={}", birds.base)).0,
            "HTTP/1.1 404 Not Found"
        );
        assert_eq!(browse(&back).0, "HTTP/1.1 200 OK");
    });
    assert_eq!(
        (seen.code, seen.stdout.as_str()),
        (Some(0), "signed in to birds\n"),
        "{seen:#?}"
    );
    let [(text, mode)] = &place.tokens()[..] else {
        panic!("one file: {:?}", place.tokens())
    };
    assert!(text.contains("access-1") && *mode == 0o600, "{mode:o}");
    assert!(
        !seen.stderr.contains("access-1") && !seen.stdout.contains("access-1"),
        "{seen:#?}"
    );

    // Its time is over at once: it is renewed, once.
    birds.issued().life = 3_600;
    for _ in 0..2 {
        let tried = place.see(&["mcp", "test", "birds"]);
        assert!(
            tried.code == Some(0) && tried.stdout.contains("  birds_look"),
            "{tried:#?}"
        );
    }
    assert_eq!(birds.issued().given, [1, 1]);

    let call = Script::new().call("birds_look", json!({})).usage(usage());
    let server = serve([call, says("A heron.")]);
    let run = |args: &[&str]| {
        let mut command = place.command(args);
        command
            .envs(Vendor::Anthropic.variables(&server))
            .env("ADJUTANT_MODEL", Vendor::Anthropic.model());
        command::seen(command)
    };
    let approve = ["resume", "s", "--approve", "--retries", "0"];
    assert_eq!(
        run(&["run", "Look.", "--session", "s", "--retries", "0"]).code,
        Some(5)
    );
    // A call that the server refuses waits until somebody has signed in, in whatever process.
    birds.issued().refuses_calls = true;
    let waits = run(&approve);
    assert!(
        waits.code == Some(5) && waits.stderr.contains(hint),
        "{waits:#?}"
    );
    birds.issued().refuses_calls = false;
    assert_eq!(place.signs_in(agrees).code, Some(0));
    let done = run(&approve);
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), "A heron.\n"),
        "{done:#?}"
    );
    let last =
        String::from_utf8_lossy(&server.requests().last().expect("it was asked").body).into_owned();
    assert!(last.contains("a heron"), "{last}");
}
