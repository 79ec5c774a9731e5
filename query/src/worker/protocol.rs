//! The protocol between the server and a worker process. A frame is a tag, a length and that many bytes.
//!
//! The server sends [`Request`]s as JSON. The worker replies with [`Response`]s as JSON and, for a statement that runs,
//! with chunks of an Arrow stream in between.

use crate::error::QueryError;
use crate::limits::Limits;
use crate::statement::{EncodedDescription, StatementText};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use classifier::registry::RegistryFile;
use datafusion::common::{ParamValues, ScalarValue};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::Table;
use store::snapshot::Horizon;

/// The size limit of a frame. Every row of a result must fit into one frame.
pub(super) const MAX_FRAME_BYTES: usize = 16 << 20;
/// The size of a frame header: the tag and the length.
pub(super) const HEADER_BYTES: usize = 5;

const MESSAGE: u8 = 1;
const ROWS: u8 = 2;

/// A message from the server to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Configures the worker. It is the first request and is sent once.
    Setup(Setup),
    /// Plans a statement and describes it.
    Describe(Task),
    /// Plans a statement, describes it and runs it.
    Run(Task),
    /// Cancels the task with this number, if it is running.
    Cancel(u64),
}

/// The configuration of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) data_dir: PathBuf,
    pub(super) registry: Option<RegistryFile>,
    pub(super) hash_key: [u8; 16],
    pub(super) limits: Limits,
}

/// One statement to describe or run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) number: u64,
    pub(super) text: StatementText,
    /// The values of the parameters: an Arrow stream of one row, in base64.
    pub(super) values: Option<String>,
    pub(super) visible: u64,
    pub(super) flushed: [u64; Table::ALL.len()],
    pub(super) time: Duration,
}

impl Task {
    pub(super) fn horizon(&self) -> Horizon {
        Horizon { visible: self.visible, flushed: self.flushed }
    }
}

/// A message from a worker to the server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Response {
    /// The worker is set up.
    Ready,
    /// The description of the statement.
    Described(EncodedDescription),
    /// The statement succeeded. All of its rows were sent, and no part of it is still running.
    Finished,
    /// The statement failed. Parts of it may still be running until `Idle` follows.
    Failed(QueryError),
    /// No part of the failed statement is running any more.
    Idle,
}

/// A frame of the protocol.
#[derive(Debug)]
pub(super) enum Frame {
    /// A JSON message.
    Message(Vec<u8>),
    /// A chunk of an Arrow stream.
    Rows(Vec<u8>),
}

impl Frame {
    /// Creates a frame with a JSON message.
    pub(super) fn message(message: &impl Serialize) -> io::Result<Self> {
        Ok(Self::Message(serde_json::to_vec(message)?))
    }

    /// Encodes the header of the frame.
    pub(super) fn header(&self) -> io::Result<[u8; HEADER_BYTES]> {
        let (tag, content) = match self {
            Self::Message(content) => (MESSAGE, content),
            Self::Rows(content) => (ROWS, content),
        };
        let too_long = || io::Error::new(ErrorKind::InvalidData, "frame is too long");
        let length = u32::try_from(content.len()).map_err(|_| too_long())?;
        let [a, b, c, d] = length.to_le_bytes();
        Ok([tag, a, b, c, d])
    }

    pub(super) fn content(&self) -> &[u8] {
        let (Self::Message(content) | Self::Rows(content)) = self;
        content
    }

    /// Parses a header. Returns true if the frame holds rows, and the length of its content.
    pub(super) fn parse_header(header: [u8; HEADER_BYTES]) -> io::Result<(bool, usize)> {
        let [tag, a, b, c, d] = header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_FRAME_BYTES || !matches!(tag, MESSAGE | ROWS) {
            return Err(io::Error::new(ErrorKind::InvalidData, "invalid frame header"));
        }
        Ok((tag == ROWS, length))
    }

    /// Writes the whole frame and flushes.
    pub(super) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        output.write_all(&self.header()?)?;
        output.write_all(self.content())?;
        output.flush()
    }

    /// Reads the next frame; none at the end of the input.
    pub(super) fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_BYTES];
        match input.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let (is_rows, length) = Self::parse_header(header)?;
        let mut content = vec![0; length];
        input.read_exact(&mut content)?;
        Ok(Some(if is_rows { Self::Rows(content) } else { Self::Message(content) }))
    }
}

/// Encodes the values of parameters.
pub(super) fn encode_values(values: &ParamValues) -> Result<Option<String>, ArrowError> {
    let ParamValues::List(values) = values else { return Ok(None) };
    let column = |value: &ScalarValue| value.to_array().map_err(ArrowError::from);
    let columns = values.iter().map(|value| column(&value.value)).collect::<Result<Vec<ArrayRef>, _>>()?;
    let field = |column: &ArrayRef| Field::new("", column.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&row)?;
    Ok(Some(STANDARD.encode(writer.into_inner()?)))
}

/// Decodes the values of parameters.
pub(super) fn decode_values(encoded: &str) -> Result<ParamValues, ArrowError> {
    let external = |error: base64::DecodeError| ArrowError::ExternalError(Box::new(error));
    let bytes = STANDARD.decode(encoded).map_err(external)?;
    let mut values = Vec::new();
    for batch in StreamReader::try_new(bytes.as_slice(), None)? {
        for column in batch?.columns() {
            values.push(ScalarValue::try_from_array(column, 0).map_err(ArrowError::from)?);
        }
    }
    Ok(ParamValues::from(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut pipe = Vec::new();
        Frame::message(&Request::Cancel(7)).and_then(|frame| frame.write(&mut pipe)).expect("a message");
        Frame::Rows(vec![1, 2, 3]).write(&mut pipe).expect("rows");
        let mut pipe = pipe.as_slice();
        let Ok(Some(Frame::Message(message))) = Frame::read(&mut pipe) else { panic!("no message") };
        assert!(matches!(serde_json::from_slice(&message), Ok(Request::Cancel(7))));
        assert!(matches!(Frame::read(&mut pipe), Ok(Some(Frame::Rows(rows))) if rows == [1, 2, 3]));
        assert!(matches!(Frame::read(&mut pipe), Ok(None)));
    }

    #[test]
    fn an_invalid_frame_is_rejected() {
        assert!(Frame::parse_header([9, 0, 0, 0, 0]).is_err());
        assert!(Frame::parse_header([ROWS, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(Frame::read(&mut [MESSAGE, 4, 0, 0, 0, 1].as_slice()).is_err());
    }

    #[test]
    fn values_of_every_type_survive_encoding_and_decoding() {
        let values = vec![
            ScalarValue::Null,
            ScalarValue::Utf8(Some("it's".to_owned())),
            ScalarValue::Int64(Some(-1)),
            ScalarValue::Float64(None),
            ScalarValue::TimestampMicrosecond(Some(1), Some("UTC".into())),
        ];
        for values in [values, Vec::new()] {
            let original = ParamValues::from(values.clone());
            let encoded = encode_values(&original).expect("bytes").expect("a list");
            let ParamValues::List(decoded) = decode_values(&encoded).expect("values") else {
                panic!("no list")
            };
            assert_eq!(decoded.into_iter().map(|value| value.value).collect::<Vec<_>>(), values);
        }
    }
}
