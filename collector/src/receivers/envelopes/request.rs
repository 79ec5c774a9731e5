//! Parses the head of a request for `/v1/envelopes`: content type, encoding, parameters and idempotency key.

use super::{Form, LINES, RequestHead};
use crate::pipeline::{Defaults, IdempotencyKey};
use crate::receivers::body::Bounds;
use crate::receivers::content_headers::{content_encoding, media_type, quoted};
use crate::{Limits, Rejection, RejectionReason, Source};
use auth::Client;
use axum::extract::Query;
use classifier::Dialect;
use http::request::Parts;
use http::{HeaderMap, Uri};

/// The content types for which the form is detected. A body without one is read like `text/plain`.
const TYPES: [&str; 7] = [
    "application/x-ndjson",
    "application/json",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "text/plain",
    "",
];

/// The parameters, and the field of the defaults that each one fills.
const PARAMETERS: [(&str, Set); 3] =
    [("service", set_service), ("environment", set_environment), ("dialect", set_dialect)];

type Set = fn(&mut Defaults, String) -> Result<(), Rejection>;

/// The longest name. Later stages truncate longer names; here they are rejected, because the sender can still fix them.
const NAME_BYTES: usize = 256;
const KEY_BYTES: usize = 255;

pub(super) fn read(head: &Parts, limits: &Limits) -> Result<RequestHead, Rejection> {
    let form = form(&head.headers)?;
    let encoding = content_encoding(&head.headers)?;
    Ok(RequestHead {
        source: Source::Envelopes,
        encoding,
        read: form.reader(),
        defaults: defaults(&head.uri)?,
        idempotency_key: idempotency_key(head, form)?,
        bounds: Bounds::of_http(&head.headers, encoding, limits),
    })
}

/// Returns the form in which the body is read, by its content type.
fn form(headers: &HeaderMap) -> Result<Form, Rejection> {
    let given = media_type(headers);
    if TYPES.contains(&given.as_str()) {
        return Ok(Form::Told);
    }
    if given == LINES {
        return Ok(Form::Lines);
    }
    let detail = format!(
        "the content type {} is not read here: add the header \"Content-Type: application/x-ndjson\" \
         (or application/json)",
        quoted(&given)
    );
    Err(Rejection::new(RejectionReason::WrongType, detail))
}

fn defaults(uri: &Uri) -> Result<Defaults, Rejection> {
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
        return Err(bad("the query of the address cannot be read".to_owned()));
    };
    let mut defaults = Defaults::default();
    let mut seen = Vec::with_capacity(PARAMETERS.len());
    for (name, value) in pairs {
        let Some((known, set)) = PARAMETERS.iter().find(|(known, _)| *known == name) else {
            let known = PARAMETERS.map(|(known, _)| known).join(", ");
            return Err(bad(format!("there is no parameter {}: there are {known}", quoted(&name))));
        };
        if seen.contains(known) {
            return Err(bad(format!("the parameter {known} is given twice")));
        }
        seen.push(*known);
        check_name(known, &value)?;
        set(&mut defaults, value)?;
    }
    Ok(defaults)
}

fn check_name(name: &str, value: &str) -> Result<(), Rejection> {
    if value.is_empty() || value.len() > NAME_BYTES {
        return Err(bad(format!("{name} has {} bytes: it takes 1 to {NAME_BYTES}", value.len())));
    }
    if value.chars().any(char::is_control) {
        return Err(bad(format!("{name} {} has control characters", quoted(value))));
    }
    Ok(())
}

#[allow(clippy::unnecessary_wraps)] // one shape for the table
fn set_service(defaults: &mut Defaults, value: String) -> Result<(), Rejection> {
    defaults.service = Some(value);
    Ok(())
}

#[allow(clippy::unnecessary_wraps)]
fn set_environment(defaults: &mut Defaults, value: String) -> Result<(), Rejection> {
    defaults.environment = Some(value);
    Ok(())
}

#[allow(clippy::needless_pass_by_value)]
fn set_dialect(defaults: &mut Defaults, value: String) -> Result<(), Rejection> {
    let known = || Dialect::ALL.iter().copied().filter(|dialect| *dialect != Dialect::Unknown);
    defaults.dialect = known().find(|dialect| dialect.as_str() == value);
    if defaults.dialect.is_none() {
        let known: Vec<_> = known().map(Dialect::as_str).collect();
        return Err(bad(format!("there is no dialect {}: there are {}", quoted(&value), known.join(", "))));
    }
    Ok(())
}

fn idempotency_key(head: &Parts, form: Form) -> Result<Option<IdempotencyKey>, Rejection> {
    let mut values = head.headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().unwrap_or_default();
    let good = (1..=KEY_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if !good || values.next().is_some() {
        return Err(bad(format!(
            "Idempotency-Key takes one value of 1 to {KEY_BYTES} visible ASCII characters"
        )));
    }
    let token = head.extensions.get::<Client>().and_then(Client::token_name).map(str::to_owned);
    Ok(Some(IdempotencyKey { token, key: key.to_owned(), form: form.as_str() }))
}

fn bad(detail: String) -> Rejection {
    Rejection::new(RejectionReason::BadParameter, detail)
}
