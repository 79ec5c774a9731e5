//! Conditions on a field, as operators write them: `details.originalError = 'ORDER_NOT_FOUND'`,
//! `message contains 'abuse'`, several joined by `and`.
//!
//! A path is looked up in the error object, then in the envelope, then in the record. A leading `response.body.` is
//! allowed, because published adapter schemas write it.

use crate::json::Json;

/// One or more tests that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition(Vec<Test>);

#[derive(Debug, Clone, PartialEq)]
struct Test {
    path: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq)]
enum Operator {
    Equals(String),
    Differs(String),
    Contains(String),
    Exists,
}

/// The values in which paths are looked up, the innermost first.
pub(crate) type Roots<'r, 't> = &'r [Json<'t>];

impl Condition {
    /// Parses a condition. The error states what is wrong and what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = words(text)?.into_iter().peekable();
        let mut tests = Vec::new();
        loop {
            let path = match words.next() {
                Some(Word::Bare(path)) => path.to_owned(),
                _ => {
                    return Err("a condition starts with a field, as in: message contains 'abuse'".to_owned());
                }
            };
            let operator = match words.next() {
                Some(Word::Bare("exists")) => Operator::Exists,
                Some(Word::Bare("contains")) => Operator::Contains(literal(words.next(), &path)?),
                Some(Word::Bare("=" | "==")) => Operator::Equals(literal(words.next(), &path)?),
                Some(Word::Bare("!=")) => Operator::Differs(literal(words.next(), &path)?),
                _ => return Err(format!("after '{path}' expected one of: =, !=, contains, exists")),
            };
            tests.push(Test { path, operator });
            match words.next() {
                None => return Ok(Self(tests)),
                Some(Word::Bare("and" | "AND" | "&&")) => {}
                Some(_) => return Err("tests are joined by 'and'".to_owned()),
            }
        }
    }

    pub(crate) fn holds(&self, roots: Roots<'_, '_>) -> bool {
        self.0.iter().all(|test| test.holds(roots))
    }
}

impl Test {
    fn holds(&self, roots: Roots<'_, '_>) -> bool {
        let value = find(roots, &self.path);
        match &self.operator {
            Operator::Exists => value.is_some_and(|value| !value.is_null()),
            Operator::Equals(wanted) => value.is_some_and(|value| equals(value, wanted)),
            Operator::Differs(unwanted) => !value.is_some_and(|value| equals(value, unwanted)),
            Operator::Contains(part) => value
                .and_then(Json::as_str)
                .is_some_and(|text| text.to_ascii_lowercase().contains(&part.to_ascii_lowercase())),
        }
    }
}

fn find<'t>(roots: Roots<'_, 't>, path: &str) -> Option<Json<'t>> {
    let look = |path: &str| roots.iter().find_map(|root| root.path(path));
    look(path).or_else(|| look(path.strip_prefix("response.body.")?))
}

fn equals(value: Json<'_>, wanted: &str) -> bool {
    match (value.as_str(), value.as_f64(), value.as_bool()) {
        (Some(text), _, _) => text == wanted,
        (_, Some(number), _) => wanted.parse() == Ok(number),
        (_, _, Some(value)) => wanted.parse() == Ok(value),
        _ => value.is_null() && wanted == "null",
    }
}

#[derive(Clone, Copy)]
enum Word<'a> {
    Bare(&'a str),
    Quoted(&'a str),
}

fn literal(word: Option<Word<'_>>, path: &str) -> Result<String, String> {
    match word {
        Some(Word::Bare(text) | Word::Quoted(text)) => Ok(text.to_owned()),
        None => Err(format!("the test of '{path}' has nothing to compare with")),
    }
}

/// Splits a condition at spaces and around operators. Quotes keep a text together.
fn words(text: &str) -> Result<Vec<Word<'_>>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if first == '\'' || first == '"' {
            let (quoted, after) =
                rest[1..].split_once(first).ok_or_else(|| format!("a quote {first} is not closed"))?;
            words.push(Word::Quoted(quoted));
            rest = after.trim_start();
            continue;
        }
        let is_operator = |c: char| matches!(c, '=' | '!' | '&');
        let same_kind =
            |c: char| !c.is_whitespace() && c != '\'' && c != '"' && is_operator(c) == is_operator(first);
        let end = rest.find(|c| !same_kind(c)).unwrap_or(rest.len());
        words.push(Word::Bare(&rest[..end]));
        rest = rest[end..].trim_start();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Parser;

    fn holds(condition: &str, json: &str) -> bool {
        let condition = Condition::parse(condition).expect(condition);
        Parser::new(64).parse(json.as_bytes(), |json| condition.holds(&[json])).expect(json)
    }

    #[test]
    fn fields_are_compared() {
        let json =
            r#"{"message":"Abuse detected","details":{"originalError":"ORDER_NOT_FOUND","n":4,"ok":true}}"#;
        for condition in [
            "details.originalError = 'ORDER_NOT_FOUND'",
            "details.originalError='ORDER_NOT_FOUND'",
            "message contains \"abuse\"",
            "response.body.message contains 'abuse'",
            "details.n == 4 and details.ok = true",
            "details.n exists && details.other != 'x'",
        ] {
            assert!(holds(condition, json), "{condition}");
        }
        for condition in ["details.n = 5", "missing exists", "message = 'abuse'", "details contains 'x'"] {
            assert!(!holds(condition, json), "{condition}");
        }
    }

    #[test]
    fn a_bad_condition_says_what_is_allowed() {
        for (condition, reason) in [
            ("", "starts with a field"),
            ("message", "expected one of"),
            ("message contains", "nothing to compare"),
            ("message contains 'abuse", "not closed"),
            ("message contains 'a' or code = 'b'", "joined by 'and'"),
        ] {
            let error = Condition::parse(condition).expect_err(condition);
            assert!(error.contains(reason), "{condition}: {error}");
        }
    }
}
