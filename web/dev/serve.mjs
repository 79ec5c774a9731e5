// The development server: builds the page on every load, and answers the API from an invented world.
//
//   node dev/serve.mjs [--port 7171] [--token SECRET] [--delay MS] [--api http://127.0.0.1:7070]
//
// With --api, a real server answers what it can, and the invented world only what that server does not have.

import { createServer, request as ask } from "node:http";
import { bundle } from "../build.mjs";
import { Mock } from "./mock.mjs";

const option = (name) => {
  const place = process.argv.indexOf(name);
  return place < 0 ? null : process.argv[place + 1];
};

const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml", txt: "text/plain; charset=utf-8" };
const token = option("--token");
const real = option("--api");
const delay = Number(option("--delay") ?? 0);
const mock = new Mock({ token });
let csrf = null;

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
}

const failure = (code, message, remedy = null) => ({ error: { code, message, remedy } });
const isSignedIn = (request) => token === null || (request.headers.cookie ?? "").includes(`faultline=${token}`);

async function read(request) {
  let body = real === null ? "" : request.read();
  if (real === null) for await (const chunk of request) body += chunk;
  return JSON.parse(body || "{}");
}

async function session(request, response) {
  const body = (signed) => ({ required: token !== null, signed_in: signed, name: signed && token !== null ? "analysts" : null, scopes: signed ? ["query"] : [], csrf: signed && token !== null ? csrf : null, version: "0.0.0-dev" });
  if (request.method === "POST") {
    const given = (await read(request)).token;
    if (given !== token) return send(response, 401, failure("unknown_token", "the token is not known"));
    csrf = Math.random().toString(36).slice(2);
    return send(response, 200, body(true), { "Set-Cookie": `faultline=${token}; HttpOnly; SameSite=Strict; Path=/` });
  }
  if (request.method === "DELETE") return send(response, 204, "", { "Set-Cookie": "faultline=; Max-Age=0; Path=/" });
  return send(response, 200, body(isSignedIn(request)));
}

function tail(request, response, params) {
  const where = params.get("where");
  if (where !== null && /;|\bdrop\b/i.test(where)) return send(response, 400, failure("syntax", "the condition cannot be read", "compare a column, as in severity = 'critical'"));
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  let id = 0;
  const matches = (event) => (params.getAll("category").length === 0 || params.getAll("category").includes(event.category))
    && (params.getAll("service").length === 0 || params.getAll("service").includes(event.service))
    && (where !== "hidden" || event.hidden) && (where !== "NOT hidden" || !event.hidden);
  const write = ({ at, ...event }) => matches(event) && response.write(`id: ${(id += 1)}\ndata: ${JSON.stringify(event)}\n\n`);
  response.write(": following\nretry: 1000\nid: 0\n\n");
  for (const event of mock.world.events.filter(matches).slice(-Number(params.get("recent") ?? 0))) write(event);
  const timer = setInterval(() => write(mock.world.live(Date.now())), 400);
  request.on("close", () => clearInterval(timer));
  return undefined;
}

/** Has the real server answer; false when it does not have the path. */
async function forwarded(request, response) {
  const body = [];
  for await (const chunk of request) body.push(chunk);
  request.read = () => Buffer.concat(body).toString();
  const { origin, referer, host, ...headers } = request.headers;
  const answer = await new Promise((resolve, reject) => {
    ask(new URL(request.url, real), { method: request.method, headers }, resolve).on("error", reject).end(Buffer.concat(body));
  });
  if (answer.statusCode === 404) {
    answer.resume();
    return false;
  }
  response.writeHead(answer.statusCode, answer.headers);
  answer.pipe(response);
  request.on("close", () => answer.destroy());
  return true;
}

async function api(request, response, path, params) {
  if (real !== null && await forwarded(request, response)) return undefined;
  if (path === "session") return session(request, response);
  if (!isSignedIn(request)) return send(response, 401, failure("no_token", "a token is needed", "sign in"));
  if (token !== null && request.method !== "GET" && request.headers["x-csrf-token"] !== csrf) return send(response, 403, failure("csrf", "the X-CSRF-Token is missing"));
  if (path === "tail") return tail(request, response, params);
  if (path === "sql") {
    const { status, body } = mock.sql((await read(request)).query);
    const isCsv = (request.headers.accept ?? "").startsWith("text/csv") && status === 200;
    return isCsv ? send(response, 200, body.rows.map((row) => Object.values(row).join(",")).join("\n"), { "Content-Type": "text/csv" }) : send(response, status, body);
  }
  const found = mock.get(path, params);
  return found === null ? send(response, 404, failure("not_found", "there is none")) : send(response, 200, found);
}

async function handle(request, response) {
  const url = new URL(request.url, "http://localhost");
  if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
  if (url.pathname.startsWith("/api/v1/")) return api(request, response, url.pathname.slice(8), url.searchParams);
  const name = url.pathname === "/" ? "index.html" : url.pathname.replace("/assets/", "");
  const file = (await bundle()).get(name);
  if (file === undefined) return send(response, 404, "no such page", { "Content-Type": "text/plain" });
  return send(response, 200, file, { "Content-Type": TYPES[name.split(".").at(-1)] ?? "text/plain", "Content-Security-Policy": CSP });
}

const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(error);
    if (!response.headersSent) send(response, 500, failure("internal", String(error)));
  });
});
server.listen(Number(option("--port") ?? 7171), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
