//! The ten services of an invented company, each with its own log line format.
//!
//! A line consists of `<body>`, which holds the members from a shape of the dialect, and the context that the logger
//! adds around it. The names of the context fields differ on purpose, as they do in practice.

use crate::dialect::{Dialect, agent_skills, erlmcp, gateway, mcp_aql, plain_mcp, reference, vendor};
use crate::random::Weighted;

/// A service and its log line format.
pub(crate) struct Service {
    /// The relative frequency with which the service is drawn in [`Traffic`](crate::Traffic).
    pub(crate) weight: u32,
    pub(crate) name: &'static str,
    pub(crate) environment: &'static str,
    pub(crate) dialect: &'static Dialect,
    /// The typical duration of a call.
    pub(crate) usual_micros: u64,
    pub(crate) line: &'static str,
    /// The operations, each with the template of a successful result.
    pub(crate) operations: &'static [(&'static str, &'static str)],
    /// The kind of resource that the service manages, and the template of its identifiers.
    pub(crate) resource: &'static str,
    pub(crate) resource_id: &'static str,
}

impl Weighted for &Service {
    fn weight(&self) -> u32 {
        self.weight
    }
}

/// All services.
pub(crate) static SERVICES: &[&Service] =
    &[&TRACKER, &LEDGER, &DEPOT, &ORDERS, &SKILLS, &HUB, &GEO, &EDGE, &INGRESS, &PARCELS];

/// A ticket tracker with bare MCP-AQL envelopes.
pub(crate) static TRACKER: Service = Service {
    weight: 17,
    name: "tracker-adapter",
    environment: "production",
    dialect: &mcp_aql::BARE,
    usual_micros: 38_000,
    line: r#"{"timestamp":"<time>","service":"<service>","environment":"<environment>","operation":"<operation>","request_id":"<request>","duration_ms":<duration><who><trace>,<body>}"#,
    operations: &[
        ("list_tickets", r#"{"tickets":[{"id":"<resource_id>","state":"<state>"}],"total":<items>}"#),
        ("get_ticket", r#"{"id":"<resource_id>","title":"<title>","state":"<state>","assignee":"<name>"}"#),
        ("create_ticket", r#"{"id":"<resource_id>","title":"<title>","state":"open"}"#),
        (
            "update_ticket",
            r#"{"id":"<resource_id>","version":<count>,"state":"<state>","updated_at":"<ago>"}"#,
        ),
        ("search_tickets", r#"{"matches":["<resource_id>"],"total":<items>,"cursor":"<cursor>"}"#),
        ("add_comment", r#"{"ticket":"<resource_id>","comment":<count>,"author":"<name>"}"#),
    ],
    resource: "ticket",
    resource_id: "TCK-<serial>",
};

/// An invoice ledger with MCP-AQL envelopes as text inside MCP results.
pub(crate) static LEDGER: Service = Service {
    weight: 15,
    name: "ledger-adapter",
    environment: "production",
    dialect: &mcp_aql::OVER_MCP,
    usual_micros: 64_000,
    line: r#"{"timestamp":"<time>","service.name":"<service>","environment":"<environment>","operation":"<operation>","request_id":"<request>","duration_ms":<duration><who><trace>,<body>}"#,
    operations: &[
        ("get_invoice", r#"{"id":"<resource_id>","customer":"<tenant>","amount_cents":<amount>}"#),
        ("list_invoices", r#"{"invoices":["<resource_id>"],"total":<items>}"#),
        ("post_payment", r#"{"invoice":"<resource_id>","paid_cents":<amount>,"currency":"EUR"}"#),
        ("reconcile_account", r#"{"account":"<tenant>","matched":<items>,"unmatched":<count>}"#),
        ("send_reminder", r#"{"invoice":"<resource_id>","sent_at":"<ago>"}"#),
    ],
    resource: "invoice",
    resource_id: "INV-<serial>",
};

/// A warehouse with batches of operations.
pub(crate) static DEPOT: Service = Service {
    weight: 7,
    name: "depot-batch",
    environment: "staging",
    dialect: &mcp_aql::BATCHES,
    usual_micros: 120_000,
    line: r#"{"time":"<time>","service":"<service>","environment":"<environment>","op":"<operation>","request_id":"<request>","duration_ms":<duration><who>,<body>}"#,
    operations: &[
        ("move_stock", r#"{"bin":"<resource_id>","sku":"<sku>","quantity":<count>}"#),
        ("count_bin", r#"{"bin":"<resource_id>","counted":<items>}"#),
        ("reserve_item", r#"{"sku":"<sku>","reserved":<count>,"until":"<soon>"}"#),
        ("release_item", r#"{"sku":"<sku>","released":<count>}"#),
    ],
    resource: "bin",
    resource_id: "BIN-<serial>",
};

/// An order system with the numeric error model.
pub(crate) static ORDERS: Service = Service {
    weight: 12,
    name: "orders-reference",
    environment: "production",
    dialect: &reference::NUMERIC,
    usual_micros: 85_000,
    line: r#"{"@timestamp":"<time>","service_name":"<service>","environment":"<environment>","tool":"<operation>","requestId":"<uuid>","durationMs":<duration><who><trace>,<body>}"#,
    operations: &[
        ("create-sales-order", r#"{"orderId":"<resource_id>","status":"open","totalPrice":<amount>}"#),
        ("get-orders", r#"{"orders":[{"orderId":"<resource_id>","status":"<state>"}],"total":<items>}"#),
        ("cancel-order", r#"{"orderId":"<resource_id>","status":"cancelled","cancelledAt":"<ago>"}"#),
        ("get-inventory", r#"{"sku":"<sku>","available":<items>,"reserved":<count>}"#),
        ("fulfill-order", r#"{"orderId":"<resource_id>","lines":[{"sku":"<sku>","quantity":<count>}]}"#),
    ],
    resource: "order",
    resource_id: "SO-<serial>",
};

/// A runtime of agent skills.
pub(crate) static SKILLS: Service = Service {
    weight: 14,
    name: "skills-runtime",
    environment: "production",
    dialect: &agent_skills::RUNTIME,
    usual_micros: 420_000,
    line: r#"{"ts":"<time>","service":"<service>","environment":"<environment>","tool":"<operation>","request_id":"<request>","duration_ms":<duration><who>,<body>}"#,
    operations: &[
        ("text.summarize", r#"{"summary":"<title>; <name> will look at it.","sentences":<count>}"#),
        ("web.page.fetch", r#"{"url":"https://<host>/pages/<serial>","bytes":<rows>,"language":"en"}"#),
        ("pdf.table.extract", r#"{"tables":<count>,"rows":<items>,"confidence":0.<percent>}"#),
        ("code.diff.review", r#"{"comments":<count>,"verdict":"<state>","reviewed_at":"<ago>"}"#),
        ("mail.thread.sort", r#"{"threads":<items>,"urgent":<count>,"from":"<name>"}"#),
    ],
    resource: "skill",
    resource_id: "skill-<serial>",
};

/// The sensors of a plant, served by erlmcp.
pub(crate) static HUB: Service = Service {
    weight: 10,
    name: "plant-hub",
    environment: "production",
    dialect: &erlmcp::NODE,
    usual_micros: 9_000,
    line: r#"{"ts":<epoch_ms>,"app":"<service>","node":"hub@rack7","environment":"<environment>","method":"tools/call","tool":"<operation>","request_id":"<request>","duration_ms":<duration><who><trace>,<body>}"#,
    operations: &[
        ("read_sensor", r#"{"sensor":"<sensor>","value":<percent>.<count>,"unit":"bar","read_at":"<ago>"}"#),
        ("set_valve", r#"{"valve":"<sensor>-v<count>","opening_percent":<percent>}"#),
        ("plan_shift", r#"{"lead":"<name>","starts_at":"<soon>","crew":<count>}"#),
        ("trend_report", r#"{"sensor":"<sensor>","samples":<items>,"minimum":<count>,"maximum":<limit>}"#),
    ],
    resource: "sensor",
    resource_id: "<sensor>",
};

/// A server of maps and routes with plain MCP.
pub(crate) static GEO: Service = Service {
    weight: 13,
    name: "geo-tools",
    environment: "production",
    dialect: &plain_mcp::SERVER,
    usual_micros: 150_000,
    line: r#"{"timestamp":"<time>","service":"<service>","environment":"<environment>","tool":"<operation>","request_id":"<uuid>","duration_ms":<duration><who><trace>,<body>}"#,
    operations: &[
        (
            "geocode_address",
            r#"{"place":"<city>","latitude":5<digit>.<serial>,"longitude":<digit>.<offset>}"#,
        ),
        ("route_between", r#"{"to":"<city>","distance_m":<rows>,"minutes":<items>,"via":["E<percent>"]}"#),
        ("tide_table", r#"{"harbour":"<city>","high":"<soon>","low":"<ago>","range_cm":<items>}"#),
        ("elevation_profile", r#"{"from":"<city>","samples":<items>,"highest_m":<limit>}"#),
    ],
    resource: "place",
    resource_id: "<city>",
};

/// The gateway in front of all tools.
pub(crate) static EDGE: Service = Service {
    weight: 10,
    name: "edge-gateway",
    environment: "production",
    dialect: &gateway::LOGFMT,
    usual_micros: 52_000,
    line: "time=<time> service=<service> environment=<environment> <body> user=<user> tool=<operation> duration_ms=<duration> request_id=<request> trace_id=<trace_id>",
    operations: &[
        ("echo", ""),
        ("get_invoice", ""),
        ("route_between", ""),
        ("get_ticket", ""),
        ("web.page.fetch", ""),
    ],
    resource: "route",
    resource_id: "<typo>",
};

/// The ingress in front of the gateway.
pub(crate) static INGRESS: Service = Service {
    weight: 4,
    name: "web-ingress",
    environment: "production",
    dialect: &gateway::ACCESS_LOG,
    usual_micros: 60_000,
    line: r#"{"time":"<time>","service":"<service>","environment":"<environment>","method":"POST","path":"/mcp/<operation>","tool":"<operation>","request_id":"<request>","client_ip":"10.4.<percent>.<count>","user_agent":"desk-agent/2.<count>","duration_ms":<duration><who><trace>,<body>}"#,
    operations: &[("tracker", ""), ("ledger", ""), ("geo", ""), ("skills", "")],
    resource: "route",
    resource_id: "<typo>",
};

/// A relay to a parcel service with its own codes.
pub(crate) static PARCELS: Service = Service {
    weight: 2,
    name: "parcel-relay",
    environment: "production",
    dialect: &vendor::RELAY,
    usual_micros: 230_000,
    line: r#"{"timestamp":"<time>","service":"<service>","environment":"<environment>","operation":"<operation>","request_id":"<request>","duration_ms":<duration><who>,<body>}"#,
    operations: &[
        ("track_parcel", r#"{"parcel":"<resource_id>","state":"<state>","depot":"<city>","eta":"<soon>"}"#),
        ("print_label", r#"{"parcel":"<resource_id>","format":"A6","pages":<count>}"#),
        ("book_pickup", r#"{"parcel":"<resource_id>","window_start":"<soon>","contact":"<name>"}"#),
    ],
    resource: "parcel",
    resource_id: "PX<serial>",
};
