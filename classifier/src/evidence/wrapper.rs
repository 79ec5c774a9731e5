//! Wrappers that SDKs and hosts put around the text of a failure: marks, the name of the tool, a JSON-RPC code.
//!
//! `Error executing tool add_row: MCP error -32602: No such table` contains three parts: the operation, a code and the
//! description. Wrappers are removed one after another, up to a fixed number.

/// A text without its wrappers, and the facts that the wrappers stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peeled<'t> {
    /// The text inside.
    pub(super) text: &'t str,
    /// The operation that a wrapper names.
    pub(super) operation: Option<&'t str>,
    /// The JSON-RPC code that a wrapper names.
    pub(super) code: Option<i64>,
    /// True if a wrapper states that a tool failed, whatever the text inside says.
    pub(super) says_failed: bool,
}

const MAX_WRAPPERS: usize = 6;

/// Marks before a message that have no meaning of their own.
const MARKS: [&str; 15] = [
    "❌",
    "✗",
    "✖",
    "❗",
    "⚠️",
    "⚠",
    "🚫",
    "⛔",
    "🔴",
    "🛑",
    "<tool_use_error>",
    "<error>",
    "[error]",
    "**",
    "> ",
];

/// Texts before the name of a tool, in lower case.
const BEFORE_NAME: [&str; 20] = [
    "error executing tool",
    "error calling tool",
    "error running tool",
    "error invoking tool",
    "error in tool",
    "error while executing tool",
    "error while calling tool",
    "error while running tool",
    "error during tool",
    "error executing mcp tool",
    "error calling mcp tool",
    "failed to execute tool",
    "failed to run tool",
    "failed to call tool",
    "failed to invoke tool",
    "failed to execute mcp tool",
    "failed to call mcp tool",
    "exception in tool",
    "mcp tool",
    "tool",
];

/// Texts after the name of a tool that failed.
const AFTER_NAME: [&str; 14] = [
    "execution failed",
    "execution error",
    "call failed",
    "invocation failed",
    "failed with error",
    "failed after",
    "failed",
    "returned an error",
    "returned error",
    "raised an exception",
    "threw an error",
    "threw an exception",
    "error",
    "errored",
];

/// Wrappers that contain no tool name.
const NAMELESS: [&str; 18] = [
    "mcperror:",
    "mcp error:",
    "tool execution failed:",
    "tool execution error:",
    "tool call failed:",
    "tool error:",
    "error executing tool:",
    "error calling tool:",
    "tool failed:",
    "toolerror:",
    "error:",
    "fatal error:",
    "fatal:",
    "exception:",
    "uncaught exception:",
    "unhandled exception:",
    "error -",
    "caught exception.",
];

/// Removes the wrappers from a text.
pub(super) fn peel(text: &str) -> Peeled<'_> {
    let mut peeled = Peeled { text: text.trim(), operation: None, code: None, says_failed: false };
    for _ in 0..MAX_WRAPPERS {
        let before = peeled.text;
        peeled.text = strip_marks(peeled.text);
        let _ = peel_code(&mut peeled) || peel_tool(&mut peeled) || peel_nameless(&mut peeled);
        if peeled.text.len() == before.len() {
            break;
        }
    }
    peeled
}

/// Removes marks and white space from the start of a text.
pub(super) fn strip_marks(text: &str) -> &str {
    let mut text = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '\u{fe0f}' | '"'));
    while let Some(rest) = MARKS.iter().find_map(|mark| strip_prefix_ignoring_case(text, mark)) {
        text = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '\u{fe0f}' | '"'));
    }
    text
}

/// Removes a code such as `MCP error -32602: `, `JSON-RPC error -32000: ` or `RPC error (-32603): `.
fn peel_code(peeled: &mut Peeled<'_>) -> bool {
    const LEADS: [&str; 6] =
        ["mcp error", "json-rpc error", "jsonrpc error", "rpc error", "error code:", "error code"];
    let Some(rest) = LEADS.iter().find_map(|lead| strip_prefix_ignoring_case(peeled.text, lead)) else {
        return false;
    };
    let rest = rest.trim_start_matches([' ', '(', '[', ':']);
    let digits = rest.strip_prefix('-').unwrap_or("").bytes().take_while(u8::is_ascii_digit).count();
    if !(4..=6).contains(&digits) {
        return false;
    }
    let Ok(code) = rest[..=digits].parse() else { return false };
    peeled.code = peeled.code.or(Some(code));
    peeled.text = rest[digits + 1..].trim_start_matches([')', ']', ':', ' ', '-']);
    peeled.says_failed = true;
    true
}

/// Removes a tool wrapper such as `Error executing tool NAME: ` or `Tool 'NAME' execution failed: `.
fn peel_tool(peeled: &mut Peeled<'_>) -> bool {
    let Some((lead, rest)) = BEFORE_NAME
        .iter()
        .find_map(|lead| Some((*lead, strip_prefix_ignoring_case(peeled.text, lead)?)))
        .filter(|(_, rest)| rest.starts_with([' ', '\'', '"', '`', ':']))
    else {
        return false;
    };
    let Some((name, rest)) = leading_name(rest.trim_start_matches([' ', ':'])) else { return false };
    let rest = rest.trim_start();
    let says_after = AFTER_NAME.iter().find_map(|words| strip_prefix_ignoring_case(rest, words));
    let is_bare_tool = matches!(lead, "tool" | "mcp tool");
    let inside = match says_after {
        Some(after) => {
            after.split_once(": ").map_or("", |(gap, inside)| if gap.len() <= 16 { inside } else { after })
        }
        None if is_bare_tool => return false,
        None if rest.is_empty() => "",
        None => match rest.strip_prefix([':', '-', '.']) {
            Some(inside) => inside,
            None => return false,
        },
    };
    peeled.operation = peeled.operation.or(Some(name));
    peeled.says_failed = true;
    peeled.text = inside.trim_start();
    true
}

fn peel_nameless(peeled: &mut Peeled<'_>) -> bool {
    let Some(rest) = NAMELESS.iter().find_map(|lead| strip_prefix_ignoring_case(peeled.text, lead)) else {
        return false;
    };
    peeled.says_failed = true;
    peeled.text = rest.trim_start();
    true
}

/// Returns a name, with or without quotes, and the text after it.
fn leading_name(text: &str) -> Option<(&str, &str)> {
    const MAX_NAME_BYTES: usize = 128;
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'));
    let (name, rest) = match quote {
        Some(quote) => text[1..].split_once(quote)?,
        None => {
            let ends = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
            let length = text.find(ends).unwrap_or(text.len());
            let name = text[..length].trim_end_matches(['.', '-', '/']);
            (name, &text[name.len()..])
        }
    };
    let is_word = [
        "execution",
        "call",
        "use",
        "result",
        "failed",
        "error",
        "not",
        "is",
        "was",
        "timed",
        "with",
        "or",
        "and",
        "does",
        "has",
        "requires",
        "returned",
        "invocation",
    ]
    .contains(&name);
    (!name.is_empty() && name.len() <= MAX_NAME_BYTES && !is_word && !name.contains('\n'))
        .then_some((name, rest))
}

/// Returns the tool that a message names: `Unknown tool: x`, `Tool "x" not found`, `arguments for tool x:`.
pub(super) fn named_tool(text: &str) -> Option<&str> {
    const LEAD: &[u8] = b"tool";
    let lower_matches =
        |at: usize| text.as_bytes()[at..].get(..4).is_some_and(|word| word.eq_ignore_ascii_case(LEAD));
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b't', b'T', bytes)
        .filter(|&at| lower_matches(at))
        .filter(|&at| {
            !at.checked_sub(1).is_some_and(|i| bytes[i].is_ascii_alphanumeric() || bytes[i] == b'_')
        })
        .take(4)
        .find_map(|at| {
            let rest = &text[at + 4..];
            let name_at = rest.trim_start_matches([' ', ':']);
            if name_at.len() == rest.len() && !rest.starts_with(['\'', '"', '`']) {
                return None;
            }
            let is_introduced = rest.trim_start_matches(' ').starts_with(':');
            let is_quoted = name_at.starts_with(['\'', '"', '`']);
            let (name, after) = leading_name(name_at)?;
            let after = after.trim_start();
            let ends = after.is_empty() || after.starts_with([':', '.', ',', '\n', '"', '\'', '}', '(']);
            let is_told = [
                "not found",
                "does not",
                "is not",
                "failed",
                "execution",
                "doesn't",
                "has an",
                "has invalid",
                "not ",
            ]
            .iter()
            .any(|words| after.starts_with(words));
            (is_introduced && ends || is_quoted || is_told || ends && name.contains(['_', '-']))
                .then_some(name)
        })
}

/// Returns true for `Tool x not found` and the like: the tool itself is missing, rather than something that it looked
/// for.
pub(super) fn is_missing_tool(text: &str) -> bool {
    const MISSING: [&str; 10] = [
        "not found",
        "does not exist",
        "doesn't exist",
        "is not available",
        "is unknown",
        "not available",
        "is not registered",
        "could not be found",
        "was not found",
        "not registered",
    ];
    let text = strip_prefix_ignoring_case(text, "the ").unwrap_or(text);
    let text = strip_prefix_ignoring_case(text, "mcp ").unwrap_or(text);
    let Some(rest) = strip_prefix_ignoring_case(text, "tool ") else { return false };
    let rest = strip_prefix_ignoring_case(rest, "id ").unwrap_or(rest);
    let name = rest.trim_start_matches([':', ' ']);
    leading_name(name).is_some_and(|(_, after)| {
        let after = after.trim_start();
        MISSING.iter().any(|words| strip_prefix_ignoring_case(after, words).is_some())
    })
}

/// Returns the last word of a message such as `Herramienta desconocida: crear_factura`.
pub(super) fn trailing_name(text: &str) -> Option<&str> {
    let line = text.lines().next()?;
    let (_, rest) = line.rsplit_once([':', '：'])?;
    let name = rest.trim().trim_matches(['\'', '"', '`', '.', '«', '»', '“', '”']);
    let is_name = name.len() > 1
        && name.len() <= 128
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/'));
    is_name.then_some(name)
}

/// Removes a prefix, ignoring case. Nearly all prefixes differ in the first byte, so that is compared first.
#[inline]
pub(super) fn strip_prefix_ignoring_case<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    const CASE: u8 = 0x20;
    if text.as_bytes().first()? | CASE != prefix.as_bytes().first()? | CASE {
        return None;
    }
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_peeled_and_remembered() {
        for (text, inside, operation, code) in [
            ("Error executing tool add_row: no space", "no space", Some("add_row"), None),
            ("Error executing tool add_row", "", Some("add_row"), None),
            ("Error calling tool 'add row': MCP error -32602: bad", "bad", Some("add row"), Some(-32602)),
            ("Tool 'x.y' execution failed: late", "late", Some("x.y"), None),
            (
                "Tool 'x' failed after 0s: MCP error -32000: Connection closed",
                "Connection closed",
                Some("x"),
                Some(-32000),
            ),
            ("❌ Error: gone", "gone", None, None),
            ("<tool_use_error>Stale file</tool_use_error>", "Stale file</tool_use_error>", None, None),
            ("Tool execution failed: slow", "slow", None, None),
            ("Tool use is free", "Tool use is free", None, None),
            ("Error code -32601: no method", "no method", None, Some(-32601)),
            ("", "", None, None),
        ] {
            let peeled = peel(text);
            assert_eq!((peeled.text, peeled.operation, peeled.code), (inside, operation, code), "{text}");
        }
    }

    #[test]
    fn a_tool_is_named_in_many_ways() {
        for (text, expected) in [
            ("Unknown tool: send_fax", Some("send_fax")),
            ("tool \"send fax\" not found in server \"x\"", Some("send fax")),
            ("Invalid arguments for tool send_fax: to: Required", Some("send_fax")),
            ("Tool send_fax not found", Some("send_fax")),
            ("the tool is not here", None),
            ("toolbox: x", None),
        ] {
            assert_eq!(named_tool(text), expected, "{text}");
        }
        assert_eq!(trailing_name("Herramienta desconocida: mandar_fax"), Some("mandar_fax"));
        assert_eq!(trailing_name("Herramienta desconocida: una cosa rara"), None);
    }
}
