//! The doors: HTTP, the PostgreSQL protocol and Arrow Flight SQL. Each turns its own words into a statement and
//! parameters, and rows into its own words; what may be asked, and how much it may take, is decided elsewhere. Beside
//! them, `tail` tells of events as they come.

pub mod flight;
pub mod gate;
pub mod http;
pub mod postgres;
pub mod tail;
