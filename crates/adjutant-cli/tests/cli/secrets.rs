//! A key is never written, whatever happens and however it is asked for.

use adjutant::llm::ScriptedModel;
use adjutant_testing::{Fault, Loopback};

use crate::command::{KEY, VENDORS, Vendor, run, says, seen};

/// Runs against this fault in both formats, and looks for the key.
#[track_caller]
fn check(vendor: Vendor, fault: Option<&Fault>) {
    for format in [&["Hi"][..], &["Hi", "--json"]] {
        let mut setup = Loopback::setup(ScriptedModel::new([says("Hello.")]));
        if let Some(fault) = fault {
            setup = setup.fault(0, fault.clone());
        }
        let server = setup.start_blocking().expect("a port");
        let seen = seen(run(vendor, &server, format));
        assert_eq!(seen.code, Some(i32::from(fault.is_some())), "{seen:#?}");
        let sent = format!("{:?}", server.requests()[0].headers);
        assert!(sent.contains(KEY), "the key was not used");
        assert!(
            !seen.stdout.contains(KEY) && !seen.stderr.contains(KEY),
            "{seen:#?}"
        );
    }
}

#[test]
fn key_is_not_written_when_a_server_repeats_it() {
    let body = format!(
        "{{\"error\":{{\"type\":\"authentication_error\",\"message\":\"bad key {KEY}\"}}}}"
    );
    let repeats = |code: u16| Fault::Status {
        code,
        headers: vec![],
        body: Some(body.clone().into()),
    };
    let plain = Fault::Status {
        code: 502,
        headers: vec![],
        body: Some(format!("you sent {KEY}").into()),
    };
    for vendor in VENDORS {
        check(vendor, None);
        for fault in [repeats(401), repeats(400), repeats(200), plain.clone()] {
            check(vendor, Some(&fault));
        }
    }
}
