//! Server reflection (`grpc.reflection.v1` and `v1alpha`, which have the same messages): what a
//! client asks, and what a server replies.
//!
//! Reflection is one stream of requests and responses. A [`Query`] puts what it knows to ask into
//! one call, and makes another call where a file imports one that did not come.

use crate::types::{MOST_DESCRIPTOR_BYTES, Types, TypesError};
use intact_wire::grpc::{FrameError, frame, unframe};
use prost::Message;
use prost_types::FileDescriptorProto;
use std::collections::{BTreeMap, BTreeSet};

/// Limit of the files of a server.
const MOST_FILES: usize = 1000;
/// Limit of calls: an import that leads on takes one.
const MOST_CALLS: u32 = 32;
/// `grpc-status` of a method that the server does not have.
const UNIMPLEMENTED: u16 = 12;
/// The error code of a symbol or a file that the server does not have.
const NOT_FOUND: i32 = 5;

/// The methods, the newer version first.
pub const PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// `ServerReflectionRequest`, without the parts about extensions.
#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(string, tag = "1")]
    host: String,
    #[prost(oneof = "Question", tags = "3, 4, 7")]
    question: Option<Question>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Question {
    #[prost(string, tag = "3")]
    FileByFilename(String),
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    #[prost(string, tag = "7")]
    ListServices(String),
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(string, tag = "1")]
    valid_host: String,
    #[prost(message, optional, tag = "2")]
    original_request: Option<Request>,
    #[prost(oneof = "Answer", tags = "4, 6, 7")]
    answer: Option<Answer>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Answer {
    #[prost(message, tag = "4")]
    Files(Files),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Error),
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file_descriptor_proto: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    service: Vec<Service>,
}

#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Error {
    #[prost(int32, tag = "1")]
    error_code: i32,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// Why a server did not give the types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReflectionError {
    /// The server has no reflection.
    #[error(
        "the server has no reflection ({status}); name the types with --descriptors FILE, which `protoc --include_imports --descriptor_set_out=FILE` writes"
    )]
    Absent {
        /// Its response.
        status: String,
    },
    /// The server refused.
    #[error("the server refused reflection ({status}); --descriptors FILE does not need it")]
    Refused {
        /// Its response.
        status: String,
    },
    /// The response is no list of messages.
    #[error("the response of reflection cannot be read: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// The server gave an error for a symbol or a file.
    #[error("reflection has no {symbol}: {message} (code {code})")]
    Failed {
        /// The service or the file.
        symbol: String,
        /// The text of the server.
        message: String,
        /// Its code.
        code: i32,
    },
    /// Files keep importing others.
    #[error("reflection does not end: more than {MOST_FILES} files or {MOST_CALLS} calls")]
    Endless,
    /// The types cannot be used.
    #[error(transparent)]
    Types(#[from] TypesError),
}

impl From<FrameError> for ReflectionError {
    fn from(error: FrameError) -> ReflectionError {
        ReflectionError::Malformed {
            reason: error.to_string(),
        }
    }
}

impl From<prost::DecodeError> for ReflectionError {
    fn from(error: prost::DecodeError) -> ReflectionError {
        ReflectionError::Malformed {
            reason: error.to_string(),
        }
    }
}

/// The end of a call of reflection.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// `grpc-status`; `None` if the server speaks no gRPC there.
    pub grpc_status: Option<u16>,
    /// The status in words.
    pub words: &'a str,
    /// The messages, each after its length.
    pub body: &'a [u8],
}

/// What is asked next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    Service,
    Files(BTreeSet<String>),
    /// The service is not there: which ones are.
    Services,
    Nothing,
}

/// The types of a service, from its server. Call [`Query::request`] and [`Query::take`] in turn.
#[derive(Clone, Debug)]
pub struct Query {
    service: String,
    version: usize,
    next: Next,
    files: BTreeMap<String, FileDescriptorProto>,
    bytes: usize,
    calls: u32,
}

impl Query {
    /// A query for a service, which is named with its package.
    pub fn new(service: &str) -> Query {
        Query {
            service: service.to_owned(),
            version: 0,
            next: Next::Service,
            files: BTreeMap::new(),
            bytes: 0,
            calls: 0,
        }
    }

    /// The path of the next call and its body; `None` when everything is there.
    ///
    /// # Errors
    /// If the limit of calls is reached.
    pub fn request(&mut self) -> Result<Option<(&'static str, Vec<u8>)>, ReflectionError> {
        let questions = match &self.next {
            Next::Nothing => return Ok(None),
            Next::Service => vec![Question::FileContainingSymbol(self.service.clone())],
            Next::Services => vec![Question::ListServices(String::new())],
            Next::Files(names) => {
                let names = names.iter().cloned();
                names.map(Question::FileByFilename).collect()
            }
        };
        self.calls += 1;
        if self.calls > MOST_CALLS {
            return Err(ReflectionError::Endless);
        }
        let mut body = Vec::new();
        for question in questions {
            let request = Request {
                host: String::new(),
                question: Some(question),
            };
            body.extend(frame(&request.encode_to_vec())?);
        }
        Ok(Some((PATHS[self.version], body)))
    }

    /// Takes the response to the last request.
    ///
    /// # Errors
    /// If the server has no reflection, does not have the service, or sends what is no descriptor.
    pub fn take(&mut self, reply: Reply<'_>) -> Result<(), ReflectionError> {
        match reply.grpc_status {
            Some(0) => {}
            None | Some(UNIMPLEMENTED) => {
                self.version += 1;
                return match self.version < PATHS.len() {
                    true => Ok(()),
                    false => Err(ReflectionError::Absent {
                        status: reply.words.to_owned(),
                    }),
                };
            }
            Some(_) => {
                return Err(ReflectionError::Refused {
                    status: reply.words.to_owned(),
                });
            }
        }
        let asked = std::mem::replace(&mut self.next, Next::Nothing);
        for message in unframe(reply.body) {
            match Response::decode(message?)?.answer {
                Some(Answer::Files(files)) => self.take_files(&files)?,
                Some(Answer::Services(services)) => return Err(self.no_service(services)),
                Some(Answer::Error(error)) => {
                    if asked != Next::Service || error.error_code != NOT_FOUND {
                        return Err(self.failed(&asked, error));
                    }
                    self.next = Next::Services;
                    return Ok(());
                }
                None => {}
            }
        }
        let missing = self.missing_files();
        match (&asked, missing.is_empty()) {
            // a server that sent nothing of what it was asked for sends nothing the next time
            (Next::Files(before), false) if before.iter().any(|one| missing.contains(one)) => {
                Err(ReflectionError::Malformed {
                    reason: format!("no descriptor of {}", first(&missing)),
                })
            }
            (Next::Service, _) if self.files.is_empty() => Err(ReflectionError::Malformed {
                reason: format!("no descriptor of {}", self.service),
            }),
            (Next::Services, _) => Err(self.no_service(Services::default())),
            (_, true) => Ok(()),
            (_, false) => {
                self.next = Next::Files(missing);
                Ok(())
            }
        }
    }

    /// The types that came.
    ///
    /// # Errors
    /// If they do not fit together.
    pub fn finish(self) -> Result<Types, ReflectionError> {
        Ok(Types::new(self.files.into_values().collect(), "")?)
    }

    fn take_files(&mut self, files: &Files) -> Result<(), ReflectionError> {
        for bytes in &files.file_descriptor_proto {
            self.bytes = self.bytes.saturating_add(bytes.len());
            if self.bytes > MOST_DESCRIPTOR_BYTES {
                return Err(TypesError::TooLarge.into());
            }
            let file = FileDescriptorProto::decode(&bytes[..])?;
            self.files.entry(file.name().to_owned()).or_insert(file);
        }
        match self.files.len() > MOST_FILES {
            true => Err(ReflectionError::Endless),
            false => Ok(()),
        }
    }

    /// Files that others import, and that did not come.
    fn missing_files(&self) -> BTreeSet<String> {
        let imported = self.files.values().flat_map(|file| &file.dependency);
        let is_missing =
            |name: &&String| !self.files.contains_key(*name) && !Types::is_well_known(name);
        imported.filter(is_missing).cloned().collect()
    }

    fn no_service(&self, services: Services) -> ReflectionError {
        let names = services.service.into_iter().map(|one| one.name);
        let is_of_user = |name: &String| !name.starts_with("grpc.reflection.");
        ReflectionError::Types(TypesError::NoService {
            service: self.service.clone(),
            known: names.filter(is_of_user).collect(),
        })
    }

    fn failed(&self, asked: &Next, error: Error) -> ReflectionError {
        ReflectionError::Failed {
            symbol: match asked {
                Next::Files(names) => first(names),
                _ => self.service.clone(),
            },
            message: error.error_message,
            code: error.error_code,
        }
    }
}

fn first(names: &BTreeSet<String>) -> String {
    names.first().cloned().unwrap_or_default()
}

/// The response of a server with these files to a body of requests, each after its length.
///
/// # Errors
/// If the body is no list of requests.
pub fn reply(files: &[FileDescriptorProto], body: &[u8]) -> Result<Vec<u8>, ReflectionError> {
    let mut responses = Vec::new();
    for message in unframe(body) {
        let request = Request::decode(message?)?;
        let response = Response {
            valid_host: request.host.clone(),
            answer: Some(answer(files, request.question.as_ref())),
            original_request: Some(request),
        };
        responses.extend(frame(&response.encode_to_vec())?);
    }
    Ok(responses)
}

fn answer(files: &[FileDescriptorProto], question: Option<&Question>) -> Answer {
    let services = |file: &FileDescriptorProto| -> Vec<String> {
        let package = file.package().to_owned();
        let names = file.service.iter().map(|one| one.name().to_owned());
        names.map(|name| format!("{package}.{name}")).collect()
    };
    let found = match question {
        Some(Question::ListServices(_)) => {
            let names = files.iter().flat_map(services);
            return Answer::Services(Services {
                service: names.map(|name| Service { name }).collect(),
            });
        }
        Some(Question::FileByFilename(name)) => files.iter().find(|file| file.name() == name),
        // a service, or one of its methods
        Some(Question::FileContainingSymbol(symbol)) => files.iter().find(|file| {
            let is_within = |name: &String| {
                let rest = symbol.strip_prefix(name.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            services(file).iter().any(is_within)
        }),
        None => None,
    };
    match found {
        Some(file) => Answer::Files(Files {
            file_descriptor_proto: vec![file.encode_to_vec()],
        }),
        None => Answer::Error(Error {
            error_code: NOT_FOUND,
            error_message: "not found".to_owned(),
        }),
    }
}
