//! The image and compose.yaml.

use super::super::server::{Server, ask};
use super::super::support::{Folder, root};
use super::{PORTS, read, strings, tool, yaml};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const COMPOSE: &str = "deploy/compose/compose.yaml";

/// Returns the paths that the first stage copies from the repository.
fn copied(dockerfile: &str) -> BTreeSet<&str> {
    let lines = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY "));
    let sources = lines.filter(|line| !line.starts_with("--from")).flat_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[..words.len() - 1].to_vec()
    });
    sources.collect()
}

/// Guarantee: the image is built from everything that Cargo needs, and nothing of it is ignored; its variables and
/// ports are those of the program.
#[test]
fn the_image_has_what_it_is_built_from() {
    let dockerfile = read("deploy/Dockerfile");
    let copied = copied(&dockerfile);
    let ignored = read("deploy/Dockerfile.dockerignore");
    let folder = Folder::new();
    for source in &copied {
        assert!(ignored.lines().any(|line| line == format!("!{source}")), "{source} is ignored");
        let target = folder.path().to_str().expect("a path").to_owned();
        tool("cp", &["-r", source, &target], root());
    }
    // This is how the build begins: Cargo finds all members and targets.
    let metadata = tool(
        "cargo",
        &["metadata", "--no-deps", "--offline", "--locked", "--format-version=1"],
        folder.path(),
    );
    assert!(metadata.contains("\"name\":\"whole_program\""), "{metadata}");
    // Files that the program includes must be there, too.
    for path in super::files("src") {
        let text = std::fs::read_to_string(&path).expect("a source");
        for included in text.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let whole =
                path.parent().expect("a folder").join(included).canonicalize().expect("what is included");
            let first =
                whole.strip_prefix(root().canonicalize().expect("the root")).expect("in the repository");
            let first = first.components().next().expect("a folder").as_os_str().to_str().expect("a name");
            assert!(copied.contains(first), "{} includes {included}", path.display());
        }
    }
    for (listener, port) in PORTS {
        let variable = format!("FAULTLINE_LISTEN_{}=0.0.0.0:{port}", listener.to_uppercase());
        assert!(dockerfile.contains(&variable), "{variable}");
        let settings = read("docs/settings.md");
        assert!(
            settings.contains(&format!("| `listen.{listener}` |"))
                && settings.contains(&format!("127.0.0.1:{port}\"`"))
        );
        let exposed = dockerfile.lines().find(|line| line.starts_with("EXPOSE")).expect("ports");
        assert!(exposed.split(' ').any(|exposed| exposed == port.to_string()), "{port}");
    }
    let last = dockerfile.rfind("\nFROM ").expect("a stage");
    assert!(dockerfile[last..].contains("\nUSER 65532:65532\n"), "not root");
}

/// Returns the commands of the first stage after the build of the binary, with a folder for the image's files.
fn put_together(binary: &str, out: &str) -> String {
    let dockerfile = read("deploy/Dockerfile").replace("\\\n", " ");
    let run = dockerfile.lines().find(|line| line.starts_with("RUN ")).expect("the build").to_owned();
    let (_, after) = run.split_once("--bin faultline").expect("the build of the binary");
    after
        .trim()
        .trim_start_matches("&&")
        .replace("target/$PROFILE/faultline", binary)
        .replace("/outFILE", &format!("{out}FILE"))
        .replace("/out/", &format!("{out}/"))
}

/// Scenario: the files that the image is made of, put together by the lines of the Dockerfile, as the root of a process
/// that is not root (for want of a container engine).
/// Guarantee: they are all that the server and its probe need.
#[test]
fn the_files_of_the_image_are_enough() {
    let folder = Folder::new();
    let out = folder.path().to_str().expect("a path").to_owned();
    tool("sh", &["-ec", &put_together(env!("CARGO_BIN_EXE_faultline"), &out)], root());
    tool("chmod", &["755", &out], root());
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("chroot");
        command.args(["--userspec=65532:65532", &out, "/usr/bin/faultline"]).args(arguments);
        command
    };
    let listeners =
        ["otlp-grpc", "otlp-http", "web", "postgres", "flight"].map(|name| format!("--listen-{name}=:0"));
    let mut arguments = vec!["serve", "--data-dir", "/var/lib/faultline"];
    arguments.extend(listeners.iter().map(String::as_str));
    let mut server = inside(&arguments).stderr(Stdio::null()).spawn().expect("chroot, which root may");
    let endpoints = folder.path().join("var/lib/faultline/endpoints.json");
    let began = Instant::now();
    while !endpoints.exists() {
        assert!(server.try_wait().expect("a process").is_none(), "it ended");
        assert!(began.elapsed() < Duration::from_secs(60), "it does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = std::fs::read_to_string(endpoints).expect("addresses");
    let endpoints: Value = serde_json::from_str(&text).expect("JSON");
    let url = format!("http://{}", endpoints["web"].as_str().expect("an address"));
    let health = inside(&["health", "--server", &url]).output().expect("it runs");
    let pid = i32::try_from(server.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::TERM).expect("it is ours");
    assert!(server.wait().expect("it ends").success());
    assert_eq!(String::from_utf8_lossy(&health.stdout), "{\"ready\":true}\n");
}

/// Guarantee: images are pinned, nothing is published beyond this machine, everything that is mounted is in the
/// repository, and every container is guarded.
#[test]
fn compose_names_what_exists() {
    let compose = &yaml(COMPOSE)[0];
    let services = compose["services"].as_object().expect("services");
    assert_eq!(services.keys().collect::<Vec<_>>(), ["alertmanager", "faultline", "grafana", "prometheus"]);
    let volumes = compose["volumes"].as_object().expect("volumes");
    for (name, service) in services {
        let tag = service["image"].as_str().and_then(|image| image.split_once(':')).map(|(_, tag)| tag);
        assert!(tag.is_some_and(|tag| tag != "latest" && tag.contains('.')), "{name}: {}", service["image"]);
        assert_eq!((&service["read_only"], &service["cap_drop"][0]), (&true.into(), &"ALL".into()), "{name}");
        assert_eq!(service["security_opt"][0], "no-new-privileges:true", "{name}");
        assert!(service["healthcheck"]["test"].is_array(), "{name}");
        for port in strings(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port}");
        }
        for volume in strings(&service["volumes"]) {
            let from = volume.split(':').next().expect("a source");
            let is_there = match from.starts_with('.') {
                true => root().join("deploy/compose").join(from).exists(),
                false => volumes.contains_key(from),
            };
            assert!(is_there, "{name}: {from} is not there");
        }
    }
    let published: BTreeSet<u64> = strings(&services["faultline"]["ports"])
        .iter()
        .filter_map(|port| port.rsplit(':').next()?.parse().ok())
        .collect();
    assert_eq!(published, PORTS.iter().map(|(_, port)| *port).collect());
}

/// Returns a copy of the compose folder in which secrets were made.
fn with_secrets() -> Folder {
    let folder = Folder::new();
    let script = folder.file("make-secrets", read("deploy/compose/make-secrets"));
    tool("sh", &[&script], folder.path());
    folder
}

/// Scenario: somebody runs make-secrets, twice, and starts the server with what it made.
/// Guarantee: the second run changes nothing; a scrape and a question need the query token, and sending the other one.
#[test]
fn the_secrets_of_compose_work() {
    let folder = with_secrets();
    let secret =
        |name: &str| std::fs::read_to_string(folder.path().join("secrets").join(name)).expect("a secret");
    let variables = secret("faultline.env");
    tool("sh", &["make-secrets"], folder.path());
    assert_eq!(secret("faultline.env"), variables);
    let tokens = variables.trim().strip_prefix("FAULTLINE_TOKENS=").expect("the variable");
    let settings = root().join("deploy/compose/faultline.toml");
    let arguments = ["--config", settings.to_str().expect("a path"), "--listen-web", "0.0.0.0:0"];
    let mut server = Server::start_in(&folder, &[("FAULTLINE_TOKENS", tokens)], &arguments);
    let port = server.address("web").port();
    let scrape = |token: Option<&str>| {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
        ask(([127, 0, 0, 1], port).into(), "GET", "/metrics", &headers, b"").expect("an answer").status
    };
    assert_eq!(scrape(None), 401);
    assert_eq!(scrape(Some(&secret("ingest-token"))), 403);
    assert_eq!(scrape(Some(&secret("query-token"))), 200);
    let grafana = secret("grafana.env");
    assert!(grafana.contains(&format!("FAULTLINE_SQL_PASSWORD={}\n", secret("query-token"))), "{grafana}");
    server.signal("TERM");
    assert!(server.wait().success());
}

/// Guarantee: promtool finds nothing wrong with the Prometheus of compose, with its mounts in place; its targets are
/// services of compose, on ports that they listen on.
#[test]
fn prometheus_of_compose_is_well_configured() {
    let folder = with_secrets();
    let rules = root().join("dashboards/prometheus");
    let token = folder.path().join("secrets/query-token");
    let config = read("deploy/compose/prometheus.yml")
        .replace("/etc/prometheus/rules", rules.to_str().expect("a path"))
        .replace("/run/secrets/query-token", token.to_str().expect("a path"));
    let file = folder.file("prometheus.yml", &config);
    let said = tool("promtool", &["check", "config", &file], folder.path());
    assert!(said.contains("2 rule files found"), "{said}");
    let compose = &yaml(COMPOSE)[0];
    let config = &yaml("deploy/compose/prometheus.yml")[0];
    let targets =
        |place: &Value| place["static_configs"][0]["targets"][0].as_str().expect("a target").to_owned();
    assert_eq!(targets(&config["scrape_configs"][0]), "faultline:7070");
    assert_eq!(targets(&config["alerting"]["alertmanagers"][0]), "alertmanager:9093");
    let mounts = strings(&compose["services"]["prometheus"]["volumes"]);
    assert!(mounts.contains(&"../../dashboards/prometheus:/etc/prometheus/rules:ro"), "{mounts:?}");
    assert_eq!(strings(&compose["services"]["prometheus"]["secrets"]), ["query-token"]);
}
