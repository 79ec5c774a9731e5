//! What `classify --summary` prints: two sentences, bars by category on a terminal, and two tables.

use super::super::tally::Tally;
use super::{CodeRow, Counts, Group, Summary};
use crate::terminal::{self, Look, cell, counted, figure, share};
use clap::builder::styling::AnsiColor;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, Row, Table};
use indicatif::HumanCount;
use std::cmp::Reverse;
use taxonomy::{Category, Kind};

impl Summary {
    /// The whole summary; `top` bounds the rows of each table, and 0 does not.
    pub(in super::super) fn text(&self, tally: &Tally, top: usize, look: Look) -> String {
        let mut text = self.sentences(tally);
        if tally.events == 0 {
            return text;
        }
        let top = if top == 0 { usize::MAX } else { top };
        if look.terminal {
            text.push('\n');
            text.push_str(&self.bars(look));
        }
        text.push('\n');
        text.push_str(&self.code_table(top, look));
        text.push('\n');
        text.push_str(&self.group_table(top, look));
        text
    }

    fn sentences(&self, tally: &Tally) -> String {
        let kind = |kind: Kind| self.kinds.get(&kind).copied().unwrap_or_default();
        let calls = tally.worked + tally.waiting_for_input + tally.failed + tally.hidden;
        let waiting = match tally.waiting_for_input {
            0 => String::new(),
            waiting => format!("{} asked for more input, ", HumanCount(waiting)),
        };
        format!(
            "{} in {}: {}, {}, {}.\n{}: {} worked, {waiting}{} failed openly, {} failed inside a success.\n\
             {} of all failures are hidden.\n",
            counted(tally.events, "event"),
            counted(tally.lines, "line"),
            counted(kind(Kind::Error), "error"),
            counted(kind(Kind::Warning), "warning"),
            counted(kind(Kind::Audit), "audit event"),
            counted(calls, "call"),
            HumanCount(tally.worked),
            HumanCount(tally.failed),
            HumanCount(tally.hidden),
            share(tally.hidden, tally.failed + tally.hidden),
        )
    }

    fn bars(&self, look: Look) -> String {
        let most = self.categories.values().map(|counts| counts.events).max().unwrap_or_default();
        let rows =
            Category::ALL.iter().filter_map(|category| Some((category, self.categories.get(category)?)));
        let mut text = String::new();
        for (category, counts) in rows {
            text.push_str(&bar(*category, *counts, most, look));
        }
        let legend = format!("{} hidden in a success", look.paint("▒", AnsiColor::Yellow));
        text.push_str(&format!(
            "{:12}{} open failures, warnings, audit events   {legend}\n",
            "",
            look.paint("█", AnsiColor::Cyan)
        ));
        text
    }

    fn code_table(&self, top: usize, look: Look) -> String {
        let mut rows: Vec<&CodeRow> = self.codes.rows.values().collect();
        rows.sort_by_key(|row| (Reverse(row.counts.events), row.category, &row.canonical, &row.service));
        let mut table = look.table(&["CATEGORY", "CODE", "SERVICE", "EVENTS", "HIDDEN"]);
        for row in rows.iter().take(top) {
            let names = [row.category.as_str(), &row.canonical, &row.service];
            table.add_row(with_counts(names.map(named), row.counts, look));
        }
        if self.codes.other.events > 0 {
            table.add_row(with_counts(["(other)", "", ""].map(cell), self.codes.other, look));
        }
        let left: Vec<Counts> = rows.iter().skip(top).map(|row| row.counts).collect();
        terminal::text_of(&table) + &below("row", &left, self.codes.limit, self.codes.other)
    }

    fn group_table(&self, top: usize, look: Look) -> String {
        let mut groups: Vec<&Group> = self.groups.rows.values().collect();
        groups.sort_by_key(|group| (Reverse(group.counts.events), group.fingerprint));
        let mut table = look.table(&["GROUP", "CODE", "TEMPLATE", "SEEN AT", "EVENTS", "HIDDEN"]);
        for group in groups.iter().take(top) {
            let fingerprint = format!("{:016x}", group.fingerprint);
            let place = place(group);
            let names = [fingerprint.as_str(), &group.canonical, &group.template, &place];
            table.add_row(with_counts(names.map(named), group.counts, look));
        }
        if self.groups.other.events > 0 {
            table.add_row(with_counts(["(other)", "", "", ""].map(cell), self.groups.other, look));
        }
        keep_whole(&mut table, look);
        let left: Vec<Counts> = groups.iter().skip(top).map(|group| group.counts).collect();
        terminal::text_of(&table) + &below("group", &left, self.groups.limit, self.groups.other)
    }
}

/// Leaves the room of a terminal to the templates: what is copied from the table stays in one piece, and where
/// there is little room, the code is in the table above.
fn keep_whole(table: &mut Table, look: Look) {
    let is_narrow = look.terminal && table.width().is_some_and(|width| width < 110);
    for (index, constraint) in [(0, ColumnConstraint::ContentWidth), (1, ColumnConstraint::Hidden)] {
        if let Some(column) = table.column_mut(index).filter(|_| is_narrow || index == 0) {
            column.set_constraint(constraint);
        }
    }
}

/// A name, or a sign that there is none: an empty cell would leave columns hard to tell apart.
fn named(name: &str) -> Cell {
    cell(if name.is_empty() { "-" } else { name })
}

/// Service and operation of one event of the group.
fn place(group: &Group) -> String {
    match (group.service.as_str(), group.operation.as_str()) {
        ("", operation) => operation.to_owned(),
        (service, "") => service.to_owned(),
        (service, operation) => format!("{service} {operation}"),
    }
}

fn with_counts(names: impl IntoIterator<Item = Cell>, counts: Counts, look: Look) -> Row {
    let mut row: Row = names.into_iter().collect::<Vec<_>>().into();
    row.add_cell(figure(&HumanCount(counts.events).to_string()));
    let hidden = share(counts.hidden, counts.events);
    let hidden = if counts.hidden > 0 { look.marked(&hidden) } else { cell(&hidden) };
    row.add_cell(hidden.set_alignment(CellAlignment::Right));
    row
}

/// What a table leaves out, said below it.
fn below(noun: &str, left: &[Counts], limit: usize, other: Counts) -> String {
    let mut text = String::new();
    if !left.is_empty() {
        let events = left.iter().map(|counts| counts.events).sum();
        let rows = counted(left.len() as u64, &format!("more {noun}"));
        text.push_str(&format!("... and {rows} with {}; --top 0 shows all\n", counted(events, "event")));
    }
    if other.events > 0 {
        let limit = HumanCount(limit as u64);
        text.push_str(&format!("(other): only the first {limit} distinct {noun}s are told apart\n"));
    }
    text
}

/// One bar; the hidden part of it has its own pattern.
fn bar(category: Category, counts: Counts, most: u64, look: Look) -> String {
    format!(
        "{:12}{}  {:>9}  {:>7} hidden\n",
        category.as_str(),
        look.bar(counts.events, counts.hidden, most),
        HumanCount(counts.events).to_string(),
        share(counts.hidden, counts.events),
    )
}
