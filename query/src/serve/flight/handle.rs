//! The handle that a client keeps between two calls: the statement, and the parameters that the client has bound.

use super::ipc;
use super::status::invalid;
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use bytes::Bytes;
use datafusion::common::{ParamValues, ScalarValue};
use futures_util::{Stream, StreamExt, TryStreamExt};
use prost::Message;
use tonic::Status;

/// A statement with its parameters. Clients send it back unchanged.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Handle {
    #[prost(string, tag = "1")]
    pub(super) statement: String,
    /// One row as an Arrow stream; empty before parameters are bound.
    #[prost(bytes = "bytes", tag = "2")]
    parameters: Bytes,
}

impl Handle {
    /// Creates a handle for a statement without parameters.
    pub(super) fn new(statement: String) -> Self {
        Self { statement, parameters: Bytes::new() }
    }

    /// Decodes a handle that a client sent back.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Status> {
        Self::decode(bytes).map_err(|_| invalid("the ticket or handle is none of this server"))
    }

    /// Returns the bytes that are sent to the client.
    pub(super) fn bytes(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// Returns the same statement with one row of parameters, which is read from the request.
    pub(super) async fn bound(
        self,
        rows: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
        most: usize,
    ) -> Result<Self, Status> {
        let row = one_row(rows).await?;
        let parameters = row.map_or_else(|| Ok(Vec::new()), |row| written(&row));
        let parameters = parameters.map_err(|error| invalid(format!("the parameters: {error}")))?;
        if parameters.len() > most {
            let message = format!("the parameters take {} bytes; at most {most} are taken", parameters.len());
            return Err(Status::resource_exhausted(message));
        }
        Ok(Self { parameters: parameters.into(), ..self })
    }

    /// Returns the parameters, `$1` first, or `None` when none were bound.
    pub(super) fn parameters(&self) -> Result<Option<ParamValues>, Status> {
        if self.parameters.is_empty() {
            return Ok(None);
        }
        ipc::check_stream(&self.parameters)?;
        let values = read(&self.parameters).map_err(|error| invalid(format!("the parameters: {error}")))?;
        Ok(Some(ParamValues::from(values)))
    }
}

/// Waits for one row, and stops reading when there are more.
async fn one_row(
    rows: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> Result<Option<RecordBatch>, Status> {
    // The body is part of a Flight message, regardless of the length that the message states.
    let checked = rows.map(|data| {
        let data = data?;
        ipc::check_message(&data.data_header, usize::MAX)?;
        Ok::<_, Status>(data)
    });
    let mut batches = FlightRecordBatchStream::new_from_flight_data(checked.map_err(FlightError::from));
    let mut row: Option<RecordBatch> = None;
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(unreadable)?;
        if batch.num_columns() == 0 || batch.num_rows() == 0 {
            continue;
        }
        if batch.num_rows() > 1 || row.is_some() {
            return Err(invalid("one row of parameters is bound at a time; run the statement for each row"));
        }
        row = Some(batch);
    }
    Ok(row)
}

fn unreadable(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => invalid(format!("the parameters cannot be read: {other}")),
    }
}

fn written(row: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &row.schema())?;
    writer.write(row)?;
    writer.into_inner()
}

fn read(mut bytes: &[u8]) -> Result<Vec<ScalarValue>, ArrowError> {
    let mut values = Vec::new();
    for batch in StreamReader::try_new(&mut bytes, None)? {
        for column in batch?.columns() {
            let value = if column.is_empty() {
                ScalarValue::Null
            } else {
                ScalarValue::try_from_array(column, 0).map_err(ArrowError::from)?
            };
            values.push(value);
        }
    }
    Ok(values)
}
