//! The Flight service: it passes calls to Flight SQL, and handles those that the trait of Flight SQL does not cover.

use super::FlightSqlEndpoint;
use super::handle::Handle;
use super::status::{invalid, unwritable};
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{Any, Command};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest,
    PollInfo, SchemaAsIpc, SchemaResult, Ticket,
};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

/// The supported actions.
const ACTIONS: [(&str, &str); 2] = [
    ("CreatePreparedStatement", "Prepares a statement; its parameters are $1, $2 and so on"),
    ("ClosePreparedStatement", "Says that a prepared statement is not needed any more"),
];

/// The gRPC service.
#[derive(Debug, Clone)]
pub(super) struct FlightServer(pub(super) FlightSqlEndpoint);

impl FlightServer {
    /// Parses a command. Without this check, a client that sends something else would get an internal error.
    fn command(bytes: &[u8]) -> Result<Command, Status> {
        match Any::decode(bytes).ok().and_then(|any| Command::try_from(any).ok()) {
            Some(Command::Unknown(_)) | None => {
                Err(invalid("this server speaks Flight SQL: send one of its commands"))
            }
            Some(command) => Ok(command),
        }
    }
}

#[async_trait]
impl FlightService for FlightServer {
    type HandshakeStream = <FlightSqlEndpoint as FlightService>::HandshakeStream;
    type ListFlightsStream = <FlightSqlEndpoint as FlightService>::ListFlightsStream;
    type DoGetStream = <FlightSqlEndpoint as FlightService>::DoGetStream;
    type DoPutStream = <FlightSqlEndpoint as FlightService>::DoPutStream;
    type DoActionStream = <FlightSqlEndpoint as FlightService>::DoActionStream;
    type ListActionsStream = <FlightSqlEndpoint as FlightService>::ListActionsStream;
    type DoExchangeStream = <FlightSqlEndpoint as FlightService>::DoExchangeStream;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        self.0.handshake(request).await
    }

    /// Lists no flights, because flights exist only for a client's own requests.
    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        Ok(Response::new(stream::empty().boxed()))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        Self::command(&request.get_ref().cmd)?;
        self.0.get_flight_info(request).await
    }

    async fn poll_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        self.0.poll_flight_info(request).await
    }

    /// Returns the columns of a statement, without running it.
    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        let described = match Self::command(&request.get_ref().cmd)? {
            Command::CommandStatementQuery(query) => self.0.described(&Handle::new(query.query)).await?,
            Command::CommandPreparedStatementQuery(query) => {
                self.0.described(&Handle::read(&query.prepared_statement_handle)?).await?
            }
            _ => {
                return Err(Status::unimplemented(
                    "the schema is that of a statement; ask for its flight info",
                ));
            }
        };
        let options = IpcWriteOptions::default();
        let schema = SchemaResult::try_from(SchemaAsIpc::new(&described.schema, &options));
        schema.map(Response::new).map_err(|error| unwritable(&error))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        Self::command(&request.get_ref().ticket)?;
        self.0.do_get(request).await
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        self.0.do_put(request).await
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        self.0.do_action(request).await
    }

    /// Lists the actions that have an effect.
    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        let actions = ACTIONS
            .map(|(name, about)| Ok(ActionType { r#type: name.to_owned(), description: about.to_owned() }));
        Ok(Response::new(stream::iter(actions).boxed()))
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        self.0.do_exchange(request).await
    }
}
