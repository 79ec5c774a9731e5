//! `faultline codes` lists the registry, explains one code, or says how an unknown code would be classified.
//!
//! Invariant: the output matches what classification does, since both read the same registry.

mod explain;
mod formats;
mod markdown;
mod unknown;

use crate::cli::terminal::{self, OutputStyle};
use crate::config::registry;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use classifier::registry::{Entry, OperatorEntry};
use classifier::{Category, Dialect, Registry};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  faultline codes --dialect erlmcp --category PERMISSION
  faultline codes -32002
  faultline codes TOOL_NOT_FOUND
  faultline codes --format csv > codes.csv
  faultline codes --registry registry.toml GITHUB_ABUSE_DETECTED

Exit codes:
  0  success
  1  the code has no entry (its inferred category is printed), or the registry has a mistake
  2  wrong usage";

/// The name of an operator's own entries in the dialect column and option.
const OPERATOR: &str = "operator";

/// Lists the known codes, or explains one.
///
/// A code is looked up in every dialect, and its meanings are shown side by side.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A code, a canonical code or a native name, such as -32002 or "Method not found".
    #[arg(allow_negative_numbers = true)]
    code: Option<String>,
    /// List only the codes of this dialect.
    #[arg(long, value_parser = dialect_parser())]
    dialect: Option<String>,
    /// List only the codes of this category.
    #[arg(long, value_parser = category(), ignore_case = true)]
    category: Option<Category>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// A registry file with your own codes, as in examples/registry.toml; they are listed as dialect `operator`.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    registry: Option<PathBuf>,
}

/// The output format of codes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table with aligned columns.
    #[default]
    Table,
    /// Comma-separated values, quoted as in RFC 4180.
    Csv,
    /// A list of objects, with every field.
    Json,
    /// The page of the whole registry, as in docs/codes.md.
    Markdown,
}

fn dialect_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(Dialect::REGISTERED.map(Dialect::as_str).into_iter().chain([OPERATOR]))
}

fn category() -> impl TypedValueParser<Value = Category> {
    PossibleValuesParser::new(Category::ALL.iter().map(|category| category.as_str()))
        .try_map(|word| Category::from_payload(&word).ok_or("no such category"))
}

/// A registry entry with the name of its dialect.
#[derive(Debug, Clone, Copy)]
struct Code<'r> {
    dialect: &'static str,
    entry: &'r Entry,
    /// The operator's entry with its condition, if the entry comes from an operator.
    operator: Option<&'r OperatorEntry>,
}

impl Code<'_> {
    /// Returns true when `text` is the code, the canonical code or the native name of the entry.
    fn matches(&self, text: &str) -> bool {
        let Entry { code, name, canonical, .. } = self.entry;
        code == text || canonical == text || is_same_name(name, text)
    }

    fn passes_filters(&self, arguments: &Arguments) -> bool {
        arguments.dialect.as_deref().is_none_or(|dialect| dialect == self.dialect)
            && arguments.category.is_none_or(|category| category == self.entry.meaning.category)
    }
}

/// Returns a code in the form that classification uses: trimmed, and `-32603.0` as `-32603`.
fn normalised(code: &str) -> &str {
    let code = code.trim();
    code.strip_suffix(".0").filter(|number| number.parse::<i64>().is_ok()).unwrap_or(code)
}

/// Returns true when two names differ only in case and separators, such as `Tool not found` and `TOOL_NOT_FOUND`.
fn is_same_name(a: &str, b: &str) -> bool {
    let words = |text: &str| text.to_ascii_lowercase().replace(['_', '-', ' '], " ");
    words(a) == words(b)
}

/// Returns every code, with those of an operator last.
fn all_codes(registry: &Registry) -> Vec<Code<'_>> {
    let shipped = registry.entries().iter();
    let shipped = shipped.map(|entry| Code { dialect: entry.dialect.as_str(), entry, operator: None });
    let own = registry.operator().entries.iter();
    shipped.chain(own.map(|own| Code { dialect: OPERATOR, entry: &own.entry, operator: Some(own) })).collect()
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let registry = registry::load(arguments.registry.as_deref())?;
    let style = OutputStyle::for_stdout();
    let known = all_codes(&registry);
    let Some(code) = arguments.code.as_deref().map(normalised) else {
        let codes: Vec<Code<'_>> = known.into_iter().filter(|code| code.passes_filters(arguments)).collect();
        terminal::write_stdout(list(&codes, arguments.format, style, &registry).as_bytes())?;
        if codes.is_empty() {
            terminal::print_note("no code is of both this dialect and this category");
        }
        return Ok(ExitCode::SUCCESS);
    };
    let named: Vec<Code<'_>> = known.iter().copied().filter(|known| known.matches(code)).collect();
    let codes: Vec<Code<'_>> = named.iter().copied().filter(|code| code.passes_filters(arguments)).collect();
    match arguments.format {
        Format::Table => terminal::write_stdout(explain::side_by_side(&codes, style).as_bytes())?,
        format => terminal::write_stdout(list(&codes, format, style, &registry).as_bytes())?,
    }
    if codes.is_empty() {
        terminal::print_error(&unknown::explain_unknown(code, &named, &known, &registry));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn list(codes: &[Code<'_>], format: Format, style: OutputStyle, registry: &Registry) -> String {
    match format {
        Format::Table => formats::table(codes, style),
        Format::Csv => formats::csv(codes),
        Format::Json => formats::json(codes),
        Format::Markdown => markdown::write(registry),
    }
}
