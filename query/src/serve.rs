//! The doors: HTTP, the PostgreSQL protocol and Arrow Flight SQL. Each turns its own words into a statement and
//! parameters, and rows into its own words; what may be asked, and how much it may take, is decided elsewhere. Beside
//! them, `tail` tells of events as they come. Who may come in is decided by the gate (`access`): before the routes of HTTP
//! and Flight, and when a PostgreSQL client says hello.

pub mod flight;
pub mod http;
pub mod postgres;
pub mod tail;
