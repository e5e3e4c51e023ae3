//! One engine for all processes of a node: they ask over a Unix socket, and read the samples where
//! the engine put them, in memory that is handed over by descriptor.
//!
//! A connection is a stream. The memory has no name, and a connection ends with either end's
//! process, so nothing stays when one of them is killed, except the socket's own name, which the
//! next agent takes over.

mod client;
mod line;
mod server;
mod wire;

pub use client::{Client, RemoteBytes, RemoteStream};
pub use line::ClientError;
pub use server::Agent;
