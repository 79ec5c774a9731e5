//! The summary as it is printed: tables, with bars on a terminal, or one JSON object.

use super::{Counts, FileReport, Report};
use crate::terminal::{self, Look, cell, figure, share};
use comfy_table::Cell;
use indicatif::HumanCount;
use serde_json::{Value, json};
use std::time::Duration;

impl Report {
    /// For people.
    pub(in super::super) fn tables(&self, look: Look) -> String {
        let mut text = self.file_table(look);
        if !self.categories.is_empty() {
            text.push('\n');
            text.push_str(&if look.terminal { self.bars(look) } else { self.category_table(look) });
        }
        text
    }

    fn file_table(&self, look: Look) -> String {
        let mut table = look.table(&["FILE", "LINES", "EVENTS", "UNRECOGNIZED", "REJECTED", "STATE"]);
        for file in &self.files {
            let mut row = vec![cell(&file.name)];
            row.extend(figures(&file.counts));
            row.push(cell(file.state.as_str()));
            table.add_row(row);
        }
        if self.files.len() > 1 {
            let mut row = vec![look.strong("all")];
            row.extend(figures(&self.total));
            row.push(cell(""));
            table.add_row(row);
        }
        terminal::text_of(&table)
    }

    fn category_table(&self, look: Look) -> String {
        let mut table = look.table(&["CATEGORY", "EVENTS", "SHARE"]);
        for (category, events) in self.categories.iter() {
            let share = share(events, self.total.events);
            table.add_row([cell(category.as_str()), number(events), figure(&share)]);
        }
        terminal::text_of(&table)
    }

    fn bars(&self, look: Look) -> String {
        let most = self.categories.iter().map(|(_, events)| events).max().unwrap_or_default();
        let line = |(category, events): (taxonomy::Category, u64)| {
            format!(
                "{:12}{}  {:>11}  {:>7}\n",
                category.as_str(),
                look.bar(events, 0, most),
                HumanCount(events).to_string(),
                share(events, self.total.events),
            )
        };
        self.categories.iter().map(line).collect()
    }

    /// For programs.
    pub(in super::super) fn json(&self, took: Duration) -> String {
        let files: Vec<Value> = self.files.iter().map(file_json).collect();
        let mut object = counts_json(&self.total);
        object["files"] = files.into();
        object["categories"] = json!(self.categories);
        object["seconds"] = json!(took.as_secs_f64());
        let mut text = object.to_string();
        terminal::harmless_json(&mut text);
        text.push('\n');
        text
    }
}

fn figures(counts: &Counts) -> [Cell; 4] {
    [counts.lines(), counts.events, counts.unrecognized, counts.rejected].map(number)
}

fn number(number: u64) -> Cell {
    figure(&HumanCount(number).to_string())
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
