/** What the registry says about a code: what it means, whether a retry helps, what to do. */

import type { Meaning } from "../api";
import { Fact } from "../views/overview-ingest";
import { recoveryAdvice } from "../core/words";

export function MeaningText({ meaning }: { meaning: Meaning | null }) {
  if (meaning === null) return <p class="muted">No registry knows this code. Look at the record.</p>;
  return (
    <>
      <p>{meaning.description}</p>
      <p class="advice">{recoveryAdvice(meaning.recovery)}</p>
      <dl class="facts">
        <Fact name="A retry">{retryWords(meaning.retryable)}</Fact>
        <Fact name="Severity">{meaning.severity}</Fact>
        {meaning.http_status !== null && <Fact name="HTTP status">{meaning.http_status}</Fact>}
        {meaning.runbook !== null && <Fact name="Runbook"><a href={`runbook#${encodeURIComponent(meaning.runbook)}`}>{meaning.runbook}</a></Fact>}
      </dl>
    </>
  );
}

export function retryWords(retryable: boolean | null): string {
  if (retryable === null) return "only the payload can tell";
  return retryable ? "can help" : "cannot help";
}
