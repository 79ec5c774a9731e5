//! The text that is printed when the demo is ready: the page to open, and commands to try.

use crate::cli::terminal::sanitize;
use crate::commands::serve::Endpoints;
use std::fmt::Write;
use std::path::Path;

const QUESTION: &str = "SELECT service, category, count(*) AS failures, count(*) FILTER (WHERE hidden) AS hidden\n       \
                        FROM errors WHERE time > now() - INTERVAL '1 day'\n       \
                        GROUP BY service, category ORDER BY failures DESC LIMIT 10";

/// Returns the text.
pub(super) fn text(endpoints: &Endpoints, data_dir: &Path, default_dir: &Path) -> String {
    let mut text = String::from("The demo is running: a week of an invented company, and live traffic.\n\n");
    if let Some(web) = endpoints.web {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "  open  http://{web}/\n");
    }
    let folder = quoted(data_dir, default_dir);
    let _ = writeln!(text, "Try, in another terminal:\n");
    let _ = writeln!(text, "  faultline sql --data-dir {folder} \"{QUESTION}\"");
    if endpoints.web.is_some() {
        let _ = writeln!(text, "  faultline tail --data-dir {folder}");
    }
    if let Some(postgres) = endpoints.postgres {
        let (host, port) = (postgres.ip(), postgres.port());
        let _ = writeln!(text, "  psql -h {host} -p {port} -c 'SELECT * FROM quota_state' faultline");
    } else if let Some(web) = endpoints.web {
        let _ = writeln!(text, "  curl http://{web}/api/v1/status");
    }
    text.push_str("\nCtrl-C stops it.");
    text
}

/// Returns the directory, quoted for a shell.
fn quoted(data_dir: &Path, default_dir: &Path) -> String {
    if data_dir == default_dir {
        return default_dir.display().to_string();
    }
    let path = data_dir.display().to_string();
    let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    if is_plain { path } else { format!("'{}'", sanitize(&path).replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(web: Option<&str>, postgres: Option<&str>) -> Endpoints {
        let parse = |text: &str| text.parse().ok();
        Endpoints {
            otlp_grpc: None,
            otlp_http: None,
            web: web.and_then(parse),
            postgres: postgres.and_then(parse),
            flight: None,
            tls: false,
        }
    }

    #[test]
    fn the_addresses_and_the_directory_are_the_real_ones() {
        let default = Path::new("faultline-demo");
        let all = endpoints(Some("127.0.0.1:7071"), Some("127.0.0.1:5555"));
        let shown = text(&all, Path::new("/tmp/a shop"), default);
        for part in
            ["open  http://127.0.0.1:7071/", "tail --data-dir '/tmp/a shop'", "psql -h 127.0.0.1 -p 5555"]
        {
            assert!(shown.contains(part), "{shown}");
        }
        let shown = text(&endpoints(Some("127.0.0.1:7070"), None), default, default);
        assert!(shown.contains("tail --data-dir faultline-demo\n") && shown.contains("/api/v1/status"));
        assert!(!shown.contains("psql"), "{shown}");
    }
}
