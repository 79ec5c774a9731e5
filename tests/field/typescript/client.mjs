// Calls the tools of a server and prints the failures that this made: `client.mjs spans|wire|tasks`.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import * as two from '@modelcontextprotocol/client';
import * as twoStdio from '@modelcontextprotocol/client/stdio';
import * as one from '@modelcontextprotocol/sdk/client/index.js';
import * as oneStdio from '@modelcontextprotocol/sdk/client/stdio.js';

const variant = process.argv[2];
const script = new URL(variant === 'tasks' ? 'task-server.mjs' : 'server.mjs', import.meta.url).pathname;
// Both directions of the wire go into one file, which `faultline serve --files` tails. A request is in the file before the
// server gets it: `tee` writes to standard output first, so that is /dev/null, and then to the file and on to the server.
const requests = 'tee -a "$FIELD_WIRE" /dev/fd/3 3>&1 >/dev/null';
const teed = ['sh', '-c', `${requests} | node '${script}' wire | tee -a "$FIELD_WIRE"`];
const [command, ...args] = variant === 'spans' ? ['node', script, variant] : teed;
// Only version 1 of the SDK has tasks.
const { Client } = variant === 'tasks' ? one : two;
const { StdioClientTransport } = variant === 'tasks' ? oneStdio : twoStdio;

// A task has a result; and on the wire, a call that was given up on has no reply.
const leftOut = {
    spans: [],
    wire: ['sleep'],
    tasks: ['sleep', 'raise', 'crash', 'not_registered', 'protocol_error'],
}[variant];
const calls = JSON.parse(readFileSync(process.env.FIELD_CALLS, 'utf8')).filter(
    call => variant !== 'tasks' || !(leftOut.includes(call.does) || call.arguments),
);

async function makeCall(client, call) {
    const request = { name: call.tool, arguments: call.arguments ?? { kilos: 3 } };
    if (variant === 'tasks') {
        for await (const message of client.experimental.tasks.callToolStream(request)) {
            if (message.type === 'error' && call.does !== 'reply_error') throw message.error;
        }
    } else {
        const timeout = call.does === 'sleep' ? 500 : 60_000;
        await client.callTool(request, { timeout }).catch(() => {});
    }
}

const client = new Client({ name: 'depot-client', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
await client.listTools();
for (const call of calls) await makeCall(client, call);
// The tool that was given up on ends first.
if (variant !== 'tasks') await sleep(3000);
await client.close();

const counted = calls.filter(call => !leftOut.includes(call.does));
const failures = counted
    .filter(call => call.failure)
    .map(call => ({ operation: call.tool, service: 'depot', hidden: false, ...call.failure }));
console.log(JSON.stringify({ failures, operations: counted.map(call => call.tool) }));
