//! `faultline health`: asks a server whether it takes requests; for probes where there is no curl.

use crate::client::{self, Address, Http, Trust};
use crate::terminal;
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

Asks /readyz, which needs no token. A server that is full, or whose disk fails, is alive and not
ready: it answers questions, and tells senders to come back.

Exit codes:
  0  it takes requests
  1  it does not, or cannot be reached; stderr says why
  2  wrong usage";

/// How long an answer may take: shorter than probes wait.
const TIME: Duration = Duration::from_secs(4);
/// The answer is a line.
const LONGEST: usize = 64 << 10;
/// What is asked.
const PATH: &str = "/readyz";
/// Whom, unless told otherwise.
const SERVER: &str = "http://127.0.0.1:7070";

/// Says whether a server takes requests.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The web address of a server.
    #[arg(long, value_name = "URL", default_value = SERVER, value_parser = server)]
    server: Address,
    #[command(flatten)]
    trust: Trust,
}

fn server(text: &str) -> Result<Address, String> {
    Address::read(text, SERVER, PATH)
}

/// Asks, and says no with a reason.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(async { tokio::time::timeout(TIME, ask(arguments)).await });
    match asked.unwrap_or_else(|_| Err(format!("no answer within {} seconds", TIME.as_secs()))) {
        Ok(answer) => {
            terminal::print(format!("{}\n", terminal::safe(answer.trim())).as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            terminal::complain(why.trim());
            Ok(ExitCode::FAILURE)
        }
    }
}

async fn ask(Arguments { server, trust }: &Arguments) -> Result<String, String> {
    let url = format!("{server}{PATH}");
    let request = Request::get(&url).body(Full::<Bytes>::default()).map_err(|error| error.to_string())?;
    let client = Http::to(server, trust).map_err(|error| format!("{error:#}"))?;
    let answer = client.request(request).await.map_err(|error| client::away(&url, &error))?;
    let is_yes = answer.status().is_success();
    let body = Limited::new(answer.into_body(), LONGEST).collect().await;
    let body = body.map_err(|error| format!("{url}: {error}"))?.to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    if is_yes { Ok(text) } else { Err(format!("{url}: {text}")) }
}
