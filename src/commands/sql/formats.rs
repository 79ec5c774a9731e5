//! The output formats of rows, which are encoded batch by batch, so that a result of any length needs little memory.
//!
//! Invariant: control characters in texts never reach a terminal unescaped. JSON escapes them; CSV, which has no
//! escapes, shows them as `\u{1b}`.

use crate::cli::terminal::{self, OutputStyle};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::{csv, json};
use clap::ValueEnum;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// The number of rows that the Parquet writer keeps in memory before it writes them.
const ROW_GROUP_ROWS: usize = 128 << 10;

/// The output format of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A table on a terminal, CSV when piped, and for a file what its name says.
    #[default]
    Auto,
    /// Columns for a person; a table that is too wide is shown record by record.
    Table,
    /// Record by record, one line a column.
    Vertical,
    /// Comma-separated values with a header, quoted as in RFC 4180.
    Csv,
    /// A list of objects.
    Json,
    /// One object a line.
    Ndjson,
    /// A Parquet file, compressed with zstd.
    Parquet,
    /// An Arrow IPC stream.
    Arrow,
}

impl Format {
    /// Returns the format, with `auto` resolved for this output.
    pub(super) fn resolve(self, path: Option<&Path>, style: OutputStyle) -> Self {
        match (self, path) {
            (Self::Auto, Some(path)) => Self::from_extension(path),
            (Self::Auto, None) if style.terminal => Self::Table,
            (Self::Auto, None) => Self::Csv,
            (format, _) => format,
        }
    }

    fn from_extension(path: &Path) -> Self {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "json" => Self::Json,
            "ndjson" | "jsonl" => Self::Ndjson,
            "parquet" => Self::Parquet,
            "arrow" | "arrows" => Self::Arrow,
            "txt" => Self::Table,
            _ => Self::Csv,
        }
    }

    /// Returns the name of the format on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the format with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::from_str(name, true).ok()
    }

    /// Returns true when a terminal cannot show the format.
    pub(super) fn is_binary(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }

    /// Returns true when a file of this format can contain only one result.
    pub(super) fn is_single(self) -> bool {
        self.is_binary()
    }

    /// Returns true when the format lays out all rows at once.
    pub(super) fn is_for_people(self) -> bool {
        matches!(self, Self::Auto | Self::Table | Self::Vertical)
    }
}

/// The reason why rows cannot be written in a format.
#[derive(Debug, thiserror::Error)]
pub(super) enum EncodeError {
    #[error("the rows cannot be written as {1}: {0}; cast the column to text, or choose another format")]
    Arrow(ArrowError, &'static str),
    #[error("the rows cannot be written as parquet: {0}; cast the column to text, or choose another format")]
    Parquet(#[from] ParquetError),
}

/// An encoder that turns batches into bytes.
pub(super) enum Encoder {
    /// The schema, until the header is written.
    Csv(Option<SchemaRef>),
    Lines,
    List {
        is_begun: bool,
    },
    Parquet(Box<ArrowWriter<Vec<u8>>>),
    Arrow(Box<StreamWriter<Vec<u8>>>),
}

impl Encoder {
    /// Creates an encoder for a format that is written batch by batch.
    pub(super) fn new(format: Format, schema: &SchemaRef) -> Result<Self, EncodeError> {
        Ok(match format {
            Format::Json => Self::List { is_begun: false },
            Format::Ndjson => Self::Lines,
            Format::Parquet => {
                let level = ZstdLevel::try_new(3)?;
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(level))
                    .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
                    .build();
                let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties))?;
                Self::Parquet(Box::new(writer))
            }
            Format::Arrow => {
                let writer = StreamWriter::try_new(Vec::new(), schema);
                Self::Arrow(Box::new(writer.map_err(|error| EncodeError::Arrow(error, "arrow"))?))
            }
            Format::Auto | Format::Table | Format::Vertical | Format::Csv => {
                Self::Csv(Some(Arc::clone(schema)))
            }
        })
    }

    /// Encodes some rows.
    pub(super) fn encode(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, EncodeError> {
        match self {
            Self::Csv(header) => encode_csv(batch, header.take().is_some()),
            Self::Lines => encode_ndjson(batch).map(String::into_bytes),
            Self::List { is_begun } => {
                let mut text = String::new();
                for line in encode_ndjson(batch)?.lines() {
                    text.push_str(if *is_begun { ",\n  " } else { "[\n  " });
                    text.push_str(line);
                    *is_begun = true;
                }
                Ok(text.into_bytes())
            }
            Self::Parquet(writer) => {
                writer.write(batch)?;
                Ok(std::mem::take(writer.inner_mut()))
            }
            Self::Arrow(writer) => {
                writer.write(batch).map_err(|error| EncodeError::Arrow(error, "arrow"))?;
                Ok(std::mem::take(writer.get_mut()))
            }
        }
    }

    /// Returns the last bytes.
    pub(super) fn finish(self) -> Result<Vec<u8>, EncodeError> {
        match self {
            Self::Csv(None) => Ok(Vec::new()),
            // An empty result also has a header.
            Self::Csv(Some(schema)) => encode_csv(&RecordBatch::new_empty(schema), true),
            Self::Lines => Ok(Vec::new()),
            Self::List { is_begun } => Ok(if is_begun { "\n]\n" } else { "[]\n" }.into()),
            Self::Parquet(writer) => Ok(writer.into_inner()?),
            Self::Arrow(mut writer) => {
                let finished = writer.finish().and_then(|()| writer.into_inner());
                finished.map_err(|error| EncodeError::Arrow(error, "arrow"))
            }
        }
    }
}

/// Encodes rows as lines of JSON.
fn encode_ndjson(batch: &RecordBatch) -> Result<String, EncodeError> {
    let mut writer = json::WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, json::writer::LineDelimited>(Vec::new());
    let written = writer.write(batch).and_then(|()| writer.finish());
    written.map_err(|error| EncodeError::Arrow(error, "json"))?;
    let mut text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    terminal::sanitize_json(&mut text);
    Ok(text)
}

/// Encodes rows as comma-separated values.
fn encode_csv(batch: &RecordBatch, has_header: bool) -> Result<Vec<u8>, EncodeError> {
    let mut writer = csv::WriterBuilder::new().with_header(has_header).build(Vec::new());
    let written = for_csv(batch).and_then(|batch| writer.write(&batch));
    written.map_err(|error| EncodeError::Arrow(error, "csv"))?;
    Ok(writer.into_inner())
}

/// Converts rows for CSV: lists become text, and control characters in texts are escaped.
fn for_csv(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let column = column_for_csv(column)?;
        fields.push(Field::new(escape_control(field.name()), column.data_type().clone(), true));
        columns.push(column);
    }
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

fn column_for_csv(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let column = if column.data_type().is_nested() { as_text(column)? } else { Arc::clone(column) };
    if *column.data_type() != DataType::Utf8 {
        return Ok(column);
    }
    let texts = column.as_string::<i32>();
    if !texts.iter().flatten().any(|text| text.contains(is_control)) {
        return Ok(column);
    }
    Ok(Arc::new(texts.iter().map(|text| text.map(escape_control)).collect::<StringArray>()))
}

fn as_text(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::new();
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let text = |row| column.is_valid(row).then(|| formatter.value(row).to_string());
    Ok(Arc::new((0..column.len()).map(text).collect::<StringArray>()))
}

/// Returns true for characters on which a terminal could act, except line ends and tabs, which are common and harmless.
fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

fn escape_control(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut escape_control = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_control(c) { escape_control.extend(c.escape_default()) } else { escape_control.push(c) }
    }
    Cow::Owned(escape_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, ListArray};
    use arrow::datatypes::Int64Type;

    fn batch() -> RecordBatch {
        let lists = [Some(vec![Some(1), None]), None];
        RecordBatch::try_from_iter_with_nullable([
            ("n", Arc::new(Int64Array::from(vec![Some(7), None])) as ArrayRef, true),
            (
                "text",
                Arc::new(StringArray::from(vec![Some("a,\"b\"\nc"), Some("\u{1b}[2J\u{9b}")])) as _,
                true,
            ),
            ("list", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)) as _, true),
        ])
        .unwrap()
    }

    fn written(format: Format, batches: &[RecordBatch]) -> Vec<u8> {
        let mut encoder = Encoder::new(format, &batch().schema()).unwrap();
        let mut bytes: Vec<u8> = batches.iter().flat_map(|batch| encoder.encode(batch).unwrap()).collect();
        bytes.extend(encoder.finish().unwrap());
        bytes
    }

    fn text(format: Format, batches: &[RecordBatch]) -> String {
        String::from_utf8(written(format, batches)).unwrap()
    }

    #[test]
    fn rows_are_written_one_batch_after_the_other() {
        let two = [batch().slice(0, 1), batch().slice(1, 1)];
        assert_eq!(
            text(Format::Csv, &two),
            "n,text,list\n7,\"a,\"\"b\"\"\nc\",\"[1, ]\"\n,\\u{1b}[2J\\u{9b},\n"
        );
        let encode_ndjson = text(Format::Ndjson, &two);
        assert_eq!(encode_ndjson.lines().count(), 2);
        assert!(
            !encode_ndjson.contains(char::is_control) || encode_ndjson.matches('\n').count() == 2,
            "{encode_ndjson}"
        );
        let list: serde_json::Value = serde_json::from_str(&text(Format::Json, &two)).unwrap();
        assert_eq!(list[1]["text"], "\u{1b}[2J\u{9b}");
        assert_eq!(list[1]["n"], serde_json::Value::Null);
        assert_eq!(list[0]["list"], serde_json::json!([1, null]));
    }

    #[test]
    fn no_rows_are_an_answer_too() {
        assert_eq!(text(Format::Csv, &[]), "n,text,list\n");
        assert_eq!(text(Format::Json, &[]), "[]\n");
        assert_eq!(text(Format::Ndjson, &[]), "");
    }

    #[test]
    fn what_programs_read_holds_the_same_rows() {
        let two = [batch().slice(0, 1), batch().slice(1, 1)];
        let bytes = written(Format::Arrow, &two);
        let read = arrow::ipc::reader::StreamReader::try_new(&bytes[..], None).unwrap();
        assert_eq!(read.map(Result::unwrap).collect::<Vec<_>>(), two);
        let bytes = bytes::Bytes::from(written(Format::Parquet, &two));
        let read = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(bytes, 1024).unwrap();
        assert_eq!(read.map(Result::unwrap).collect::<Vec<_>>(), [batch()]);
    }

    #[test]
    fn a_files_name_says_what_is_in_it() {
        let style = OutputStyle { terminal: true, colour: true };
        let resolve = |name: Option<&str>, style| Format::Auto.resolve(name.map(Path::new), style);
        assert_eq!(resolve(None, style), Format::Table);
        assert_eq!(resolve(None, OutputStyle::default()), Format::Csv);
        assert_eq!(resolve(Some("a.PARQUET"), style), Format::Parquet);
        assert_eq!(resolve(Some("a.jsonl"), style), Format::Ndjson);
        assert_eq!(resolve(Some("a"), style), Format::Csv);
        assert_eq!(Format::Json.resolve(Some(Path::new("a.csv")), style), Format::Json);
    }
}
