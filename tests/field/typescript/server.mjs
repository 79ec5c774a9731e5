// A server of the official TypeScript SDK over stdio: `server.mjs spans|wire`.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer, ProtocolError } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { z } from 'zod';
import { replyToSpan } from './reply-to-span.mjs';

const calls = JSON.parse(readFileSync(process.env.FIELD_CALLS, 'utf8'));
const server = new McpServer({ name: 'depot', version: '1.0.0' });

for (const call of calls.filter(call => call.does !== 'not_registered')) {
    server.registerTool(call.tool, { inputSchema: z.object({ kilos: z.number() }) }, async () => {
        if (call.does === 'raise' || call.does === 'crash') throw new Error(call.text);
        if (call.does === 'protocol_error') throw new ProtocolError(call.code, call.text);
        if (call.does === 'sleep') await sleep(3000);
        return {
            content: [{ type: 'text', text: call.text ?? JSON.stringify(call.value ?? 'the yard is empty') }],
            structuredContent: call.value,
            isError: call.does === 'reply_error' ? true : undefined,
        };
    });
}

const transport = new StdioServerTransport();
if (process.argv[2] === 'spans') {
    const resource = resourceFromAttributes({ 'service.name': 'depot' });
    const spanProcessors = [new SimpleSpanProcessor(new OTLPTraceExporter())];
    new NodeTracerProvider({ resource, spanProcessors }).register();
    await server.connect(replyToSpan(transport));
} else {
    await server.connect(transport);
}
