//! Builds a failure from an object whose shape is known to report one: its code, its message and its type.

use super::keys::{ShapeFields, Slot};
use super::{error_status, is_error_name, is_jsend_failure, is_kubernetes_status, is_slug};
use crate::code::Code;
use crate::details::Details;
use crate::dialect::Dialect;
use crate::envelope::Failure;
use crate::envelope::error_shapes::{dialect_of_code, split_class_name};
use crate::json::Json;
use crate::registry::Registry;

/// Builds a failure from the fields.
pub(super) fn build<'t>(registry: &Registry, fields: &ShapeFields<'t>) -> Failure<'t> {
    let object = fields.object;
    let error = fields.get(Slot::Error);
    let nested = error
        .filter(|error| error.is_object())
        .or_else(|| first_error(fields))
        .or_else(|| fields.get(Slot::Detail).filter(|detail| detail.is_object() && fields.count == 1));
    let inner = nested.map(ShapeFields::read);
    let slug = fields.text(Slot::Error).filter(|text| is_slug(text));
    let code = read_code(fields, inner.as_ref(), slug);
    let text = inner.as_ref().and_then(best_text).or_else(|| best_text(fields)).or(slug);
    let (class, message) = text.map_or((None, None), |text| {
        let (class, message) = split_class_name(text);
        (class, Some(message))
    });
    let error_type = inner.as_ref().and_then(type_text).or_else(|| type_text(fields));
    let dialect = match dialect_of_code(registry, code) {
        Dialect::Unknown if code.is_absent() && error_status(fields).is_some() => Dialect::Http,
        dialect => dialect,
    };
    Failure {
        code,
        message,
        error: nested.or(Some(object)),
        error_fields: Details::read(nested.or(Some(object))),
        details: [object.get("details"), object.get("data")]
            .into_iter()
            .flatten()
            .find(|value| value.is_object()),
        type_name: class.or(error_type),
        is_string_error: code.is_absent() && fields.has_text(&[Slot::Error]),
        ..Failure::new(dialect)
    }
}

/// Returns the first object of a list of errors, whichever slot holds the list.
fn first_error<'t>(fields: &ShapeFields<'t>) -> Option<Json<'t>> {
    [Slot::Error, Slot::Errors, Slot::Detail]
        .into_iter()
        .filter_map(|slot| fields.get(slot))
        .filter_map(|list| list.items().next())
        .find(|item| item.is_object())
}

fn read_code<'t>(
    fields: &ShapeFields<'t>,
    inner: Option<&ShapeFields<'t>>,
    slug: Option<&'t str>,
) -> Code<'t> {
    let own = |fields: &ShapeFields<'t>| {
        let code = Code::read(fields.get(Slot::Code));
        (!code.is_absent() && code != Code::Number { value: 0, quoted: false }).then_some(code)
    };
    let in_extensions = |fields: &ShapeFields<'t>| {
        let code = Code::read(fields.object.get("extensions").and_then(|extensions| extensions.get("code")));
        (!code.is_absent()).then_some(code)
    };
    // The class of an AWS exception follows a `#`.
    let aws_class = || Some(fields.object.get("__type")?.as_str()?.rsplit('#').next().unwrap_or_default());
    let reason =
        || fields.object.get("reason").and_then(Json::as_str).filter(|_| is_kubernetes_status(fields));
    let named =
        slug.filter(|slug| is_error_name(slug)).or_else(aws_class).or_else(reason).map(Code::from_text);
    let coded = inner.and_then(|inner| own(inner).or_else(|| in_extensions(inner))).or_else(|| own(fields));
    match (coded, named) {
        // A number that only repeats the HTTP status is less specific than a name.
        (Some(Code::Number { value: 400..=599, .. }), Some(named)) => named,
        (Some(code), _) | (None, Some(code)) => code,
        (None, None) => Code::Missing,
    }
}

/// Returns the most informative text: prose before a name, and the API's message for people before the reason
/// phrase of a status.
fn best_text<'t>(fields: &ShapeFields<'t>) -> Option<&'t str> {
    let error = fields.text(Slot::Error).filter(|text| text.contains(' ') && error_status(fields).is_none());
    let in_list = || {
        let list = fields.get(Slot::Errors)?;
        let first = || list.items().next().or_else(|| list.fields().next().map(|(_, value)| value));
        list.as_str().or_else(|| first()?.as_str()).or_else(|| first()?.items().next()?.as_str())
    };
    let field_of_data = || fields.get(Slot::Data)?.fields().find_map(|(_, value)| value.as_str());
    error
        .or_else(|| [Slot::Message, Slot::ErrorText].into_iter().find_map(|slot| fields.text(slot)))
        .or_else(|| fields.text(Slot::Detail))
        .or_else(in_list)
        .or_else(|| [Slot::Title, Slot::Body, Slot::Error].into_iter().find_map(|slot| fields.text(slot)))
        .or_else(|| field_of_data().filter(|_| is_jsend_failure(fields)))
}

/// Returns the class or kind of an error, unless it only says that it is an error.
fn type_text<'t>(fields: &ShapeFields<'t>) -> Option<&'t str> {
    let is_telling = |text: &&str| !text.eq_ignore_ascii_case("error") && !text.contains("://");
    let name = || fields.object.get("name").and_then(Json::as_str).filter(|name| is_error_name(name));
    fields.text(Slot::Type).filter(is_telling).or_else(name)
}
