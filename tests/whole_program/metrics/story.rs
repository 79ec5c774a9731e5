//! Runs the shipped rules in a real Prometheus, with a real Alertmanager, through a day that is compressed to two
//! minutes.

use super::super::server::Server;
use super::super::support::{Folder, faultline, root};
use super::monitoring::Monitor;
use super::webhook::Webhook;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The factor by which time is compressed: five minutes are ten seconds.
const SPEED: u64 = 30;
/// A time that is longer than the rules look back, and longer than Alertmanager waits between two messages.
const SETTLED: Duration = Duration::from_secs(26);
const PATIENCE: Duration = Duration::from_secs(90);
/// An hour is two minutes at this speed; the alerts are all there after a third of it.
const BAD_HOUR: Duration = Duration::from_secs(45);

const RULES: [&str; 2] = ["recording.yml", "alerts.yml"];

/// The alerts that must be sent, with their receivers: each once, and each ends.
const EXPECTED: [(&str, &str, &str); 6] = [
    ("FaultlineInternalSpike", "orders", "critical"),
    ("FaultlineQuotaWarning", "stock", "info"),
    ("FaultlineQuotaPaused", "stock", "warning"),
    ("FaultlineQuotaExhausted", "stock", "critical"),
    ("FaultlineTrustDenied", "deploy", "warning"),
    ("FaultlineTokenReplayed", "billing", "warning"),
];

/// Scenario: calm; a quota that warns, pauses, is exhausted and starts anew; a spike of internal errors; the first
/// denial for want of trust ever; a token that is used twice; calm.
/// Guarantee: each alert reaches its receiver once, with its labels and annotations, and is resolved; nothing else
/// fires.
#[test]
fn each_alert_is_told_once_and_nothing_else_is() {
    let folder = Folder::new();
    let mut story = Story::begin(&folder);
    story.calm(Duration::from_secs(15));
    for (event, alert) in [
        (warning(), "FaultlineQuotaWarning"),
        (paused(), "FaultlineQuotaPaused"),
        (exhausted(), "FaultlineQuotaExhausted"),
    ] {
        story.happens(&[event], alert);
    }
    story.happens(&vec![internal(); 20], "FaultlineInternalSpike");
    story.happens(&[untrusted()], "FaultlineTrustDenied");
    story.happens(&[replayed()], "FaultlineTokenReplayed");
    story.calm_until_all_is_over();
    story.calm(SETTLED);

    let sent: BTreeSet<_> =
        story.sent.keys().map(|(alert, service)| (alert.as_str(), service.as_str())).collect();
    let expected: BTreeSet<_> = EXPECTED.iter().map(|(alert, service, _)| (*alert, *service)).collect();
    assert_eq!(sent, expected);
    for (alert, service, severity) in EXPECTED {
        story.sent[&(alert.to_owned(), service.to_owned())].check(alert, service, severity);
    }
    assert_eq!(story.fired(), expected.iter().map(|(alert, service)| format!("{alert} {service}")).collect());
    let usage = story.ask("faultline_quota_usage_ratio");
    assert_eq!(usage, json!([]), "the quota has started anew");
}

/// Scenario: calm; then almost everything goes wrong at once. One service fails with internal errors, and with hidden
/// and unknown ones; a second one has exhausted and paused quotas, and rejects calls; a third one denies operations
/// and gets replayed tokens.
/// Guarantee: many alerts fire, and people get a handful of messages: a page for each of the two services that need
/// somebody now, one message about the third, and one list of what nobody must act on. What another alert explains is in
/// no message; what has a cause of its own is in one.
#[test]
fn a_bad_hour_is_a_handful_of_messages() {
    let folder = Folder::new();
    let mut story = Story::begin(&folder);
    story.calm(Duration::from_secs(15));
    let began = Instant::now();
    for round in 0.. {
        if began.elapsed() > BAD_HOUR {
            break;
        }
        story.post(&bad_half_second(round));
        story.breathe();
    }

    let fired = story.fired();
    assert!(fired.len() >= 12, "{fired:#?}");
    let firing = story.messages.iter().filter(|message| message["status"] == "firing");
    let mut groups: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for message in firing {
        let text = |value: &'static str| message.pointer(value).and_then(Value::as_str).unwrap_or_default();
        let alerts = message["alerts"].as_array().expect("alerts");
        let alerts = alerts.iter().filter_map(|alert| alert["labels"]["alertname"].as_str());
        groups.entry((text("/receiver"), text("/groupLabels/service"))).or_default().extend(alerts);
    }
    let told: Vec<_> = groups.keys().copied().collect();
    let expected = [
        ("know", ""),
        ("look-today", "deploy"),
        ("look-today", "stock"),
        ("page", "orders"),
        ("page", "stock"),
    ];
    assert_eq!(told, expected, "{groups:#?}\n{fired:#?}");
    let alerts: BTreeSet<_> = groups.values().flatten().copied().collect();
    for own_cause in
        ["FaultlineQuotaPaused", "FaultlineTrustDenied", "FaultlineDangerDenied", "FaultlineTokenReplayed"]
    {
        assert!(alerts.contains(own_cause), "{own_cause} is in no message: {groups:#?}");
    }
    for explained in ["FaultlineHiddenFailures", "FaultlineUnknownCodes"] {
        assert!(fired.contains(&format!("{explained} orders")), "{explained} does not fire: {fired:#?}");
        assert!(!alerts.contains(explained), "{explained} is in a message: {groups:#?}");
    }
}

struct Story {
    server: Server,
    webhook: Webhook,
    prometheus: Monitor,
    /// Sends the alerts on; it ends with the story.
    _alertmanager: Monitor,
    /// The messages that were sent.
    messages: Vec<Value>,
    /// What was sent about each alert of each service.
    sent: BTreeMap<(String, String), SentRequest>,
}

/// The messages about one alert.
#[derive(Debug, Default)]
struct SentRequest {
    began: BTreeSet<String>,
    is_over: bool,
    last: Value,
}

impl SentRequest {
    #[track_caller]
    fn check(&self, alert: &str, service: &str, severity: &str) {
        assert_eq!(self.began.len(), 1, "{alert} began more than once: {:?}", self.began);
        assert!(self.is_over, "{alert} is not over");
        let (labels, annotations) = (&self.last["labels"], &self.last["annotations"]);
        assert_eq!(
            (labels["service"].as_str(), labels["severity"].as_str()),
            (Some(service), Some(severity))
        );
        let anchor = format!("/runbook#{}", alert.to_lowercase());
        let text = |name: &str| annotations[name].as_str().unwrap_or_default();
        assert!(text("runbook_url").ends_with(&anchor), "{annotations}");
        assert!(text("summary").contains(service) && text("description").contains(service), "{annotations}");
        assert!(!text("description").contains("{{"), "{annotations}");
    }
}

impl Story {
    fn begin(folder: &Folder) -> Self {
        let history = folder.file("history.ndjson", history());
        let data_dir = folder.path().join("data");
        faultline(&["ingest", "--quiet", "--data-dir", data_dir.to_str().expect("a path"), &history])
            .ends_with(0);
        let server = Server::start(folder);
        let webhook = Webhook::new();
        let alertmanager = Monitor::alertmanager(folder, &alertmanager_config(folder, &webhook));
        let prometheus = Monitor::prometheus(folder, &prometheus_config(folder, &server, &alertmanager));
        let mut story = Self {
            server,
            webhook,
            prometheus,
            _alertmanager: alertmanager,
            messages: Vec::new(),
            sent: BTreeMap::new(),
        };
        story.load_rules(folder);
        story
    }

    /// Prometheus looks for targets every five seconds, whatever the time factor, so rules are loaded when it has found
    /// the target.
    fn load_rules(&mut self, folder: &Folder) {
        while self.ask("faultline_build_info") == json!([]) {
            self.breathe();
        }
        for name in RULES {
            let shipped =
                std::fs::read_to_string(root().join("dashboards/prometheus").join(name)).expect("the rules");
            folder.file(name, faster(&shipped).replace(", 3600)", &format!(", {})", 3600 / SPEED)));
        }
        self.prometheus.reload();
    }

    /// Sends calls of all services that all succeed.
    fn calm(&mut self, time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            self.breathe();
        }
    }

    /// Sends half a second of everyday traffic.
    fn breathe(&mut self) {
        let worked = |service: &str| json!({"service": service, "tool": "get", "duration_ms": 3, "success": true, "result": {}});
        let line = |service: &&str| format!("{}\n", worked(service));
        let lines: String = ["orders", "stock", "deploy", "billing"].iter().map(line).collect();
        self.server.post_lines(&lines.repeat(50)).is(200);
        let messages = self.webhook.messages();
        let alerts = messages.iter().filter_map(|message| message["alerts"].as_array()).flatten().cloned();
        for alert in alerts {
            let label = |name: &str| alert["labels"][name].as_str().unwrap_or_default().to_owned();
            let sent = self.sent.entry((label("alertname"), label("service"))).or_default();
            sent.began.insert(alert["startsAt"].as_str().unwrap_or_default().to_owned());
            sent.is_over = alert["status"] == "resolved";
            sent.last = alert;
        }
        self.messages.extend(messages);
        std::thread::sleep(Duration::from_millis(500));
    }

    #[track_caller]
    fn post(&self, events: &[Value]) {
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        self.server.post_lines(&lines).is(200);
    }

    /// Sends events until their alert is told.
    #[track_caller]
    fn happens(&mut self, events: &[Value], alert: &str) {
        self.post(events);
        let began = Instant::now();
        while !self.sent.keys().any(|(sent, _)| sent == alert) {
            assert!(
                began.elapsed() < PATIENCE,
                "{alert} is not told: {}\n{}",
                self.ask("ALERTS"),
                self.prometheus.said()
            );
            self.breathe();
        }
    }

    #[track_caller]
    fn calm_until_all_is_over(&mut self) {
        let began = Instant::now();
        while !self.sent.values().all(|sent| sent.is_over) {
            assert!(began.elapsed() < PATIENCE, "not over: {:?}", self.sent);
            self.breathe();
        }
    }

    /// Returns the alerts that ever fired, according to Prometheus.
    fn fired(&self) -> BTreeSet<String> {
        let ever =
            self.ask("count by (alertname, service) (count_over_time(ALERTS{alertstate=\"firing\"}[30m]))");
        let name = |alert: &Value| {
            let label = |name: &str| alert["metric"][name].as_str().unwrap_or_default().to_owned();
            format!("{} {}", label("alertname"), label("service"))
        };
        ever.as_array().expect("a vector").iter().map(name).collect()
    }

    fn ask(&self, query: &str) -> Value {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        self.prometheus.get(&format!("/api/v1/query?query={encoded}"))["data"]["result"].clone()
    }
}

/// Returns an error of a service.
fn failure(service: &str, tool: &str, error: &Value) -> Value {
    json!({"service": service, "tool": tool, "success": false, "error": error})
}

fn internal() -> Value {
    failure("orders", "pay", &json!({"code": "INTERNAL_ERROR", "message": "Something broke"}))
}

fn quota(current: u32) -> Value {
    let resets_at = jiff::Timestamp::now() + Duration::from_secs(40);
    json!({"metric": "calls_per_hour", "current": current, "warn_threshold": 80, "pause_threshold": 90,
        "hard_stop_threshold": 100, "resets_at": resets_at.to_string()})
}

fn warning() -> Value {
    json!({"service": "stock", "tool": "count", "success": true, "result": {}, "warnings": [
        {"code": "RATE_LIMIT_QUOTA_WARNING", "message": "Quota warning threshold reached", "details": quota(80)}]})
}

fn paused() -> Value {
    let error = json!({"code": "RATE_LIMIT_QUOTA_PAUSE", "message": "Quota pause threshold reached", "details": quota(90)});
    failure("stock", "count", &error)
}

fn exhausted() -> Value {
    let error =
        json!({"code": "RATE_LIMIT_QUOTA_EXHAUSTED", "message": "Quota exhausted", "details": quota(100)});
    failure("stock", "count", &error)
}

fn untrusted() -> Value {
    let message = "Operation 'release' requires trust level 'certified', adapter has 'untested'";
    let details = json!({"operation": "release", "required_trust": "certified", "actual_trust": "untested"});
    failure(
        "deploy",
        "release",
        &json!({"code": "PERMISSION_TRUST_LEVEL_INSUFFICIENT", "message": message, "details": details}),
    )
}

fn replayed() -> Value {
    let error = json!({"code": "TOKEN_ALREADY_USED", "message": "Confirmation token has already been used"});
    failure("billing", "refund", &error)
}

/// Returns what half a second of a bad hour brings: the three services with their different causes.
fn bad_half_second(round: u32) -> Vec<Value> {
    let text = r#"{"success": false, "error": {"code": "INTERNAL_ERROR", "message": "It broke"}}"#;
    let hidden = json!({"jsonrpc": "2.0", "id": 1, "service": "orders", "tool": "pay",
        "result": {"isError": false, "content": [{"type": "text", "text": text}]}});
    let unknown = failure("orders", "pay", &json!({"code": "ACME_17", "message": "Nobody knows this code"}));
    let mut paused = paused();
    paused["error"]["details"]["metric"] = "calls_per_day".into();
    let rejected = failure("stock", "count", &json!({"code": "RATE_LIMIT_EXCEEDED", "message": "Slow down"}));
    let mut warning = warning();
    warning["service"] = "billing".into();
    let mut events = vec![internal(); 20];
    events.extend(vec![hidden; 20]);
    events.extend([unknown, exhausted(), paused, rejected, warning]);
    // Seldom enough that the denied calls are within the error budget.
    if round.is_multiple_of(12) {
        let dangerous = json!({"code": "PERMISSION_DANGER_LEVEL_DENIED", "message": "Too dangerous",
            "details": {"danger_level": 3}});
        events.extend([untrusted(), failure("deploy", "release", &replayed()["error"])]);
        events.extend(["drop", "purge"].map(|tool| failure("deploy", tool, &dangerous)));
    }
    events
}

/// Sends events of yesterday, so that the errors of these services are known and not new.
fn history() -> String {
    let yesterday = jiff::Timestamp::now() - Duration::from_secs(20 * 60 * 60);
    let dated = |mut event: Value| {
        event["time"] = yesterday.to_string().into();
        format!("{event}\n")
    };
    [warning(), paused(), exhausted(), internal(), replayed()].into_iter().map(dated).collect()
}

fn alertmanager_config(folder: &Folder, webhook: &Webhook) -> PathBuf {
    let shipped =
        std::fs::read_to_string(root().join("deploy/alertmanager/alertmanager.yml")).expect("the file");
    let ours = faster(&shipped)
        .replace("127.0.0.1:9099", &webhook.address.to_string())
        .replace("send_resolved: false", "send_resolved: true");
    folder.file("alertmanager.yml", ours).into()
}

fn prometheus_config(folder: &Folder, server: &Server, alertmanager: &Monitor) -> PathBuf {
    for name in RULES {
        folder.file(name, "groups: []");
    }
    let shipped = std::fs::read_to_string(root().join("deploy/prometheus/prometheus.yml")).expect("the file");
    let ours = faster(&shipped)
        .replace("../../dashboards/prometheus/", "")
        .replace("127.0.0.1:9093", &alertmanager.address.to_string())
        .replace("127.0.0.1:7070", &server.address("web").to_string());
    folder.file("prometheus.yml", ours).into()
}

/// Returns the text with every duration in it made shorter.
fn faster(text: &str) -> String {
    let mut ours = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        ours.push_str(before);
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(digits);
        let unit = match after.chars().next() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            _ => 0,
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let is_duration =
            unit > 0 && !ours.ends_with(is_word) && !after[1..].starts_with(is_word) && number.len() < 5;
        if is_duration {
            let seconds: u64 = number.parse().expect("a number");
            ours.push_str(&format!("{}ms", seconds * unit * 1_000 / SPEED));
            rest = &after[1..];
        } else {
            ours.push_str(number);
            rest = after;
        }
    }
    ours.push_str(rest);
    ours
}

#[test]
fn durations_get_shorter_and_nothing_else_does() {
    let text = "x:new5m[5m] offset 1h > 0.5 [6m:1m]\nfor: 2m # 127.0.0.1:9093, 30 days, 3d";
    let faster = faster(text);
    assert_eq!(
        faster,
        "x:new5m[10000ms] offset 120000ms > 0.5 [12000ms:2000ms]\nfor: 4000ms # 127.0.0.1:9093, 30 days, 8640000ms"
    );
}
