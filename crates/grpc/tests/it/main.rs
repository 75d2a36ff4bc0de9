//! Types from a real descriptor set and from scripted reflection, and any bytes as either.

mod hostile;
mod reflection;
mod types;

/// The descriptor set that `protoc` wrote for `fixtures/grpc/shop.proto`.
const SHOP: &[u8] = include_bytes!("../../../../fixtures/grpc/shop.binpb");
