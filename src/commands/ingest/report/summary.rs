//! The printed summary: tables, with bars on a terminal, or one JSON object.

use super::{Counts, FileReport, Report};
use crate::cli::terminal::{self, OutputStyle, cell, format_percent, number_cell};
use comfy_table::Cell;
use indicatif::HumanCount;
use serde_json::{Value, json};
use std::time::Duration;

impl Report {
    /// Returns the summary as tables.
    pub(in super::super) fn tables(&self, style: OutputStyle) -> String {
        let mut text = self.file_table(style);
        if !self.categories.is_empty() {
            text.push('\n');
            text.push_str(&if style.terminal { self.bars(style) } else { self.category_table(style) });
        }
        text
    }

    fn file_table(&self, style: OutputStyle) -> String {
        let mut table = style.table(&["FILE", "LINES", "EVENTS", "UNRECOGNIZED", "REJECTED", "STATE"]);
        for file in &self.files {
            let mut row = vec![cell(&file.name)];
            row.extend(count_cells(&file.counts));
            row.push(cell(file.state.as_str()));
            table.add_row(row);
        }
        if self.files.len() > 1 {
            let mut row = vec![style.bold_cell("all")];
            row.extend(count_cells(&self.total));
            row.push(cell(""));
            table.add_row(row);
        }
        terminal::render_table(&table)
    }

    fn category_table(&self, style: OutputStyle) -> String {
        let mut table = style.table(&["CATEGORY", "EVENTS", "SHARE"]);
        for (category, events) in self.categories.iter() {
            let share = format_percent(events, self.total.events);
            table.add_row([cell(category.as_str()), count_cell(events), number_cell(&share)]);
        }
        terminal::render_table(&table)
    }

    fn bars(&self, style: OutputStyle) -> String {
        let most = self.categories.iter().map(|(_, events)| events).max().unwrap_or_default();
        let line = |(category, events): (classifier::Category, u64)| {
            format!(
                "{:12}{}  {:>11}  {:>7}\n",
                category.as_str(),
                style.bar(events, 0, most),
                HumanCount(events).to_string(),
                format_percent(events, self.total.events),
            )
        };
        self.categories.iter().map(line).collect()
    }

    /// Returns the summary as one JSON object.
    pub(in super::super) fn json(&self, took: Duration) -> String {
        let files: Vec<Value> = self.files.iter().map(file_json).collect();
        let mut object = counts_json(&self.total);
        object["files"] = files.into();
        object["categories"] = json!(self.categories);
        object["seconds"] = json!(took.as_secs_f64());
        let mut text = object.to_string();
        terminal::sanitize_json(&mut text);
        text.push('\n');
        text
    }
}

fn count_cells(counts: &Counts) -> [Cell; 4] {
    [counts.lines(), counts.events, counts.unrecognized, counts.rejected].map(count_cell)
}

fn count_cell(count_cell: u64) -> Cell {
    number_cell(&HumanCount(count_cell).to_string())
}

fn file_json(file: &FileReport) -> Value {
    let mut object = counts_json(&file.counts);
    object["file"] = file.name.as_str().into();
    object["state"] = file.state.as_str().into();
    object
}

fn counts_json(counts: &Counts) -> Value {
    json!({
        "lines": counts.lines(),
        "events": counts.events,
        "unrecognized": counts.unrecognized,
        "rejected": counts.rejected,
    })
}
