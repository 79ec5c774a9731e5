//! The metadata of the server: its capabilities and its data types.

use crate::limits::Limits;
use arrow_flight::error::Result;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    Nullable, Searchable, SqlInfo, SqlNullOrdering, SqlSupportedCaseSensitivity, SqlSupportedTransaction,
    XdbcDataType,
};

/// The version of the Arrow libraries that rows are written with.
const ARROW_VERSION: &str = "59.3";

/// Returns the features of the server.
pub(super) fn server(limits: &Limits) -> Result<SqlInfoData> {
    let mut facts = SqlInfoDataBuilder::new();
    facts.append(SqlInfo::FlightSqlServerName, "Faultline");
    facts.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    facts.append(SqlInfo::FlightSqlServerArrowVersion, ARROW_VERSION);
    facts.append(SqlInfo::FlightSqlServerReadOnly, true);
    facts.append(SqlInfo::FlightSqlServerSql, true);
    for lacking in [
        SqlInfo::FlightSqlServerSubstrait,
        SqlInfo::FlightSqlServerCancel,
        SqlInfo::FlightSqlServerBulkIngestion,
        SqlInfo::FlightSqlServerIngestTransactionsSupported,
        SqlInfo::SqlDdlCatalog,
        SqlInfo::SqlDdlSchema,
        SqlInfo::SqlDdlTable,
        SqlInfo::SqlTransactionsSupported,
        SqlInfo::SqlSelectForUpdateSupported,
        SqlInfo::SqlStoredProceduresSupported,
        SqlInfo::SqlBatchUpdatesSupported,
        SqlInfo::SqlSavepointsSupported,
        SqlInfo::SqlNamedParametersSupported,
    ] {
        facts.append(lacking, false);
    }
    facts.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    facts.append(SqlInfo::FlightSqlServerStatementTimeout, whole(limits.time.as_millis()));
    facts.append(SqlInfo::SqlIdentifierCase, SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32);
    facts.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    facts.append(
        SqlInfo::SqlQuotedIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityUnknown as i32,
    );
    facts.append(SqlInfo::SqlAllTablesAreSelectable, true);
    facts.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32);
    facts.append(SqlInfo::SqlSchemaTerm, "schema");
    facts.append(SqlInfo::SqlCatalogTerm, "catalog");
    facts.append(SqlInfo::SqlCatalogAtStart, true);
    facts.append(SqlInfo::SqlCorrelatedSubqueriesSupported, true);
    facts.append(SqlInfo::SqlMaxStatementLength, long(limits.statement_bytes));
    facts.append(SqlInfo::SqlMaxColumnsInSelect, long(limits.columns));
    facts.build()
}

fn whole(number: u128) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn long(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Name, type and size of a data type, and the text before and after its literals.
type TypeRow = (&'static str, XdbcDataType, i32, Option<(&'static str, &'static str)>);

/// The data types that the columns of Faultline have.
const TYPES: [TypeRow; 10] = [
    ("text", XdbcDataType::XdbcVarchar, i32::MAX, Some(("'", "'"))),
    ("boolean", XdbcDataType::XdbcBit, 1, None),
    ("smallint", XdbcDataType::XdbcSmallint, 5, None),
    ("integer", XdbcDataType::XdbcInteger, 10, None),
    ("bigint", XdbcDataType::XdbcBigint, 19, None),
    ("real", XdbcDataType::XdbcReal, 7, None),
    ("double precision", XdbcDataType::XdbcDouble, 15, None),
    ("numeric", XdbcDataType::XdbcNumeric, 38, None),
    ("date", XdbcDataType::XdbcDate, 10, Some(("DATE '", "'"))),
    ("timestamp with time zone", XdbcDataType::XdbcTimestamp, 27, Some(("TIMESTAMP '", "'"))),
];

/// Returns the data types of the server.
pub(super) fn types() -> Result<XdbcTypeInfoData> {
    let mut types = XdbcTypeInfoDataBuilder::new();
    for (name, data_type, size, quotes) in TYPES {
        types.append(XdbcTypeInfo {
            type_name: name.to_owned(),
            data_type,
            column_size: Some(size),
            literal_prefix: quotes.map(|(prefix, _)| prefix.to_owned()),
            literal_suffix: quotes.map(|(_, suffix)| suffix.to_owned()),
            create_params: None,
            nullable: Nullable::NullabilityNullable,
            case_sensitive: data_type == XdbcDataType::XdbcVarchar,
            searchable: Searchable::Full,
            unsigned_attribute: None,
            fixed_prec_scale: false,
            auto_increment: None,
            local_type_name: Some(name.to_owned()),
            minimum_scale: None,
            maximum_scale: None,
            sql_data_type: data_type,
            datetime_subcode: None,
            num_prec_radix: None,
            interval_precision: None,
        });
    }
    types.build()
}
