//! The text that is printed when the demo is ready: the page to open, and commands to try.

use crate::cli::terminal::sanitize;
use crate::commands::serve::Endpoints;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const QUESTION: &str = "SELECT service, category, count(*) AS failures, count(*) FILTER (WHERE hidden) AS hidden\n       \
                        FROM errors WHERE time > now() - INTERVAL '1 day'\n       \
                        GROUP BY service, category ORDER BY failures DESC LIMIT 10";

const LOOPS: &str =
    "SELECT service, client, canonical, attempts, recovery FROM retry_loops ORDER BY attempts DESC LIMIT 5";

/// Returns the text. The commands work as they are printed: `program` is how the demo itself was called.
pub(super) fn text(endpoints: &Endpoints, program: &Path, data_dir: &Path, history: Duration) -> String {
    let length = in_words(history);
    let mut text = match length.as_str() {
        "" => String::from("The demo is running: live traffic of an invented company.\n\n"),
        _ => format!("The demo is running: {length} of an invented company, and live traffic.\n\n"),
    };
    if let Some(web) = endpoints.web {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "  open  http://{web}/\n");
    }
    let (program, folder) = (quoted(program), quoted(data_dir));
    let _ = writeln!(text, "Try, in another terminal in this directory:\n");
    let _ = writeln!(text, "  {program} sql --data-dir {folder} \"{QUESTION}\"");
    if endpoints.web.is_some() {
        let _ = writeln!(text, "  {program} tail --data-dir {folder}");
    }
    if let Some(postgres) = endpoints.postgres {
        let (host, port) = (postgres.ip(), postgres.port());
        let _ = writeln!(text, "  psql -h {host} -p {port} -c '{LOOPS}' faultline");
    } else if let Some(web) = endpoints.web {
        let _ = writeln!(text, "  curl http://{web}/api/v1/status");
    }
    text.push_str("\nCtrl-C stops it.");
    text
}

/// Returns the length of a history in its largest whole unit, or an empty text if there is none.
fn in_words(history: Duration) -> String {
    const UNITS: [(u64, &str); 5] =
        [(604_800, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let seconds = history.as_secs();
    let unit = UNITS.into_iter().find(|(length, _)| seconds > 0 && seconds.is_multiple_of(*length));
    match unit.map(|(length, name)| (seconds / length, name)) {
        None => String::new(),
        Some((1, "hour")) => "an hour".to_owned(),
        Some((1, name)) => format!("a {name}"),
        Some((count, name)) => format!("{count} {name}s"),
    }
}

/// Returns a path, quoted for a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
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
    fn the_history_is_told_in_words() {
        let told =
            [604_800, 259_200, 3_600, 5_400, 90, 0].map(|seconds| in_words(Duration::from_secs(seconds)));
        assert_eq!(told, ["a week", "3 days", "an hour", "90 minutes", "90 seconds", ""]);
    }

    #[test]
    fn the_addresses_and_the_directory_are_the_real_ones() {
        let all = endpoints(Some("127.0.0.1:7071"), Some("127.0.0.1:5555"));
        let program = Path::new("target/quick/faultline");
        let shown = text(&all, program, Path::new("/tmp/a shop"), Duration::from_secs(7_200));
        assert!(shown.contains("2 hours of an invented company"), "{shown}");
        for part in [
            "open  http://127.0.0.1:7071/",
            "  target/quick/faultline tail --data-dir '/tmp/a shop'\n",
            "psql -h 127.0.0.1 -p 5555",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        let (program, folder) = (Path::new("faultline"), Path::new("faultline-demo"));
        let shown = text(&endpoints(Some("127.0.0.1:7070"), None), program, folder, Duration::ZERO);
        assert!(shown.contains("running: live traffic"), "{shown}");
        assert!(
            shown.contains("  faultline tail --data-dir faultline-demo\n")
                && shown.contains("/api/v1/status")
        );
        assert!(!shown.contains("psql"), "{shown}");
    }
}
