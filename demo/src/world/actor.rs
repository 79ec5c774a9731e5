//! The callers of the world: a user, an agent or a tenant, in a session that lasts half an hour.

use crate::random::Random;
use crate::record::SlotValue;

/// A caller in one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Actor {
    kind: Kind,
    number: u64,
    session: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Agent,
    Tenant,
}

/// The number of users.
const USERS: u64 = 160;
const AGENTS: [&str; 6] = ["triage-bot", "planner-7", "invoice-clerk", "night-shift", "scout", "desk-helper"];
const TENANTS: [&str; 6] =
    ["halden-freight", "brightwater", "osprey-dental", "quillworks", "mirefield", "juniper-rail"];
const SESSION_MICROS: i64 = 1_800_000_000;

impl Actor {
    pub(super) fn draw(random: &mut Random, micros: i64) -> Self {
        let kind = random.pick(&[Kind::User, Kind::User, Kind::Agent, Kind::Agent, Kind::Tenant]);
        let number = match kind {
            Kind::User => 1 + random.below(USERS),
            Kind::Agent => random.below(AGENTS.len() as u64),
            Kind::Tenant => random.below(TENANTS.len() as u64),
        };
        let half_hour = micros.div_euclid(SESSION_MICROS).unsigned_abs() % 100_000;
        Self { kind, number, session: half_hour * 1_000 + number * 4 + kind as u64 }
    }

    pub(super) fn client_name(&self) -> String {
        match self.kind {
            Kind::User => format!("u-{}", self.number),
            Kind::Agent => AGENTS[self.number as usize].to_owned(),
            Kind::Tenant => TENANTS[self.number as usize].to_owned(),
        }
    }

    pub(super) fn session_name(&self) -> String {
        format!("s-{}", self.session)
    }

    /// Returns the slots that name the caller, its session and the version of the service.
    pub(super) fn slots(&self) -> [(&'static str, SlotValue); 5] {
        let (who, name) = match self.kind {
            Kind::User => (
                r#","user":"u-<user_number>","session_id":"s-<session>","service_version":"1.<minor>.<patch>""#,
                "",
            ),
            Kind::Agent => (
                r#","agent":"<caller>","session_id":"s-<session>","service_version":"1.<minor>.<patch>""#,
                AGENTS[self.number as usize],
            ),
            Kind::Tenant => (
                r#","tenant":"<caller>","session_id":"s-<session>","service_version":"1.<minor>.<patch>""#,
                TENANTS[self.number as usize],
            ),
        };
        let user_number = 1 + self.number % USERS;
        [
            ("who", SlotValue::Text(who)),
            ("caller", SlotValue::Text(name)),
            ("user_number", SlotValue::Number(user_number as i64)),
            ("tenant", SlotValue::Text(TENANTS[self.number as usize % TENANTS.len()])),
            ("session", SlotValue::Number(self.session as i64)),
        ]
    }
}
