//! `bench --grpc`: the method, and its message: binary, or JSON with types.

use crate::cmd::missing_feature;
use crate::exit::{Failed, refuse};
use anyhow::{Context, anyhow};
use intact_bench::GrpcCall;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The method that every exchange calls, and the types of its message.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(crate) struct GrpcOptions {
    /// Call this gRPC method over HTTP/2, as package.Service/Method; the message is that of
    /// --grpc-json, or -d @FILE in binary form (none: an empty one). A grpc-status other than 0 is
    /// a failure
    #[arg(long, value_name = "SERVICE/METHOD", value_parser = grpc_method, conflicts_with_all = ["method", "content_type", "http", "scenario"])]
    grpc: Option<String>,
    /// Message of --grpc as JSON, or @FILE to read it from a file (@-: from standard input)
    /// (feature grpc-json)
    #[arg(long, value_name = "JSON|@FILE", value_parser = grpc_json, requires = "grpc", conflicts_with_all = ["data", "body_file"])]
    grpc_json: Option<String>,
    /// Types for --grpc-json, as `protoc --include_imports --descriptor_set_out=FILE` writes them
    /// [default: by server reflection, once before the run]
    #[arg(long, value_name = "FILE", requires = "grpc_json")]
    descriptors: Option<PathBuf>,
}

/// The fields of a call. A server of gRPC may refuse a client that does not accept trailers.
const FIELDS: [&str; 2] = ["Content-Type: application/grpc", "TE: trailers"];

/// The call of the built-in server that returns the content of `/`.
pub(super) fn call_of_builtin() -> GrpcCall {
    GrpcCall {
        path: "/intact.Test/Get".to_owned(),
        headers: FIELDS.map(str::to_owned).into(),
        // an empty message after its length
        body: vec![0; 5],
    }
}

/// The path of a gRPC method: a service with its package, and a method.
fn grpc_method(text: &str) -> Result<String, String> {
    let is_name = |name: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !name.is_empty() && name.chars().all(is_letter)
    };
    let parts = text.trim_start_matches('/').split_once('/');
    match parts {
        Some((service, method)) if service.split('.').all(is_name) && is_name(method) => {
            Ok(format!("/{service}/{method}"))
        }
        _ => Err("write package.Service/Method, such as grpc.health.v1.Health/Check".to_owned()),
    }
}

fn grpc_json(text: &str) -> Result<String, String> {
    missing_feature::grpc_json().map(|()| text.to_owned())
}

impl GrpcOptions {
    /// Whether a method is called.
    pub(in crate::cmd) fn is_any(&self) -> bool {
        self.grpc.is_some()
    }

    /// Whether the server is asked for the types of the message, so that it has to run.
    pub(super) fn asks_server(&self) -> bool {
        self.grpc_json.is_some() && self.descriptors.is_none()
    }

    /// The URL of the method on the server of `url`; without a method `url`.
    pub(super) fn url(&self, url: String) -> Result<String, Failed> {
        let Some(method) = &self.grpc else {
            return Ok(url);
        };
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", &url));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() {
            refuse!(
                "--grpc {}: the URL has a path, /{path}; name the server alone, such as {scheme}://{authority}/",
                method.trim_start_matches('/')
            );
        }
        Ok(format!("{scheme}://{authority}{method}"))
    }

    /// The fields of each call.
    pub(super) fn fields(&self) -> impl Iterator<Item = String> {
        let fields = FIELDS.into_iter().map(str::to_owned);
        fields.filter(|_| self.is_any())
    }

    /// The body of each call, with `message` unless there is one in JSON.
    pub(super) fn body(
        &self,
        config: &intact_bench::Config,
        message: Vec<u8>,
    ) -> Result<Vec<u8>, Failed> {
        match (&self.grpc, &self.grpc_json) {
            (None, _) => Ok(message),
            (Some(_), None) => framed(&message),
            (Some(method), Some(json)) => {
                let json = super::text_or_file(json, "--grpc-json")?;
                let json = String::from_utf8(json)
                    .map_err(|_| Failed::usage(anyhow!("--grpc-json: the file is not UTF-8")))?;
                framed(&self.message(method, &json, config)?)
            }
        }
    }

    #[cfg(feature = "grpc-json")]
    fn message(
        &self,
        method: &str,
        json: &str,
        config: &intact_bench::Config,
    ) -> Result<Vec<u8>, Failed> {
        let (service, name) = method
            .trim_start_matches('/')
            .split_once('/')
            .unwrap_or_default();
        let types = match &self.descriptors {
            Some(file) => {
                let option = format!("--descriptors {}", file.display());
                let bytes = read_set(file).with_context(|| option.clone());
                let bytes = bytes.map_err(Failed::usage)?;
                let types = intact_grpc::Types::of_set(&bytes).context(option);
                types.map_err(Failed::usage)?
            }
            None => reflected(service, config)?,
        };
        let method = types.method(service, name).context("--grpc");
        let message = method.map_err(Failed::usage)?.message(json);
        message.context("--grpc-json").map_err(Failed::usage)
    }

    #[cfg(not(feature = "grpc-json"))]
    fn message(&self, _: &str, _: &str, _: &intact_bench::Config) -> Result<Vec<u8>, Failed> {
        // the option is refused when it is read
        let words = missing_feature::grpc_json().err().unwrap_or_default();
        Err(Failed::usage(anyhow!(words)))
    }
}

fn framed(message: &[u8]) -> Result<Vec<u8>, Failed> {
    let framed = intact_wire::grpc::frame(message).context("--grpc");
    framed.map_err(Failed::usage)
}

/// The content of a descriptor set; one byte above the limit is enough to refuse it.
#[cfg(feature = "grpc-json")]
fn read_set(file: &std::path::Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let most = intact_grpc::MOST_DESCRIPTOR_BYTES as u64 + 1;
    std::fs::File::open(file)?
        .take(most)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The types of a service, from the server by reflection.
#[cfg(feature = "grpc-json")]
fn reflected(service: &str, config: &intact_bench::Config) -> Result<intact_grpc::Types, Failed> {
    use intact_bench::{Inquiry, InquiryError};
    use intact_grpc::reflection::{Query, Reply};

    let option = "--grpc-json: the types are asked of the server";
    let failed = |error: InquiryError| match error {
        InquiryError::Config(error) => Failed::usage(error),
        InquiryError::Loop(error) => Failed::from(anyhow::Error::from(error)),
        error @ InquiryError::Failed { .. } => {
            Failed::unreachable(anyhow::Error::from(error).context(option))
        }
    };
    // the framing of messages in addition to their content
    let most = 2 * intact_grpc::MOST_DESCRIPTOR_BYTES;
    let mut inquiry = Inquiry::new(config, most).map_err(failed)?;
    let mut query = Query::new(service);
    while let Some((path, body)) = query.request().context(option).map_err(Failed::usage)? {
        let reply = inquiry.call(path, body).map_err(failed)?;
        let reply = Reply {
            grpc_status: reply.call.status,
            words: &reply.words,
            body: &reply.body,
        };
        query.take(reply).context(option).map_err(Failed::usage)?;
    }
    query.finish().context(option).map_err(Failed::usage)
}
