//! The types of services: descriptors in, the message of a method out. Must not do I/O.
//!
//! Options, comments, extensions and reserved numbers of descriptors are dropped first: a message
//! needs few of them, and they are more foreign bytes to read, some in quadratic time.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, ServiceDescriptor};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FieldOptions, FileDescriptorProto, FileDescriptorSet,
    MessageOptions,
};
use std::collections::{BTreeMap, BTreeSet};

/// Limit of a descriptor set, and of all files of a server, in bytes.
pub const MOST_DESCRIPTOR_BYTES: usize = 16 << 20;
/// Limit of the public imports that are followed, over all files.
const MOST_IMPORTS: u32 = 1_000_000;
/// Limit of the names that an error lists.
const MOST_NAMES: usize = 20;

/// Why there are no types, or no message of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypesError {
    /// The bytes are no descriptor set.
    #[error(
        "no descriptor set ({reason}); `protoc --include_imports --descriptor_set_out=FILE` writes one"
    )]
    NotASet {
        /// What is wrong.
        reason: String,
    },
    /// The descriptors are larger than the limit.
    #[error("more than {} MiB of descriptors", MOST_DESCRIPTOR_BYTES >> 20)]
    TooLarge,
    /// The files do not fit together.
    #[error("the descriptors cannot be used: {reason}{remedy}")]
    Unusable {
        /// What is wrong.
        reason: String,
        /// What helps; empty where nothing does.
        remedy: &'static str,
    },
    /// The service is not described.
    #[error(
        "no service {service}; {}",
        listed("the types have", "no service", .known)
    )]
    NoService {
        /// Its name with its package.
        service: String,
        /// The services that are.
        known: Vec<String>,
    },
    /// The service has no such method.
    #[error(
        "{service} has no method {method}; {}",
        listed("it has", "none", .known)
    )]
    NoMethod {
        /// The service.
        service: String,
        /// The method.
        method: String,
        /// The methods that it has.
        known: Vec<String>,
    },
    /// The method is not unary.
    #[error("{method} streams its {side}; only unary methods can be called")]
    Streaming {
        /// Service and method.
        method: String,
        /// `requests`, `responses` or both.
        side: &'static str,
    },
    /// The JSON is not a message of this type.
    #[error("{reason}; {message} {}", listed("has", "no field", .fields))]
    Json {
        /// What is wrong, with its position.
        reason: String,
        /// The type of the message.
        message: String,
        /// The fields of that type.
        fields: Vec<String>,
    },
}

/// `it has a, b and 3 more`.
fn listed(subject: &str, none: &str, names: &[String]) -> String {
    if names.is_empty() {
        return format!("{subject} {none}");
    }
    let shown = names[..names.len().min(MOST_NAMES)].join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => format!("{subject} {shown}"),
        more => format!("{subject} {shown} and {more} more"),
    }
}

/// Types that fit together.
#[derive(Clone, Debug)]
pub struct Types {
    pool: DescriptorPool,
}

impl Types {
    /// The types of a descriptor set, as `protoc --descriptor_set_out` writes it.
    ///
    /// # Errors
    /// If it is too large, is none, or lacks a file.
    pub fn of_set(bytes: &[u8]) -> Result<Types, TypesError> {
        if bytes.len() > MOST_DESCRIPTOR_BYTES {
            return Err(TypesError::TooLarge);
        }
        let not_a_set = |reason: String| TypesError::NotASet { reason };
        let set = FileDescriptorSet::decode(bytes).map_err(|error| not_a_set(error.to_string()))?;
        if set.file.is_empty() {
            return Err(not_a_set("it holds no file".to_owned()));
        }
        let remedy = "; was it written with --include_imports?";
        Types::new(set.file, remedy)
    }

    /// The types of these files. The well-known types of `google/protobuf` may be left out.
    pub(crate) fn new(
        files: Vec<FileDescriptorProto>,
        remedy: &'static str,
    ) -> Result<Types, TypesError> {
        let mut pool = DescriptorPool::global();
        let named = files.into_iter().map(|mut file| {
            strip_file(&mut file);
            (file.name().to_owned(), file)
        });
        // a server may send a file twice
        let mut files: BTreeMap<String, FileDescriptorProto> = named.collect();
        files.values().try_for_each(check_file)?;
        flatten_imports(&mut files)?;
        pool.add_file_descriptor_protos(files.into_values())
            .map_err(|error| TypesError::Unusable {
                reason: error.to_string(),
                remedy,
            })?;
        Ok(Types { pool })
    }

    /// Whether a file is one of those that need not be given.
    pub(crate) fn is_well_known(file: &str) -> bool {
        DescriptorPool::global().get_file_by_name(file).is_some()
    }

    /// The unary method of a service, which is named with its package.
    ///
    /// # Errors
    /// If there is no such service or method, or if the method streams.
    pub fn method(&self, service: &str, method: &str) -> Result<UnaryMethod, TypesError> {
        let Some(found) = self.pool.get_service_by_name(service) else {
            let known = self.pool.services().map(|one| one.full_name().to_owned());
            return Err(TypesError::NoService {
                service: service.to_owned(),
                known: known.collect(),
            });
        };
        method_of(&found, method)
    }
}

fn method_of(service: &ServiceDescriptor, name: &str) -> Result<UnaryMethod, TypesError> {
    let Some(method) = service.methods().find(|one| one.name() == name) else {
        return Err(TypesError::NoMethod {
            service: service.full_name().to_owned(),
            method: name.to_owned(),
            known: service.methods().map(|one| one.name().to_owned()).collect(),
        });
    };
    let side = match (method.is_client_streaming(), method.is_server_streaming()) {
        (false, false) => {
            return Ok(UnaryMethod {
                input: method.input(),
            });
        }
        (true, false) => "requests",
        (false, true) => "responses",
        (true, true) => "requests and responses",
    };
    Err(TypesError::Streaming {
        method: format!("{}/{name}", service.full_name()),
        side,
    })
}

/// A method with one request and one response.
#[derive(Clone, Debug)]
pub struct UnaryMethod {
    input: MessageDescriptor,
}

impl UnaryMethod {
    /// The request message of this JSON, by the JSON mapping of Protocol Buffers, in binary form.
    ///
    /// # Errors
    /// If the JSON is malformed, names an unknown field, or has a value of another type.
    pub fn message(&self, json: &str) -> Result<Vec<u8>, TypesError> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let message = DynamicMessage::deserialize(self.input.clone(), &mut reader);
        let message = message.and_then(|message| reader.end().map(|()| message));
        match message {
            Ok(message) => Ok(message.encode_to_vec()),
            Err(error) => Err(TypesError::Json {
                reason: error.to_string(),
                message: self.input.full_name().to_owned(),
                fields: self
                    .input
                    .fields()
                    .map(|one| one.json_name().to_owned())
                    .collect(),
            }),
        }
    }
}

/// The descriptor of a file, from its JSON form; `None` if it is none.
pub fn file_of_json(json: &str) -> Option<FileDescriptorProto> {
    let name = "google.protobuf.FileDescriptorProto";
    let input = DescriptorPool::global().get_message_by_name(name)?;
    let bytes = UnaryMethod { input }.message(json).ok()?;
    FileDescriptorProto::decode(&bytes[..]).ok()
}

/// Replaces public imports by imports of what they lead to. `prost-reflect` follows public imports
/// again and again: without end where they go round, and in exponential time where many share one.
fn flatten_imports(files: &mut BTreeMap<String, FileDescriptorProto>) -> Result<(), TypesError> {
    let public: BTreeMap<String, Vec<String>> = files
        .iter()
        .map(|(name, file)| {
            let places = file.public_dependency.iter();
            let places = places.filter_map(|&place| usize::try_from(place).ok());
            let names = places.filter_map(|place| file.dependency.get(place).cloned());
            (name.clone(), names.collect())
        })
        .collect();
    let mut steps = 0;
    for file in files.values_mut() {
        let mut imports: BTreeSet<String> = file.dependency.iter().cloned().collect();
        let mut open: Vec<String> = imports.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for next in public.get(&name).into_iter().flatten() {
                steps += 1;
                if steps > MOST_IMPORTS {
                    return Err(TypesError::Unusable {
                        reason: "too many imports".to_owned(),
                        remedy: "",
                    });
                }
                if imports.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        file.dependency = imports.into_iter().collect();
        file.public_dependency.clear();
        file.weak_dependency.clear();
    }
    Ok(())
}

/// Refuses what `prost-reflect` does not expect.
fn check_file(file: &FileDescriptorProto) -> Result<(), TypesError> {
    let unusable = |reason: String, remedy| Err(TypesError::Unusable { reason, remedy });
    match file.syntax() {
        "" | "proto2" | "proto3" => {}
        "editions" => {
            return unusable(
                format!("{} is in an edition, not in proto2 or proto3", file.name()),
                "; write the message with `protoc --encode`, and give it with -d @FILE",
            );
        }
        other => return unusable(format!("unknown syntax '{other}'"), ""),
    }
    match file.message_type.iter().find_map(broken_map) {
        Some(name) => unusable(
            format!("{name} is a map entry without a key and a value"),
            "",
        ),
        None => Ok(()),
    }
}

/// The name of a message in this one that is marked as an entry of a map, and is none: field 1 is
/// the key, of a type that a key may have, and field 2 the value.
fn broken_map(message: &DescriptorProto) -> Option<&str> {
    let is_entry = message.options.as_ref().is_some_and(|one| one.map_entry());
    let is_one = |field: &FieldDescriptorProto| field.label() != Label::Repeated;
    let is_map = match &message.field[..] {
        [a, b] if is_one(a) && is_one(b) => match (a.number(), b.number()) {
            (1, 2) => may_be_key(a.r#type()),
            (2, 1) => may_be_key(b.r#type()),
            _ => false,
        },
        _ => false,
    };
    match is_entry && !is_map {
        true => Some(message.name()),
        false => message.nested_type.iter().find_map(broken_map),
    }
}

fn may_be_key(of: Type) -> bool {
    !matches!(
        of,
        Type::Double | Type::Float | Type::Group | Type::Message | Type::Bytes | Type::Enum
    )
}

/// Drops the parts of a file that messages on the wire do not depend on.
fn strip_file(file: &mut FileDescriptorProto) {
    file.options = None;
    file.source_code_info = None;
    // the default, as if it were left out
    file.syntax = file.syntax.take().filter(|syntax| !syntax.is_empty());
    file.message_type.iter_mut().for_each(strip_message);
    file.enum_type.iter_mut().for_each(strip_enum);
    file.extension.clear();
    for service in &mut file.service {
        service.options = None;
        for method in &mut service.method {
            method.options = None;
        }
    }
}

fn strip_message(message: &mut DescriptorProto) {
    message.options = message.options.take().map(|options| MessageOptions {
        map_entry: options.map_entry,
        message_set_wire_format: options.message_set_wire_format,
        ..MessageOptions::default()
    });
    message.field.iter_mut().for_each(strip_field);
    message.extension.clear();
    message.extension_range.clear();
    message.reserved_range.clear();
    message.reserved_name.clear();
    message.nested_type.iter_mut().for_each(strip_message);
    message.enum_type.iter_mut().for_each(strip_enum);
    for oneof in &mut message.oneof_decl {
        oneof.options = None;
    }
}

fn strip_enum(one: &mut prost_types::EnumDescriptorProto) {
    one.options = one.options.take().map(|options| prost_types::EnumOptions {
        allow_alias: options.allow_alias,
        ..prost_types::EnumOptions::default()
    });
    one.reserved_range.clear();
    one.reserved_name.clear();
    for value in &mut one.value {
        value.options = None;
    }
}

fn strip_field(field: &mut FieldDescriptorProto) {
    field.default_value = None;
    let is_list = field.label == Some(Label::Repeated as i32);
    field.options = field
        .options
        .take()
        .filter(|_| is_list)
        .map(|options| FieldOptions {
            packed: options.packed,
            ..FieldOptions::default()
        });
}
