/**
 * Characters that cannot be seen, shown. A sender may put control characters into a name, or characters that turn the
 * direction of the text around, so that `gnp.exe` reads as `exe.png`. Everything that is shown passes through here.
 */

import { options } from "preact";

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** The text with its number in place of each such character. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** Makes it hold for every text that Preact puts on the page: texts are nodes whose `props` are the text. */
export function showUnseen(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    const text: unknown = node.props;
    if (typeof text === "string") (node as { props: unknown }).props = visible(text);
    before?.(node);
  };
}
