//! Sends the requests of the configured collectors in their place: Vector and Fluent Bit cannot be installed here.

use super::super::otlp::client::gzip;
use super::super::server::Server;
use super::super::support::{Folder, HIDDEN, OPEN, lines};
use super::{read, yaml};
use serde_json::json;

const TOKENS: [(&str, &str); 1] = [("FAULTLINE_TOKENS", "ingest:flt_0123456789abcdef0123")];
const BEARER: (&str, &str) = ("Authorization", "Bearer flt_0123456789abcdef0123");

/// Returns the path and the parameters of an address.
fn path_of(uri: &str) -> &str {
    &uri[uri.find("/v1/").expect("a path of ours")..]
}

/// Guarantee: lines as Vector sends them are taken, whatever the first one begins with.
#[test]
fn what_vector_sends_is_taken() {
    let sink = yaml("deploy/vector/vector.yaml")[0]["sinks"]["faultline"].clone();
    assert_eq!(
        (&sink["encoding"]["codec"], &sink["framing"]["method"]),
        (&"text".into(), &"newline_delimited".into())
    );
    assert_eq!((&sink["compression"], &sink["auth"]["strategy"]), (&"gzip".into(), &"bearer".into()));
    let folder = Folder::new();
    let server = Server::start_in(&folder, &TOKENS, &[]);
    let body = gzip(lines(&["[INFO] starting", OPEN, HIDDEN]).as_bytes());
    let kind = sink["request"]["headers"]["Content-Type"].as_str().expect("a type");
    let headers = [("Content-Type", kind), ("Content-Encoding", "gzip"), BEARER];
    let answer =
        server.post(path_of(sink["uri"].as_str().expect("an address")), &headers, &body).is(200).json();
    assert_eq!(answer["events"], 2, "{answer}");
}

/// Guarantee: a line of a log inside Fluent Bit's record is found, and is of the service that the address names.
#[test]
fn what_fluent_bit_sends_is_taken() {
    let output = yaml("deploy/fluent-bit/fluent-bit.yaml")[0]["pipeline"]["outputs"][0].clone();
    assert_eq!((&output["format"], &output["json_date_key"]), (&"json_lines".into(), &false.into()));
    assert_eq!((&output["port"], &output["compress"]), (&4318.into(), &"gzip".into()));
    let folder = Folder::new();
    let server = Server::start_in(&folder, &TOKENS, &[]);
    let nameless = OPEN.replace("\"service\":\"orders\",", "");
    let records = [json!({"log": nameless}), json!({"log": "started"}), json!({"log": HIDDEN})];
    let body =
        gzip(lines(&records.map(|record| record.to_string()).each_ref().map(String::as_str)).as_bytes());
    let headers = [("Content-Type", "application/x-ndjson"), ("Content-Encoding", "gzip"), BEARER];
    let answer =
        server.post(path_of(output["uri"].as_str().expect("a path")), &headers, &body).is(200).json();
    assert_eq!(answer["events"], 2, "{answer}");
    let mut services: Vec<_> = server.dump("events").iter().map(|event| event["service"].clone()).collect();
    services.sort_by_key(ToString::to_string);
    assert_eq!(services, ["app", "orders"]);
}

/// Guarantee: the OpenTelemetry Collector is told to send spans and logs, with a token, to a port that takes them.
#[test]
fn the_collector_is_pointed_at_us() {
    let config = &yaml("deploy/otel-collector/config.yaml")[0];
    let exporter = &config["exporters"]["otlphttp/faultline"];
    assert!(
        exporter["endpoint"].as_str().is_some_and(|url| url.contains("http://127.0.0.1:4318")),
        "{exporter}"
    );
    let authenticator = exporter["auth"]["authenticator"].as_str().expect("a name");
    assert!(config["extensions"][authenticator]["filename"].is_string());
    for (part, names) in
        [("extensions", &config["service"]["extensions"]), ("exporters", &json!(["otlphttp/faultline"]))]
    {
        for name in super::strings(names) {
            assert!(config[part].get(name).is_some(), "{part} {name}");
        }
    }
    for pipeline in ["traces", "logs"] {
        assert_eq!(
            config["service"]["pipelines"][pipeline]["exporters"],
            json!(["otlphttp/faultline"]),
            "{pipeline}"
        );
    }
    assert!(read("deploy/otel-collector/config.yaml").contains("retry_on_failure"));
}
