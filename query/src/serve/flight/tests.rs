//! The door without a network: what it answers, and whom it lets in.

use super::super::gate::{Denied, Gate};
use super::handle::Handle;
use super::*;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_flight::encode::FlightDataEncoderBuilder;
use datafusion::common::{ParamValues, ScalarValue};
use futures_util::{StreamExt, TryStreamExt, stream};
use tonic::Code;

/// Lets in who knows the word, as a token or as a password.
#[derive(Debug)]
struct Asking;

impl Gate for Asking {
    fn asks(&self) -> bool {
        true
    }

    fn admit(&self, credentials: Credentials<'_>) -> Result<(), Denied> {
        match credentials {
            Credentials::Bearer("word") | Credentials::Password { user: "ann", password: "wo:rd" } => Ok(()),
            _ => Err(Denied("bring a token".to_owned())),
        }
    }
}

#[test]
fn the_gate_decides_by_what_a_client_says_of_itself() {
    let gate: SharedGate = Arc::new(Asking);
    let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
    let said = [
        ("Bearer word".to_owned(), true),
        ("Bearer other".to_owned(), false),
        (basic("ann:wo:rd"), true),
        (basic("ann:other"), false),
        (basic("no colon"), false),
        ("Basic ?".to_owned(), false),
        ("word".to_owned(), false),
    ];
    for (said, may_come_in) in said {
        let mut metadata = MetadataMap::new();
        metadata.insert(AUTHORIZATION, said.parse().unwrap());
        let heard = admitted(&gate, &metadata);
        assert_eq!(heard.is_ok(), may_come_in, "{said}");
        if let Err(status) = heard {
            assert_eq!((status.code(), status.message()), (Code::Unauthenticated, "bring a token"));
        }
    }
    assert_eq!(admitted(&gate, &MetadataMap::new()).unwrap_err().code(), Code::Unauthenticated);
}

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

#[tokio::test]
async fn more_than_one_row_or_too_much_of_it_is_refused() {
    for batches in [vec![rows(&["a", "b"])], vec![rows(&["a"]), rows(&["b"])]] {
        assert_eq!(bound(&batches, 1 << 20).await.unwrap_err().code(), Code::InvalidArgument);
    }
    let long = "x".repeat(2_000);
    assert_eq!(bound(&[rows(&[&long])], 1_000).await.unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(Handle::read(b"\xff\xff").unwrap_err().code(), Code::InvalidArgument);
}
