//! What the server and a worker process say to each other: frames of a tag, a length and that many bytes.
//!
//! The server sends [`Request`]s as JSON. The worker answers each with [`Response`]s as JSON and, for a statement that
//! runs, with stretches of an Arrow stream in between.

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
use datafusion::common::{ParamValues, ScalarValue};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::Table;
use store::snapshot::Horizon;
use taxonomy::registry::RegistryFile;

/// The longest frame. A row of a result fits into one.
pub(super) const LONGEST: usize = 16 << 20;
/// The tag and the length.
pub(super) const HEAD: usize = 5;

const MESSAGE: u8 = 1;
const ROWS: u8 = 2;

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// Comes first, and once.
    Setup(Setup),
    /// Plan a statement, and say what is known of it.
    Describe(Task),
    /// Plan a statement, describe it, and run it.
    Run(Task),
    /// Stop the task of this number, if it is running.
    Cancel(u64),
}

/// What a worker needs to know once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) data_dir: PathBuf,
    pub(super) registry: Option<RegistryFile>,
    pub(super) hash_key: [u8; 16],
    pub(super) limits: Limits,
}

/// One statement.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) number: u64,
    pub(super) text: StatementText,
    /// The values of the parameters, as an Arrow stream of one row in base64.
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

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Response {
    /// It is set up.
    Ready,
    /// What is known of the statement.
    Described(EncodedDescription),
    /// The statement has ended well; all of its rows were sent, and nothing of it goes on.
    Ended,
    /// The statement has ended otherwise. Something of it may go on, until `Quiet`.
    Failed(QueryError),
    /// Nothing of the statement that failed goes on.
    Quiet,
}

/// What a frame holds.
#[derive(Debug)]
pub(super) enum Frame {
    Message(Vec<u8>),
    /// A stretch of an Arrow stream.
    Rows(Vec<u8>),
}

impl Frame {
    /// A message.
    pub(super) fn message(message: &impl Serialize) -> io::Result<Self> {
        Ok(Self::Message(serde_json::to_vec(message)?))
    }

    /// The bytes that stand before its content.
    pub(super) fn head(&self) -> io::Result<[u8; HEAD]> {
        let (tag, content) = match self {
            Self::Message(content) => (MESSAGE, content),
            Self::Rows(content) => (ROWS, content),
        };
        let too_long = || io::Error::new(ErrorKind::InvalidData, "a frame is too long");
        let length = u32::try_from(content.len()).map_err(|_| too_long())?;
        let [a, b, c, d] = length.to_le_bytes();
        Ok([tag, a, b, c, d])
    }

    pub(super) fn content(&self) -> &[u8] {
        let (Self::Message(content) | Self::Rows(content)) = self;
        content
    }

    /// Whether a frame holds rows, and how long it is, as its head tells.
    pub(super) fn opened(head: [u8; HEAD]) -> io::Result<(bool, usize)> {
        let [tag, a, b, c, d] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > LONGEST || !matches!(tag, MESSAGE | ROWS) {
            return Err(io::Error::new(ErrorKind::InvalidData, "this is no frame"));
        }
        Ok((tag == ROWS, length))
    }

    /// Writes it whole.
    pub(super) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        output.write_all(&self.head()?)?;
        output.write_all(self.content())?;
        output.flush()
    }

    /// Reads the next one; none at the end.
    pub(super) fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = [0; HEAD];
        match input.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let (is_rows, length) = Self::opened(head)?;
        let mut content = vec![0; length];
        input.read_exact(&mut content)?;
        Ok(Some(if is_rows { Self::Rows(content) } else { Self::Message(content) }))
    }
}

/// The values of parameters, to be passed on.
pub(super) fn encoded_values(values: &ParamValues) -> Result<Option<String>, ArrowError> {
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

/// The values of parameters that were passed on.
pub(super) fn decoded_values(encoded: &str) -> Result<ParamValues, ArrowError> {
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
    fn what_is_no_frame_is_refused() {
        assert!(Frame::opened([9, 0, 0, 0, 0]).is_err());
        assert!(Frame::opened([ROWS, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(Frame::read(&mut [MESSAGE, 4, 0, 0, 0, 1].as_slice()).is_err());
    }

    #[test]
    fn values_of_every_type_arrive() {
        let values = vec![
            ScalarValue::Null,
            ScalarValue::Utf8(Some("it's".to_owned())),
            ScalarValue::Int64(Some(-1)),
            ScalarValue::Float64(None),
            ScalarValue::TimestampMicrosecond(Some(1), Some("UTC".into())),
        ];
        for values in [values, Vec::new()] {
            let sent = ParamValues::from(values.clone());
            let encoded = encoded_values(&sent).expect("bytes").expect("a list");
            let ParamValues::List(arrived) = decoded_values(&encoded).expect("values") else {
                panic!("no list")
            };
            assert_eq!(arrived.into_iter().map(|value| value.value).collect::<Vec<_>>(), values);
        }
    }
}
