//! Tests of the endpoint without a network: its responses and its authorization.

use super::handle::Handle;
use super::*;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::encode::FlightDataEncoderBuilder;
use datafusion::common::{ParamValues, ScalarValue};
use futures_util::{StreamExt, TryStreamExt, stream};
use tonic::Code;

fn rows(texts: &[&str]) -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..texts.len() as i64));
    RecordBatch::try_from_iter([("text", texts), ("number", numbers)]).unwrap()
}

async fn bound(batches: &[RecordBatch], most: usize) -> Result<Handle, Status> {
    let batches = stream::iter(batches.to_vec()).map(Ok);
    let data = FlightDataEncoderBuilder::new().build(batches).map_err(Status::from);
    Handle::new("SELECT $1, $2".to_owned()).bound(data, most).await
}

#[tokio::test]
async fn a_handle_carries_the_statement_and_one_row_of_parameters() {
    let handle = bound(&[rows(&["it's ü"])], 1 << 20).await.unwrap();
    let handle = Handle::read(&handle.bytes()).unwrap();
    assert_eq!(handle.statement, "SELECT $1, $2");
    let expected = ParamValues::from(vec![ScalarValue::from("it's ü"), ScalarValue::from(0_i64)]);
    assert_eq!(format!("{:?}", handle.parameters().unwrap().unwrap()), format!("{expected:?}"));
    assert!(Handle::new(String::new()).parameters().unwrap().is_none());
}

/// Eight bytes of a compressed buffer could claim all memory of the server.
#[tokio::test]
async fn compressed_parameters_are_rejected_before_they_are_decoded() {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
    let batches = stream::iter([rows(&["x"])]).map(Ok);
    let data = FlightDataEncoderBuilder::new().with_options(options).build(batches).map_err(Status::from);
    let status = Handle::new("SELECT $1, $2".to_owned()).bound(data, 1 << 20).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("compressed"), "{status}");
}

#[tokio::test]
async fn more_than_one_row_or_too_much_of_it_is_refused() {
    for batches in [vec![rows(&["a", "b"])], vec![rows(&["a"]), rows(&["b"])]] {
        assert_eq!(bound(&batches, 1 << 20).await.unwrap_err().code(), Code::InvalidArgument);
    }
    let long = "x".repeat(2_000);
    assert_eq!(bound(&[rows(&[&long])], 1_000).await.unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(Handle::read(b"\xff\xff").unwrap_err().code(), Code::InvalidArgument);
}
