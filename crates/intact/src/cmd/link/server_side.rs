//! The server side of a link: our own server, or a command that is one.

use crate::cmd::builtin::Builtin;
use crate::cmd::serve;
use crate::cmd::server_command::{NotListening, PATIENCE, await_listening};
use anyhow::{Context, bail};
use intact_link::document::Served;
use intact_link::{Link, LinkEnd, SERVER_NAME, SERVER_V4};
use std::io;
use std::process::{Child, Command, Stdio};

const PLAIN: u16 = 80;
const TLS: u16 = 443;

/// What is to run on the server side.
pub(crate) enum Server {
    /// The built-in server.
    Builtin(Box<serve::Config>),
    /// A shell command that listens on `port`, or on 80 or 443.
    Command { command: String, port: Option<u16> },
}

impl Server {
    /// The command; without one the built-in server, as configured.
    pub(crate) fn new(
        command: Option<String>,
        port: Option<u16>,
        builtin: Option<Box<serve::Config>>,
    ) -> Server {
        let of_builtin = || builtin.unwrap_or_else(|| Box::new(serve::Config::of_builtin()));
        match command {
            Some(command) => Server::Command { command, port },
            None => Server::Builtin(of_builtin()),
        }
    }
}

/// A server that listens. It ends with this value.
pub(crate) struct ServerSide {
    environment: Vec<(&'static str, String)>,
    server: Running,
}

enum Running {
    Builtin(Builtin),
    Command(ExternalServer),
}

/// A server's command; its proxy takes it along.
struct ExternalServer(Child);

impl Drop for ExternalServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ServerSide {
    /// Starts a server on the link and waits until it listens.
    pub(crate) fn start(link: &Link, server: Server) -> anyhow::Result<ServerSide> {
        let name = if link.has_names() {
            SERVER_NAME.to_owned()
        } else {
            SERVER_V4.to_string()
        };
        let url = |scheme: &str, port: Option<u16>| {
            let port = port.map_or(String::new(), |port| format!(":{port}"));
            format!("{scheme}://{name}{port}/")
        };
        match server {
            Server::Builtin(config) => {
                let builtin = Builtin::start_on(link, *config)?;
                let mut environment = vec![
                    ("INTACT_URL", url("http", None)),
                    ("INTACT_TLS_URL", url("https", None)),
                ];
                let ca = &builtin.ready().ca;
                if !ca.is_empty() {
                    let path = link.share_certificate(ca).context("INTACT_CA")?;
                    environment.push(("INTACT_CA", path.display().to_string()));
                }
                Ok(ServerSide {
                    environment,
                    server: Running::Builtin(builtin),
                })
            }
            Server::Command { command, port } => {
                let child = spawn(link, &command)?;
                // from here on the child is taken down whatever happens
                let mut far = ServerSide {
                    environment: Vec::new(),
                    server: Running::Command(ExternalServer(child)),
                };
                let listening = far.await_listening(link, &command, port)?;
                for (wanted, name, scheme) in [
                    (PLAIN, "INTACT_URL", "http"),
                    (TLS, "INTACT_TLS_URL", "https"),
                ] {
                    // which of the two a port of its own speaks is not known here
                    if port.is_some() || listening.contains(&wanted) {
                        far.environment.push((name, url(scheme, port)));
                    }
                }
                Ok(far)
            }
        }
    }

    /// The variables of the command on the client side.
    pub(crate) fn environment(&self) -> &[(&'static str, String)] {
        &self.environment
    }

    /// Ends it; what it counted, if it is ours.
    pub(crate) fn end(self) -> anyhow::Result<Option<Served>> {
        let Running::Builtin(builtin) = self.server else {
            return Ok(None);
        };
        Ok(Some(Served::of(builtin.end()?)))
    }

    /// Which of the ports that are waited for listen, one of them at least.
    fn await_listening(
        &mut self,
        link: &Link,
        command: &str,
        port: Option<u16>,
    ) -> anyhow::Result<Vec<u16>> {
        let ports = port.map_or_else(|| vec![PLAIN, TLS], |port| vec![port]);
        let Running::Command(ExternalServer(child)) = &mut self.server else {
            return Ok(Vec::new());
        };
        let look = || {
            let mut listening = Vec::new();
            for &port in &ports {
                if link.is_listening(port)? {
                    listening.push(port);
                }
            }
            Ok((!listening.is_empty()).then_some(listening))
        };
        match await_listening(child, look).context("--server")? {
            Ok(listening) => Ok(listening),
            Err(NotListening::Ended(status)) => {
                bail!(
                    "--server {command:?} has ended ({status}) before it listened; the command must be a server that stays in the foreground"
                )
            }
            Err(NotListening::TooLate) => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                bail!(
                    "--server {command:?} does not listen on port {} of {SERVER_V4} after {} s: let it listen on 0.0.0.0 (not only on localhost), or name its port with --port",
                    ports.join(" or "),
                    PATIENCE.as_secs()
                )
            }
        }
    }
}

/// Standard output belongs to the command on the client side.
fn spawn(link: &Link, shell: &str) -> anyhow::Result<Child> {
    let mut command = Command::new("sh");
    command
        .args(["-c", shell])
        .stdin(Stdio::null())
        .stdout(io::stderr());
    link.enter(LinkEnd::Server, &mut command);
    command.spawn().context("--server: cannot start sh")
}
