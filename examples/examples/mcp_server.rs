//! An agent as an MCP server: on standard input and output, or over HTTP if a port is given, with the token in `MCP_TOKEN`.
//!
//! It looks around in this folder, and its user approves each look. With the offline model, so it needs no key.

use std::net::{Ipv4Addr, TcpListener};

use adjutant::{
    Agent, Toolbox,
    mcp::{HttpOptions, McpHost},
    toolkit::Files,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::new(adjutant::model("offline/planner")?)
        .instructions("Answer from the files of the folder.")
        .toolbox(Files::new(".")?.toolbox().confirm());
    let host = McpHost::new("guide").agent("guide", "Knows what is in the folder.", agent);
    let Some(port) = std::env::args().nth(1) else {
        return Ok(host.serve_stdio().await?);
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?))?;
    Ok(host
        .serve_http(
            listener,
            HttpOptions::with_token(std::env::var("MCP_TOKEN")?),
        )
        .await?)
}
