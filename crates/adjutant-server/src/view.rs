//! A server on loopback for the page, with any number of agents and stores.

use std::{fmt, net::SocketAddr, sync::Arc};

use adjutant::runtime::{Error, Prompter, control::ControlPlane};

use crate::PAGE;

/// A server of the page, for agents and stores, on loopback. Nothing is answered before [`serve`](View::serve).
///
/// It serves the API of each agent below `/v1/agents/NAME`: a prompter is an agent in this process or another one, or
/// the sessions of a store.
pub struct View {
    plane: ControlPlane,
}

impl View {
    /// Listens on this port if it is free, else on any other one; 0 for any.
    ///
    /// # Errors
    /// `Init` if no port can be had.
    pub async fn bind(
        shown: impl IntoIterator<Item = (Arc<str>, Arc<dyn Prompter>)>,
        port: u16,
    ) -> Result<Self, Error> {
        let plane = ControlPlane::bind_agents(shown.into_iter().collect(), port).await?;
        Ok(Self {
            plane: plane.page(PAGE),
        })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.plane.address()
    }

    /// Returns the token that a caller must show.
    pub fn token(&self) -> &str {
        self.plane.token()
    }

    /// Returns the address of the page for a browser, with the token after `#`: browsers do not send that part.
    pub fn url(&self) -> String {
        url(self.address(), self.token())
    }

    /// Serves until this ends.
    pub async fn serve(self, ended: impl Future<Output = ()> + Send) {
        self.plane.serve(ended).await;
    }
}

/// The address of a page for a browser.
pub fn url(address: SocketAddr, token: &str) -> String {
    format!("http://{address}/#token={token}")
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}
