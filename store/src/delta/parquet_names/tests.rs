//! What is written here is read with the reader of the `parquet` crate, and compared with what its writer would say.

use super::*;
use crate::delta::row_group::RowGroup;
use arrow::array::{Array, AsArray, DictionaryArray, Int32Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

const PAGE_ROWS: usize = 100;

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_bloom_filter_enabled(true)
        .build()
}

/// Returns a batch whose dictionary has the names in an order of its own, some of them twice.
fn batch(names: &[Option<String>], is_nullable: bool) -> RecordBatch {
    let values: Vec<&str> = names.iter().rev().flatten().map(String::as_str).collect();
    let key = |name: &String| i32::try_from(values.iter().rposition(|value| value == name).unwrap()).unwrap();
    let keys: Int32Array = names.iter().map(|name| name.as_ref().map(key)).collect();
    let column = DictionaryArray::<Int32Type>::new(keys, Arc::new(StringArray::from(values.clone())));
    let field = Field::new("name", column.data_type().clone(), is_nullable);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(column)]).unwrap()
}

/// Writes batches, with our own encoding or that of the crate.
fn written(batches: &[RecordBatch], is_ours: bool) -> Bytes {
    let schema = batches[0].schema();
    let options = ArrowWriterOptions::new().with_properties(properties()).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options).unwrap();
    if !is_ours {
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        return writer.into_inner().unwrap().into();
    }
    let (mut file, factory) = writer.into_serialized_writer().unwrap();
    let mut group = RowGroup::new(&file, &factory, &schema).unwrap();
    let (first, rest) = batches.split_at(1);
    for batches in [first, rest] {
        let places: Vec<_> = batches
            .iter()
            .enumerate()
            .flat_map(|(place, batch)| (0..batch.num_rows()).map(move |row| (place, row)))
            .collect();
        group.write(batches, &places).unwrap();
    }
    group.finish(&mut file).unwrap();
    file.into_inner().unwrap().into()
}

fn read(file: Bytes) -> (ParquetMetaData, Vec<Option<String>>) {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    let footer = builder.metadata().as_ref().clone();
    let mut names = Vec::new();
    for batch in builder.build().unwrap() {
        let column = cast(batch.unwrap().column(0), &DataType::Utf8).unwrap();
        names.extend(column.as_string::<i32>().iter().map(|name| name.map(str::to_owned)));
    }
    (footer, names)
}

/// Checks that a file of ours has the same rows as one of the crate, and says the same about them.
fn check(names: &[Option<String>], is_nullable: bool) {
    let (first, second) = names.split_at(names.len() / 2);
    let batches = [batch(first, is_nullable), batch(second, is_nullable), batch(first, is_nullable)];
    let expected: Vec<_> = first.iter().chain(second).chain(first).cloned().collect();
    let (file, reference) = (written(&batches, true), written(&batches, false));
    let (footer, rows) = read(file.clone());
    let (of_crate, _) = read(reference);
    assert_eq!(rows, expected);
    let (ours, theirs) = (footer.row_group(0).column(0), of_crate.row_group(0).column(0));
    assert_eq!(ours.statistics(), theirs.statistics());
    assert_eq!(ours.num_values(), theirs.num_values());
    let pages = footer.offset_index().unwrap()[0][0].page_locations().clone();
    let first_rows: Vec<_> =
        pages.iter().map(|page| usize::try_from(page.first_row_index).unwrap()).collect();
    assert_eq!(first_rows, (0..expected.len()).step_by(PAGE_ROWS).collect::<Vec<_>>());
    let options = ArrowReaderOptions::new();
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap();
    let filter = builder.get_row_group_column_bloom_filter(0, 0).unwrap().unwrap();
    assert!(expected.iter().flatten().all(|name| filter.check(name.as_bytes())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn names_are_read_as_they_were_written(
        few in vec(option::of("[a-c]"), 2..700),
        many in vec(option::of("[a-zé永]{0,90}"), 2..300),
        always in vec("[ab]{1,4}", 2..300),
    ) {
        check(&few, true);
        check(&many, true);
        check(&always.into_iter().map(Some).collect::<Vec<_>>(), false);
    }
}

#[test]
fn a_chunk_without_names_is_read_as_one() {
    check(&vec![None; 250], true);
}

/// A hostile sender can make every name another one. Then a dictionary would only cost memory.
#[test]
fn a_chunk_with_too_many_names_has_no_dictionary() {
    let names: Vec<_> = (0..3_000).map(|number| Some(format!("{number:<700}"))).collect();
    let batches = [batch(&names, true), batch(&names[..1], true)];
    let (footer, rows) = read(written(&batches, true));
    assert!(rows.len() == 3_001 && rows[..3_000] == names[..]);
    let column = footer.row_group(0).column(0);
    assert_eq!(column.dictionary_page_offset(), None);
    assert!(column.compressed_size() > 0);
}

#[test]
fn bounds_enclose_long_names() {
    let long = |last: char| format!("{}{last}", "x".repeat(BOUND_BYTES - 1));
    for name in [long('a') + "b", long('\u{d7ff}') + "b", long('é') + "é", long('\u{10ffff}') + "b"] {
        let ((low, _), (high, is_exact)) = (lower_bound(name.as_bytes()), upper_bound(name.as_bytes()));
        assert!(low.as_slice() < name.as_bytes() && high.as_slice() > name.as_bytes() && !is_exact, "{name}");
        assert!(high.len() <= BOUND_BYTES + 1 && std::str::from_utf8(&high).is_ok(), "{name}");
    }
    let most = "\u{10ffff}".repeat(BOUND_BYTES);
    assert_eq!(upper_bound(most.as_bytes()), (most.clone().into_bytes(), true));
}
