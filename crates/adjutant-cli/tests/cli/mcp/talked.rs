//! Servers in a conversation: trusted once, shown, and their prompts said.

use super::{Place, one};
use crate::{
    command::{Vendor, says, serve},
    issuer::Birds,
    terminal::Terminal,
};
use serde_json::json;

#[test]
fn servers_are_trusted_once_for_each_content_and_their_prompts_are_said() {
    let (place, birds) = (Place::new(), Birds::open());
    let server = serve([says("Hello, Ada.")]);
    let talk = || {
        let mut command = place.command(&[]);
        command
            .envs(Vendor::Anthropic.variables(&server))
            .env("ADJUTANT_MODEL", Vendor::Anthropic.model());
        Terminal::start(&command)
    };
    let end = |mut terminal: Terminal| {
        terminal.press("\u{4}");
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        screen
    };
    let url = format!("{}/mcp", birds.base);
    place.write("work/.mcp.json", &one(json!({ "url": url })));
    let mut terminal = talk();
    let asked = terminal.wait_until("the question", |screen| screen.contains("trust it? [y/N]"));
    assert!(
        asked.contains(&format!("address: {url}, as the server a")),
        "{asked}"
    );
    terminal.line("y");
    terminal.wait("\n› ");
    terminal.line("/mcp");
    terminal.wait("/a:greet [who=…] Greets somebody.");
    terminal.line("/a:greet who=Ada");
    // What is sent is shown before it is.
    let shown = terminal.wait_until("the answer", |screen| screen.contains("turns 1"));
    let at = |text: &str| {
        shown
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {shown}"))
    };
    assert!(at("Greet Ada.") < at("Hello, Ada."), "{shown}");
    let asked = String::from_utf8_lossy(&server.requests()[0].body).into_owned();
    assert!(asked.contains("Greet Ada."), "{asked}");
    terminal.line("/a:grete");
    terminal.wait("refused");
    end(terminal);
    // Nobody is asked twice about one content, and everybody about another.
    let terminal = talk();
    terminal.wait("\n› ");
    assert!(!end(terminal).contains("trust it?"));
    place.write(
        "work/.mcp.json",
        &one(json!({ "url": url, "headers": { "x-more": "1" } })),
    );
    let mut terminal = talk();
    terminal.wait("trust it? [y/N]");
    terminal.line("n");
    terminal.wait("nobody trusts its servers: 1 not used");
    terminal.wait("\n› ");
    end(terminal);
}
