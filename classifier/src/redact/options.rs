//! Command-line options: `--password x`, `mysql -px`, `curl -u name:x`.

use super::keys::KeyKind;
use super::scan::{Found, Mark};
use super::values::{is_harmless, is_prose, looks_secret};
use super::{Redactor, Rule};
use std::ops::Range;

/// Commands that take a password with a short option.
const COMMANDS: [(&str, u8); 33] = [
    ("mysql", b'p'),
    ("mysqldump", b'p'),
    ("mysqladmin", b'p'),
    ("mysqlimport", b'p'),
    ("mariadb", b'p'),
    ("sshpass", b'p'),
    ("docker", b'p'),
    ("podman", b'p'),
    ("helm", b'p'),
    ("mongo", b'p'),
    ("mongosh", b'p'),
    ("mongodump", b'p'),
    ("mongorestore", b'p'),
    ("redis-cli", b'a'),
    ("ldapsearch", b'w'),
    ("ldapadd", b'w'),
    ("ldapmodify", b'w'),
    ("ldapwhoami", b'w'),
    ("zip", b'P'),
    ("unzip", b'P'),
    ("7z", b'p'),
    ("7za", b'p'),
    ("unrar", b'p'),
    ("sqlcmd", b'P'),
    ("bcp", b'P'),
    ("rabbitmqadmin", b'p'),
    ("az", b'p'),
    ("twine", b'p'),
    ("cqlsh", b'p'),
    ("influx", b'p'),
    ("mosquitto_pub", b'P'),
    ("mosquitto_sub", b'P'),
    ("clickhouse-client", b'p'),
];

/// The distance before an option within which its command is searched.
const COMMAND_REACH: usize = 160;

impl Redactor {
    /// Returns the secret argument of an option. `dash` is the position of its dash.
    pub(super) fn option(&self, bytes: &[u8], dash: usize) -> Option<Found> {
        let is_start = dash == 0
            || matches!(bytes[dash - 1], b' ' | b'"' | b'\'' | b'\n' | b'\t' | b'`' | b'[' | b'(' | b',');
        if !is_start || !self.is_on(Rule::Assignment) {
            return None;
        }
        match bytes[dash + 1..] {
            [b'-', first, ..] if first.is_ascii_alphabetic() => self.long_option(bytes, dash),
            [b'u' | b'U', b' ' | b'\'' | b'"', ..] => user_and_password(bytes, dash + 2),
            [letter @ (b'a' | b'p' | b'P' | b'w'), ..] => short_option(bytes, dash, letter),
            _ => None,
        }
    }

    fn long_option(&self, bytes: &[u8], dash: usize) -> Option<Found> {
        let name = dash + 2;
        let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let length = bytes[name..].iter().take(64).take_while(|byte| is_inside(byte)).count();
        let key = &bytes[name..name + length];
        let after = name + length;
        if [&b"user"[..], b"proxy-user", b"userpwd", b"creds"].contains(&key) {
            return user_and_password(bytes, after + usize::from(bytes.get(after) == Some(&b'=')));
        }
        if bytes.get(after) == Some(&b'=')
            || key.starts_with(b"no-")
            || !matches!(self.keys.kind(key), KeyKind::Secret | KeyKind::Token)
        {
            return None;
        }
        let value = argument(bytes, after)?;
        let text = &bytes[value.clone()];
        let is_word = text.iter().all(u8::is_ascii_alphabetic) && is_prose(text);
        (!is_harmless(text) && !is_word && text[0] != b'-').then_some((value, Mark::Redacted))
    }
}

/// Returns the argument of an option, in the same text or as the next element of a list.
fn argument(bytes: &[u8], after: usize) -> Option<Range<usize>> {
    let signs = bytes[after..].iter().take(16).take_while(|byte| b" \"',\\\n".contains(byte)).count();
    if signs == 0 {
        return None;
    }
    let start = after + signs;
    let is_list = bytes[after] != b' ';
    let quote = bytes[start - 1];
    let rest = &bytes[start..bytes.len().min(start + 4096)];
    let length = if matches!(quote, b'"' | b'\'') && (is_list || bytes[after] == b' ') {
        rest.iter().position(|&byte| byte == quote || byte == b'\\')?
    } else {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`,;)|".contains(byte);
        rest.iter().position(ends).unwrap_or(rest.len())
    };
    (length > 0).then_some(start..start + length)
}

/// Returns the password in `-u name:password`.
fn user_and_password(bytes: &[u8], after: usize) -> Option<Found> {
    let signs = bytes[after..].iter().take(8).take_while(|byte| b" \"',=\\".contains(byte)).count();
    let start = after + signs;
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`,;)\\".contains(byte);
    let rest = &bytes[start..bytes.len().min(start + 1024)];
    let pair = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    let sign = pair.iter().position(|byte| matches!(byte, b':' | b'%'))?;
    let (name, password) = (&pair[..sign], &pair[sign + 1..]);
    // `-u 1000:1000` is a user and a group, and `https://` starts a URL.
    let is_ids = name.iter().chain(password).all(u8::is_ascii_digit);
    let is_secret = !password.is_empty() && !is_ids && !password.starts_with(b"//") && !is_harmless(password);
    is_secret.then_some((start + sign + 1..start + pair.len(), Mark::Redacted))
}

/// Returns the password in `-pX` and `-p X`, after a command that has such an option.
fn short_option(bytes: &[u8], dash: usize, letter: u8) -> Option<Found> {
    let rest = &bytes[dash + 2..];
    let is_quoted = matches!(rest, [b'"' | b'\'', next, ..] if !b" ,\n".contains(next));
    let is_bare = rest.first().is_some_and(|byte| !b" \"',\\\n".contains(byte));
    let is_attached = is_bare || is_quoted;
    let value = if is_bare {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`,;)\\|".contains(byte);
        let length = rest.iter().take(1024).position(ends).unwrap_or(rest.len().min(1024));
        dash + 2..dash + 2 + length
    } else {
        argument(bytes, dash + 2)?
    };
    let text = &bytes[value.clone()];
    let command = command_of(&bytes[dash.saturating_sub(COMMAND_REACH)..dash], letter)?;
    // If a space follows, mysql's `-p` prompts for the password, and the next word is a database.
    let takes = is_attached
        || !command.starts_with("m")
        || command.starts_with("mongo")
        || command.starts_with("mosq");
    let is_secret = takes
        && !is_harmless(text)
        && text[0] != b'-'
        && (is_attached || looks_secret(text) || !is_prose(text));
    is_secret.then_some((value, Mark::Redacted))
}

/// Returns the command in front of an option, if it takes a password with this letter.
fn command_of(before: &[u8], letter: u8) -> Option<&'static str> {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let words = || before.split(|byte| !is_inside(byte)).filter(|word| word.len() > 1 && word[0] != b'-');
    // Most subcommands of these have other options with this letter.
    let needs_login = |command: &str| matches!(command, "docker" | "podman" | "helm" | "az");
    words()
        .filter_map(|word| COMMANDS.iter().find(|(command, of)| *of == letter && command.as_bytes() == word))
        .map(|(command, _)| *command)
        .find(|command| !needs_login(command) || words().any(|word| word == b"login"))
}

/// Returns true if the password is the next argument of a command after this option: `-a` of `redis-cli`.
pub(super) fn takes_password(command: &str, option: &str) -> bool {
    let command = command.rsplit('/').next().unwrap_or_default();
    let [b'-', letter] = option.as_bytes() else { return false };
    !command.starts_with("my") && COMMANDS.iter().any(|(known, of)| of == letter && *known == command)
}

/// webhooks: the address is the secret
pub(super) fn is_password_option(command: &str, argument: &str) -> bool {
    let command = command.rsplit('/').next().unwrap_or_default();
    match argument.as_bytes() {
        [b'-', letter, _, ..] => COMMANDS.iter().any(|(known, of)| of == letter && *known == command),
        _ => false,
    }
}
