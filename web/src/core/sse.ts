/** Server-sent events from a stream of text. Pure: chunks go in, messages come out. */

export interface Message {
  /** `message` unless the server names it. */
  event: string;
  data: string;
  /** Where to go on after a break. */
  id: string | null;
}

/** More than this without an end of a message is given up. */
const LONGEST = 8 * 1024 * 1024;

export class SseParser {
  private rest = "";
  private event = "";
  private data: string[] = [];
  private lastId: string | null = null;

  /** The last id that was said, also without a message. */
  get id(): string | null {
    return this.lastId;
  }

  push(chunk: string): Message[] {
    this.rest += chunk;
    if (this.rest.length > LONGEST) throw new Error("a message of the server is too long");
    const lines = this.rest.split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    const messages: Message[] = [];
    for (const line of lines) {
      const message = this.line(line);
      if (message) messages.push(message);
    }
    return messages;
  }

  private line(line: string): Message | null {
    if (line === "") return this.finish();
    if (line.startsWith(":")) return null;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    else if (field === "event") this.event = value;
    else if (field === "id") this.lastId = value;
    return null;
  }

  private finish(): Message | null {
    const { data, event } = this;
    [this.data, this.event] = [[], ""];
    return data.length === 0 ? null : { event: event || "message", data: data.join("\n"), id: this.lastId };
  }
}
