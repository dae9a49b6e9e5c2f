//! A host of pictures on loopback: HTTPS with a certificate of its own, a name that only the test resolves, and a log of what was asked.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::map_request;
use axum_server::tls_rustls::RustlsConfig;
use rustls::RootCertStore;

use crate::picture::{Rules, Told};

/// The host's name.
pub(crate) const HOST: &str = "pictures.example.com";
/// The host's address.
pub(crate) const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The host.
pub(crate) struct Pictures {
    /// Rules under which this host may be asked, and no other.
    pub(crate) rules: Rules,
    /// Who knows the name. Until a test says more, [`HOST`] has [`ADDRESS`].
    pub(crate) names: Arc<Told>,
    /// Path and headers of each request.
    pub(crate) asked: Arc<Mutex<Vec<(String, HeaderMap)>>>,
    address: SocketAddr,
}

impl Pictures {
    /// Serves on loopback until the test ends.
    pub(crate) async fn serve(routes: Router) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let certified = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap();
        let (cert, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
        let tls = RustlsConfig::from_pem(cert.into_bytes(), key.into_bytes()).await.unwrap();
        let listener = std::net::TcpListener::bind(SocketAddr::new(ADDRESS, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let log = asked.clone();
        let routes = routes.layer(map_request(move |request: Request| {
            log.lock().unwrap().push((request.uri().path().to_owned(), request.headers().clone()));
            std::future::ready(request)
        }));
        tokio::spawn(axum_server::from_tcp_rustls(listener, tls).unwrap().serve(routes.into_make_service()));
        let names = Arc::new(Told::default());
        names.answer(HOST, &[ADDRESS]);
        let mut roots = RootCertStore::empty();
        roots.add(certified.cert.der().clone()).unwrap();
        Self { rules: Rules::for_test(names.clone(), roots, vec![ADDRESS]), names, asked, address }
    }

    /// The URL of a path on this host.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{HOST}:{}{path}", self.address.port())
    }

    /// The paths that were asked for, in order.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}
