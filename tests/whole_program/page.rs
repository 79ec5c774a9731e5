//! The web page in a real browser, against a real `faultline demo`, and against a server in which every field that a
//! sender chooses is hostile. The checks themselves are `web/tests/page.mjs`.
//!
//! Needs Node.js, Chromium and the packages of the page, which `tests/run` installs: a test that lacks them says so and
//! fails.

mod hostile;

use super::server::Server;
use super::support::{Folder, program, root};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The length of the history: a day, which is the range that the page shows at first, and a little more.
const HISTORY: &str = "25h";
/// The number of calls that are made in a second, whatever the hour is.
const CALLS_PER_SECOND: f64 = 0.8;
/// The time that the first view may take to paint, in a debug build on a busy machine. The check prints the time.
const FIRST_CHART_MS: &str = "60000";
/// The time that anything else on the page may take there, in seconds.
const PATIENCE_S: &str = "90";

/// Returns the rate for `--rate` with which the demo makes [`CALLS_PER_SECOND`] now: its nights are quiet.
fn rate() -> String {
    let activity = demo::World::activity(jiff::Timestamp::now().as_microsecond());
    format!("{:.3}", CALLS_PER_SECOND * 1_000.0 / activity.max(1) as f64)
}

/// Returns the folder with the checks and their packages, which `tests/run` makes from `web/`.
fn checks() -> PathBuf {
    let folder = root().join("target/web");
    assert!(
        folder.join("node_modules/playwright-core").exists(),
        "the packages of the page are missing: run ./tests/run, or cp -r web/. target/web/ && (cd target/web && npm ci)"
    );
    // The checks are those of the sources, even if `tests/run` has not copied them since they were changed.
    let sources = root().join("web/tests");
    let copied = Command::new("cp").arg("-r").arg(sources).arg(&folder).status();
    assert!(copied.expect("cp is missing").success());
    folder
}

fn chromium() -> &'static str {
    let found = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let found = found.into_iter().find(|path| std::path::Path::new(path).exists());
    found.expect("chromium is missing: run ./tests/run, which installs it")
}

/// Scenario: a demo with a day of history and live traffic, and a server with tokens whose data is hostile. A browser
/// opens every view of both; follows, filters, zooms, asks in SQL, reloads, uses the keyboard and a finger, signs in and
/// out.
/// Guarantee: everything that `web/tests/page/*.mjs` states. Above all: every view has data in light, in dark and 390
/// pixels wide; the console shows no error; no request goes to another host; numbers equal the events that they lead to;
/// axe finds nothing serious; what senders wrote is shown as text.
#[test]
fn the_page_holds_in_a_browser() {
    let (demo_folder, hostile_folder) = (Folder::new(), Folder::new());
    let mut demo = Server::spawn_as(
        "demo",
        &demo_folder,
        Command::new(program()),
        &["--history", HISTORY, "--rate", &rate(), "--seed", "7"],
    );
    let (hostile, token) = hostile::start(&hostile_folder);
    assert!(demo.gets_ready(), "the demo ended: {:?}\n{}", demo.wait(), demo.said());
    let address = |server: &Server| format!("http://{}", server.address("web"));
    let shots = root().join("target/web/shots");
    let run = Command::new("node")
        .arg("tests/page.mjs")
        .current_dir(checks())
        .args(["--base", &address(&demo), "--hostile", &address(&hostile), "--token", &token])
        .args(["--chromium", chromium(), "--timeout", PATIENCE_S, "--first-chart", FIRST_CHART_MS])
        .arg("--shots")
        .arg(&shots)
        .stdin(Stdio::null())
        .output()
        .expect("node is missing: run ./tests/run, which installs it");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}\n{err}\npictures are in {}\n{}", shots.display(), demo.said());
    println!("{out}");
    assert!(out.contains("hostile texts in trust are texts") && out.contains("signing out"), "{out}");
}
