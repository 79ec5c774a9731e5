//! A planned statement as a connection keeps it: its text, columns and parameters.

use super::columns::Columns;
use super::error::PgError;
use super::values::Parameter;
use crate::statement::{Description, StatementText};
use bytes::Bytes;
use datafusion::common::ParamValues;

/// The approximate memory for the description of a column.
const COLUMN_BYTES: usize = 256;

/// A statement that was planned. Its plan is not kept; the statement is planned again when it runs.
#[derive(Debug, Clone)]
pub(super) struct PlannedStatement {
    pub(super) text: StatementText,
    description: Description,
    parameters: Vec<Parameter>,
}

impl PlannedStatement {
    pub(super) fn new(text: StatementText, description: Description) -> Self {
        let parameters = description.parameters.iter().map(Parameter::of_description).collect();
        Self { text, description, parameters }
    }

    /// Returns the approximate memory of the statement.
    pub(super) fn bytes(&self) -> usize {
        self.text.sql.len() + self.column_bytes()
    }

    /// Returns the approximate memory for its columns and parameters.
    pub(super) fn column_bytes(&self) -> usize {
        (self.description.schema.fields().len() + self.parameters.len()) * COLUMN_BYTES
    }

    /// Returns the columns of the result, in these formats.
    pub(super) fn columns(&self, formats: &[i16]) -> Result<Columns, PgError> {
        Columns::new(&self.description.schema, self.description.names.as_deref(), formats)
    }

    pub(super) fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Returns the command tag of the statement.
    pub(super) fn tag(&self) -> &'static str {
        if self.description.is_explain { "EXPLAIN" } else { "SELECT" }
    }

    /// Decodes the values of the parameters. The formats are those of the protocol: none for text, one for all values, or one
    /// for each.
    pub(super) fn values(&self, sent: &[Option<Bytes>], formats: &[i16]) -> Result<ParamValues, PgError> {
        if sent.len() != self.parameters.len() {
            let message =
                format!("{} values were given for {} parameters", sent.len(), self.parameters.len());
            return Err(PgError::error("08P01", message));
        }
        if formats.len() > 1 && formats.len() != sent.len() {
            let message = format!("{} formats were given for {} values", formats.len(), sent.len());
            return Err(PgError::error("08P01", message));
        }
        let format = |place: usize| formats.get(place).or(formats.first()).copied().unwrap_or(0);
        let values = self.parameters.iter().zip(sent).enumerate();
        let values =
            values.map(|(place, (parameter, sent))| parameter.value(place + 1, sent.as_ref(), format(place)));
        Ok(ParamValues::from(values.collect::<Result<Vec<_>, _>>()?))
    }
}
