//! A rustls client and server in memory, with a recording of all bytes between them.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use intact_wire::Side;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, KeyLog, RootCertStore, ServerConfig, ServerConnection,
    SupportedCipherSuite, SupportedProtocolVersion,
};

/// The bytes of one connection in order, and the data that its ends sent.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    pub(crate) pieces: Vec<(Side, Vec<u8>)>,
    pub(crate) client_said: Vec<u8>,
    pub(crate) server_said: Vec<u8>,
}

/// The configuration of the two ends.
pub(crate) struct Setup {
    pub(crate) version: &'static SupportedProtocolVersion,
    pub(crate) suite: Option<SupportedCipherSuite>,
    pub(crate) server_groups: Option<Vec<&'static dyn SupportedKxGroup>>,
    pub(crate) early_data: bool,
}

impl Setup {
    pub(crate) fn new(version: &'static SupportedProtocolVersion) -> Self {
        Self {
            version,
            suite: None,
            server_groups: None,
            early_data: false,
        }
    }
}

/// A pair of configurations, kept so that a second connection can resume the first.
pub(crate) struct Pair {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    early_data: bool,
    pub(crate) keys: Arc<Lines>,
}

/// The key log of both ends, as lines of the NSS format.
#[derive(Debug, Default)]
pub(crate) struct Lines(pub(crate) Mutex<String>);

impl KeyLog for Lines {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        self.0.lock().unwrap().push_str(&line);
    }
}

impl Pair {
    pub(crate) fn new(setup: &Setup) -> Self {
        let keys = Arc::new(Lines::default());
        let provider = |groups: Option<&Vec<&'static dyn SupportedKxGroup>>| {
            let mut provider = aws_lc_rs::default_provider();
            if let Some(suite) = setup.suite {
                provider.cipher_suites = vec![suite];
            }
            if let Some(groups) = groups {
                provider.kx_groups = groups.clone();
            }
            Arc::new(CryptoProvider { ..provider })
        };
        let certified = rcgen::generate_simple_self_signed(vec!["test.example".into()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certified.cert.der().clone()).unwrap();
        let mut client = ClientConfig::builder_with_provider(provider(None))
            .with_protocol_versions(&[setup.version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        client.enable_early_data = setup.early_data;
        client.key_log = keys.clone();
        let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
        let mut server =
            ServerConfig::builder_with_provider(provider(setup.server_groups.as_ref()))
                .with_protocol_versions(&[setup.version])
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certified.cert.der().clone()], key)
                .unwrap();
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        server.max_early_data_size = if setup.early_data { 4096 } else { 0 };
        Self {
            client: Arc::new(client),
            server: Arc::new(server),
            early_data: setup.early_data,
            keys,
        }
    }

    /// One connection: a request, a response of 40 kB, the same again after both updated their keys
    /// (TLS 1.3), close_notify.
    pub(crate) fn talk(&self) -> Tape {
        let mut tape = Tape::default();
        let name = ServerName::try_from("test.example").unwrap();
        let mut client = ClientConnection::new(self.client.clone(), name).unwrap();
        let mut server = ServerConnection::new(self.server.clone()).unwrap();
        if self.early_data
            && let Some(mut early) = client.early_data()
        {
            early.write_all(b"early").unwrap();
            tape.client_said.extend_from_slice(b"early");
        }
        while client.is_handshaking() || server.is_handshaking() {
            tape.client_to_server(&mut client, &mut server);
            tape.server_to_client(&mut client, &mut server);
        }
        let answer: Vec<u8> = (0..40_000u32).map(|n| n as u8).collect();
        for round in 0..2 {
            client.writer().write_all(b"request").unwrap();
            tape.client_said.extend_from_slice(b"request");
            tape.client_to_server(&mut client, &mut server);
            server.writer().write_all(&answer).unwrap();
            tape.server_said.extend_from_slice(&answer);
            tape.server_to_client(&mut client, &mut server);
            if round == 0 && client.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3) {
                client.refresh_traffic_keys().unwrap();
                server.refresh_traffic_keys().unwrap();
            }
        }
        client.send_close_notify();
        tape.client_to_server(&mut client, &mut server);
        tape
    }
}

impl Tape {
    fn client_to_server(&mut self, client: &mut ClientConnection, server: &mut ServerConnection) {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets().unwrap();
            if let Some(mut early) = server.early_data() {
                let _ = early.read_to_end(&mut Vec::new());
            }
            let _ = server.reader().read_to_end(&mut Vec::new());
        }
        self.pieces.push((Side::Client, bytes));
    }

    fn server_to_client(&mut self, client: &mut ClientConnection, server: &mut ServerConnection) {
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().unwrap();
            let _ = client.reader().read_to_end(&mut Vec::new());
        }
        self.pieces.push((Side::Server, bytes));
    }
}
