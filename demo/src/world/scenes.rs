//! The events of the world: single calls, and scenes that consist of several.

use super::actor::Actor;
use super::cast::{CAST, Member, Report};
use super::incident::Phase;
use super::releases::Release;
use super::{Signal, SignalBody, World, telemetry};
use crate::confirmation;
use crate::dialect::{Fault, Shape, failure, fault, mcp_aql_faults, upstream_api};
use crate::malformed;
use crate::quota;
use crate::random::{Random, Weighted, mix};
use crate::record::{Record, SlotValue};
use crate::services::{GEO, LEDGER, Service, TRACKER};

const SECOND: i64 = 1_000_000;

/// A kind of event.
#[derive(Clone, Copy)]
enum Scene {
    /// One call.
    Call,
    /// A call with a warning beside its result.
    Warning,
    /// A call by a client whose quota is filling up.
    Quota,
    /// An operation that needs a confirmation, which a user grants or not.
    Confirmation,
    /// A confirmation of an operation that was first denied because of insufficient trust.
    Denial,
    /// A caller repeats a failing call.
    RetryLoop,
    /// A caller makes a mistake, reads the error, and corrects the request.
    Repair,
    /// A client asks for a newer protocol version, and then continues with the older one.
    Probe,
    /// A line that is not a record.
    Noise,
}

/// The relative frequency of each scene, in ten thousandths.
const SCENES: &[(u32, Scene)] = &[
    (9_745, Scene::Call),
    (60, Scene::Warning),
    (110, Scene::Quota),
    (14, Scene::Confirmation),
    (12, Scene::Denial),
    (12, Scene::RetryLoop),
    (35, Scene::Repair),
    (8, Scene::Probe),
    (4, Scene::Noise),
];

impl Weighted for (u32, Scene) {
    fn weight(&self) -> u32 {
        self.0
    }
}

/// The number of calls in ten thousand that fail with a bad release.
const BAD_RELEASE_FAILURES: u64 = 2_800;
/// The number of calls in ten thousand to the ledger that fail during the incident.
const INCIDENT_FAILURES: u64 = 6_000;
/// During the incident, one call in this many is a retry of a failed call to the ledger.
const RETRIES_ONE_IN: u64 = 14;

/// Plays a scene that begins at this time.
pub(super) fn play(world: &World, micros: i64, random: &mut Random, signals: &mut Vec<Signal>) {
    let phase = world.incident.and_then(|incident| incident.phase(micros));
    let is_retried = matches!(phase, Some(Phase::Retried | Phase::Limited));
    if is_retried && random.one_in(RETRIES_ONE_IN) {
        return retry_loop(world, &LEDGER, micros, random, signals);
    }
    let mut stage = Stage { world, random, signals };
    match stage.random.pick_weighted(SCENES).1 {
        Scene::Call => stage.call(micros, phase),
        Scene::Warning => stage.warning(micros),
        Scene::Quota => stage.quota(micros, phase),
        Scene::Confirmation => stage.confirmation(micros, false),
        Scene::Denial => stage.confirmation(micros, true),
        Scene::RetryLoop => {
            let services = CAST.iter().filter(|member| member.report == Report::Line);
            let services: Vec<_> = services.map(|member| member.service).collect();
            let service = stage.random.pick(&services);
            retry_loop(world, service, micros, random, signals);
        }
        Scene::Repair => stage.repair(micros),
        Scene::Probe => stage.probe(micros),
        Scene::Noise => stage.line(micros, |random, line| malformed::write(random, micros, line)),
    }
}

/// The context in which a scene is played.
struct Stage<'a> {
    world: &'a World,
    random: &'a mut Random,
    signals: &'a mut Vec<Signal>,
}

/// The slots of one record.
type Slots = Vec<(&'static str, SlotValue)>;

impl Stage<'_> {
    /// Plays one call of a service, which may fail.
    fn call(&mut self, micros: i64, phase: Option<Phase>) {
        let member = self.random.pick_weighted(&CAST);
        let release = self.release(member.service, micros);
        let limit = self.failures_in_10_000(member, release, phase);
        let dialect = member.service.dialect;
        let is_broken = release.is_bad || (phase.is_some() && member.service.name == LEDGER.name);
        let shape = if self.random.below(10_000) >= limit {
            self.random.pick_weighted(dialect.successes)
        } else if is_broken && !self.random.one_in(8) {
            &dialect.outage
        } else {
            self.random.pick_weighted(dialect.failures)
        };
        let actor = Actor::draw(self.random, micros);
        let slots = slots(&actor, release);
        let mut record = Record::new(member.service, shape, self.random, micros);
        record.slot_values = &slots;
        if phase == Some(Phase::Limited) && !record.shape.faults.is_empty() {
            record = rate_limited(record);
        }
        self.report(member, &record, &actor, release);
    }

    fn failures_in_10_000(&self, member: &Member, release: Release, phase: Option<Phase>) -> u64 {
        match phase {
            Some(_) if member.service.name == LEDGER.name => INCIDENT_FAILURES,
            Some(Phase::Limited) if member.service.name == "mcp-gateway" => INCIDENT_FAILURES / 3,
            _ if release.is_bad => BAD_RELEASE_FAILURES,
            _ => member.failures_in_10_000,
        }
    }

    fn warning(&mut self, micros: i64) {
        let service = self.random.pick(&[&TRACKER, &LEDGER]);
        let shape = self.random.pick_weighted(service.dialect.warnings);
        self.write_line(service, shape, micros, None);
    }

    fn quota(&mut self, micros: i64, phase: Option<Phase>) {
        let mut line = String::new();
        if quota::try_write_of_world(self.random, micros, self.world.seed, &mut line) {
            self.signals.push(Signal { micros, body: SignalBody::Line(line) });
        } else {
            self.call(micros, phase);
        }
    }

    fn confirmation(&mut self, micros: i64, is_denied: bool) {
        let lines = confirmation::story(self.random, micros, is_denied);
        let signals = lines.into_iter().map(|(micros, line)| Signal { micros, body: SignalBody::Line(line) });
        self.signals.extend(signals);
    }

    /// Plays a request with a mistake, and the corrected request a few seconds later.
    fn repair(&mut self, micros: i64) {
        let service = self.random.pick(&[&TRACKER, &LEDGER]);
        let (actor, release) = (Actor::draw(self.random, micros), self.release(service, micros));
        let fault = self.random.pick(&mcp_aql_faults::MISTAKES);
        let slots = slots(&actor, release);
        let failed = Record::new(service, &service.dialect.failures[0], self.random, micros);
        let failed = Record { fault, slot_values: &slots, ..failed };
        self.push_line(&failed);
        let later = micros + 2 * SECOND + self.random.below(7_000_000) as i64;
        let success = self.random.pick_weighted(service.dialect.successes);
        let repaired = Record::new(service, success, self.random, later);
        let (operation, payload) = (failed.operation, failed.payload);
        self.push_line(&Record { operation, payload, slot_values: &slots, ..repaired });
    }

    /// Plays a client that probes for `server/discover`, which the server does not know, and then initializes the older
    /// protocol.
    fn probe(&mut self, micros: i64) {
        self.write_line(&GEO, &PROBE, micros, Some(("server/discover", &METHOD_NOT_FOUND)));
        let success = &GEO.dialect.successes[0];
        self.write_line(&GEO, success, micros + 60_000, Some(("initialize", &Fault::NONE)));
    }

    fn write_line(
        &mut self,
        service: &'static Service,
        shape: &'static Shape,
        micros: i64,
        call: Option<(&'static str, &'static Fault)>,
    ) {
        let (actor, release) = (Actor::draw(self.random, micros), self.release(service, micros));
        let slots = slots(&actor, release);
        let mut record = Record::new(service, shape, self.random, micros);
        record.slot_values = &slots;
        if let Some((operation, fault)) = call {
            record = Record { operation, fault, ..record };
        }
        self.push_line(&record);
    }

    fn report(&mut self, member: &Member, record: &Record<'_>, actor: &Actor, release: Release) {
        let body = match member.report {
            Report::Line => return self.push_line(record),
            Report::Span(convention) => {
                SignalBody::Spans(telemetry::span(convention, record, actor, release))
            }
            Report::Log(host) => SignalBody::Logs(telemetry::log(host, record, actor, release)),
        };
        self.signals.push(Signal { micros: record.micros, body });
    }

    fn push_line(&mut self, record: &Record<'_>) {
        self.line(record.micros, |_, line| record.write(line));
    }

    fn line(&mut self, micros: i64, write: impl FnOnce(&mut Random, &mut String)) {
        let mut line = String::new();
        write(self.random, &mut line);
        self.signals.push(Signal { micros, body: SignalBody::Line(line) });
    }

    fn release(&self, service: &Service, micros: i64) -> Release {
        let release = Release::at(service, self.world.seed, micros);
        release.during(self.world.incident.as_ref(), service, micros)
    }
}

/// Plays a call that fails and is then retried several times, each time after a longer pause.
fn retry_loop(
    world: &World,
    service: &'static Service,
    micros: i64,
    random: &mut Random,
    signals: &mut Vec<Signal>,
) {
    let phase = world.incident.and_then(|incident| incident.phase(micros));
    let stage = &mut Stage { world, random, signals };
    let release = stage.release(service, micros);
    let actor = Actor::draw(stage.random, micros);
    let shape = match phase {
        Some(_) => &service.dialect.outage,
        None => stage.random.pick_weighted(service.dialect.failures),
    };
    let mut first = Record::new(service, shape, stage.random, micros);
    if phase == Some(Phase::Limited) {
        first = rate_limited(first);
    }
    let mut at = micros;
    for attempt in 0..3 + stage.random.below(5) {
        let mut slots = slots(&actor, release);
        slots.extend(fresh_ids(stage.random));
        stage.push_line(&Record { micros: at, slot_values: &slots, ..first });
        at += (SECOND << attempt.min(4)) + stage.random.below(900_000) as i64;
    }
}

/// Returns new values of the slots that differ between two attempts at the same call.
fn fresh_ids(random: &mut Random) -> Slots {
    let mut number = |digits: u32| {
        let lowest = 10_i64.pow(digits - 1);
        SlotValue::Number(lowest + (mix(random.next_u64()) % (9 * lowest).unsigned_abs()) as i64)
    };
    vec![
        ("request_hex", number(12)),
        ("uuid_e", number(12)),
        ("span_id", number(16)),
        ("rpc", number(4)),
        ("duration", number(2)),
    ]
}

/// Returns the slots that describe the caller and the version of the service.
fn slots(actor: &Actor, release: Release) -> Slots {
    let mut slots = actor.slots().to_vec();
    slots.push(("minor", SlotValue::Number(release.minor)));
    slots.push(("patch", SlotValue::Number(release.patch)));
    slots
}

/// Turns a failure into the rate limit of the ledger or of the gateway; failures of other services stay as they are.
fn rate_limited(record: Record<'_>) -> Record<'_> {
    if record.service.name == LEDGER.name && !record.seed.is_multiple_of(3) {
        Record { shape: &record.service.dialect.failures[0], fault: &LEDGER_LIMIT, ..record }
    } else if record.service.name == "mcp-gateway" {
        Record { fault: &GATEWAY_LIMIT, ..record }
    } else {
        record
    }
}

static LEDGER_LIMIT: Fault = fault(
    1,
    "RATE_LIMIT_EXCEEDED",
    "API rate limit exceeded",
    r#"{"limit":600,"remaining":0,"window":"minute","resets_at":"<soon>","retry_after_seconds":<seconds>}"#,
);

static GATEWAY_LIMIT: Fault = upstream_api::rpc(1, "-32003", "429", "Rate limit exceeded");

static PROBE: Shape = failure(
    1,
    r#""response":{"jsonrpc":"2.0","id":<rpc>,"error":{"code":<code>,"message":"<message>","data":{"method":"<operation>"}}}"#,
    &[],
);

static METHOD_NOT_FOUND: Fault = fault(1, "-32601", "Method not found", "");
