//! Evidence: derives the meaning of a failure from its wording, for failures without a registered code.
//!
//! Most real failures are prose. A table of patterns (`registry/evidence/`, one row per pattern) is compiled into one
//! automaton. A text is normalized and its wrappers are removed; then every row that matches adds its weight to the
//! category of its canonical code. Statuses, SQLSTATEs and JSON-RPC codes in the text count as well. The category with
//! the highest total wins.
//!
//! Invariants: the same text gives the same result; the work is linear in the length of the text, of which at most the
//! first [`MAX_TEXT_BYTES`] and the last line of a stack trace are read; words inside URLs, paths and identifiers such
//! as `timeout_ms` do not count as evidence.

mod load;
mod normalize;
mod opening;
mod position;
mod source;
mod status;
mod wrapper;

use crate::category::Category;
use crate::fault::Fault;
use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem::Finder;
use normalize::Normalized;
use opening::Openings;
use position::{Focus, fits};
use std::ops::RangeInclusive;
use std::sync::{LazyLock, OnceLock};

/// The number of bytes of a text that are read.
const MAX_TEXT_BYTES: usize = 4096;
/// The number of bytes at the end of a stack trace in which its last line is looked for.
const MAX_LAST_LINE_BYTES: usize = 512;
/// The score from which the wording takes precedence over a generic code. A row of weight 5 in the first sentence has
/// a score of 50.
const STRONG_SCORE: i32 = 45;
/// The score below which the wording is not used.
const MIN_SCORE: i32 = 8;
/// The score from which the wording takes precedence over registered codes that only state that something failed.
const DECISIVE_SCORE: i32 = 75;

/// The reliability of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// Sufficient if nothing else is known.
    Weak,
    /// Takes precedence over a generic code.
    Strong,
    /// Takes precedence over a registered code that only states that something failed.
    Decisive,
}

/// The result of reading the text of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evidence<'r, 't> {
    /// The canonical code that the wording indicates; `None` if only a wrapper was recognized.
    pub(crate) canonical: Option<&'r str>,
    pub(crate) category: Category,
    pub(crate) strength: Strength,
    /// The party at fault, if the wording is more specific than the category.
    pub(crate) fault: Option<Fault>,
    /// The operation that a wrapper or the message names.
    pub(crate) operation: Option<&'t str>,
    /// The JSON-RPC code in the text, as in `MCP error -32602: ...`.
    pub(crate) code: Option<i64>,
    /// The HTTP status in the text.
    pub(crate) http_status: Option<u16>,
    /// The text without its wrappers.
    pub(crate) message: &'t str,
}

/// One row of the table.
#[derive(Debug, Clone)]
struct Row {
    /// The wordings as they are written in the file, for the reference page.
    any: Vec<String>,
    canonical: String,
    category: Category,
    weight: i32,
    fault: Option<Fault>,
    has_with: bool,
}

/// The effect of a pattern when it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Any,
    With,
    Without,
    /// Text after this pattern is advice.
    Advice,
    /// Text after this pattern is the cause.
    Cause,
}

/// One wording in the automaton.
#[derive(Debug, Clone)]
struct Pattern {
    /// True if the last word may continue.
    is_stem: bool,
    /// True if the wording is the name of a class: `KeyError` matches, "duplicate key error" does not.
    is_class: bool,
    /// The rows that use the pattern, and its role in each.
    uses: Vec<(usize, Role)>,
}

/// The meaning of a range of HTTP statuses.
#[derive(Debug, Clone)]
struct Status {
    statuses: RangeInclusive<u16>,
    canonical: String,
    category: Category,
    weight: i32,
    fault: Option<Fault>,
}

/// The meaning of the SQLSTATEs with a common prefix.
#[derive(Debug, Clone)]
struct Sqlstate {
    prefix: String,
    canonical: String,
    category: Category,
    fault: Option<Fault>,
}

/// Finds every wording in one pass. The automaton is built when the first text is read, so that a process that reads
/// no text does not wait for it.
#[derive(Debug, Clone)]
struct PatternFinder {
    texts: Vec<String>,
    /// `None` if it cannot be built, which a test rules out.
    automaton: OnceLock<Option<AhoCorasick>>,
}

impl PatternFinder {
    fn new(texts: Vec<String>) -> Self {
        Self { texts, automaton: OnceLock::new() }
    }

    fn automaton(&self) -> Option<&AhoCorasick> {
        let build = || {
            let mut builder = AhoCorasick::builder();
            builder.match_kind(MatchKind::Standard).prefilter(false).build(&self.texts).ok()
        };
        self.automaton.get_or_init(build).as_ref()
    }
}

/// The compiled evidence table.
#[derive(Debug, Clone)]
pub(crate) struct EvidenceTable {
    rows: Vec<Row>,
    patterns: Vec<Pattern>,
    finder: PatternFinder,
    statuses: Vec<Status>,
    sqlstates: Vec<Sqlstate>,
    openings: Openings,
}

impl EvidenceTable {
    /// Returns true if an unflagged text, as a whole, states that the call failed, rather than being data that
    /// mentions failures.
    pub(crate) fn opens_as_failure(&self, text: &str) -> bool {
        self.openings.states_failure(text, |text| {
            self.read(text).is_some_and(|read| read.canonical.is_some() && read.strength >= Strength::Strong)
        })
    }

    /// Reads the text of a failure. Returns `None` if neither its wording nor its wrappers are recognized.
    pub(crate) fn read<'r, 't>(&'r self, text: &'t str) -> Option<Evidence<'r, 't>> {
        let mut scores = Scores::new(self);
        let message = scores.add_message(text);
        scores.finish(message)
    }

    /// Returns the wordings of every row with a positive weight and the canonical code they indicate, in file order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&[String], &str)> {
        self.rows.iter().filter(|row| row.weight > 0).map(|row| (row.any.as_slice(), row.canonical.as_str()))
    }
}

/// The message of a failure without its wrappers, and the facts that the wrappers stated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'t> {
    text: &'t str,
    operation: Option<&'t str>,
    code: Option<i64>,
    /// True if a wrapper states that a tool failed, and no text follows.
    is_withheld: bool,
}

impl<'t> Message<'t> {
    /// Returns the operation that a wrapper or the message names.
    fn named_operation(&self, canonical: &str) -> Option<&'t str> {
        self.operation.or_else(|| wrapper::named_tool(self.text)).or_else(|| {
            (canonical == "NOT_FOUND_OPERATION").then(|| wrapper::trailing_name(self.text)).flatten()
        })
    }

    /// Removes the wrappers from a text.
    fn read(text: &'t str) -> Self {
        let peeled = wrapper::peel(crate::limits::truncate_str(text, MAX_TEXT_BYTES));
        Self {
            text: peeled.text,
            operation: peeled.operation,
            code: peeled.code,
            is_withheld: peeled.says_failed && peeled.operation.is_some() && peeled.text.is_empty(),
        }
    }

    const NONE: Self = Self { text: "", operation: None, code: None, is_withheld: false };
}

/// The evidence gathered so far for one failure.
pub(crate) struct Scores<'r> {
    table: &'r EvidenceTable,
    /// The states of the rows of which a wording was found.
    states: Vec<RowState>,
    /// For each row, its position in `states` from 1 on; zero if it has none.
    positions: Vec<u16>,
    /// Evidence beyond the rows: canonical, category, score, fault.
    extra: Vec<(&'r str, Category, i32, Option<Fault>)>,
    http_status: Option<u16>,
}

impl<'r> Scores<'r> {
    pub(crate) fn new(table: &'r EvidenceTable) -> Self {
        Self {
            table,
            states: Vec::with_capacity(USUAL_HITS),
            positions: vec![0; table.rows.len()],
            extra: Vec::new(),
            http_status: None,
        }
    }

    /// Adds the evidence of a message and returns the message without its wrappers.
    pub(crate) fn add_message<'t>(&mut self, text: &'t str) -> Message<'t> {
        let message = Message::read(text);
        self.add_words(message.text, 10);
        if let Some(line) = last_line(text) {
            self.add_words(line, 20);
        }
        message
    }

    /// Adds the evidence of the words in a code or a class name, such as `index_not_found` or `ConnectTimeout`.
    pub(crate) fn add_name(&mut self, name: &str) {
        self.add_words(crate::limits::truncate_str(name, MAX_LAST_LINE_BYTES), 9);
    }

    /// Adds the HTTP status that accompanied a failure, and the canonical code that the registry has for it.
    pub(crate) fn add_status(&mut self, status: u16, canonical: &'r str, category: Category) {
        let row = self.table.statuses.iter().find(|row| row.statuses.contains(&status));
        self.extra.push((canonical, category, row.map_or(4, |row| row.weight) * 10, None));
    }

    /// Adds an HTTP status that was found in a text.
    fn add_text_status(&mut self, status: u16, factor: i32) {
        if let Some(row) = self.table.statuses.iter().find(|row| row.statuses.contains(&status)) {
            self.extra.push((&row.canonical, row.category, row.weight * factor, row.fault));
        }
    }

    fn add_words(&mut self, text: &str, factor: i32) {
        let form = Normalized::of_text(text);
        if let Some(state) = status::sqlstate(&form.text) {
            let fits = |row: &&Sqlstate| state.starts_with(row.prefix.as_str());
            if let Some(row) = self.table.sqlstates.iter().find(fits) {
                self.extra.push((&row.canonical, row.category, 9 * factor, row.fault));
            }
        }
        if self.http_status.is_none() {
            self.http_status = status::http_status(&form.text).map(|(status, _)| status);
            if let Some(status) = self.http_status {
                self.add_text_status(status, factor);
            }
        }
        if says_none_found(&form.text) {
            self.extra.push(("NOT_FOUND_RESOURCE", Category::NotFound, 7 * factor, None));
        }
        self.add_patterns(&form, factor);
    }

    fn add_patterns(&mut self, form: &Normalized, factor: i32) {
        let table = self.table;
        let Some(automaton) = table.finder.automaton() else { return };
        let mut hits = Vec::with_capacity(USUAL_HITS);
        hits.extend(
            automaton
                .find_overlapping_iter(&form.text)
                .map(|hit| Hit { start: hit.start(), end: hit.end(), pattern: hit.pattern().as_usize() })
                .filter(|hit| fits(form, &table.patterns[hit.pattern], hit.start, hit.end)),
        );
        // A wording that contains others comes before them.
        hits.sort_unstable_by_key(|hit| (hit.start, std::cmp::Reverse(hit.end), hit.pattern));
        let mut focus = Focus::default();
        let mut covered: (usize, usize) = (0, 0);
        for hit in &hits {
            let is_covered = hit.end <= covered.1 && (hit.start, hit.end) != covered;
            let place = focus.factor(form, hit.start, hit.end);
            for &(row, role) in &table.patterns[hit.pattern].uses {
                match role {
                    Role::Any if is_covered && table.rows[row].weight > 0 => {}
                    Role::Any => {
                        let state = self.state(row);
                        state.any = state.any.max(place);
                        if hit.end > covered.1 && !table.rows[row].has_with && table.rows[row].weight > 0 {
                            covered = (hit.start, hit.end);
                        }
                    }
                    Role::With => self.state(row).with = true,
                    Role::Without => self.state(row).without = true,
                    Role::Advice => focus.is_advice = true,
                    Role::Cause => focus = Focus { from: hit.start, is_advice: false },
                }
            }
        }
        for state in &mut self.states {
            let row = &table.rows[state.row];
            let RowState { any, with, without, score: best, .. } = *state;
            *state = RowState { score: best, ..RowState::new(state.row) };
            if any > 0 && !without && (with || !row.has_with) {
                let score = row.weight * any * factor / 10;
                state.score = if row.weight < 0 { score.min(best) } else { score.max(best) };
            }
        }
    }

    /// Returns the state of a row.
    fn state(&mut self, row: usize) -> &mut RowState {
        let position = &mut self.positions[row];
        if *position == 0 {
            self.states.push(RowState::new(row));
            // Loading ensures that there are fewer rows than this can count.
            *position = u16::try_from(self.states.len()).unwrap_or(u16::MAX);
        }
        &mut self.states[usize::from(*position) - 1]
    }

    /// Returns the evidence that the scores amount to.
    pub(crate) fn finish<'t>(mut self, message: Message<'t>) -> Option<Evidence<'r, 't>> {
        if wrapper::is_missing_tool(message.text) {
            self.extra.push(("NOT_FOUND_OPERATION", Category::NotFound, 120, None));
        }
        if message.is_withheld {
            self.extra.push(("INTERNAL_ERROR", Category::Internal, 50, Some(Fault::Server)));
        }
        self.states.sort_unstable_by_key(|state| state.row);
        let rows = self.states.iter().map(|state| (&self.table.rows[state.row], state.score));
        let all = rows
            .filter(|(_, score)| *score != 0)
            .map(|(row, score)| (row.canonical.as_str(), row.category, score, row.fault))
            .chain(self.extra.iter().copied());
        let mut totals = [0; Category::ALL.len()];
        all.clone().for_each(|(_, category, score, _)| totals[category as usize] += score);
        // Among equal totals, the first in the order of the categories wins.
        let best = Category::ALL.iter().copied().rev().max_by_key(|category| totals[*category as usize])?;
        let total = totals[best as usize];
        let speaks = total >= MIN_SCORE;
        let row = all
            .filter(|(_, category, ..)| *category == best)
            .fold(None, |best: Option<(_, _, i32, _)>, row| match best {
                Some(known) if known.2 >= row.2 => Some(known),
                _ => Some(row),
            })
            .filter(|_| speaks);
        let canonical = row.map(|(canonical, ..)| canonical);
        let operation = message.named_operation(canonical.unwrap_or_default());
        let says_something = canonical.is_some() || operation.is_some() || message.code.is_some();
        says_something.then_some(Evidence {
            canonical,
            category: if speaks { best } else { Category::Unknown },
            strength: match total {
                DECISIVE_SCORE.. => Strength::Decisive,
                STRONG_SCORE.. => Strength::Strong,
                _ => Strength::Weak,
            },
            fault: row.and_then(|(_, _, _, fault)| fault),
            operation,
            code: message.code,
            http_status: self.http_status,
            message: message.text,
        })
    }
}

/// An occurrence of a wording in the text.
#[derive(Debug, Clone, Copy)]
struct Hit {
    start: usize,
    end: usize,
    pattern: usize,
}

/// The state of a row while a failure is read.
#[derive(Debug, Clone, Copy)]
struct RowState {
    row: usize,
    /// The best score in the texts that were read.
    score: i32,
    /// The best factor of a matching wording in the text that is read.
    any: i32,
    with: bool,
    without: bool,
}

impl RowState {
    fn new(row: usize) -> Self {
        Self { row, score: 0, any: 0, with: false, without: false }
    }
}

/// The number of matches for which memory is reserved: more than nearly all texts have.
const USUAL_HITS: usize = 16;

/// Returns the last line of a stack trace, unless it is empty.
fn last_line(text: &str) -> Option<&str> {
    static TRACE: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("Traceback (most recent call last)"));
    let is_trace = TRACE.find(text.as_bytes()).is_some();
    if !is_trace && text.len() <= MAX_TEXT_BYTES {
        return None;
    }
    let text = text.trim_end();
    let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_LAST_LINE_BYTES));
    text[start..].lines().last().filter(|line| !line.is_empty() && is_trace)
}

/// Returns true for texts such as `No lamp found at 7` or `no element matches`, which name the thing between the
/// words.
fn says_none_found(text: &str) -> bool {
    const MAX_BYTES: usize = 100;
    static INSIDE: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(": no "));
    let inside = || INSIDE.find(text.as_bytes()).map(|at| at + 2);
    let starts = text.starts_with("no ").then_some(0).or_else(inside);
    starts.is_some_and(|at| {
        let clause = crate::limits::truncate_str(&text[at..], MAX_BYTES);
        let clause = clause.split(['.', ':', '\n', ';']).next().unwrap_or_default();
        [" found", " match", " with id", " with name", " exists", " for id", " named "]
            .iter()
            .any(|word| clause.contains(word))
    })
}

pub(crate) use load::load;

/// Returns the operation that the text of a failure names: `Error executing tool x: ...`, `Unknown tool: x`.
pub(crate) fn named_operation<'t>(text: &'t str, canonical: &str) -> Option<&'t str> {
    Message::read(text).named_operation(canonical)
}

/// The message of a failure without any text.
pub(crate) const NO_MESSAGE: Message<'static> = Message::NONE;

#[cfg(test)]
mod tests;
