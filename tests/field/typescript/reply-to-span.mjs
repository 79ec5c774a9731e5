import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

// Makes a server span of each request on a transport, with the reply in which Faultline finds hidden failures.
export function replyToSpan(transport) {
    const tracer = trace.getTracer('reply-to-span');
    const spans = new Map();
    const send = transport.send.bind(transport);
    let receive;

    const begin = ({ id, method, params }) => {
        const name = method === 'tools/call' ? params?.name : undefined;
        const attributes = { 'mcp.method.name': method, 'jsonrpc.request.id': String(id) };
        if (name) attributes['gen_ai.tool.name'] = name;
        spans.set(id, tracer.startSpan(name ? `${method} ${name}` : method, { kind: SpanKind.SERVER, attributes }));
    };
    const end = (id, type, message) => {
        if (type) spans.get(id)?.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR, message });
        spans.get(id)?.end();
        spans.delete(id);
    };
    transport.send = (message, options) => {
        const { id, result, error } = message;
        if (result) {
            spans.get(id)?.setAttribute('gen_ai.tool.call.result', JSON.stringify(result));
            end(id, result.isError ? 'tool_error' : undefined);
        } else if (error) {
            spans.get(id)?.setAttribute('rpc.response.status_code', String(error.code));
            end(id, String(error.code), error.message);
        }
        return send(message, options);
    };
    Object.defineProperty(transport, 'onmessage', {
        get: () => receive && ((message, extra) => {
            const { id, method, params } = message;
            if (method && id !== undefined) begin(message);
            if (method === 'notifications/cancelled') end(params?.requestId, 'cancelled', params?.reason);
            receive(message, extra);
        }),
        set: handler => { receive = handler; },
    });
    return transport;
}
