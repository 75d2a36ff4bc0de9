//! HTTP/1: transcripts of both directions, which do not depend on how the bytes were split.

mod hostile;
mod requests;
mod responses;
mod splits;
mod transcript;
