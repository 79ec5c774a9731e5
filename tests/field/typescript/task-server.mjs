// A server of the official TypeScript SDK, version 1, over stdio, whose tools are tasks that the client polls.
import { readFileSync } from 'node:fs';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const calls = JSON.parse(readFileSync(process.env.FIELD_CALLS, 'utf8'));
const capabilities = { tasks: { requests: { tools: { call: {} } } } };
const server = new McpServer({ name: 'depot', version: '1.0.0' }, { capabilities, taskStore: new InMemoryTaskStore() });

for (const call of calls) {
    const content = [{ type: 'text', text: call.text ?? JSON.stringify(call.value) }];
    const config = { inputSchema: { kilos: z.number() }, execution: { taskSupport: 'required' } };
    server.experimental.tasks.registerToolTask(call.tool, config, {
        async createTask(_arguments, { taskStore, taskRequestedTtl }) {
            const task = await taskStore.createTask({ ttl: taskRequestedTtl, pollInterval: 100 });
            const result = { content, structuredContent: call.value };
            // The client of this SDK does not fetch the result of a failed task: its status says why.
            const end = () => call.does === 'reply_error'
                ? taskStore.updateTaskStatus(task.taskId, 'failed', call.text)
                : taskStore.storeTaskResult(task.taskId, 'completed', result);
            setTimeout(end, 150);
            return { task };
        },
        getTask: (_arguments, { taskId, taskStore }) => taskStore.getTask(taskId),
        getTaskResult: (_arguments, { taskId, taskStore }) => taskStore.getTaskResult(taskId),
    });
}
await server.connect(new StdioServerTransport());
