//! The PostgreSQL server of the tests: it starts, ends and starts again, and leaves nothing behind.
#![cfg(unix)]

use std::net::{Ipv4Addr, TcpStream};

use adjutant_testing::PostgresServer;

fn port(url: &str) -> u16 {
    let port = url
        .rsplit(':')
        .next()
        .and_then(|rest| rest.split('/').next());
    port.and_then(|port| port.parse().ok())
        .expect("a port in the URL")
}

#[test]
fn server_runs_statements_in_databases_of_their_own() {
    let Some(server) = PostgresServer::for_test("server_runs_statements_in_databases_of_their_own")
    else {
        return;
    };
    let (one, other) = (
        server.database().expect("a database"),
        server.database().expect("a database"),
    );
    assert_ne!(one, other);
    let name = one.rsplit('/').next().expect("a name");
    server
        .execute(name, "create table things (no int)")
        .expect("a table is made");
    let refused = server
        .execute(name, "create table things (no int)")
        .expect_err("it is there already");
    assert!(refused.to_string().contains("already exists"), "{refused}");
    server
        .execute(
            other.rsplit('/').next().expect("a name"),
            "create table things (no int)",
        )
        .expect("it is not there");
}

#[test]
fn server_that_is_stopped_comes_back_with_what_it_held() {
    const NAME: &str = "server_that_is_stopped_comes_back_with_what_it_held";
    let server = match PostgresServer::start() {
        Ok(server) => server,
        Err(why) => return why.skips(NAME),
    };
    server
        .execute("postgres", "create table things (no int)")
        .expect("a table is made");
    server.stop();
    server
        .execute("postgres", "select 1")
        .expect_err("nobody is there");
    server.restart().expect("it starts again");
    server
        .execute("postgres", "insert into things values (1)")
        .expect("the table is there");
    let port = port(&server.url("postgres"));
    drop(server);
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect_err("nobody is there");
}
