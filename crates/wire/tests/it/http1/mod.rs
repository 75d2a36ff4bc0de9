//! HTTP/1: transcripts of both directions, and the promise that they do not depend on how the bytes were split.

mod hostile;
mod requests;
mod responses;
mod splits;
mod transcript;
