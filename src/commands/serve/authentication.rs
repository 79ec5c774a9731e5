//! Loads the tokens that the authenticator knows, from a file and from the environment.

use anyhow::Context;
use auth::{Authenticator, Origin, Tokens};
use std::path::Path;

/// The variable with a list as in `ingest:TOKEN,query:TOKEN`. There is no flag for it, because other users can see
/// command lines.
const VARIABLE: &str = "FAULTLINE_TOKENS";

/// Creates the authenticator. Without tokens it requires none, but then requests must name this server as their host,
/// unless the network is trusted.
pub(super) fn load_authenticator(
    file: Option<&Path>,
    insecure: bool,
    origins: Vec<Origin>,
) -> anyhow::Result<Authenticator> {
    Ok(load(file)?
        .map_or_else(|| Authenticator::without_tokens(insecure), Authenticator::with_tokens)
        .with_allowed_origins(origins))
}

/// Loads all tokens. Returns `None` if there is neither a file nor a list.
pub(super) fn load(file: Option<&Path>) -> anyhow::Result<Option<Tokens>> {
    let listed = std::env::var(VARIABLE).ok().filter(|list| !list.is_empty());
    if file.is_none() && listed.is_none() {
        return Ok(None);
    }
    let mut tokens = file.map(read).transpose()?.unwrap_or_default();
    if let Some(list) = listed {
        let listed =
            Tokens::parse_list(&list).with_context(|| format!("the tokens in {VARIABLE} cannot be used"))?;
        tokens.add_all(listed).with_context(|| format!("the tokens in {VARIABLE} cannot be used"))?;
    }
    Ok(Some(tokens))
}

fn read(file: &Path) -> anyhow::Result<Tokens> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| {
        format!("cannot read the tokens '{name}'; `faultline token new --tokens {name}` makes the file")
    })?;
    Tokens::parse_file(&text)
        .with_context(|| format!("the tokens '{name}' cannot be used, and none of them is"))
}
