//! The error models that the classifier recognizes.

use crate::string_enum::string_enum;
use std::fmt;

string_enum! {
    /// The error model a record is written in.
    Dialect {
        /// MCP-AQL: `{"success":false,"error":{"code":"CATEGORY_SPECIFIC",...}}`.
        McpAql = "mcp-aql",
        /// The numeric MCP reference model: codes 1000 to 5999 with `retryable`.
        McpReference = "mcp-reference",
        /// agent-skills: frozen `snake_case` codes.
        AgentSkills = "agent-skills",
        /// erlmcp: JSON-RPC numbers with meanings of its own.
        Erlmcp = "erlmcp",
        /// Plain JSON-RPC 2.0 and MCP.
        Jsonrpc = "jsonrpc",
        /// Only an HTTP status is known.
        Http = "http",
        /// No error model was recognised.
        Unknown = "unknown",
    }
}

impl Dialect {
    /// The dialects that have a registry file.
    pub const REGISTERED: [Self; 5] =
        [Self::McpAql, Self::McpReference, Self::AgentSkills, Self::Erlmcp, Self::Jsonrpc];
}
