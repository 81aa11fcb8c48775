//! This program as a host: that of the public suite, or one that does not begin.

use adjutant_runtime::{
    Reason, Status, Workspace,
    host::{self, HostOptions},
};
use adjutant_testing::lifecycle_suite;

/// In a run of the tests this finds that it is no host, and tells so.
#[tokio::test]
async fn acts_as_a_host_when_started_as_one() {
    let Some(folder) = std::env::var_os("LIFE_HOST_WORKSPACE") else {
        assert!(std::env::var_os("LIFE_HOST_DOES").is_none());
        return;
    };
    let workspace = Workspace::at(folder);
    let code = match std::env::var("LIFE_HOST_DOES")
        .expect("it is given")
        .as_str()
    {
        "serve" => lifecycle_suite::act(&workspace).await,
        "engine" => {
            let options = HostOptions::new().parts(super::peers::parts(&workspace));
            host::run(workspace, options)
                .await
                .expect("it ends when it is asked to");
            0
        }
        "fail" => {
            eprintln!("no luck today");
            7
        }
        "tell" => {
            let start = std::env::var("ADJUTANT_AGENT_START")
                .expect("it is given")
                .parse()
                .expect("it is an id");
            workspace
                .tell_end(
                    start,
                    Status::failed(Reason::Model, "the variable NO_KEY is not set"),
                )
                .expect("told");
            1
        }
        other => panic!("unknown: {other}"),
    };
    std::process::exit(code.into());
}
