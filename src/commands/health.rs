//! `faultline health` checks whether a server accepts requests, for probes where curl is not available.

use crate::cli::terminal;
use crate::client::{self, ClientTlsArgs, HttpClient, ServerAddress};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full, Limited};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  faultline health
  faultline health --server http://127.0.0.1:7070 && echo ready
  faultline health --server https://localhost:7070 --ca ca.crt

Requests /readyz, which needs no token. A server with a full or failing disk is alive but not ready:
it answers queries, and rejects ingest requests.

Exit codes:
  0  the server accepts requests
  1  it does not, or it cannot be reached; stderr says why
  2  wrong usage";

/// The longest time for a response, which is shorter than the timeout of usual probes.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The maximum size of a response, which has one line.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
/// The path of the request.
const PATH: &str = "/readyz";
/// The default server.
const DEFAULT_SERVER: &str = "http://127.0.0.1:7070";

/// Checks whether a server accepts requests.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The web address of a server.
    #[arg(long, value_name = "URL", default_value = DEFAULT_SERVER, value_parser = server)]
    server: ServerAddress,
    #[command(flatten)]
    tls: ClientTlsArgs,
}

fn server(text: &str) -> Result<ServerAddress, String> {
    ServerAddress::parse(text, DEFAULT_SERVER, PATH)
}

/// Requests the readiness of the server, and prints the response or the error.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let probed = runtime.block_on(async { tokio::time::timeout(TIMEOUT, probe(arguments)).await });
    match probed.unwrap_or_else(|_| Err(format!("no answer within {} seconds", TIMEOUT.as_secs()))) {
        Ok(response) => {
            terminal::write_stdout(format!("{}\n", terminal::sanitize(response.trim())).as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            terminal::print_error(why.trim());
            Ok(ExitCode::FAILURE)
        }
    }
}

async fn probe(Arguments { server, tls }: &Arguments) -> Result<String, String> {
    let url = format!("{server}{PATH}");
    let request = Request::get(&url).body(Full::<Bytes>::default()).map_err(|error| error.to_string())?;
    let client = HttpClient::new(server, tls).map_err(|error| format!("{error:#}"))?;
    let response = client.request(request).await.map_err(|error| client::connect_error(&url, &error))?;
    let is_yes = response.status().is_success();
    let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
    let body = body.map_err(|error| format!("{url}: {error}"))?.to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    if is_yes { Ok(text) } else { Err(format!("{url}: {text}")) }
}
