//! The query endpoints: HTTP, the PostgreSQL protocol and Arrow Flight SQL, and `tail`, which streams live events.
//!
//! Each endpoint translates its protocol into a statement with parameters, and rows into its protocol. The guard and the
//! limits are those of the engine. Authentication is that of the crate `auth`: a middleware for HTTP and Flight, and a step
//! of the startup of a PostgreSQL session.

pub mod api;
pub mod flight;
pub mod http;
pub mod postgres;
pub mod tail;
