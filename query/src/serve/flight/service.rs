//! The calls of Flight SQL, translated into calls of the engine.

use super::handle::Handle;
use super::status::{invalid, unwritable};
use super::{AUTHORIZATION, FlightSqlEndpoint, catalog, info};
use crate::engine::Rows;
use crate::error::QueryError;
use crate::statement::{Description, StatementText};
use crate::stats::Endpoint;
use crate::worker::Session;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::metadata::{SqlInfoDataBuilder, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::server::{DoPutError, FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, CommandGetCatalogs,
    CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest,
    CommandStatementQuery, CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt, SqlInfo,
    TicketStatementQuery,
};
use arrow_flight::{
    Action, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse, IpcMessage,
    SchemaAsIpc, Ticket,
};
use async_trait::async_trait;
use auth::Credentials;
use bytes::Bytes;
use datafusion::common::ParamValues;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use prost::Message;
use std::pin::Pin;
use tonic::{Request, Response, Status, Streaming};

/// The approximate size of one message to a client: most clients accept 4 MiB, some 16 MiB.
const MESSAGE_BYTES: usize = 1 << 20;

type Data = Response<<FlightSqlEndpoint as FlightService>::DoGetStream>;
type Info = Response<FlightInfo>;

impl FlightSqlEndpoint {
    pub(super) fn session(&self) -> Session {
        self.service.session(Endpoint::Flight)
    }

    /// Describes the statement of a handle, with its parameters if they are bound.
    pub(super) async fn described(&self, handle: &Handle) -> Result<Description, Status> {
        let text = StatementText::plain(handle.statement.as_str());
        Ok(self.session().describe(&text, handle.parameters()?.as_ref()).await?)
    }

    async fn run(&self, handle: &Handle) -> Result<Data, Status> {
        let text = StatementText::plain(handle.statement.as_str());
        let values = handle.parameters()?.unwrap_or(ParamValues::List(Vec::new()));
        Ok(streamed(self.session().run(&text, &values).await?.rows))
    }
}

/// Returns a stream of rows as they are produced. Dropping it, as happens when the client disconnects, stops the query.
fn streamed(rows: Rows) -> Data {
    let schema = SchemaRef::clone(rows.schema());
    let batches = rows.map_err(|error: QueryError| FlightError::from(Status::from(error)));
    encoded(schema, batches)
}

/// Returns a stream of one batch.
fn whole(batch: RecordBatch) -> Data {
    encoded(batch.schema(), stream::iter([Ok(batch)]))
}

fn encoded(
    schema: SchemaRef,
    batches: impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static,
) -> Data {
    let data = FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .with_max_flight_data_size(MESSAGE_BYTES)
        .build(batches)
        .map_err(Status::from);
    Response::new(data.boxed())
}

/// Returns the location of a result: this server, with this ticket.
fn found(
    request: Request<FlightDescriptor>,
    schema: &Schema,
    ticket: &impl ProstMessageExt,
) -> Result<Info, Status> {
    let ticket = Ticket::new(ticket.as_any().encode_to_vec());
    let info = FlightInfo::new().try_with_schema(schema).map_err(|error| unwritable(&error))?;
    let endpoint = FlightEndpoint::new().with_ticket(ticket);
    Ok(Response::new(info.with_endpoint(endpoint).with_descriptor(request.into_inner())))
}

fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let message: Result<IpcMessage, ArrowError> =
        SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into();
    message.map(|message| message.0).map_err(|error| unwritable(&error))
}

/// Returns the schema of the parameters. A parameter whose type cannot be inferred is a text.
fn parameters_of(described: Description) -> Schema {
    let field = |(index, data_type): (usize, Option<DataType>)| {
        Field::new(format!("${}", index + 1), data_type.unwrap_or(DataType::Utf8), true)
    };
    let types = described.parameters.into_iter().map(|parameter| parameter.inferred);
    Schema::new(types.enumerate().map(field).collect::<Vec<_>>())
}

fn empty(schema: SchemaRef) -> Data {
    whole(RecordBatch::new_empty(schema))
}

/// Returns the error for an update call. The guard rejects statements that change something; other statements must be
/// sent as queries.
async fn no_update(session: Session, statement: &str) -> Status {
    match session.describe(&StatementText::plain(statement), None).await {
        Err(error) => error.into(),
        Ok(_) => invalid("the statement changes nothing: run it as a query"),
    }
}

fn statement_of(ticket: &TicketStatementQuery) -> Result<Handle, Status> {
    Handle::read(&ticket.statement_handle)
}

#[async_trait]
impl FlightSqlService for FlightSqlEndpoint {
    type FlightService = Self;

    /// The middleware has already authenticated the client. The password is the token that later calls send.
    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Pin<Box<dyn Stream<Item = Result<HandshakeResponse, Status>> + Send>>>, Status> {
        let headers = request.metadata().clone().into_headers();
        let token = match Credentials::from_headers(&headers) {
            Credentials::Token(token) if self.authenticator.requires_token() => token.into_owned(),
            _ => "anyone".to_owned(),
        };
        let handshake = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let mut response = Response::new(stream::iter([Ok(handshake)]).boxed());
        let value = format!("Bearer {token}").parse();
        let value = value.map_err(|_| invalid("a token is made of letters, digits and signs of ASCII"))?;
        response.metadata_mut().insert(AUTHORIZATION, value);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        let handle = Handle::new(query.query);
        let described = self.described(&handle).await?;
        found(request, &described.schema, &TicketStatementQuery { statement_handle: handle.bytes() })
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        _: Request<Ticket>,
    ) -> Result<Data, Status> {
        self.run(&statement_of(&ticket)?).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        _: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let handle = Handle::new(query.query);
        let described = self.described(&handle).await?;
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: handle.bytes(),
            dataset_schema: schema_bytes(&described.schema)?,
            parameter_schema: schema_bytes(&parameters_of(described))?,
        })
    }

    /// Does nothing, because the server keeps no prepared statements.
    async fn do_action_close_prepared_statement(
        &self,
        _: ActionClosePreparedStatementRequest,
        _: Request<Action>,
    ) -> Result<(), Status> {
        Ok(())
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let handle = Handle::read(&query.prepared_statement_handle)?;
        let most = self.service.limits().statement_bytes;
        let bound = handle.bound(request.into_inner(), most).await?;
        // Values that do not match are rejected now, before the statement runs.
        self.described(&bound).await?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(bound.bytes()) })
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        let handle = Handle::read(&query.prepared_statement_handle)?;
        let described = self.described(&handle).await?;
        found(request, &described.schema, &query)
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        _: Request<Ticket>,
    ) -> Result<Data, Status> {
        self.run(&Handle::read(&query.prepared_statement_handle)?).await
    }

    async fn do_put_statement_update(
        &self,
        update: CommandStatementUpdate,
        _: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Err(no_update(self.session(), &update.query).await)
    }

    async fn do_put_prepared_statement_update(
        &self,
        update: CommandPreparedStatementUpdate,
        _: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let handle = Handle::read(&update.prepared_statement_handle)?;
        Err(no_update(self.session(), &handle.statement).await)
    }

    async fn do_put_statement_ingest(
        &self,
        ingest: CommandStatementIngest,
        _: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        Err(QueryError::read_only(&format!("writing to '{}'", ingest.table)).into())
    }

    async fn do_put_error_callback(
        &self,
        _: Request<PeekableFlightDataStream>,
        error: DoPutError,
    ) -> Result<Response<<Self as FlightService>::DoPutStream>, Status> {
        Err(invalid(format!("{error} Parameters are put for a prepared statement.")))
    }

    async fn do_get_fallback(&self, _: Request<Ticket>, message: Any) -> Result<Data, Status> {
        Err(Status::unimplemented(format!("there is no answer to {}", message.type_url)))
    }

    /// There is no cancel call, because a client stops a query by disconnecting.
    async fn do_action_cancel_query(
        &self,
        _: ActionCancelQueryRequest,
        _: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        Err(Status::unimplemented("cancel the call that reads the rows: that stops the query"))
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, &query.into_builder().schema(), &query)
    }

    async fn do_get_catalogs(&self, query: CommandGetCatalogs, _: Request<Ticket>) -> Result<Data, Status> {
        catalog::catalogs(query).map(whole)
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, &query.clone().into_builder().schema(), &query)
    }

    async fn do_get_schemas(&self, query: CommandGetDbSchemas, _: Request<Ticket>) -> Result<Data, Status> {
        catalog::schemas(query, &self.session()).await.map(whole)
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, &query.clone().into_builder().schema(), &query)
    }

    async fn do_get_tables(&self, query: CommandGetTables, _: Request<Ticket>) -> Result<Data, Status> {
        catalog::tables(query, &self.session()).await.map(whole)
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, &query.into_builder().schema(), &query)
    }

    async fn do_get_table_types(
        &self,
        query: CommandGetTableTypes,
        _: Request<Ticket>,
    ) -> Result<Data, Status> {
        catalog::table_types(query).map(whole)
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, SqlInfoDataBuilder::schema(), &query)
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _: Request<Ticket>) -> Result<Data, Status> {
        let facts = info::server(self.service.limits())?;
        Ok(whole(query.into_builder(&facts).build()?))
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, &XdbcTypeInfoDataBuilder::new().schema(), &query)
    }

    async fn do_get_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        _: Request<Ticket>,
    ) -> Result<Data, Status> {
        Ok(whole(query.into_builder(&info::types()?).build()?))
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, &catalog::primary_keys(), &query)
    }

    async fn do_get_primary_keys(
        &self,
        _: CommandGetPrimaryKeys,
        _: Request<Ticket>,
    ) -> Result<Data, Status> {
        Ok(empty(catalog::primary_keys()))
    }

    async fn get_flight_info_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, &catalog::foreign_keys(), &query)
    }

    async fn do_get_exported_keys(
        &self,
        _: CommandGetExportedKeys,
        _: Request<Ticket>,
    ) -> Result<Data, Status> {
        Ok(empty(catalog::foreign_keys()))
    }

    async fn get_flight_info_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, &catalog::foreign_keys(), &query)
    }

    async fn do_get_imported_keys(
        &self,
        _: CommandGetImportedKeys,
        _: Request<Ticket>,
    ) -> Result<Data, Status> {
        Ok(empty(catalog::foreign_keys()))
    }

    async fn get_flight_info_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Result<Info, Status> {
        found(request, &catalog::foreign_keys(), &query)
    }

    async fn do_get_cross_reference(
        &self,
        _: CommandGetCrossReference,
        _: Request<Ticket>,
    ) -> Result<Data, Status> {
        Ok(empty(catalog::foreign_keys()))
    }

    /// Does nothing, because the metadata of the server is fixed.
    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}
