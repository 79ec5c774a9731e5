//! `category(code)` and `canonical(dialect, code)`: what the registry says about a code, with nothing else to go by.

use super::{documentation, text};
use arrow::datatypes::DataType;
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};
use taxonomy::{Dialect, Rules};

/// The registry in use. There is one in an engine, so all are the same.
#[derive(Clone)]
struct Known(Arc<Rules>);

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Known {}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the registry")
    }
}

/// The category of a code.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Category {
    known: Known,
    signature: Signature,
}

static ABOUT_CATEGORY: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "The category of a code: of any dialect, of the taxonomy, or by its prefix; UNKNOWN when nothing speaks for one",
        "category(code)",
        &[("code", "A code as a server sends it, or a canonical one; text or number")],
    )
});

impl Category {
    pub(super) fn new(rules: &Arc<Rules>) -> Self {
        Self { known: Known(Arc::clone(rules)), signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Category {
    fn name(&self) -> &str {
        "category"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        text::coerced(self.name(), given, 1)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(text::TEXT)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [code] = take_function_args(self.name(), args.args)?;
        let registry = self.known.0.registry();
        text::each(&code, |code| Ok(Some(registry.category_of(code).as_str().to_owned())))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&ABOUT_CATEGORY)
    }
}

/// The canonical code of a dialect's code.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Canonical {
    known: Known,
    signature: Signature,
}

static ABOUT_CANONICAL: LazyLock<Documentation> = LazyLock::new(|| {
    documentation(
        "The code in the cross-dialect taxonomy that a dialect's code stands for; null when nothing speaks for one",
        "canonical(dialect, code)",
        &[
            (
                "dialect",
                "mcp-aql, mcp-reference, agent-skills, erlmcp or jsonrpc; http and unknown ask all of them",
            ),
            ("code", "The code as it is sent; text or number"),
        ],
    )
});

impl Canonical {
    pub(super) fn new(rules: &Arc<Rules>) -> Self {
        Self { known: Known(Arc::clone(rules)), signature: Signature::user_defined(Volatility::Immutable) }
    }

    fn of(&self, dialect: &str, code: &str) -> Result<Option<String>> {
        let Some(dialect) = Dialect::from_word(dialect) else {
            let all: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.as_str()).collect();
            return exec_err!("there is no dialect '{dialect}'; there are {}", all.join(", "));
        };
        let looked_up = self.known.0.registry().look_up(Some(dialect), code);
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

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        text::coerced(self.name(), given, 2)
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
        text::each_pair(&pair, rows, |dialect, code| self.of(dialect, code))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&ABOUT_CANONICAL)
    }
}
