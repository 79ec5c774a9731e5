// Sends response envelopes to a running Faultline server. Needs Node.js 22.18 or later (which runs TypeScript directly), or
// Node.js 18 with tsx; no package.
//
// To run it:
//
//     faultline serve                          # in another terminal
//     node examples/send_envelopes.ts          # or: npx tsx examples/send_envelopes.ts
//
// FAULTLINE_URL is the address of the OTLP/HTTP listener (by default http://127.0.0.1:4318), FAULTLINE_TOKEN a token of the
// scope `ingest` if the server needs one. The exit code is 0 if the server stored every envelope.

const url = process.env.FAULTLINE_URL ?? "http://127.0.0.1:4318";
const token = process.env.FAULTLINE_TOKEN;
const attempts = 5;

/** A log line: the response of a server, with its context. */
type Line = { time: string; service: string; operation: string; response: unknown };

/** The response of `/v1/envelopes`. */
type Result = {
  accepted: number;
  events: number;
  unrecognized: number;
  rejected: { line: number; reason: string }[];
  categories?: Record<string, number>;
};

const line = (operation: string, response: unknown): Line => ({
  time: new Date().toISOString(),
  service: "example-typescript",
  operation,
  response,
});

/** A success, an open failure, and a failure that is hidden in a successful reply. */
const lines: Line[] = [
  line("list_notes", { success: true, data: [] }),
  line("read_note", { success: false, error: { code: "NOT_FOUND_RESOURCE", message: "No note '42'" } }),
  line("delete_note", {
    jsonrpc: "2.0",
    id: 3,
    result: {
      content: [
        {
          type: "text",
          text: JSON.stringify({
            success: false,
            error: { code: "PERMISSION_DENIED", message: "Not allowed to delete 'notes'" },
          }),
        },
      ],
      isError: false,
    },
  }),
];

const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/**
 * Sends the lines as one request and returns the server's response; retries while the server asks for it. The idempotency
 * key is the same for every attempt, so the lines are stored once even if a response was lost.
 */
async function send(body: string): Promise<Result> {
  const headers: Record<string, string> = {
    "Content-Type": "application/x-ndjson",
    "Idempotency-Key": crypto.randomUUID(),
  };
  if (token) headers.Authorization = `Bearer ${token}`;
  for (let attempt = 1; ; attempt += 1) {
    const isLast = attempt === attempts;
    let response: Response;
    try {
      response = await fetch(`${url}/v1/envelopes`, { method: "POST", headers, body, signal: AbortSignal.timeout(30_000) });
    } catch (error) {
      if (isLast) throw new Error(`cannot reach ${url}: ${error}`);
      await pause(attempt);
      continue;
    }
    if (response.ok) return (await response.json()) as Result;
    if (isLast || ![429, 503].includes(response.status)) {
      throw new Error(`the server rejected the request: ${response.status} ${await response.text()}`);
    }
    await pause(Number(response.headers.get("Retry-After") ?? "1"));
  }
}

async function main(): Promise<void> {
  const result = await send(lines.map((each) => `${JSON.stringify(each)}\n`).join(""));
  console.log(JSON.stringify(result, null, 2));
  for (const { line: number, reason } of result.rejected) console.error(`line ${number} was rejected: ${reason}`);
  process.exitCode = result.accepted === lines.length ? 0 : 1;
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});

export {};
