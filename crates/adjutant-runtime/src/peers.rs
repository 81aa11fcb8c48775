//! Agents of other processes as a tool: by name for agents of the same operator, or by an address and a token.
//!
//! `prompt/call.rs` answers such calls. This module does not depend on how agents are created.

#[cfg(feature = "http")]
mod a2a;
mod call;
mod door;
#[cfg(feature = "http")]
mod reach;

use std::{path::Path, sync::Arc};

use adjutant_llm::World;
use adjutant_tool::{Toolbox, Tools};

use self::{
    call::PeerTool,
    door::{Door, Peer},
};
use crate::{Credentials, Error, ErrorKind, Home, Manifest, Workspace, manifest::PeerSpec};

pub(crate) use door::Present;

/// Creates the toolbox for the peers of a manifest, with one tool.
///
/// # Errors
/// `Config` if a peer is named and there are no other agents of the operator, or if a token is missing.
pub(crate) fn toolbox(
    manifest: &Manifest,
    workspace: &Workspace,
    credentials: &Credentials,
    world: &Arc<dyn World>,
) -> Result<Arc<dyn Toolbox>, Error> {
    // Only agents of a backend are in a directory of agents.
    let home = workspace
        .file("agent.json")
        .is_file()
        .then(|| workspace.root().parent())
        .flatten();
    let peers = manifest
        .peers
        .iter()
        .map(|spec| peer(spec, home, credentials))
        .collect::<Result<_, _>>()?;
    // Several calls run one after the other, so that each gets the remaining budget.
    let is_limited = |budget: &_| *budget != Default::default();
    let is_limited = is_limited(&manifest.budget)
        || manifest
            .agents
            .iter()
            .any(|agent| is_limited(&agent.budget));
    let tool = PeerTool::new(
        Arc::clone(&manifest.name),
        peers,
        is_limited,
        Arc::clone(world),
    );
    Ok(Arc::new(Tools::new("peers").tool(tool)))
}

fn peer(spec: &PeerSpec, home: Option<&Path>, credentials: &Credentials) -> Result<Peer, Error> {
    let lacks = |why: String| {
        Error::new(
            ErrorKind::Config,
            format!("the peer {} cannot be called: {why}", spec.name),
        )
    };
    let variable = |variable: &String| {
        credentials
            .get(variable)
            .ok_or_else(|| lacks(format!("the variable {variable} is not set")))
    };
    if let Some(url) = &spec.a2a {
        let token = spec
            .token_variable
            .as_ref()
            .map(variable)
            .transpose()?
            .map(Arc::from);
        let door = Door::A2a {
            url: Arc::clone(url),
            token,
        };
        return Ok(Peer {
            name: Arc::clone(&spec.name),
            description: Arc::clone(&spec.description),
            door,
        });
    }
    let door = match (spec.address, &spec.token_variable) {
        (Some(address), Some(name)) => Door::At {
            address,
            token: variable(name)?.into(),
        },
        (Some(_), None) => {
            return Err(lacks(
                "it has an `address` and no `token_variable`".to_owned(),
            ));
        }
        (None, _) => {
            let home = home.ok_or_else(|| {
                lacks(
                    "only an agent of an operator has others beside it; hint: give it an `address`"
                        .to_owned(),
                )
            })?;
            let agent = spec.agent.as_ref().unwrap_or(&spec.name);
            Door::Named {
                home: Home::at(home),
                agent: Arc::clone(agent),
            }
        }
    };
    Ok(Peer {
        name: Arc::clone(&spec.name),
        description: Arc::clone(&spec.description),
        door,
    })
}
