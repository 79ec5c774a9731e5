// The development server: builds the page on every load, and forwards its requests to a running Faultline.
//
//   node dev/serve.mjs [--api http://127.0.0.1:7070] [--port 7171] [--delay MS]

import { createServer, request as forward } from "node:http";
import { bundle } from "../build.mjs";

function option(name, fallback) {
  const place = process.argv.indexOf(`--${name}`);
  return place < 0 ? fallback : process.argv[place + 1];
}

const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml", txt: "text/plain; charset=utf-8" };
const api = option("api", "http://127.0.0.1:7070");
const delay = Number(option("delay", "0"));

/** Has the server answer. It must not see the origin of this page, which is not its own. */
function forwarded(request, response) {
  const { origin, referer, host, ...headers } = request.headers;
  const asked = forward(new URL(request.url, api), { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
    response.on("close", () => answer.destroy());
  });
  asked.on("error", (error) => failed(response, 502, `${api} does not respond (${error.code}). Start faultline demo, or name a server with --api.`));
  request.pipe(asked);
}

function failed(response, status, message) {
  if (!response.headersSent) response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ error: { code: "development", message } }));
}

async function file(name, response) {
  const bytes = (await bundle()).get(name);
  if (bytes === undefined) return failed(response, 404, "There is no such file.");
  response.writeHead(200, { "Content-Type": TYPES[name.split(".").at(-1)] ?? "text/plain", "Content-Security-Policy": CSP });
  return response.end(bytes);
}

async function handle(request, response) {
  const { pathname } = new URL(request.url, "http://localhost");
  if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
  if (pathname === "/") return file("index.html", response);
  if (pathname.startsWith("/assets/")) return file(pathname.slice("/assets/".length), response);
  return forwarded(request, response);
}

const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(error);
    failed(response, 500, String(error));
  });
});
server.listen(Number(option("port", "7171")), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/ with the data of ${api}`));
