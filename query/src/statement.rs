//! The text of a statement on its way from an endpoint to the engine, and the description that the engine returns.

use crate::error::{QueryError, QueryErrorKind};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The text of a statement as an endpoint received it, not parsed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementText {
    /// The SQL text. Positions in errors refer to it.
    pub sql: String,
    /// The protocol that the text came through, which decides how it is parsed.
    pub origin: StatementOrigin,
}

/// The protocol that a statement came through, which decides how its text is parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatementOrigin {
    /// HTTP, Flight SQL or the command line: the text is one statement.
    Plain,
    /// The PostgreSQL protocol: the text may contain several statements, catalog tables and declared parameter types.
    Postgres {
        /// The user who sent the statement.
        user: String,
        /// The index of the statement within the text.
        index: usize,
        /// The declared types of the parameters; 0 where the client declares none.
        types: Vec<u32>,
    },
}

impl StatementText {
    /// Creates the text of a single plain statement.
    #[must_use]
    pub fn plain(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), origin: StatementOrigin::Plain }
    }
}

/// The columns and parameters of a planned statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// The columns of the result.
    pub schema: SchemaRef,
    /// The names that PostgreSQL would give to the columns, where they differ.
    pub names: Option<Vec<String>>,
    /// The types of the parameters, `$1` first.
    pub parameters: Vec<ParameterType>,
    /// True when the result is a plan and not rows.
    pub is_explain: bool,
}

/// The declared and the inferred type of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterType {
    /// The PostgreSQL type that the client declares.
    pub declared: Option<u32>,
    /// The type that follows from the statement.
    pub inferred: Option<DataType>,
}

/// A [`Description`] as it is sent between two processes, with types encoded as Arrow schemas.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EncodedDescription {
    schema: Vec<u8>,
    names: Option<Vec<String>>,
    declared: Vec<Option<u32>>,
    inferred: Vec<u8>,
    is_inferred: Vec<bool>,
    is_explain: bool,
}

impl Description {
    pub(crate) fn encode(&self) -> Result<EncodedDescription, QueryError> {
        let field = |parameter: &ParameterType| {
            Field::new("", parameter.inferred.clone().unwrap_or(DataType::Null), true)
        };
        let inferred = Schema::new(self.parameters.iter().map(field).collect::<Vec<_>>());
        Ok(EncodedDescription {
            schema: encode_schema(&self.schema).map_err(|error| internal(&error))?,
            names: self.names.clone(),
            declared: self.parameters.iter().map(|parameter| parameter.declared).collect(),
            inferred: encode_schema(&inferred).map_err(|error| internal(&error))?,
            is_inferred: self.parameters.iter().map(|parameter| parameter.inferred.is_some()).collect(),
            is_explain: self.is_explain,
        })
    }
}

impl EncodedDescription {
    pub(crate) fn decode(self) -> Result<Description, QueryError> {
        let schema = decode_schema(&self.schema).map_err(|error| internal(&error))?;
        let inferred = decode_schema(&self.inferred).map_err(|error| internal(&error))?;
        let types = inferred.fields().iter().map(|field| field.data_type().clone()).zip(self.is_inferred);
        let parameters = self.declared.into_iter().zip(types).map(|(declared, (inferred, is_inferred))| {
            ParameterType { declared, inferred: is_inferred.then_some(inferred) }
        });
        Ok(Description {
            schema,
            names: self.names,
            parameters: parameters.collect(),
            is_explain: self.is_explain,
        })
    }
}

fn encode_schema(schema: &Schema) -> Result<Vec<u8>, ArrowError> {
    StreamWriter::try_new(Vec::new(), schema)?.into_inner()
}

fn decode_schema(bytes: &[u8]) -> Result<SchemaRef, ArrowError> {
    Ok(Arc::clone(&StreamReader::try_new(bytes, None)?.schema()))
}

fn internal(error: &ArrowError) -> QueryError {
    QueryError::new(QueryErrorKind::Internal, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_survives_encoding_and_decoding() {
        let description = Description {
            schema: Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)])),
            names: Some(vec!["count".to_owned()]),
            parameters: vec![
                ParameterType { declared: Some(25), inferred: None },
                ParameterType { declared: None, inferred: Some(DataType::Null) },
                ParameterType { declared: None, inferred: Some(DataType::Float64) },
            ],
            is_explain: false,
        };
        let encoded = description.encode().expect("bytes");
        let text = serde_json::to_vec(&encoded).expect("JSON");
        let decoded: EncodedDescription = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(decoded.decode().expect("a description"), description);
    }
}
