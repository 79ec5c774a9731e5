/** What is shown when the server wants a token. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Session } from "../api";
import { Failure, signIn } from "../core/client";
import { useTitle } from "../core/hooks";

/** Why a token does not do, by the code of the error. */
const REJECTIONS: Record<string, string> = {
  unauthenticated: "The server does not know this token, or it has expired.",
  forbidden: "This token does not have the scope query.",
};

export function SignInView({ onSignedIn }: { onSignedIn: (session: Session) => void }) {
  useTitle("Sign in");
  const [failure, setFailure] = useState<Failure | null>(null);
  const [isBusy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const token = input.current?.value.trim() ?? "";
    setBusy(true);
    signIn(token).then(onSignedIn, (error: unknown) => {
      setFailure(error instanceof Failure ? error : new Failure(0, "page", String(error)));
      setBusy(false);
      input.current?.select();
    });
  };
  return (
    <main id="main" class="sign-in" tabIndex={-1}>
      <form class="panel" onSubmit={submit}>
        <h1>Sign in to Faultline</h1>
        <p>This server wants a token with the scope <code>query</code>. Its operator makes one with <code>faultline token new</code>.</p>
        <label for="token">Token</label>
        <input ref={input} id="token" name="token" type="password" required autocomplete="current-password" spellcheck={false}
          aria-describedby={failure === null ? undefined : "sign-in-failure"} aria-invalid={failure !== null} />
        {failure !== null && (
          <p id="sign-in-failure" class="tone-danger" role="alert">
            {REJECTIONS[failure.code] ?? failure.message}
          </p>
        )}
        <button type="submit" class="primary" disabled={isBusy}>Sign in</button>
      </form>
    </main>
  );
}
