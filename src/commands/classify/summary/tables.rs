//! The output of `classify --summary`: a few sentences, bars by category on a terminal, and two tables.

use super::super::stats::RunStats;
use super::{CodeRow, Counts, Group, Summary};
use crate::cli::terminal::{self, OutputStyle, cell, format_count, format_percent, number_cell};
use clap::builder::styling::AnsiColor;
use classifier::{Category, EventKind};
use comfy_table::{Cell, CellAlignment, ColumnConstraint, Row, Table};
use indicatif::HumanCount;
use std::cmp::Reverse;

impl Summary {
    /// Returns the whole summary. `top` limits the rows of each table; 0 means no limit.
    pub(in super::super) fn text(&self, stats: &RunStats, top: usize, style: OutputStyle) -> String {
        let mut text = self.sentences(stats);
        if stats.events == 0 {
            return text;
        }
        let top = if top == 0 { usize::MAX } else { top };
        if style.terminal {
            text.push('\n');
            text.push_str(&self.bars(style));
        }
        text.push('\n');
        text.push_str(&self.code_table(top, style));
        text.push('\n');
        text.push_str(&self.group_table(top, style));
        text
    }

    fn sentences(&self, stats: &RunStats) -> String {
        let kind = |kind: EventKind| self.kinds.get(&kind).copied().unwrap_or_default();
        let calls = stats.succeeded + stats.input_required + stats.failed + stats.hidden;
        let waiting = match stats.input_required {
            0 => String::new(),
            waiting => format!("{} asked for more input, ", HumanCount(waiting)),
        };
        format!(
            "{} in {}: {}, {}, {}.\n{}: {} worked, {waiting}{} failed openly, {} failed inside a success.\n\
             {} of all failures are hidden.\n",
            format_count(stats.events, "event"),
            format_count(stats.lines, "line"),
            format_count(kind(EventKind::Error), "error"),
            format_count(kind(EventKind::Warning), "warning"),
            format_count(kind(EventKind::Audit), "audit event"),
            format_count(calls, "call"),
            HumanCount(stats.succeeded),
            HumanCount(stats.failed),
            HumanCount(stats.hidden),
            format_percent(stats.hidden, stats.failed + stats.hidden),
        )
    }

    fn bars(&self, style: OutputStyle) -> String {
        let most = self.categories.values().map(|counts| counts.events).max().unwrap_or_default();
        let rows =
            Category::ALL.iter().filter_map(|category| Some((category, self.categories.get(category)?)));
        let mut text = String::new();
        for (category, counts) in rows {
            text.push_str(&bar(*category, *counts, most, style));
        }
        let legend = format!("{} hidden in a success", style.paint("▒", AnsiColor::Yellow));
        text.push_str(&format!(
            "{:12}{} open failures, warnings, audit events   {legend}\n",
            "",
            style.paint("█", AnsiColor::Cyan)
        ));
        text
    }

    fn code_table(&self, top: usize, style: OutputStyle) -> String {
        let mut rows: Vec<&CodeRow> = self.codes.rows.values().collect();
        rows.sort_by_key(|row| (Reverse(row.counts.events), row.category, &row.canonical, &row.service));
        let mut table = style.table(&["CATEGORY", "CODE", "SERVICE", "EVENTS", "HIDDEN"]);
        for row in rows.iter().take(top) {
            let names = [row.category.as_str(), &row.canonical, &row.service];
            table.add_row(with_counts(names.map(name_cell), row.counts, style));
        }
        if self.codes.other.events > 0 {
            table.add_row(with_counts(["(other)", "", ""].map(cell), self.codes.other, style));
        }
        let omitted: Vec<Counts> = rows.iter().skip(top).map(|row| row.counts).collect();
        terminal::render_table(&table) + &footer("row", &omitted, self.codes.limit, self.codes.other)
    }

    fn group_table(&self, top: usize, style: OutputStyle) -> String {
        let mut groups: Vec<&Group> = self.groups.rows.values().collect();
        groups.sort_by_key(|group| (Reverse(group.counts.events), group.fingerprint));
        let mut table = style.table(&["GROUP", "CODE", "TEMPLATE", "SEEN AT", "EVENTS", "HIDDEN"]);
        for group in groups.iter().take(top) {
            let fingerprint = format!("{:016x}", group.fingerprint);
            let seen_at = seen_at(group);
            let names = [fingerprint.as_str(), &group.canonical, &group.template, &seen_at];
            table.add_row(with_counts(names.map(name_cell), group.counts, style));
        }
        if self.groups.other.events > 0 {
            table.add_row(with_counts(["(other)", "", "", ""].map(cell), self.groups.other, style));
        }
        constrain_columns(&mut table, style);
        let omitted: Vec<Counts> = groups.iter().skip(top).map(|group| group.counts).collect();
        terminal::render_table(&table) + &footer("group", &omitted, self.groups.limit, self.groups.other)
    }
}

/// Leaves the space of a terminal to the templates. Group ids, which users copy, are never wrapped; on a narrow
/// terminal the code is hidden, since the table above has it.
fn constrain_columns(table: &mut Table, style: OutputStyle) {
    let is_narrow = style.terminal && table.width().is_some_and(|width| width < 110);
    for (index, constraint) in [(0, ColumnConstraint::ContentWidth), (1, ColumnConstraint::Hidden)] {
        if let Some(column) = table.column_mut(index).filter(|_| is_narrow || index == 0) {
            column.set_constraint(constraint);
        }
    }
}

/// Returns a cell with a name, or a dash if it is empty, because empty cells make columns hard to tell apart.
fn name_cell(name: &str) -> Cell {
    cell(if name.is_empty() { "-" } else { name })
}

/// Returns the service and the operation of one event of the group.
fn seen_at(group: &Group) -> String {
    match (group.service.as_str(), group.operation.as_str()) {
        ("", operation) => operation.to_owned(),
        (service, "") => service.to_owned(),
        (service, operation) => format!("{service} {operation}"),
    }
}

fn with_counts(names: impl IntoIterator<Item = Cell>, counts: Counts, style: OutputStyle) -> Row {
    let mut row: Row = names.into_iter().collect::<Vec<_>>().into();
    row.add_cell(number_cell(&HumanCount(counts.events).to_string()));
    let hidden = format_percent(counts.hidden, counts.events);
    let hidden = if counts.hidden > 0 { style.marked(&hidden) } else { cell(&hidden) };
    row.add_cell(hidden.set_alignment(CellAlignment::Right));
    row
}

/// Returns the lines below a table about the rows that it omits.
fn footer(noun: &str, omitted: &[Counts], limit: usize, other: Counts) -> String {
    let mut text = String::new();
    if !omitted.is_empty() {
        let events = omitted.iter().map(|counts| counts.events).sum();
        let rows = format_count(omitted.len() as u64, &format!("more {noun}"));
        text.push_str(&format!("... and {rows} with {}; --top 0 shows all\n", format_count(events, "event")));
    }
    if other.events > 0 {
        let limit = HumanCount(limit as u64);
        text.push_str(&format!("(other): only the first {limit} distinct {noun}s are told apart\n"));
    }
    text
}

/// Returns one bar with its numbers; the hidden part has its own pattern.
fn bar(category: Category, counts: Counts, most: u64, style: OutputStyle) -> String {
    format!(
        "{:12}{}  {:>9}  {:>7} hidden\n",
        category.as_str(),
        style.bar(counts.events, counts.hidden, most),
        HumanCount(counts.events).to_string(),
        format_percent(counts.hidden, counts.events),
    )
}
