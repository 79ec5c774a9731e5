//! A statement that was planned, as a connection keeps it: its text, and what is known of its columns and parameters.

use super::columns::Columns;
use super::failure::Failure;
use super::values::Parameter;
use crate::statement::{Description, StatementText};
use bytes::Bytes;
use datafusion::common::ParamValues;

/// What a column of a result takes in memory, about.
const COLUMN_BYTES: usize = 256;

/// A statement that was planned. Its plan is not kept: it is made again when the statement runs.
#[derive(Debug, Clone)]
pub(super) struct Described {
    pub(super) text: StatementText,
    description: Description,
    parameters: Vec<Parameter>,
}

impl Described {
    pub(super) fn new(text: StatementText, description: Description) -> Self {
        let parameters = description.parameters.iter().map(Parameter::of_description).collect();
        Self { text, description, parameters }
    }

    /// What the connection holds for it, about.
    pub(super) fn bytes(&self) -> usize {
        self.text.sql.len() + self.column_bytes()
    }

    /// What it holds for its columns and parameters.
    pub(super) fn column_bytes(&self) -> usize {
        (self.description.schema.fields().len() + self.parameters.len()) * COLUMN_BYTES
    }

    /// The columns of the result, in these formats.
    pub(super) fn columns(&self, formats: &[i16]) -> Result<Columns, Failure> {
        Columns::new(&self.description.schema, self.description.names.as_deref(), formats)
    }

    pub(super) fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// What a finished statement is called.
    pub(super) fn tag(&self) -> &'static str {
        if self.description.is_explain { "EXPLAIN" } else { "SELECT" }
    }

    /// The values of the parameters, from what a client sent in these formats: none for text, one for all, or one each.
    pub(super) fn values(&self, sent: &[Option<Bytes>], formats: &[i16]) -> Result<ParamValues, Failure> {
        if sent.len() != self.parameters.len() {
            let message =
                format!("{} values were given for {} parameters", sent.len(), self.parameters.len());
            return Err(Failure::error("08P01", message));
        }
        if formats.len() > 1 && formats.len() != sent.len() {
            let message = format!("{} formats were given for {} values", formats.len(), sent.len());
            return Err(Failure::error("08P01", message));
        }
        let format = |place: usize| formats.get(place).or(formats.first()).copied().unwrap_or(0);
        let values = self.parameters.iter().zip(sent).enumerate();
        let values =
            values.map(|(place, (parameter, sent))| parameter.value(place + 1, sent.as_ref(), format(place)));
        Ok(ParamValues::from(values.collect::<Result<Vec<_>, _>>()?))
    }
}
