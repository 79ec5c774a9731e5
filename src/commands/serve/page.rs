//! The web page: its files, which are part of the program, and the response for unknown paths.
//!
//! Invariants: the page loads nothing from another host and runs no script but its own (`Content-Security-Policy`); its
//! files contain no data, so that they need no token.

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::sync::LazyLock;

/// The policy for what pages of this server may load, and which sites may embed them.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The views of the page. The page keeps its state behind a `#`, so a path with the name of a view is redirected there.
const VIEWS: [&str; 9] =
    ["overview", "groups", "events", "services", "quotas", "trust", "live", "codes", "sql"];

/// The page for unknown paths. `ROOT` stands for the relative path from there to the page.
const NOT_FOUND: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
    <meta name=\"color-scheme\" content=\"light dark\"><title>Not found – Faultline</title>\
    <link rel=\"icon\" href=\"ROOTassets/icon.svg\" type=\"image/svg+xml\">\
    <link rel=\"stylesheet\" href=\"ROOTassets/app.css\"></head>\
    <body><main class=\"view\"><div class=\"panel empty\"><h1>There is no such page</h1>\
    <p><a href=\"ROOT\">Go to the overview</a>, or see what programs can request in \
    <a href=\"ROOTapi/v1/openapi.json\">api/v1/openapi.json</a>.</p></div></main></body></html>\n";

/// A file of the page.
struct Asset {
    path: &'static str,
    media: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($path:literal, $file:literal, $media:literal) => {
        Asset { path: $path, media: $media, bytes: include_bytes!(concat!("../../../web/dist/", $file)) }
    };
}

/// All files of `web/dist`, at the paths where the page expects them.
static ASSETS: &[Asset] = &[
    asset!("/", "index.html", "text/html; charset=utf-8"),
    asset!("/assets/app.js", "app.js", "text/javascript; charset=utf-8"),
    asset!("/assets/editor.js", "editor.js", "text/javascript; charset=utf-8"),
    asset!("/assets/app.css", "app.css", "text/css; charset=utf-8"),
    asset!("/assets/icon.svg", "icon.svg", "image/svg+xml"),
    asset!("/assets/licenses.txt", "licenses.txt", "text/plain; charset=utf-8"),
];

/// The prepared assets, which are created when one of them is first requested.
static PREPARED: LazyLock<Vec<Prepared>> = LazyLock::new(|| ASSETS.iter().map(Prepared::new).collect());

/// The `ETag` of a file, and its compressed content.
struct Prepared {
    tag: String,
    /// The compressed content, or `None` if compression failed.
    gzip: Option<Vec<u8>>,
}

impl Prepared {
    fn new(asset: &Asset) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let gzip = encoder.write_all(asset.bytes).and_then(|()| encoder.finish()).ok();
        Self { tag: format!("{:032x}", xxhash_rust::xxh3::xxh3_128(asset.bytes)), gzip }
    }
}

/// Returns the routes of the page.
pub(super) fn routes() -> Router {
    let mut router = Router::new();
    for (index, asset) in ASSETS.iter().enumerate() {
        router = router.route(asset.path, get(async move |headers: HeaderMap| send(index, &headers)));
    }
    for view in VIEWS {
        let lead = async |request: Request| lead_to_view(&request);
        router = router.route(&format!("/{view}"), get(lead)).route(&format!("/{view}/{{*rest}}"), get(lead));
    }
    router.method_not_allowed_fallback(async |method: Method| wrong_method(&method))
}

/// Responds to browsers on unknown paths with a page. Programs get the response of the routes.
pub(super) fn answer_unknown_paths(router: Router) -> Router {
    router.layer(from_fn(async |request: Request, next: Next| {
        let is_unknown = request.extensions().get::<MatchedPath>().is_none();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        if is_unknown && is_read && wants_html(request.headers()) {
            let media = (header::CONTENT_TYPE, "text/html; charset=utf-8");
            let body = NOT_FOUND.replace("ROOT", &root_from(request.uri().path()));
            return with_policy((StatusCode::NOT_FOUND, [media], body).into_response());
        }
        next.run(request).await
    }))
}

fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|media| {
        let name = media.split(';').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("text/html")
    })
}

fn send(index: usize, headers: &HeaderMap) -> Response {
    let (Some(asset), Some(prepared)) = (ASSETS.get(index), PREPARED.get(index)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let gzip = prepared.gzip.as_deref().filter(|_| accepts_gzip(headers));
    let tag = format!("\"{}{}\"", prepared.tag, if gzip.is_some() { "-gz" } else { "" });
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|known| known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        gzip.unwrap_or(asset.bytes).into_response()
    };
    let sent = response.headers_mut();
    sent.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media));
    // File names never change, so browsers revalidate them every time, and a file is sent again only if it has changed.
    sent.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    sent.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if gzip.is_some() {
        sent.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(tag) = HeaderValue::try_from(tag) {
        sent.insert(header::ETAG, tag);
    }
    with_policy(response)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && parts.all(|weight| !matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Redirects from the path of a view to the view. If the redirect is impossible, it responds with the page.
fn lead_to_view(request: &Request) -> Response {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    match HeaderValue::try_from(format!("{}#{path}", root_from(request.uri().path()))) {
        Ok(place) => with_policy((StatusCode::FOUND, [(header::LOCATION, place)]).into_response()),
        Err(_) => send(0, request.headers()),
    }
}

/// Returns the relative path from a path of this server to its root, so that a proxy may put the page under any path.
fn root_from(path: &str) -> String {
    match path.matches('/').count() {
        0 | 1 => "./".to_owned(),
        slashes => "../".repeat(slashes - 1),
    }
}

fn wrong_method(method: &Method) -> Response {
    let allow = (header::ALLOW, "GET, HEAD, OPTIONS");
    if *method == Method::OPTIONS {
        return (StatusCode::NO_CONTENT, [allow]).into_response();
    }
    let body = serde_json::json!({"error": {
        "code": "wrong_method", "message": format!("Only GET is answered here, not {method}."), "remedy": "Use GET.",
    }});
    let media = (header::CONTENT_TYPE, "application/json");
    (StatusCode::METHOD_NOT_ALLOWED, [allow, media], format!("{body}\n")).into_response()
}

fn with_policy(mut response: Response) -> Response {
    const HEADERS: [(HeaderName, &str); 2] = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every file that the page's build writes is served. Otherwise it would only be missing at run time.
    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web/dist");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|name| if name == "index.html" { "/".to_owned() } else { format!("/assets/{name}") })
            .collect();
        let mut served: Vec<&str> = ASSETS.iter().map(|asset| asset.path).collect();
        files.sort_unstable();
        served.sort_unstable();
        assert_eq!(files, served);
    }

    /// Checks the limit that `docs/web.md` states.
    #[test]
    fn the_compressed_page_is_small() {
        let sizes = PREPARED.iter().map(|prepared| prepared.gzip.as_ref().unwrap().len());
        let total: usize = sizes.sum();
        assert!(total < 1_500_000, "{total}");
        let first: usize = ASSETS
            .iter()
            .zip(PREPARED.iter())
            .filter(|(asset, _)| !asset.path.ends_with("editor.js") && !asset.path.ends_with(".txt"))
            .map(|(_, prepared)| prepared.gzip.as_ref().unwrap().len())
            .sum();
        assert!(first < 150_000, "the first view needs {first} bytes");
    }

    #[test]
    fn the_root_is_relative() {
        for (path, root) in
            [("/", "./"), ("/groups", "./"), ("/groups/", "../"), ("/api/v1/nothing", "../../")]
        {
            assert_eq!(root_from(path), root, "{path}");
        }
    }

    #[test]
    fn browsers_and_codings_are_recognised() {
        let with = |name: HeaderName, value: &str| HeaderMap::from_iter([(name, value.parse().unwrap())]);
        assert!(wants_html(&with(header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8")));
        assert!(!wants_html(&with(header::ACCEPT, "*/*")) && !wants_html(&HeaderMap::new()));
        assert!(accepts_gzip(&with(header::ACCEPT_ENCODING, "br, gzip;q=0.8")));
        assert!(
            !accepts_gzip(&with(header::ACCEPT_ENCODING, "gzip;q=0")) && !accepts_gzip(&HeaderMap::new())
        );
    }
}
