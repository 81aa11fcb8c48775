//! The HTTP clients: one for each runtime and way of connecting, all with one configuration of TLS.
//!
//! The runtime on which a client was created drives its connections. A client shared by several runtimes would wait
//! for a stopped one; a client of a finished runtime would have dead connections.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use adjutant_llm::{Error, ErrorKind};
use reqwest::Client;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use rustls_platform_verifier::Verifier;
use tokio::runtime::{Handle, Id};

/// The largest number of idle connections to one host that are kept.
const MAX_IDLE: usize = 1_024;

/// The time after which the kernel probes a silent connection, and between two probes. Connections use HTTP/1.1,
/// which has no ping. A dead peer is detected within about 90 s, however long an answer may take.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// The number of probes without an answer after which a connection is dead.
const KEEP_ALIVE_RETRIES: u32 = 2;

/// The way in which a host is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Route {
    /// Never by a proxy.
    Loopback,
    /// By the proxy of the environment, if there is one.
    Outside,
}

/// Each runtime has few ways of connecting: looking at each is faster than a table.
type Clients = HashMap<Id, Vec<((Duration, Route), Client)>>;

static CLIENTS: LazyLock<Mutex<Clients>> = LazyLock::new(Mutex::default);

/// The client of this runtime for this way of connecting.
///
/// # Errors
/// `Config` if it cannot be built.
pub(crate) fn client(connect: Duration, route: Route) -> Result<Client, Error> {
    let Ok(runtime) = Handle::try_current() else {
        return build(connect, route);
    };
    let of = |known: &Clients| {
        let known = known
            .get(&runtime.id())?
            .iter()
            .find(|(way, _)| *way == (connect, route));
        known.map(|(_, client)| client.clone())
    };
    if let Some(client) = of(&clients()) {
        return Ok(client);
    }
    let client = build(connect, route)?;
    let mut known = clients();
    if let Some(client) = of(&known) {
        return Ok(client);
    }
    let is_first = !known.contains_key(&runtime.id());
    known
        .entry(runtime.id())
        .or_default()
        .push(((connect, route), client.clone()));
    // A runtime that is ending drops a task at once, and the guard in it takes this lock.
    drop(known);
    if is_first {
        let guard = EndGuard(runtime.id());
        // Dropped with its runtime, and never before.
        runtime.spawn(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
    }
    Ok(client)
}

fn clients() -> MutexGuard<'static, Clients> {
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets the clients of a runtime that has ended.
struct EndGuard(Id);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let ended = clients().remove(&self.0);
        drop(ended);
    }
}

fn build(connect: Duration, route: Route) -> Result<Client, Error> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls()?)
        .http1_only()
        .tcp_nodelay(true)
        .tcp_keepalive(KEEP_ALIVE)
        .tcp_keepalive_interval(KEEP_ALIVE)
        .tcp_keepalive_retries(KEEP_ALIVE_RETRIES)
        .connect_timeout(connect)
        .pool_max_idle_per_host(MAX_IDLE)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never());
    if route == Route::Loopback {
        builder = builder.no_proxy();
    }
    builder.build().map_err(unbuilt)
}

fn unbuilt(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Config, "could not build the HTTP client").with_source(error)
}

/// The configuration that all clients share; a copy costs a few counters.
fn tls() -> Result<ClientConfig, Error> {
    static CONFIG: OnceLock<Result<ClientConfig, Error>> = OnceLock::new();
    let make = || {
        // A program may have chosen another provider for all of its TLS.
        let chosen = CryptoProvider::get_default().cloned();
        let crypto = chosen.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
        let verifier = LazyRoots {
            crypto: Arc::clone(&crypto),
            verifier: OnceLock::new(),
        };
        let mut config = ClientConfig::builder_with_provider(crypto)
            .with_safe_default_protocol_versions()
            .map_err(unbuilt)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    };
    CONFIG.get_or_init(make).clone()
}

/// Checks certificates as the platform does. Its roots are read from disk for the first certificate: most programs that
/// talk to servers on this machine alone never need them.
#[derive(Debug)]
struct LazyRoots {
    crypto: Arc<CryptoProvider>,
    verifier: OnceLock<Result<Verifier, rustls::Error>>,
}

impl ServerCertVerifier for LazyRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self
            .verifier
            .get_or_init(|| Verifier::new(Arc::clone(&self.crypto)))
        {
            Ok(verifier) => verifier.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ),
            Err(error) => Err(CertificateError::Other(OtherError(Arc::new(error.clone()))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            signed,
            &self.crypto.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            signed,
            &self.crypto.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.crypto
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_one_for_each_runtime_and_go_with_it() {
        let runtime = || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime")
        };
        let known = |id: &Id| clients().get(id).map(Vec::len);
        let (one, other) = (runtime(), runtime());
        let (id, others) = (one.handle().id(), other.handle().id());
        let connect = Duration::from_secs(1);
        for route in [Route::Loopback, Route::Outside, Route::Loopback] {
            one.block_on(async { client(connect, route) })
                .expect("it is built");
        }
        other
            .block_on(async { client(connect, Route::Loopback) })
            .expect("it is built");
        assert_eq!((known(&id), known(&others)), (Some(2), Some(1)));
        let ended = one.handle().clone();
        drop(one);
        assert_eq!((known(&id), known(&others)), (None, Some(1)));
        // A request that begins while its runtime ends neither waits for itself nor leaves a client.
        let _entered = ended.enter();
        client(connect, Route::Loopback).expect("it is built");
        assert_eq!(known(&id), None);
    }
}
