//! A statement on its way from an endpoint to the engine, and what the engine says about it before it runs.

use crate::error::{Kind, QueryError};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A statement as an endpoint received it. Nothing of it has been read yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementText {
    /// The text that errors point into.
    pub sql: String,
    /// How the text is to be read.
    pub origin: Origin,
}

/// How the text of a statement is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// As one statement.
    Plain,
    /// As PostgreSQL reads it: several statements, catalog tables, and types of parameters that the client declares.
    Postgres {
        /// Who sends it.
        user: String,
        /// Which of the statements is meant.
        index: usize,
        /// The declared types of the parameters, 0 where the client says nothing.
        types: Vec<u32>,
    },
}

impl StatementText {
    /// One statement.
    #[must_use]
    pub fn plain(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), origin: Origin::Plain }
    }
}

/// What is known of a statement once it is planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// The columns of the result.
    pub schema: SchemaRef,
    /// The names that PostgreSQL would give the columns, where they are others.
    pub names: Option<Vec<String>>,
    /// The parameters, `$1` first.
    pub parameters: Vec<ParameterType>,
    /// Whether the result is a plan and not rows.
    pub is_explain: bool,
}

/// What is known of the type of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterType {
    /// The PostgreSQL type that the client declares.
    pub declared: Option<u32>,
    /// The type that the statement gives it.
    pub inferred: Option<DataType>,
}

/// A [`Description`] between two processes. Types travel as Arrow schemas.
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
    pub(crate) fn encoded(&self) -> Result<EncodedDescription, QueryError> {
        let field = |parameter: &ParameterType| {
            Field::new("", parameter.inferred.clone().unwrap_or(DataType::Null), true)
        };
        let inferred = Schema::new(self.parameters.iter().map(field).collect::<Vec<_>>());
        Ok(EncodedDescription {
            schema: encoded_schema(&self.schema).map_err(|error| internal(&error))?,
            names: self.names.clone(),
            declared: self.parameters.iter().map(|parameter| parameter.declared).collect(),
            inferred: encoded_schema(&inferred).map_err(|error| internal(&error))?,
            is_inferred: self.parameters.iter().map(|parameter| parameter.inferred.is_some()).collect(),
            is_explain: self.is_explain,
        })
    }
}

impl EncodedDescription {
    pub(crate) fn decoded(self) -> Result<Description, QueryError> {
        let schema = decoded_schema(&self.schema).map_err(|error| internal(&error))?;
        let inferred = decoded_schema(&self.inferred).map_err(|error| internal(&error))?;
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

fn encoded_schema(schema: &Schema) -> Result<Vec<u8>, ArrowError> {
    StreamWriter::try_new(Vec::new(), schema)?.into_inner()
}

fn decoded_schema(bytes: &[u8]) -> Result<SchemaRef, ArrowError> {
    Ok(Arc::clone(&StreamReader::try_new(bytes, None)?.schema()))
}

fn internal(error: &ArrowError) -> QueryError {
    QueryError::new(Kind::Internal, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_survives_the_way_between_two_processes() {
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
        let encoded = description.encoded().expect("bytes");
        let text = serde_json::to_vec(&encoded).expect("JSON");
        let decoded: EncodedDescription = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(decoded.decoded().expect("a description"), description);
    }
}
