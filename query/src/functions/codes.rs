//! `category(code)` and `canonical(dialect, code)`: look up a code in the registry, without any other evidence.

use super::udf::Udf;
use super::{documentation, text};
use classifier::{Dialect, Rules};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, Signature, Volatility,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// The registry in use. An engine has only one, so all values compare as equal.
#[derive(Clone)]
struct SharedRules(Arc<Rules>);

impl PartialEq for SharedRules {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedRules {}

impl Hash for SharedRules {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Debug for SharedRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the registry")
    }
}

static CATEGORY_DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "The category of a code of any dialect or of the taxonomy, or else of its prefix; UNKNOWN if there is none",
        "category(code)",
        &[("code", "A code as servers send it, or a canonical code; text or number")],
    )
});

/// Returns the function that looks up the category of a code.
pub(super) fn category(rules: &Arc<Rules>) -> ScalarUDF {
    lookup("category", rules, |SharedRules(rules), args| {
        let [code] = take_function_args("category", args.args)?;
        let registry = rules.registry();
        text::map_texts(&code, |code| Ok(Some(registry.category_of(code).as_str().to_owned())))
    })
    .coerced(|name, types| text::coerce_to_text(name, types, 1))
    .documented(&CATEGORY_DOCUMENTATION)
    .build()
}

static CANONICAL_DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "The code in the cross-dialect taxonomy for a code of a dialect; null if there is none",
        "canonical(dialect, code)",
        &[
            (
                "dialect",
                "mcp-aql, mcp-reference, agent-skills, erlmcp or jsonrpc; http and unknown look in all of them",
            ),
            ("code", "The code as servers send it; text or number"),
        ],
    )
});

/// Returns the function that looks up the canonical code of a dialect's code.
pub(super) fn canonical(rules: &Arc<Rules>) -> ScalarUDF {
    lookup("canonical", rules, |SharedRules(rules), args| {
        let rows = args.number_rows;
        let pair = take_function_args("canonical", args.args)?;
        text::map_text_pairs(&pair, rows, |dialect, code| canonical_of(rules, dialect, code))
    })
    .coerced(|name, types| text::coerce_to_text(name, types, 2))
    .documented(&CANONICAL_DOCUMENTATION)
    .build()
}

fn canonical_of(rules: &Rules, dialect: &str, code: &str) -> Result<Option<String>> {
    let Some(dialect) = Dialect::from_name(dialect) else {
        let all: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.as_str()).collect();
        return exec_err!("there is no dialect '{dialect}'; there are {}", all.join(", "));
    };
    let result = rules.registry().look_up(Some(dialect), code);
    Ok(result.is_known.then(|| result.canonical.into_owned()))
}

/// Returns a function of texts that looks something up in the registry.
fn lookup(
    name: &'static str,
    rules: &Arc<Rules>,
    compute: fn(&SharedRules, ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Udf<SharedRules> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Udf::new(name, signature, text::TEXT, SharedRules(Arc::clone(rules)), compute).strict()
}
