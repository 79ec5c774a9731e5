//! Tokens: every endpoint and route with right, wrong, missing, expired and wrong-scope ones; and how they are made.

use super::otlp::client::python;
use super::server::{Answer, Server, ask};
use super::support::{Folder, HIDDEN, command, faultline, lines};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Makes a token in the file of a folder, and returns it.
#[track_caller]
fn new_token(file: &str, name: &str, arguments: &[&str]) -> String {
    let run =
        faultline(&[&["token", "new", "--name", name, "--tokens", file], arguments].concat()).ends_with(0);
    run.out.trim().to_owned()
}

/// The tokens of a server.
struct Tokens {
    file: String,
    ingest: String,
    query: String,
    expired: String,
}

impl Tokens {
    fn new(folder: &Folder) -> Self {
        let file = folder.path().join("tokens.toml").to_str().expect("a path").to_owned();
        let ingest = new_token(&file, "shipper", &["--scope", "ingest"]);
        let query = new_token(&file, "analyst", &["--scope", "query", "--expires", "90d"]);
        let expired = new_token(&file, "former", &["--scope", "ingest,query", "--expires", "0s"]);
        Self { file, ingest, query, expired }
    }

    /// Returns the clients to try: a kind of client, and what it has instead of the right token.
    fn visitors<'t>(&'t self, right: &'t str, other: &'t str) -> [(&'static str, Option<&'t str>); 5] {
        [
            ("right", Some(right)),
            ("wrong", Some("flt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")),
            ("missing", None),
            ("expired", Some(&self.expired)),
            ("other scope", Some(other)),
        ]
    }
}

fn visit(server: &Server, door: &str, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![(
        "Content-Type",
        if path == "/v1/envelopes" { "application/x-ndjson" } else { "application/json" },
    )];
    headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
    ask(server.address(door), method, path, &headers, body.as_bytes()).expect("an answer")
}

/// Guarantee: each route lets in who has the right token, and nobody else; probes need none; what is denied is counted,
/// and no token is in the log of the server, the file, or the metrics.
#[test]
fn every_route_asks_for_its_token() {
    let folder = Folder::new();
    let tokens = Tokens::new(&folder);
    let server = Server::start_with(&folder, &["--tokens", &tokens.file, "--log-level", "debug"]);
    let sql = json!({"query": "SELECT 1 AS one"}).to_string();
    let routes = [
        ("otlp_http", "POST", "/v1/envelopes", &*lines(&[HIDDEN])),
        ("otlp_http", "POST", "/v1/traces", "{}"),
        ("otlp_http", "POST", "/v1/logs", "{}"),
        ("otlp_http", "GET", "/v1/nothing", ""),
        ("web", "GET", "/metrics", ""),
        ("web", "GET", "/api/v1/status", ""),
        ("web", "POST", "/api/v1/sql", &sql),
        ("web", "GET", "/api/v1/tail?recent=5000", ""),
        ("web", "GET", "/nothing", ""),
    ];
    for (door, method, path, body) in routes {
        let (right, other) = match door {
            "web" => (&*tokens.query, &*tokens.ingest),
            _ => (&*tokens.ingest, &*tokens.query),
        };
        for (kind, token) in tokens.visitors(right, other) {
            let answer = visit(&server, door, method, path, token, body);
            let expected: &[u16] = match kind {
                // A tail with too many parameters, and unknown paths, are reported as such only to authorized clients.
                "right" => &[200, 400, 404],
                "other scope" => &[403],
                _ => &[401],
            };
            assert!(expected.contains(&answer.status), "{kind} at {path}: {answer:?}");
            if kind == "other scope" {
                let said = String::from_utf8_lossy(&answer.body);
                assert!(said.contains("use a token that has the scope"), "{path}: {said}");
                assert!(!said.contains("localhost"), "{path}: {said}");
            }
            assert_eq!(
                answer.header("www-authenticate"),
                (answer.status == 401).then_some("Bearer"),
                "{path}"
            );
        }
    }
    for path in ["/healthz", "/readyz", "/runbook", "/"] {
        visit(&server, "web", "GET", path, None, "").is(200);
    }
    // A client that supports only Basic sends the token as its password.
    let basic = format!("Basic {}", base64(&format!("anyone:{}", tokens.query)));
    let answer = ask(server.address("web"), "GET", "/metrics", &[("Authorization", &basic)], b"")
        .expect("an answer")
        .is(200);
    let metrics = String::from_utf8(answer.body).expect("UTF-8");
    for counted in
        ["{reason=\"wrong\"} 9", "{reason=\"missing\"} 9", "{reason=\"expired\"} 9", "{reason=\"scope\"} 9"]
    {
        assert!(metrics.contains(&format!("faultline_auth_denials_total{counted}")), "{counted}");
    }
    let said = server.said();
    let file = std::fs::read_to_string(&tokens.file).expect("the file");
    for secret in [&tokens.ingest, &tokens.query, &tokens.expired] {
        assert!(!said.contains(secret) && !file.contains(secret) && !metrics.contains(secret));
    }
}

fn base64(text: &str) -> String {
    let output = Command::new("python3")
        .args(["-c", "import base64,sys; print(base64.b64encode(sys.argv[1].encode()).decode())", text])
        .output();
    String::from_utf8(output.expect("Python").stdout).expect("text").trim().to_owned()
}

/// Scenario: gRPC with metadata, psycopg by SCRAM and ADBC, as real clients, with each kind of token; then psql.
/// Guarantee: as over HTTP.
#[test]
fn every_port_asks_for_its_token() {
    let folder = Folder::new();
    let tokens = Tokens::new(&folder);
    let server = Server::start_with(&folder, &["--tokens", &tokens.file]);
    let ingest = tokens.visitors(&tokens.ingest, &tokens.query);
    let query = tokens.visitors(&tokens.query, &tokens.ingest);
    let names = ["analyst", "analyst", "analyst", "former", "shipper"];
    let visitors: Vec<Value> = ingest
        .iter()
        .zip(query)
        .zip(names)
        .map(|(((kind, ingest), (_, query)), user)| json!({"kind": kind, "ingest": ingest, "query": query, "user": user}))
        .collect();
    let addresses = ["otlp_grpc", "postgres", "flight"].map(|name| server.address(name).to_string());
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let answers = python("tokens.py", &addresses, json!(visitors).to_string().as_bytes());
    for answer in answers.as_array().expect("answers") {
        let says = |door: &str, words: &str| {
            let said = answer[door].as_str().expect("a text");
            assert!(said.to_lowercase().contains(words), "{door}: '{words}' is not in {answer}");
        };
        match answer["kind"].as_str().expect("a kind") {
            "right" => ["otlp", "postgres", "flight"].iter().for_each(|door| says(door, "ok")),
            "other scope" => {
                says("otlp", "permission_denied");
                says("postgres", "does not have the scope query");
                says("flight", "does not have the scope query");
            }
            kind => {
                says("otlp", "unauthenticated");
                says(
                    "flight",
                    if kind == "missing" {
                        "is required"
                    } else if kind == "expired" {
                        "expired"
                    } else {
                        "does not know the token"
                    },
                );
                // Without a password, the client gives up by itself.
                says(
                    "postgres",
                    if kind == "expired" {
                        "expired"
                    } else if kind == "wrong" {
                        "does not know the token"
                    } else {
                        "password"
                    },
                );
            }
        }
    }
    let psql = |user: &str, password: &str| {
        let port = server.address("postgres").port();
        let address = format!("host=127.0.0.1 port={port} user={user} dbname=faultline");
        let output = Command::new("psql")
            .args(["--no-psqlrc", "-Atw", &address, "-c", "SELECT 40 + 2"])
            .env("PGPASSWORD", password)
            .output();
        let output = output.expect("psql is missing: install postgresql-client");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    assert_eq!(psql("analyst", &tokens.query), "42\n");
    assert!(psql("nobody", &tokens.query).contains("does not know the token"));
    assert!(psql("analyst", &tokens.ingest).contains("does not know the token"));
}

/// Scenario: our own commands against a server with tokens, with and without one; a new token and SIGHUP; a bad file.
/// Guarantee: they work with the token of the environment; a new one is known after SIGHUP; a bad file changes nothing.
#[test]
fn our_own_commands_bring_their_token() {
    let folder = Folder::new();
    let tokens = Tokens::new(&folder);
    let server = Server::start_with(&folder, &["--tokens", &tokens.file]);
    let (web, http) =
        (format!("http://{}", server.address("web")), format!("http://{}", server.address("otlp_http")));
    let log = folder.file("app.ndjson", lines(&[HIDDEN]));
    let run = |arguments: &[&str], token: &str| {
        let output = command(arguments).env("FAULTLINE_TOKEN", token).output().expect("it runs");
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said)
    };
    let (works, said) = run(&["ingest", "--to", &http, "--wait", "1", &log], "");
    assert!(!works && said.contains("with the scope ingest into FAULTLINE_TOKEN"), "{said}");
    let (works, said) = run(&["ingest", "--to", &http, "--wait", "1", &log], &tokens.query);
    assert!(!works && said.contains("does not have the scope ingest"), "{said}");
    assert!(said.contains("FAULTLINE_TOKEN") && !said.contains("localhost"), "{said}");
    let (works, said) = run(&["ingest", "--to", &http, &log], &tokens.ingest);
    assert!(works, "{said}");
    let ask = ["sql", "--server", &web, "SELECT count(*) AS n FROM events"];
    let (works, said) = run(&ask, "");
    assert!(!works && said.contains("a token with the scope query is required"), "{said}");
    assert!(said.contains("with the scope query into FAULTLINE_TOKEN"), "{said}");
    for arguments in [&ask[..], &["tail", "--server", &web]] {
        for token in ["", "flt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", &tokens.ingest] {
            let (works, said) = run(arguments, token);
            assert!(!works && said.contains("FAULTLINE_TOKEN") && said.contains("scope query"), "{said}");
        }
    }
    let (works, said) = run(&ask, &tokens.query);
    assert!(works && said.starts_with("n\n1\n"), "{said}");

    let added = new_token(&tokens.file, "second", &["--scope", "query"]);
    let (works, _) = run(&ask, &added);
    assert!(!works, "it was not read yet");
    server.signal("HUP");
    until(|| run(&ask, &added).0);
    std::fs::write(&tokens.file, "[[token]]\nname = 1").expect("the file");
    server.signal("HUP");
    until(|| server.said().contains("the settings stay as they are"));
    assert!(run(&ask, &added).0, "what was known before still is");
}

#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed().as_secs() < 30, "it does not come to hold");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Guarantee: a listener that others reach needs tokens or a word; a page of others cannot reach loopback by a name of
/// its own; tokens from the environment count; mistakes stop the start; the file is for its owner alone.
#[test]
fn nobody_is_let_in_by_accident() {
    let folder = Folder::new();
    let output = command(&["serve", "--listen-web", "0.0.0.0:0", "--data-dir", "x"])
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && said.contains("--tokens"), "{said}");

    let server = Server::start(&folder);
    let named = |door: &str, path: &str, host: &str| {
        ask(server.address(door), "GET", path, &[("Host", host)], b"").expect("an answer").status
    };
    assert_eq!(named("web", "/metrics", "evil.example:7070"), 403);
    assert_eq!(named("otlp_http", "/v1/envelopes", "evil.example"), 403);
    assert_eq!(named("web", "/metrics", "localhost:7070"), 200);
    drop(server);

    let secret = "flt_0123456789abcdefghijklmnopqrstuvwxyz";
    let list = format!("query:{secret}");
    let server = Server::start_in(&folder, &[("FAULTLINE_TOKENS", &list)], &["--listen-web", "0.0.0.0:0"]);
    let port = server.address("web").port();
    let with = |token: &str| {
        let bearer = format!("Bearer {token}");
        ask(([127, 0, 0, 1], port).into(), "GET", "/metrics", &[("Authorization", &bearer)], b"")
            .expect("an answer")
            .status
    };
    assert_eq!((with(secret), with("other")), (200, 401));
    drop(server);
    let output =
        command(&["serve"]).env("FAULTLINE_TOKENS", format!("{secret}:query")).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("token 1 of the list") && !said.contains(secret),
        "{said}"
    );

    let file = folder.path().join("t.toml").to_str().expect("a path").to_owned();
    new_token(&file, "a", &["--scope", "admin"]);
    let mode = std::fs::metadata(&file).expect("the file").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let run = faultline(&["token", "new", "--name", "a", "--scope", "query", "--tokens", &file]).ends_with(1);
    assert!(run.err.contains("is defined twice") && run.out.is_empty(), "{}", run.err);
}

/// Scenario: PostgreSQL sessions, idle and busy, a tail, and statements over HTTP and Flight SQL that would not end,
/// all of one token; the token is removed, or loses its scope, and the server is told.
/// Guarantee: all of them end within five seconds and say why; a session of another token goes on.
#[test]
fn a_revoked_token_ends_what_it_has_opened() {
    let folder = Folder::new();
    let file = folder.path().join("tokens.toml").to_str().expect("a path").to_owned();
    let other = new_token(&file, "other", &["--scope", "query"]);
    let left = std::fs::read_to_string(&file).expect("the tokens");
    let token = new_token(&file, "former", &["--scope", "query"]);
    let all = std::fs::read_to_string(&file).expect("the tokens");
    let (other_entry, former) = all.split_at(left.len());
    let less = format!("{other_entry}{}", former.replace("\"query\"", "\"ingest\""));
    let server = Server::start_with(&folder, &["--tokens", &file]);
    let addresses = ["web", "postgres", "flight"].map(|name| server.address(name).to_string());
    for (left, why) in [(&left, "does not know the token"), (&less, "does not have the scope query")] {
        std::fs::write(&file, &all).expect("the tokens");
        server.signal("HUP");
        let bearer = format!("Bearer {token}");
        until(|| {
            let headers = [("Authorization", bearer.as_str())];
            ask(server.address("web"), "GET", "/metrics", &headers, b"").expect("an answer").status == 200
        });
        let said = json!({
            "user": "former", "token": token, "other_user": "other", "other_token": other, "left": left,
        });
        let pid = server.pid().to_string();
        let arguments = [&*addresses[0], &addresses[1], &addresses[2], &pid, &file];
        let ended = python("revoked.py", &arguments, said.to_string().as_bytes());
        for (name, words) in [
            ("idle", "token was revoked"),
            ("busy", "token was revoked"),
            ("tail", "event: end"),
            ("sql", "\"unauthenticated\""),
            ("stream", why),
        ] {
            let words = if name == "sql" && why.contains("scope") { "\"forbidden\"" } else { words };
            let (after, told) = (ended[name][0].as_f64(), ended[name][1].as_str().unwrap_or_default());
            assert!(after.is_some_and(|after| after < 5.0), "{name}: {ended:#}");
            assert!(told.contains(words) && told.contains(why), "{name}: {ended:#}");
        }
        assert_eq!(ended["other"], 1, "{ended:#}");
    }
}

/// Guarantee: a session ends when its token expires.
#[test]
fn a_session_ends_when_its_token_expires() {
    let folder = Folder::new();
    let file = folder.path().join("tokens.toml").to_str().expect("a path").to_owned();
    let token = new_token(&file, "soon", &["--scope", "query", "--expires", "15s"]);
    let server = Server::start_with(&folder, &["--tokens", &file]);
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    let began = std::time::Instant::now();
    let tail = ask(server.address("web"), "GET", "/api/v1/tail", &headers, b"").expect("an answer").is(200);
    assert!(String::from_utf8_lossy(&tail.body).contains("the token has expired"), "{tail:?}");
    assert!(began.elapsed().as_secs() < 60);
}
