//! `category(code)` and `canonical(dialect, code)`: look up a code in the registry, without any other evidence.

use super::{documentation, text};
use arrow::datatypes::DataType;
use classifier::{Dialect, Rules};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
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

/// The function that returns the category of a code.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Category {
    rules: SharedRules,
    signature: Signature,
}

static CATEGORY_DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "The category of a code of any dialect or of the taxonomy, or else of its prefix; UNKNOWN if there is none",
        "category(code)",
        &[("code", "A code as servers send it, or a canonical code; text or number")],
    )
});

impl Category {
    pub(super) fn new(rules: &Arc<Rules>) -> Self {
        Self {
            rules: SharedRules(Arc::clone(rules)),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Category {
    fn name(&self) -> &str {
        "category"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, argument_types: &[DataType]) -> Result<Vec<DataType>> {
        text::coerce_to_text(self.name(), argument_types, 1)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(text::TEXT)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [code] = take_function_args(self.name(), args.args)?;
        let registry = self.rules.0.registry();
        text::map_texts(&code, |code| Ok(Some(registry.category_of(code).as_str().to_owned())))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&CATEGORY_DOCUMENTATION)
    }
}

/// The function that returns the canonical code of a dialect's code.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Canonical {
    rules: SharedRules,
    signature: Signature,
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

impl Canonical {
    pub(super) fn new(rules: &Arc<Rules>) -> Self {
        Self {
            rules: SharedRules(Arc::clone(rules)),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    fn look_up(&self, dialect: &str, code: &str) -> Result<Option<String>> {
        let Some(dialect) = Dialect::from_name(dialect) else {
            let all: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.as_str()).collect();
            return exec_err!("there is no dialect '{dialect}'; there are {}", all.join(", "));
        };
        let looked_up = self.rules.0.registry().look_up(Some(dialect), code);
        Ok(looked_up.is_known.then(|| looked_up.canonical.into_owned()))
    }
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        "canonical"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, argument_types: &[DataType]) -> Result<Vec<DataType>> {
        text::coerce_to_text(self.name(), argument_types, 2)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(text::TEXT)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let pair = take_function_args(self.name(), args.args)?;
        text::map_text_pairs(&pair, rows, |dialect, code| self.look_up(dialect, code))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&CANONICAL_DOCUMENTATION)
    }
}
