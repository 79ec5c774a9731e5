//! The keys of the replies of upstream APIs, and the meaning of each key.
//!
//! The table is data: adding a spelling or a language takes one row.

use crate::json::{Json, TapeOffset};
use crate::name_table::NameTable;
use std::sync::LazyLock;

/// The meaning of a key's value in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// True if the request succeeded.
    Verdict,
    /// True if the request failed.
    ErrorFlag,
    /// The error itself: a text, an object, a list or a flag.
    Error,
    /// A text under a key that only errors have.
    ErrorText,
    /// A list of errors.
    Errors,
    Message,
    Detail,
    Title,
    /// A text that is the body of a reply, whether the request succeeded or failed.
    Body,
    /// A word for the outcome, or an HTTP status.
    Status,
    HttpStatus,
    Code,
    Type,
    Kind,
    Data,
    /// A link to documentation about the error.
    Documentation,
}

pub(super) const SLOT_COUNT: usize = Slot::Documentation as usize + 1;

/// The meaning of a key with a non-empty value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyMeaning {
    Slot(Slot),
    /// A key that occurs both in errors and in data, and decides nothing.
    Companion,
    /// A key of a record or a list that a tool returned, rather than of an error.
    Record,
}

/// The spellings of each slot, in order of preference.
const SLOTS: [(Slot, &[&str]); SLOT_COUNT] = [
    (
        Slot::Verdict,
        &[
            "success",
            "ok",
            "Success",
            "OK",
            "succeeded",
            "isSuccess",
            "is_success",
            "exito",
            "éxito",
            "exitoso",
            "sucesso",
            "successo",
            "succès",
            "succes",
            "erfolg",
            "erfolgreich",
            "успех",
            "成功",
        ],
    ),
    (Slot::ErrorFlag, &["is_error", "isError", "has_error", "hasError", "iserror", "HasError"]),
    (
        Slot::Error,
        &[
            "error",
            "err",
            "Error",
            "errore",
            "erreur",
            "fehler",
            "erro",
            "exception",
            "fault",
            "ошибка",
            "错误",
            "エラー",
            "@x",
        ],
    ),
    (
        Slot::ErrorText,
        &[
            "error_message",
            "errorMessage",
            "error_msg",
            "errorMsg",
            "errmsg",
            "errMsg",
            "error_description",
            "errorDescription",
            "error_text",
            "errorText",
            "error_detail",
            "errorDetail",
            "error_summary",
            "errorSummary",
            "ErrorMessage",
            "failure_message",
            "mensaje_error",
            "original_error",
            "originalError",
        ],
    ),
    (Slot::Errors, &["errors", "errorMessages", "error_messages", "Errors", "errores", "erreurs", "erros"]),
    (
        Slot::Message,
        &[
            "message",
            "msg",
            "Message",
            "mensaje",
            "mensagem",
            "messaggio",
            "nachricht",
            "meldung",
            "сообщение",
            "消息",
            "メッセージ",
            "faultstring",
            "@m",
            "@mt",
        ],
    ),
    (Slot::Detail, &["detail", "details", "description", "Detail", "detalle", "reason", "cause"]),
    (Slot::Title, &["title"]),
    (Slot::Body, &["content", "output", "text", "stderr"]),
    (Slot::Status, &["status", "Status", "estado", "statut", "result"]),
    (
        Slot::HttpStatus,
        &[
            "statusCode",
            "status_code",
            "http_status",
            "httpStatus",
            "http_code",
            "httpCode",
            "StatusCode",
            "cod",
        ],
    ),
    (
        Slot::Code,
        &["code", "error_code", "errorCode", "errcode", "errCode", "err_code", "Code", "errno", "errorNum"],
    ),
    (Slot::Type, &["type", "__type", "error_type", "errorType", "exception_type", "object", "errorClass"]),
    (Slot::Kind, &["kind"]),
    (Slot::Data, &["data"]),
    (Slot::Documentation, &["documentation_url", "documentationUrl", "docs_url", "more_info", "moreInfo"]),
];

const COMPANIONS: &[&str] = &[
    "request_id",
    "requestId",
    "RequestId",
    "trace_id",
    "traceId",
    "correlationId",
    "correlation_id",
    "timestamp",
    "time",
    "ts",
    "path",
    "instance",
    "method",
    "hint",
    "hints",
    "suggestion",
    "suggestions",
    "tool",
    "tool_name",
    "server",
    "operation",
    "service",
    "param",
    "field",
    "fields",
    "stack",
    "stacktrace",
    "stack_trace",
    "traceback",
    "context",
    "meta",
    "metadata",
    "_meta",
    "extensions",
    "warnings",
    "category",
    "subCategory",
    "subtype",
    "help",
    "links",
    "status_text",
    "statusText",
    "locale",
    "host",
    "retryable",
    "is_retryable",
    "retry",
    "retry_after",
    "retryAfter",
    "retry_after_ms",
    "retryAfterMs",
    "retry_after_seconds",
    "available_tools",
    "availableTools",
    "available",
    "valid_values",
    "allowed",
    "validation_errors",
    "validationErrors",
    "issues",
    "invalid_params",
    "invalid-params",
    "content_type",
    "error_subcode",
    "fbtrace_id",
    "error_user_msg",
    "apiVersion",
    "next_steps",
    "documentation",
    "docs",
    "troubleshooting",
    "recovery",
    "action",
    "remediation",
    "guidance",
    "duration_ms",
    "durationMs",
    "session_id",
    "sessionId",
    "user_message",
    "userMessage",
    "developer_message",
    "developerMessage",
    "display_message",
    "name",
    "source",
    "resource",
    "url",
    "input",
    "query",
    "args",
    "arguments",
    "parameters",
    "params",
    "messages",
    "response_metadata",
    "ResponseMetadata",
    "needed",
    "provided",
    "required",
    "config",
    "request",
    "attempts",
    "jsonrpc",
    "provider",
    "model",
    "url_for_help",
    "code_name",
    "debug_id",
    "errorDetails",
    "@t",
    "@l",
];

const RECORD_KEYS: &[&str] = &[
    "id",
    "_id",
    "uuid",
    "gid",
    "sha",
    "number",
    "key",
    "created_at",
    "createdAt",
    "updated_at",
    "updatedAt",
    "started_at",
    "startedAt",
    "finished_at",
    "finishedAt",
    "completed_at",
    "completedAt",
    "ended_at",
    "endedAt",
    "startTime",
    "endTime",
    "event_time",
    "is_complete",
    "author",
    "owner",
    "assignee",
    "events",
    "rows",
    "columns",
    "nodes",
    "edges",
    "records",
    "logs",
    "log",
    "entries",
    "hits",
    "items",
    "results",
    "conditions",
    "checks",
    "findings",
    "violations",
    "diagnostics",
    "tests",
    "testResults",
    "steps",
    "jobs",
    "runs",
    "stages",
    "state",
    "progress",
    "total",
    "count",
    "page",
    "next_cursor",
    "has_more",
    "lines",
    "failures",
    "passed",
    "failed",
    "summary",
    "statistics",
    "artifacts",
    "commits",
    "files",
    "labels",
];

static KEY_TABLE: LazyLock<NameTable<(KeyMeaning, u8)>> = LazyLock::new(|| {
    let slots = SLOTS.iter().flat_map(|(slot, names)| {
        names.iter().zip(0..).map(|(name, rank)| ((*name).to_owned(), (KeyMeaning::Slot(*slot), rank)))
    });
    let others = [(COMPANIONS, KeyMeaning::Companion), (RECORD_KEYS, KeyMeaning::Record)];
    let others = others
        .into_iter()
        .flat_map(|(names, meaning)| names.iter().map(move |name| ((*name).to_owned(), (meaning, 0))));
    NameTable::new(slots.chain(others))
});

/// The fields of an object, sorted by their meaning in a reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShapeFields<'t> {
    pub(super) object: Json<'t>,
    offsets: [Option<TapeOffset>; SLOT_COUNT],
    /// The number of non-empty fields whose keys are unknown.
    pub(super) unknown: usize,
    /// The number of fields that belong to a record that a tool returned.
    pub(super) record: usize,
    /// The number of fields, including empty ones.
    pub(super) count: usize,
}

impl<'t> ShapeFields<'t> {
    /// Sorts the fields of an object in one pass. Empty values only add to `count`.
    pub(super) fn read(object: Json<'t>) -> Self {
        let mut fields = Self { object, offsets: [None; SLOT_COUNT], unknown: 0, record: 0, count: 0 };
        let mut ranks = [u8::MAX; SLOT_COUNT];
        let table = &*KEY_TABLE;
        for (key, value, offset) in object.fields().with_offsets() {
            fields.count += 1;
            if is_empty(value) {
                continue;
            }
            match table.get(key) {
                Some((KeyMeaning::Slot(slot), rank)) => {
                    if rank < ranks[slot as usize] {
                        ranks[slot as usize] = rank;
                        fields.offsets[slot as usize] = Some(offset);
                    }
                }
                Some((KeyMeaning::Companion, _)) => {}
                // An object under `results` repeats the error; a list of them is data.
                Some((KeyMeaning::Record, _)) if key == "results" && value.is_object() => {}
                Some((KeyMeaning::Record, _)) => fields.record += 1,
                None => fields.unknown += 1,
            }
        }
        // A Kubernetes object is data, unless it is a status.
        fields.record += usize::from(fields.text(Slot::Kind).is_some_and(|kind| kind != "Status"));
        fields
    }

    pub(super) fn get(&self, slot: Slot) -> Option<Json<'t>> {
        self.object.value_at(self.offsets[slot as usize]?)
    }

    pub(super) fn has(&self, slot: Slot) -> bool {
        self.offsets[slot as usize].is_some()
    }

    /// Returns the text of a slot if it is not blank.
    pub(super) fn text(&self, slot: Slot) -> Option<&'t str> {
        self.get(slot)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    pub(super) fn has_text(&self, slots: &[Slot]) -> bool {
        slots.iter().any(|slot| self.text(*slot).is_some())
    }
}

/// Reports whether a value is empty: null, a blank text, or a list or an object without elements.
fn is_empty(value: Json<'_>) -> bool {
    let is_blank = value.as_str().is_some_and(|text| text.trim_ascii().is_empty());
    value.is_null()
        || is_blank
        || value.is_array() && value.items().next().is_none()
        || value.is_object() && value.fields().next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_slot_has_its_row_and_every_key_one_meaning() {
        for (index, (slot, _)) in SLOTS.iter().enumerate() {
            assert_eq!(*slot as usize, index);
        }
        let slots = SLOTS.iter().flat_map(|(_, names)| names.iter());
        let mut seen = HashSet::new();
        for key in slots.chain(COMPANIONS).chain(RECORD_KEYS) {
            assert!(seen.insert(*key), "{key} stands twice");
        }
    }
}
