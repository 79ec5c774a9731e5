//! Signing in to the page: cookies, the CSRF token, and their end.

use super::super::server::{Answer, Server};
use super::super::support::{Folder, faultline};
use super::{get, send};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const SQL: &str = r#"{"query": "SELECT 1 AS one"}"#;

#[track_caller]
fn new_token(file: &str, name: &str, arguments: &[&str]) -> String {
    let run =
        faultline(&[&["token", "new", "--name", name, "--tokens", file], arguments].concat()).ends_with(0);
    run.out.trim().to_owned()
}

#[track_caller]
fn sign_in(server: &Server, token: &str) -> Answer {
    send(
        server,
        "POST",
        "/api/v1/session",
        &[("Content-Type", "application/json")],
        &json!({"token": token}).to_string(),
    )
}

/// Returns the cookie that a response sets, as a browser sends it back.
#[track_caller]
fn cookie(answer: &Answer) -> String {
    let cookie = answer.header("set-cookie").expect("a cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure"), "there is no TLS: {cookie}");
    cookie.split(';').next().expect("a pair").to_owned()
}

#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed().as_secs() < 30, "it does not come to hold");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Opens a tail with a cookie, and waits until it follows.
#[track_caller]
fn open_tail(server: &Server, cookie: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.address("web")).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let head = format!("GET /api/v1/tail HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the request is sent");
    let mut tail = BufReader::new(stream);
    read_until(&mut tail, "retry:");
    tail
}

/// Reads up to a line that begins with this.
#[track_caller]
fn read_until(tail: &mut BufReader<TcpStream>, start: &str) {
    let mut line = String::new();
    while !line.starts_with(start) {
        line.clear();
        assert!(tail.read_line(&mut line).expect("a line in time") > 0, "it ended before '{start}'");
    }
}

/// Scenario: right, wrong, expired and wrong-scope tokens sign in; a session reads, asks, signs out; a token is
/// revoked.
/// Guarantee: only a token that may query opens a session; what costs something needs the CSRF token; a session is
/// worth what its token is, and ends with it; what it opened ends with the session; the page itself is open, and no
/// secret is shown.
#[test]
fn a_browser_signs_in_and_out() {
    let folder = Folder::new();
    let file = folder.path().join("tokens.toml").to_str().expect("a path").to_owned();
    let analyst = new_token(&file, "analyst", &["--scope", "query", "--expires", "90d"]);
    let shipper = new_token(&file, "shipper", &["--scope", "ingest"]);
    let former = new_token(&file, "former", &["--scope", "query", "--expires", "0s"]);
    let kept = std::fs::read_to_string(&file).expect("the file");
    let other = new_token(&file, "other", &["--scope", "admin"]);
    let server = Server::start_with(&folder, &["--tokens", &file, "--log-level", "debug"]);

    let nobody = get(&server, "session");
    assert_eq!(
        (&nobody["required"], &nobody["signed_in"], &nobody["csrf"]),
        (&json!(true), &json!(false), &Value::Null)
    );
    server.get("/").is(200);
    server.get("/assets/app.js").is(200);
    for path in ["overview", "openapi.json", "groups/x", "status"] {
        let error = server.get(&format!("/api/v1/{path}")).is(401).json()["error"].clone();
        assert_eq!(error["code"], "unauthenticated", "{path}");
    }
    for (token, status) in
        [("flt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 401), (&former, 401), (&shipper, 403)]
    {
        let answer = sign_in(&server, token).is(status);
        assert_eq!(answer.header("set-cookie"), None);
        let error = &answer.json()["error"];
        assert!(!error.to_string().contains("localhost") && !error.to_string().contains("host"), "{error}");
    }
    for body in ["", "token", "{}", r#"{"token": 1}"#, r#"{"token": ""}"#, &"x".repeat(10_000)] {
        send(&server, "POST", "/api/v1/session", &[], body).is(400);
    }

    let answer = sign_in(&server, &analyst).is(200);
    let cookie = cookie(&answer);
    let session = answer.json();
    assert_eq!(
        (&session["signed_in"], &session["name"], &session["scopes"]),
        (&json!(true), &json!("analyst"), &json!(["query"]))
    );
    let csrf = session["csrf"].as_str().expect("a CSRF token").to_owned();
    let with_cookie = |method: &str, path: &str, csrf: Option<&str>, body: &str| {
        let mut headers = vec![("Cookie", cookie.as_str())];
        headers.extend(csrf.map(|csrf| ("X-CSRF-Token", csrf)));
        send(&server, method, path, &headers, body)
    };
    assert_eq!(with_cookie("GET", "/api/v1/session", None, "").is(200).json(), session);
    with_cookie("GET", "/api/v1/overview", None, "").is(200);
    with_cookie("GET", "/metrics", None, "").is(200);
    for wrong in [None, Some("flt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), Some("")] {
        let denied = with_cookie("POST", "/api/v1/sql", wrong, SQL).is(403);
        assert_eq!(denied.json()["error"]["code"], "csrf");
    }
    with_cookie("POST", "/api/v1/sql", Some(&csrf), SQL).is(200);
    // Other endpoints ignore the cookie, and an invented cookie is ignored everywhere.
    let headers =
        [("Cookie", cookie.as_str()), ("X-CSRF-Token", &csrf), ("Content-Type", "application/x-ndjson")];
    server.post("/v1/envelopes", &headers, b"{}\n").is(401);
    send(
        &server,
        "GET",
        "/api/v1/overview",
        &[("Cookie", "faultline_session=flt_AAAAAAAAAAAAAAAAAAAAAAAA")],
        "",
    )
    .is(401);
    // A page of another origin gets nowhere, cookie or not.
    let foreign =
        [("Cookie", cookie.as_str()), ("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")];
    send(&server, "GET", "/api/v1/overview", &foreign, "").is(403);
    send(&server, "POST", "/api/v1/session", &foreign, "{}").is(403);
    let bearer = format!("Bearer {analyst}");
    send(&server, "POST", "/api/v1/sql", &[("Authorization", &bearer)], SQL).is(200);

    // Behind a proxy that adds TLS, the browser sends the cookie over TLS only.
    let proxied = [("Origin", "https://faultline.example"), ("Sec-Fetch-Site", "same-origin")];
    let body = json!({"token": analyst}).to_string();
    let answer = send(&server, "POST", "/api/v1/session", &proxied, &body).is(200);
    assert!(answer.header("set-cookie").is_some_and(|cookie| cookie.ends_with("; Secure")), "{answer:?}");

    with_cookie("DELETE", "/api/v1/session", None, "").is(403);
    with_cookie("GET", "/api/v1/overview", None, "").is(200);
    let mut tail = open_tail(&server, &cookie);
    let gone = with_cookie("DELETE", "/api/v1/session", Some(&csrf), "").is(204);
    assert!(gone.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")));
    with_cookie("GET", "/api/v1/overview", None, "").is(401);
    read_until(&mut tail, "event: end");

    let answer = sign_in(&server, &other).is(200);
    let second = self::cookie(&answer);
    send(&server, "GET", "/api/v1/overview", &[("Cookie", &second)], "").is(200);
    std::fs::write(&file, kept).expect("the file");
    server.signal("HUP");
    until(|| send(&server, "GET", "/api/v1/overview", &[("Cookie", &second)], "").status == 401);
    assert_eq!(
        send(&server, "GET", "/api/v1/session", &[("Cookie", &second)], "").is(200).json()["signed_in"],
        false
    );

    let metrics = send(&server, "GET", "/metrics", &[("Authorization", &bearer)], "").is(200);
    let metrics = String::from_utf8(metrics.body).expect("text");
    for counted in ["{reason=\"csrf\"} 4", "{reason=\"expired\"} 1", "{reason=\"scope\"} 1"] {
        assert!(metrics.contains(&format!("faultline_auth_denials_total{counted}")), "{counted}");
    }
    let said = server.said();
    for secret in [&analyst, &shipper, &former, &other, &csrf, &cookie] {
        assert!(!said.contains(secret) && !metrics.contains(secret.as_str()));
    }
}

/// Guarantee: without tokens nobody has to sign in, and signing in changes nothing.
#[test]
fn without_tokens_the_page_opens_at_once() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let session = get(&server, "session");
    assert_eq!((&session["required"], &session["signed_in"]), (&json!(false), &json!(false)));
    assert_eq!(session["scopes"], json!(["ingest", "query", "admin"]));
    let answer = sign_in(&server, "flt_whatever_this_is_not_needed").is(200);
    assert_eq!(answer.header("set-cookie"), None);
    get(&server, "overview");
    send(&server, "POST", "/api/v1/sql", &[], SQL).is(200);
}
