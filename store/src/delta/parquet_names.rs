//! Encodes a column of names into a column chunk of a Parquet file.
//!
//! The writer of the `parquet` crate looks the text of every cell up, even if the column is a dictionary. Here each
//! distinct name of a batch is looked up once, and a row costs a number. The names are sorted when the chunk is complete,
//! so minimum and maximum are those of numbers.
//!
//! Invariant: readers see what the writer of the crate would have written: the same values, nulls and bounds, and pages
//! with an index. A chunk with too many names has no dictionary.

mod hybrid;

use super::names::{Address, NamesOf};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::error::ArrowError;
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use parquet::basic::{Compression, Encoding, EncodingMask, PageType, Type, ZstdLevel};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::hash::BuildHasher;
use std::ops::Range;
use zstd::bulk::Compressor;

/// The size of a dictionary above which names are stored without one.
const DICTIONARY_BYTES: usize = 1 << 20;
/// The size at which a page without a dictionary ends.
const PAGE_BYTES: usize = 1 << 20;
/// The number of bytes of a name that are kept as a bound.
const BOUND_BYTES: usize = 64;
/// The number of a row without a name.
const NONE: u32 = 0;

/// The properties of a column.
#[derive(Debug, Clone)]
pub(super) struct NameOptions {
    /// The column in the schema of the file.
    pub(super) column: ColumnDescPtr,
    /// The maximum number of rows in a page.
    pub(super) page_rows: usize,
    /// True if pages and chunk have a minimum and a maximum.
    pub(super) has_bounds: bool,
    /// The false positive rate of the bloom filter, if there is one.
    pub(super) bloom: Option<f64>,
    /// The compression level.
    pub(super) level: i32,
}

/// The names of a column in the rows of a row group.
pub(super) struct NameChunk {
    options: NameOptions,
    names: Names,
    /// The number of the name of each row, from 1.
    rows: Vec<u32>,
    /// The dictionaries of the batches that were added last.
    known: HashMap<Address, Dictionary, RandomState>,
}

/// A dictionary of a batch: its names, and the number of each that was looked up.
struct Dictionary {
    /// Keeps the memory of the names, so that no other dictionary has the same address.
    _names: ArrayRef,
    numbers: Vec<u32>,
}

impl NameChunk {
    pub(super) fn new(options: NameOptions) -> Self {
        Self { options, names: Names::default(), rows: Vec::new(), known: HashMap::default() }
    }

    /// Appends rows of batches, each given as its batch and its row in it.
    pub(super) fn extend(
        &mut self,
        batches: &[RecordBatch],
        column: usize,
        places: &[(usize, usize)],
    ) -> Result<(), ArrowError> {
        let unexpected = || ArrowError::SchemaError(format!("column {column} does not hold names"));
        let sources = batches.iter().map(|batch| NamesOf::new(batch.column(column)).ok_or_else(unexpected));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let mut before = std::mem::take(&mut self.known);
        // The numbers of all dictionaries, one after the other, and the start of each batch's.
        let (mut numbers, mut starts, mut addresses) = (Vec::new(), Vec::new(), Vec::new());
        let mut start_of: HashMap<Address, usize, RandomState> = HashMap::default();
        for source in &sources {
            let (names, address) = source.values.shared();
            let start = *start_of.entry(address).or_insert_with(|| {
                let start = numbers.len();
                match before.remove(&address) {
                    Some(known) => numbers.extend(known.numbers),
                    None => numbers.resize(start + source.values.len(), NONE),
                }
                addresses.push((address, names, start..numbers.len()));
                start
            });
            starts.push(start);
        }
        self.rows.reserve(places.len());
        for &(batch, row) in places {
            let source = &sources[batch];
            let Some(key) = source.key(row) else {
                self.rows.push(NONE);
                continue;
            };
            let number = &mut numbers[starts[batch] + key];
            if *number == NONE {
                *number = self.names.number(source.values.get(key));
            }
            self.rows.push(*number);
        }
        for (address, names, range) in addresses {
            self.known.insert(address, Dictionary { _names: names, numbers: numbers[range].to_vec() });
        }
        Ok(())
    }

    /// Returns the memory that the rows take, which is about the length of the chunk before compression.
    pub(super) fn bytes(&self) -> usize {
        self.names.bytes.len() + self.rows.len() * size_of::<u32>()
    }

    /// Returns the bytes of the chunk, and what the file's footer says about it.
    pub(super) fn finish(mut self) -> Result<(Bytes, ColumnCloseResult)> {
        self.known.clear();
        let Self { options, names, mut rows, .. } = self;
        let (names, ranks) = names.sorted();
        rows.iter_mut().for_each(|row| *row = ranks[*row as usize]);
        let mut chunk = ChunkWriter::new(options, &names)?;
        let encoding = chunk.write_dictionary()?;
        let mut begin = 0;
        while begin < rows.len() {
            let end = chunk.end_of_page(&rows, begin, encoding);
            chunk.write_page(&rows[begin..end], encoding)?;
            begin = end;
        }
        chunk.finish(rows.len(), encoding)
    }
}

/// Distinct names, with a number each, from 1.
#[derive(Default)]
struct Names {
    hasher: RandomState,
    known: HashTable<u32>,
    bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

impl Names {
    fn number(&mut self, name: &[u8]) -> u32 {
        let Self { hasher, known, bytes, ranges } = self;
        let at = |number: u32| &bytes[ranges[number as usize - 1].clone()];
        let hash = hasher.hash_one(name);
        if let Some(number) = known.find(hash, |number| at(*number) == name) {
            return *number;
        }
        let number = u32::try_from(ranges.len() + 1).unwrap_or(u32::MAX);
        known.insert_unique(hash, number, |number| hasher.hash_one(at(*number)));
        ranges.push(bytes.len()..bytes.len() + name.len());
        bytes.extend_from_slice(name);
        number
    }

    /// Returns the names in order, and the rank of each number, from 1.
    fn sorted(&self) -> (Vec<&[u8]>, Vec<u32>) {
        let mut order: Vec<usize> = (0..self.ranges.len()).collect();
        let name = |place: &usize| &self.bytes[self.ranges[*place].clone()];
        order.sort_unstable_by_key(name);
        let mut ranks = vec![NONE; order.len() + 1];
        for (place, rank) in order.iter().zip(1..) {
            ranks[place + 1] = rank;
        }
        (order.iter().map(name).collect(), ranks)
    }
}

/// Writes the pages of a chunk. Rows are ranks of names, from 1.
struct ChunkWriter<'n> {
    options: NameOptions,
    names: &'n [&'n [u8]],
    /// The number of bytes before each name in the values of a page: none if all names have one length.
    head: usize,
    into: TrackedWrite<Vec<u8>>,
    compressor: Compressor<'static>,
    column_index: ColumnIndexBuilder,
    offset_index: OffsetIndexBuilder,
    first_page: Option<u64>,
    pages: i32,
    uncompressed: usize,
    nulls: u64,
}

impl<'n> ChunkWriter<'n> {
    fn new(options: NameOptions, names: &'n [&'n [u8]]) -> Result<Self> {
        let physical = options.column.physical_type();
        Ok(Self {
            head: if physical == Type::FIXED_LEN_BYTE_ARRAY { 0 } else { size_of::<u32>() },
            column_index: ColumnIndexBuilder::new(physical),
            offset_index: OffsetIndexBuilder::new(),
            into: TrackedWrite::new(Vec::new()),
            compressor: Compressor::new(options.level)?,
            first_page: None,
            pages: 0,
            uncompressed: 0,
            nulls: 0,
            options,
            names,
        })
    }

    /// Writes the dictionary, if it is small enough, and returns the encoding of the pages that follow.
    fn write_dictionary(&mut self) -> Result<Encoding> {
        let bytes: usize = self.names.iter().map(|name| self.head + name.len()).sum();
        if bytes > DICTIONARY_BYTES {
            return Ok(Encoding::PLAIN);
        }
        let mut values = Vec::with_capacity(bytes);
        self.names.iter().for_each(|name| self.put(name, &mut values));
        let page = Page::DictionaryPage {
            buf: self.compressor.compress(&values)?.into(),
            num_values: count(self.names.len())?,
            encoding: Encoding::PLAIN,
            is_sorted: true,
        };
        self.write(page, values.len())?;
        Ok(Encoding::RLE_DICTIONARY)
    }

    fn put(&self, name: &[u8], into: &mut Vec<u8>) {
        if self.head > 0 {
            into.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
        }
        into.extend_from_slice(name);
    }

    /// Returns the end of the page that begins at a row.
    fn end_of_page(&self, rows: &[u32], begin: usize, encoding: Encoding) -> usize {
        let most = rows.len().min(begin + self.options.page_rows);
        if encoding != Encoding::PLAIN {
            return most;
        }
        let mut bytes = 0;
        let is_full = |row: &u32| {
            bytes += self.name(*row).map_or(0, |name| self.head + name.len());
            bytes > PAGE_BYTES
        };
        rows[begin..most].iter().position(is_full).map_or(most, |rows| begin + rows.max(1))
    }

    fn name(&self, rank: u32) -> Option<&'n [u8]> {
        self.names.get((rank as usize).checked_sub(1)?).copied()
    }

    fn write_page(&mut self, rows: &[u32], encoding: Encoding) -> Result<()> {
        let mut values = Vec::with_capacity(rows.len() / 2);
        if self.options.column.max_def_level() > 0 {
            values.extend_from_slice(&[0; 4]);
            hybrid::encode(rows.iter().map(|row| u32::from(*row != NONE)), 1, &mut values);
            let length = count(values.len() - 4)?;
            values[..4].copy_from_slice(&length.to_le_bytes());
        }
        let named = rows.iter().copied().filter(|row| *row != NONE);
        if encoding == Encoding::PLAIN {
            named.clone().filter_map(|row| self.name(row)).for_each(|name| self.put(name, &mut values));
        } else {
            let width = hybrid::width(self.names.len());
            values.push(width);
            hybrid::encode(named.clone().map(|row| row - 1), width, &mut values);
        }
        let bounds = named.clone().min().zip(named.clone().max());
        let nulls = rows.len() - named.count();
        self.index(bounds, nulls, rows.len())?;
        let page = Page::DataPage {
            buf: self.compressor.compress(&values)?.into(),
            num_values: count(rows.len())?,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let (offset, length) = self.write(page, values.len())?;
        self.offset_index.append_offset_and_size(position(offset)?, length);
        self.first_page.get_or_insert(offset);
        self.pages += 1;
        Ok(())
    }

    /// Adds a page to the indexes of the chunk.
    fn index(&mut self, bounds: Option<(u32, u32)>, nulls: usize, rows: usize) -> Result<()> {
        let bounds = bounds.and_then(|(low, high)| Some((self.name(low)?, self.name(high)?)));
        let (low, high) =
            bounds.map_or_else(Default::default, |(low, high)| (lower_bound(low).0, upper_bound(high).0));
        self.column_index.append(bounds.is_none(), low, high, position(nulls as u64)?);
        self.offset_index.append_row_count(position(rows as u64)?);
        self.nulls += nulls as u64;
        Ok(())
    }

    /// Writes a page, and returns its offset and length.
    fn write(&mut self, page: Page, uncompressed: usize) -> Result<(u64, i32)> {
        let page = CompressedPage::new(page, uncompressed);
        let written = SerializedPageWriter::new(&mut self.into).write_page(page)?;
        self.uncompressed += written.uncompressed_size;
        let length = i32::try_from(written.compressed_size).map_err(|_| too_long())?;
        Ok((written.offset, length))
    }

    fn finish(self, rows: usize, encoding: Encoding) -> Result<(Bytes, ColumnCloseResult)> {
        let statistics = self.options.has_bounds.then(|| self.statistics());
        let bloom_filter = self.options.bloom.map(|rate| self.bloom_filter(rate)).transpose()?;
        let bytes = self.into.into_inner()?;
        let has_dictionary = encoding != Encoding::PLAIN;
        let encodings = [Encoding::PLAIN, Encoding::RLE, encoding];
        let compression = Compression::ZSTD(ZstdLevel::try_new(self.options.level)?);
        let mut metadata = ColumnChunkMetaData::builder(self.options.column)
            .set_compression(compression)
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_total_compressed_size(position(bytes.len() as u64)?)
            .set_total_uncompressed_size(position(self.uncompressed as u64)?)
            .set_num_values(position(rows as u64)?)
            .set_data_page_offset(position(self.first_page.unwrap_or(0))?)
            .set_dictionary_page_offset(has_dictionary.then_some(0));
        let mut column_index = None;
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
            column_index = Some(self.column_index.build()?);
        }
        let pages = [(PageType::DICTIONARY_PAGE, Encoding::PLAIN, i32::from(has_dictionary))];
        let pages = pages.into_iter().chain([(PageType::DATA_PAGE, encoding, self.pages)]);
        let pages = pages.filter(|(_, _, count)| *count > 0).map(|(page_type, encoding, count)| {
            parquet::file::metadata::PageEncodingStats { page_type, encoding, count }
        });
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows as u64,
            metadata: metadata.set_page_encoding_stats(pages.collect()).build()?,
            bloom_filter,
            column_index,
            offset_index: Some(self.offset_index.build()),
        };
        Ok((bytes.into(), close))
    }

    fn statistics(&self) -> Statistics {
        let low = self.names.first().map(|name| lower_bound(name));
        let high = self.names.last().map(|name| upper_bound(name));
        let is_exact = (low.as_ref().is_some_and(|low| low.1), high.as_ref().is_some_and(|high| high.1));
        let (low, high) = (low.map(|low| ByteArray::from(low.0)), high.map(|high| ByteArray::from(high.0)));
        if self.options.column.physical_type() == Type::FIXED_LEN_BYTE_ARRAY {
            let (low, high) = (low.map(FixedLenByteArray::from), high.map(FixedLenByteArray::from));
            return Statistics::FixedLenByteArray(
                ValueStatistics::new(low, high, None, Some(self.nulls), false)
                    .with_min_is_exact(is_exact.0)
                    .with_max_is_exact(is_exact.1),
            );
        }
        Statistics::ByteArray(
            ValueStatistics::new(low, high, None, Some(self.nulls), false)
                .with_min_is_exact(is_exact.0)
                .with_max_is_exact(is_exact.1),
        )
    }

    fn bloom_filter(&self, false_positives: f64) -> Result<Sbbf> {
        let mut filter = Sbbf::new_with_ndv_fpp(self.names.len().max(1) as u64, false_positives)?;
        self.names.iter().for_each(|name| filter.insert(*name));
        Ok(filter)
    }
}

/// Returns a text that is not above a name, and true if it is the name.
fn lower_bound(name: &[u8]) -> (Vec<u8>, bool) {
    let prefix = prefix(name);
    (prefix.to_vec(), prefix.len() == name.len())
}

/// Returns a text that is not below a name, and true if it is the name.
fn upper_bound(name: &[u8]) -> (Vec<u8>, bool) {
    let prefix = prefix(name);
    if prefix.len() == name.len() {
        return (name.to_vec(), true);
    }
    let mut bound = String::from_utf8_lossy(prefix).into_owned();
    while let Some(last) = bound.pop() {
        // The characters between these two are no texts.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            bound.push(next);
            return (bound.into_bytes(), false);
        }
    }
    (name.to_vec(), true)
}

/// Returns the start of a name, up to the length of a bound and cut between two characters.
fn prefix(name: &[u8]) -> &[u8] {
    let is_inside = |at: usize| name.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let mut end = name.len().min(BOUND_BYTES);
    while end > 0 && is_inside(end) {
        end -= 1;
    }
    &name[..end]
}

fn count(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| too_long())
}

fn position(offset: u64) -> Result<i64> {
    i64::try_from(offset).map_err(|_| too_long())
}

fn too_long() -> ParquetError {
    ParquetError::General("a column chunk is too long".to_owned())
}

#[cfg(test)]
mod tests;
