//! MCP tasks: calls whose result arrives later.
//!
//! Invariants: a running task is pending, neither ok nor failed; with a tracker, one task is reported as
//! pending once and as ended once, however often it is polled.

use super::pairing::PairedCall;
use super::{EnvelopeFinder, EnvelopeVisitor, Failure, Scope, SearchResult, Success};
use crate::context::{ContextField, EnvelopeKey, IndexedObject};
use crate::dialect::Dialect;
use crate::event::Outcome;
use crate::json::{Json, Parser};
use crate::reason::UnrecognizedReason;
use crate::request_tracker::{Progress, TrackedCall, TrackedKind};

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskState {
    GoesOn,
    Completed,
    Failed,
}

/// The status words of each state.
const STATES: [(&str, TaskState); 12] = [
    ("working", TaskState::GoesOn),
    ("submitted", TaskState::GoesOn),
    ("queued", TaskState::GoesOn),
    ("pending", TaskState::GoesOn),
    ("running", TaskState::GoesOn),
    ("in_progress", TaskState::GoesOn),
    ("input_required", TaskState::GoesOn),
    ("completed", TaskState::Completed),
    ("failed", TaskState::Failed),
    ("rejected", TaskState::Failed),
    ("cancelled", TaskState::Failed),
    ("canceled", TaskState::Failed),
];

/// The key under which a result names its task.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// A task, as stated by a result or a notification.
struct Task<'t> {
    object: Json<'t>,
    id: Json<'t>,
    state: TaskState,
}

impl<'t> Task<'t> {
    /// Reads `{"taskId": ..., "status": ...}`, or the same under `task`.
    fn read(object: &IndexedObject<'t>) -> Option<Self> {
        let has_id = object.get(EnvelopeKey::TaskId).is_some();
        let task =
            if has_id { object.json } else { object.json.get("task").filter(|task| task.is_object())? };
        let id = task.get("taskId").or_else(|| task.get("task_id"))?;
        let is_new = object.get(EnvelopeKey::ResultType).and_then(Json::as_str) == Some("task");
        let status = task.get("status").and_then(Json::as_str).or(is_new.then_some("working"))?;
        let (_, state) = STATES.iter().find(|(word, _)| *word == status)?;
        Some(Self { object: task, id, state: *state })
    }
}

impl<R: EnvelopeVisitor> EnvelopeFinder<'_, R> {
    /// Reads the state of a task, or the result of one; returns `None` if the object is not about a task.
    pub(super) fn read_task_result(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> Option<SearchResult> {
        match Task::read(object) {
            Some(task) => Some(self.read_task(&task, scope, parsers)),
            None => self.read_related_result(object, scope, parsers),
        }
    }

    fn read_task(&mut self, task: &Task<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> SearchResult {
        let known = self.recall(TrackedKind::Task, task.id, scope);
        let progress = known.as_ref().map(|call| call.progress);
        // Without its result, a completed task does not show whether the tool failed; the result comes next.
        let awaits_result = task.state == TaskState::Completed && task.object.present("result").is_none();
        if awaits_result {
            return match known {
                Some(_) => Err(UnrecognizedReason::RepeatedState),
                None => self.report_task(task, scope, parsers),
            };
        }
        if progress == Some(Progress::Finished)
            || progress == Some(Progress::Pending) && task.state == TaskState::GoesOn
        {
            return Err(UnrecognizedReason::RepeatedState);
        }
        let Some(call) = known else {
            self.remember_task(task, scope);
            return self.report_task(task, scope, parsers);
        };
        let ended = TrackedCall { progress: Progress::Finished, ..call.clone() };
        self.remember(TrackedKind::Task, task.id, ended, scope);
        let paired = PairedCall::new(call, scope);
        paired.fields().replace(scope, |scope| {
            self.report_task(task, &Scope { arguments: paired.call.arguments, ..*scope }, parsers)
        })
    }

    /// Remembers a task together with the operation that created it.
    fn remember_task(&mut self, task: &Task<'_>, scope: &Scope<'_>) {
        let operation = scope.fields[ContextField::Operation as usize].and_then(Json::as_str);
        // The operation of a poll is not the operation of the task.
        let operation =
            operation.filter(|name| !name.starts_with("tasks/") && !name.starts_with("notifications/"));
        let call = self.new_call(operation.unwrap_or_default(), None, None, scope);
        let progress = if task.state == TaskState::GoesOn { Progress::Pending } else { Progress::Finished };
        let call = TrackedCall {
            operation: call.operation.filter(|name| !name.is_empty()),
            arguments: scope.arguments,
            progress,
            ..call
        };
        self.remember(TrackedKind::Task, task.id, call, scope);
    }

    fn report_task(&mut self, task: &Task<'_>, scope: &Scope<'_>, parsers: &mut [Parser]) -> SearchResult {
        match task.state {
            TaskState::GoesOn => {
                let pending = Success { outcome: Outcome::Pending, ..Success::new(Dialect::Jsonrpc) };
                self.visitor.on_success(pending, scope);
                Ok(())
            }
            TaskState::Completed => self.read_completed_task(task, scope, parsers),
            TaskState::Failed => {
                let error = task.object.present("error");
                let message = || {
                    ["statusMessage", "status_message", "message"]
                        .into_iter()
                        .find_map(|key| task.object.get(key)?.as_str())
                };
                let failure = match error.filter(|error| error.is_object()) {
                    Some(error) => super::error_shapes::read_jsonrpc_error(Dialect::Jsonrpc, error),
                    None => Failure {
                        message: error
                            .and_then(Json::as_str)
                            .or_else(message)
                            .or_else(|| task.object.get("status")?.as_str()),
                        ..Failure::new(Dialect::Jsonrpc)
                    },
                };
                self.report_failure(&failure, scope);
                Ok(())
            }
        }
    }

    /// Reports a completed task, whose result may be a failure.
    fn read_completed_task(
        &mut self,
        task: &Task<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> SearchResult {
        let result = task.object.present("result").filter(|result| result.is_object());
        let searched = result.map(|result| self.search_result(result, scope, parsers));
        match searched {
            Some(Ok(())) => {}
            Some(Err(reason @ UnrecognizedReason::TooManyLevels)) => return Err(reason),
            Some(Err(_)) | None => self.visitor.on_success(Success::new(Dialect::Jsonrpc), scope),
        }
        Ok(())
    }

    /// Reads the result of a task that was fetched separately. It repeats the end of the task, if that was
    /// seen.
    fn read_related_result(
        &mut self,
        object: &IndexedObject<'_>,
        scope: &Scope<'_>,
        parsers: &mut [Parser],
    ) -> Option<SearchResult> {
        let id = object.get(EnvelopeKey::Meta)?.get(RELATED_TASK)?.get("taskId")?;
        let call = self.recall(TrackedKind::Task, id, scope)?;
        if call.progress == Progress::Finished {
            return Some(Err(UnrecognizedReason::RepeatedState));
        }
        let ended = TrackedCall { progress: Progress::Finished, ..call.clone() };
        self.remember(TrackedKind::Task, id, ended, scope);
        let paired = PairedCall::new(call, scope);
        Some(paired.fields().replace(scope, |scope| {
            let scope = Scope { arguments: paired.call.arguments, envelope: Some(object.json), ..*scope };
            self.read_tool_result(object, &scope, parsers)
        }))
    }
}
