//! A server that is a program and reaches the hosts of a list, and nothing else. Its program is this one, so its main is its own.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use adjutant_llm::CallResult;
use adjutant_mcp::{McpHost, McpServer, ServerConfig, StdioConfig};
use adjutant_tool::{CallContext, Identity, ToolSpec, Toolbox, Tools, tool_fn};
use adjutant_toolkit::{Hosts, Network, Sandbox, sandbox_helper};
use serde_json::{Value, json};

/// What the program is, when it is started once more.
const VARIABLE: &str = "ADJUTANT_TEST_SERVER";

fn main() {
    sandbox_helper();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    match std::env::var_os(VARIABLE) {
        Some(_) => runtime.block_on(serve()),
        None => runtime.block_on(server_reaches_the_hosts_of_its_list_and_no_other()),
    }
}

/// A server whose tool asks the proxy of its environment for an address.
async fn serve() {
    let spec = ToolSpec::new(
        "get",
        "Gets.",
        json!({"type": "object", "properties": {"url": {"type": "string"}}}),
    );
    let get = tool_fn(spec, |args: Value, _: CallContext| async move {
        let proxy = std::env::var("http_proxy").expect("it has a proxy");
        let mut stream =
            TcpStream::connect(proxy.trim_start_matches("http://")).expect("it listens");
        let url = args["url"].as_str().expect("a text");
        stream
            .write_all(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
            .expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is read");
        Ok(CallResult::ok(answer))
    });
    McpHost::new("web")
        .tools(Tools::new("web").tool(get))
        .serve_stdio()
        .await
        .expect("it is served");
}

async fn server_reaches_the_hosts_of_its_list_and_no_other() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nheron",
            );
        }
    });
    let program = std::env::current_exe().expect("a program");
    let hosts = Network::Hosts(Hosts::new([own.as_str()]).expect("a list"));
    let sandbox = Sandbox::bwrap().network(hosts).read(&program);
    if let Some(why) = sandbox.refuses() {
        // A closed output is no failure of what is tested.
        let _ = writeln!(std::io::stdout(), "SKIPPED: {why}");
        return;
    }
    let mut config = StdioConfig::new(program, sandbox);
    config.env = [(VARIABLE.into(), "1".into())].into();
    let server = McpServer::new("web", ServerConfig::new(config)).expect("it can be meant");
    server.ready().await.expect("it starts");
    let tools = server
        .resolve(&Identity::root("s".into(), "s", "s"))
        .await
        .expect("it never fails");
    let get = tools.get("web_get").expect("it is there");
    for (host, expect) in [
        (&*own, "heron"),
        ("127.0.0.1:1", "403 Forbidden"),
        (&own, "heron"),
    ] {
        let url = format!("http://{host}/");
        let said = get
            .call(json!({ "url": url }), CallContext::detached())
            .await
            .expect("it is answered")
            .text();
        assert!(said.contains(expect), "{host}: {said}");
    }
}
