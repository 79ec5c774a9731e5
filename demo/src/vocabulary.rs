//! The values of template slots, all invented.
//!
//! The table is sorted by slot name for binary search, which a test checks. A text may itself contain slots. The value
//! is determined by the record's seed and the slot alone.

use crate::json_writer::JsonWriter;
use crate::random::mix;
use crate::record::Record;
use crate::timestamp::Rfc3339Seconds;
use SlotGenerator::{Ago, Ahead, Between, EpochAgo, Hex, Letters, OneOf};

/// The generator of a slot's value.
pub(crate) enum SlotGenerator {
    /// Picks one of these texts, which may contain slots.
    OneOf(&'static [&'static str]),
    /// Picks an integer between two bounds, inclusive.
    Between(u64, u64),
    /// Generates this many hexadecimal digits.
    Hex(usize),
    /// Generates this many letters and digits.
    Letters(usize),
    /// Picks a time up to this many seconds after the record's.
    Ahead(u64),
    /// Picks a time up to this many seconds before the record's.
    Ago(u64),
    /// Picks a time like `Ago` does, and writes it in seconds since 1970.
    EpochAgo(u64),
}

/// Every slot that neither a flow nor the record itself fills.
#[rustfmt::skip] // one row, one line
pub(crate) const VOCABULARY: &[(&str, SlotGenerator)] = &[
    ("actual_trust", OneOf(&["untested", "generated", "validated"])),
    ("agent", OneOf(&["triage-bot", "planner-7", "invoice-clerk", "night-shift", "scout", "desk-helper"])),
    ("ago", Ago(900)),
    ("amount", Between(1_200, 987_000)),
    ("bearer", Letters(32)),
    ("city", OneOf(&["Bergen", "Utrecht", "Oulu", "Zürich", "Galway", "Ghent", "Split", "Kraków"])),
    ("count", Between(2, 48)),
    ("cursor", Letters(22)),
    ("danger_number", Between(2, 4)),
    ("danger_word", OneOf(&["destructive", "dangerous", "forbidden"])),
    ("digit", Between(0, 9)),
    ("elapsed", Between(20_001, 20_900)),
    ("email", OneOf(&["mara.lindqvist@halden.example", "t.okafor@brightwater.example", "ivo@quillworks.example"])),
    ("field", OneOf(&["customer.email", "lineItems[0].sku", "shippingAddress.zip", "orderDate", "totalPrice"])),
    ("file", OneOf(&["/srv/app/src/handlers.ts:214", "/opt/hub/lib/router.py:88", "/app/dist/store.js:1402"])),
    ("github_key", Letters(36)),
    ("host", OneOf(&["db-3.internal", "rates.brightwater.example", "api.halden.example", "cache-1.internal"])),
    ("http_5xx", OneOf(&["500", "502", "503", "504"])),
    ("items", Between(11, 480)),
    ("key", OneOf(&["name", "region", "email", "label", "start_date", "colour"])),
    ("lapsed", EpochAgo(900)),
    ("limit", OneOf(&["100", "250", "600", "1000", "5000"])),
    ("milliseconds", Between(120, 9_500)),
    ("name", OneOf(&["Mara Lindqvist", "Tunde Okafor", "Ivo Brandt", "Zoë Marchetti", "Henrik Aas", "Lena Dubois"])),
    ("offset", Between(3, 4_000)),
    ("param", OneOf(&["owner", "limit", "since", "currency", "priority", "assignee", "page_size", "due_date"])),
    ("password", OneOf(&["winter-Harbour-9", "correct.staple.4", "Tr0utStream!"])),
    ("percent", Between(3, 97)),
    ("prompt", OneOf(&["shift_report", "incident_brief", "route_summary"])),
    ("reason", OneOf(&["closed for editing", "owned by another team", "outside your region", "read-only role"])),
    ("request", OneOf(&["req_<request_hex>"])),
    ("request_hex", Hex(12)),
    ("required_trust", OneOf(&["community_reviewed", "certified"])),
    ("rows", Between(4_000, 900_000)),
    ("rpc", Between(1, 9_999)),
    ("run", OneOf(&["run-<run_hex>"])),
    ("run_hex", Hex(10)),
    ("scope", OneOf(&["tickets:write", "ledger:refund", "stock:move", "admin:export"])),
    ("seconds", Between(2, 240)),
    ("sensor", OneOf(&["intake-4", "boiler-2", "kiln-east", "silo-11"])),
    ("serial", Between(1_000, 99_999)),
    ("sku", OneOf(&["KX-204", "LMP-77", "BRG-9901", "TIN-18", "OAK-450"])),
    ("soon", Ahead(3_600)),
    ("span_id", Hex(16)),
    ("state", OneOf(&["open", "waiting", "in review", "done"])),
    ("tenant", OneOf(&["halden-freight", "brightwater", "osprey-dental", "quillworks", "mirefield", "juniper-rail"])),
    ("title", OneOf(&["Scanner at gate 4 drops pallets", "Refund shown twice", "Night import is late", "Label too small"])),
    ("trace", OneOf(&["", "", "", "", "", r#","trace_id":"<trace_id>","span_id":"<span_id>""#])),
    ("trace_id", Hex(32)),
    ("typo", OneOf(&["get_tickts", "list_everything", "fetch_all", "do_refund", "tide_tables", "summarise"])),
    ("user", OneOf(&["u-<user_number>"])),
    ("user_number", Between(1, 160)),
    ("uuid", OneOf(&["<uuid_a>-<uuid_b>-4<uuid_c>-a<uuid_d>-<uuid_e>"])),
    ("uuid_a", Hex(8)),
    ("uuid_b", Hex(4)),
    ("uuid_c", Hex(3)),
    ("uuid_d", Hex(3)),
    ("uuid_e", Hex(12)),
    ("who", OneOf(&[
        "",
        r#","user":"<user>""#,
        r#","agent":"<agent>""#,
        r#","tenant":"<tenant>","user":"<user>""#,
        r#","tenant":"<tenant>","agent":"<agent>""#,
    ])),
    ("word", OneOf(&["soon", "many", "fifty", "n/a", "yes please", "tomorrow"])),
];

/// Writes the slot's value in this record. An unknown slot is written as it stands in the template, where a test finds
/// it.
pub(crate) fn write(slot: &str, record: &Record<'_>, writer: &mut JsonWriter<'_>) {
    let Ok(row) = VOCABULARY.binary_search_by(|(name, _)| (*name).cmp(slot)) else {
        return writer.write_display(format_args!("<{slot}>"));
    };
    let hash = mix(record.seed.wrapping_add(row as u64));
    match VOCABULARY[row].1 {
        OneOf(texts) => record.expand(texts[(hash % texts.len() as u64) as usize], writer),
        Between(first, last) => writer.write_display(first + hash % (last - first + 1)),
        Hex(digits) => write_hex(hash, digits, writer),
        Letters(letters) => write_letters(hash, letters, writer),
        Ahead(seconds) => writer.write_display(Rfc3339Seconds(record.micros + micros_up_to(seconds, hash))),
        Ago(seconds) => writer.write_display(Rfc3339Seconds(record.micros - micros_up_to(seconds, hash))),
        EpochAgo(seconds) => writer.write_display((record.micros - micros_up_to(seconds, hash)) / 1_000_000),
    }
}

/// Writes this many letters and digits, all determined by one number.
pub(crate) fn write_letters(number: u64, letters: usize, writer: &mut JsonWriter<'_>) {
    const ALPHABET: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut number = number;
    for _ in 0..letters {
        number = mix(number.wrapping_add(1));
        let index = (number % ALPHABET.len() as u64) as usize;
        writer.write_text(&ALPHABET[index..=index]);
    }
}

fn write_hex(number: u64, digits: usize, writer: &mut JsonWriter<'_>) {
    let wide = (u128::from(number) << 64) | u128::from(mix(number));
    writer.write_display(format_args!("{:0digits$x}", wide >> (128 - 4 * digits)));
}

fn micros_up_to(seconds: u64, hash: u64) -> i64 {
    (1 + hash % seconds) as i64 * 1_000_000
}
