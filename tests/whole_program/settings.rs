//! `faultline.toml`, the environment and flags; what SIGHUP changes; what a service manager is told.

use super::server::Server;
use super::support::{Folder, check_expected, command, in_root, root};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

/// Guarantee: each file of the corpus is found right, or every mistake in it is told with its place, as it says itself.
#[test]
fn each_file_of_the_corpus_gets_its_message() {
    let folder = root().join("tests/corpus/settings");
    let mut files: Vec<_> = std::fs::read_dir(&folder).expect("the corpus").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    assert!(files.len() >= 14);
    for file in files {
        let text = std::fs::read_to_string(file.path()).expect("a file");
        let expected: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#! ")).collect();
        let name = file.file_name().into_string().expect("a name");
        let output = command(&["check", "--config", &name]).current_dir(&folder).output().expect("it runs");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            assert_eq!(out.lines().collect::<Vec<_>>(), expected, "{name}");
        } else {
            let mut lines = err.lines();
            assert!(lines.next().is_some_and(|line| line.contains("the config file has mistakes")), "{err}");
            assert_eq!(lines.map(str::trim).collect::<Vec<_>>(), expected, "{name}:\n{err}");
            assert_eq!(output.status.code(), Some(1));
        }
    }
}

/// Guarantee: what is printed as defaults is a file that is right, commented out or not.
#[test]
fn the_defaults_are_a_settings_file() {
    let printed = in_root(&["check", "--print-defaults"]).ends_with(0).out;
    let folder = Folder::new();
    let is_setting = |line: &&str| line.contains(" = ") && !line.contains("\"FILE\"");
    let count = printed.lines().filter(|line| line.starts_with("# ")).filter(is_setting).count();
    let used: String = printed
        .lines()
        .map(|line| match line.strip_prefix("# ").filter(is_setting) {
            Some(setting) => format!("{setting}\n"),
            None => format!("{line}\n"),
        })
        .collect();
    let said = |text: &str| {
        let file = folder.file("defaults.toml", text);
        in_root(&["check", "--config", &file]).ends_with(0).out
    };
    assert!(said(&printed).contains(": 0 settings, nothing wrong"));
    assert!(said(&used).contains(&format!(": {count} settings, nothing wrong")), "{count}\n{}", said(&used));
}

#[test]
fn the_page_of_settings_is_up_to_date() {
    let page = in_root(&["check", "--print-defaults", "markdown"]).ends_with(0).out;
    check_expected("docs/settings.md", &page);
}

/// Guarantee: flags win over the environment, the environment over the file, the file over the defaults; a file that is
/// named and not there, or not right, stops the start.
#[test]
fn the_later_word_wins() {
    let folder = Folder::new();
    let file =
        folder.file("some.toml", "query.rows = 3\nqueries = 5\n[listen]\nweb = \"off\"\nflight = \"off\"\n");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_faultline"));
    serve.env("FAULTLINE_QUERY_ROWS", "2");
    let server =
        Server::run(&folder, serve, &["--config", &file, "--listen-web", ":0", "--listen-flight", "off"]);
    assert!(server.endpoints["flight"].is_null() && server.endpoints["web"].is_string());
    let asked = |query: &str| {
        let headers = [("Content-Type", "text/plain")];
        super::server::ask(server.address("web"), "POST", "/api/v1/sql", &headers, query.as_bytes())
            .expect("an answer")
    };
    let answer = asked("SELECT * FROM codes").is(422).json();
    assert_eq!(answer["error"]["message"], "the result has more than 2 rows");

    for (file, says) in [
        ("/nowhere/x.toml".to_owned(), "cannot read the config file"),
        (folder.file("bad.toml", "x = 1"), "unknown setting 'x'"),
    ] {
        let output = command(&["serve", "--config", &file]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(says) && output.status.code() == Some(1), "{said}");
    }
}

/// Scenario: a server with small limits of each library, from the file, the environment and flags.
/// Guarantee: they hold, and say what they are; limits that do not fit together stop the start.
#[test]
fn limits_that_are_set_hold() {
    let folder = Folder::new();
    let file = folder.file(
        "some.toml",
        "[limit]\nline_bytes = \"128KiB\"\ncompressed_bytes = \"256KiB\"\nbody_bytes = \"256KiB\"\nlarge_bytes = \"128KiB\"\n",
    );
    let mut serve = Command::new(env!("CARGO_BIN_EXE_faultline"));
    serve.env("FAULTLINE_QUERY_COLUMNS", "2");
    let flags = ["--config", &file, "--limit-services", "1", "--limit-message-bytes", "600"];
    let server = Server::run(&folder, serve, &flags);
    let failure = |service: &str, padding: usize| {
        let message = "x ".repeat(padding / 2);
        format!(
            r#"{{"service":"{service}","success":false,"error":{{"code":"INTERNAL_ERROR","message":"{message}"}}}}"#
        )
    };
    // This is tested separately, because the order of two new names in one request is not defined.
    server.post_lines(&failure("one", 10)).is(200);
    let lines = [failure("two", 2_000), failure("one", 200_000)].join("\n");
    let answer = server.post_lines(&lines).is(200).json();
    assert_eq!((&answer["events"], &answer["rejected"][0]["line"]), (&1.into(), &2.into()), "{answer}");
    server.post_lines(&[failure("one", 200_000), failure("one", 100_000)].join("\n")).is(413);
    let events = server.dump("events");
    let longest = events.iter().filter_map(|event| event["message"].as_str()).map(str::len).max();
    assert_eq!((events.len(), longest), (2, Some(600)));
    let metrics = String::from_utf8(server.get("/metrics").is(200).body).expect("UTF-8");
    assert!(metrics.contains("service=\"one\"") && !metrics.contains("service=\"two\""), "{metrics}");
    let headers = [("Content-Type", "text/plain")];
    let asked = |query: &[u8]| {
        super::server::ask(server.address("web"), "POST", "/api/v1/sql", &headers, query).expect("an answer")
    };
    asked(b"SELECT 1, 2").is(200);
    assert!(String::from_utf8_lossy(&asked(b"SELECT 1, 2, 3").body).contains("at most 2 are allowed"));

    let output = command(&["serve", "--limit-line-bytes", "4KiB"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("limit.message_bytes (8192) must be at most limit.line_bytes (4096)"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

/// Scenario: a server whose file is changed three times: to more logging, to nonsense, and to something that needs a
/// restart.
/// Guarantee: the first is used at once, the second changes nothing and is told, the third is named.
#[test]
fn sighup_reads_the_settings_again() {
    let folder = Folder::new();
    let file = folder.file("some.toml", "log_level = \"warn\"\n");
    let server = Server::start_with(&folder, &["--config", &file]);
    let until_said = |words: &str| {
        let began = Instant::now();
        while !server.said().contains(words) {
            assert!(began.elapsed() < Duration::from_secs(20), "not said: {words}\n{}", server.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    assert!(!server.said().contains("\"INFO\""), "{}", server.said());
    folder.file("some.toml", "log_level = \"debug\"\nexpect_service = \"stock\"\n");
    server.signal("HUP");
    until_said("the settings were read again");
    assert!(String::from_utf8_lossy(&server.get("/metrics").is(200).body).contains("service=\"stock\""));
    server.post_lines("").is(400);
    until_said("\"DEBUG\"");
    folder.file("some.toml", "log_lvl = \"debug\"\n");
    server.signal("HUP");
    until_said("the settings stay as they are");
    until_said("did you mean 'log_level'");
    folder.file("some.toml", "log_level = \"info\"\n[flush]\nafter = \"5s\"\n");
    server.signal("HUP");
    until_said("flush_after");
    assert!(server.said().contains("need a restart"));
    assert_eq!(server.stop().code(), Some(0));
}

/// Guarantee: a service manager that asks for it is told when we are ready, reload and stop.
#[test]
fn a_service_manager_is_told() {
    let folder = Folder::new();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let told = || {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).expect("a message");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let path = path.to_str().expect("a path");
    let server = Server::start_in(&folder, &[("NOTIFY_SOCKET", path)], &[]);
    assert!(told().starts_with("READY=1\n"));
    server.signal("HUP");
    let reloading = told();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert!(told().starts_with("READY=1\n"));
    server.signal("TERM");
    assert!(told().starts_with("STOPPING=1\n"));
}

/// Guarantee: lines are JSON when that is asked for, and for people when that is.
#[test]
fn the_log_has_the_format_that_is_asked_for() {
    for (format, is_json) in [("json", true), ("text", false), ("auto", true)] {
        let folder = Folder::new();
        let server = Server::start_with(&folder, &["--log-format", format]);
        // It logs this right after it has written its addresses.
        let began = Instant::now();
        while server.said().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(20), "{format}: nothing is said");
            std::thread::sleep(Duration::from_millis(20));
        }
        let said = server.said();
        let line = said.lines().next().expect("a line");
        assert_eq!(serde_json::from_str::<serde_json::Value>(line).is_ok(), is_json, "{format}: {line}");
    }
}
