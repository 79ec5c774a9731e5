//! Random statements from a grammar, the same for the same seed: most of them are meaningful, some are absurd.

/// Columns of `events`, as text, number or boolean.
const TEXTS: [&str; 8] =
    ["message", "code", "canonical", "service", "operation", "template", "category", "attributes"];
const NUMBERS: [&str; 4] = ["represents", "duration_us", "http_status", "retry_after_s"];
const TRUTHS: [&str; 3] = ["hidden", "inferred", "retryable"];
const AGGREGATES: [&str; 9] = [
    "count",
    "min",
    "max",
    "array_agg",
    "approx_distinct",
    "first_value",
    "last_value",
    "count(DISTINCT",
    "string_agg",
];
const TEXT_FUNCTIONS: [&str; 9] =
    ["upper", "lower", "reverse", "md5", "initcap", "btrim", "repeat", "lpad", "concat"];

/// Makes statements.
pub(crate) struct Grammar {
    state: u64,
}

impl Grammar {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// Returns a number below `most` (xorshift).
    fn below(&mut self, most: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 33).unwrap_or(0) % most
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn several(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> String, between: &str) -> String {
        let count = 1 + self.below(most);
        (0..count).map(|_| make(self)).collect::<Vec<_>>().join(between)
    }

    /// Returns a statement.
    pub(crate) fn statement(&mut self) -> String {
        match self.below(12) {
            0 => format!("EXPLAIN {}", self.query(2)),
            1 => {
                let (first, second) = (self.query(2), self.query(1));
                format!(
                    "WITH a AS ({first}), b AS (SELECT * FROM a UNION ALL SELECT * FROM a) \
                         SELECT count(*) FROM a, b, ({second}) AS c"
                )
            }
            2 => {
                let most = 1 + self.below(300);
                vec!["SELECT count(*) AS n FROM events"; most].join(" UNION ALL ")
            }
            _ => self.query(3),
        }
    }

    fn query(&mut self, depth: usize) -> String {
        let from = self.from(depth);
        let filter = match self.below(3) {
            0 => format!(" WHERE {}", self.condition(3)),
            _ => String::new(),
        };
        match self.below(4) {
            0 => {
                let group = self.several(3, |it| it.text(1), ", ");
                let aggregates = self.several(4, Self::aggregate, ", ");
                let by = self.one(&["", "CUBE ", "ROLLUP "]);
                let by = if by.is_empty() { group.clone() } else { format!("{by}({group})") };
                format!("SELECT {aggregates} FROM {from}{filter} GROUP BY {by}")
            }
            1 => {
                let windows = self.several(5, Self::window, ", ");
                format!("SELECT {windows} FROM {from}{filter}")
            }
            2 => {
                let columns = self.several(20, |it| it.value(4), ", ");
                let order = self.several(3, |it| it.value(2), ", ");
                let limit = 1 + self.below(10_000);
                format!("SELECT {columns} FROM {from}{filter} ORDER BY {order} LIMIT {limit}")
            }
            _ => {
                let columns = self.several(30, |it| it.value(5), ", ");
                format!("SELECT {columns} FROM {from}{filter}")
            }
        }
    }

    fn from(&mut self, depth: usize) -> String {
        match self.below(6) {
            0 if depth > 0 => format!("({}) AS q, events AS e", self.query(depth - 1)),
            1 => "events AS e JOIN events AS f USING (event_id)".to_owned(),
            2 => "events AS e CROSS JOIN codes".to_owned(),
            3 => format!("events AS e, generate_series(1, {}) AS g", 1 + self.below(1_000_000)),
            _ => "events AS e".to_owned(),
        }
    }

    fn value(&mut self, depth: usize) -> String {
        match self.below(3) {
            0 => self.number(depth),
            1 => self.condition(depth),
            _ => self.text(depth),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        if depth == 0 {
            return format!("e.{}", self.one(&TEXTS));
        }
        match self.below(8) {
            0 => format!("({} || {})", self.text(depth - 1), self.text(depth - 1)),
            1 => {
                let (of, count) = (self.text(depth - 1), self.below(100_000));
                match self.one(&TEXT_FUNCTIONS) {
                    function @ ("repeat" | "lpad") => format!("{function}({of}, {count})"),
                    function => format!("{function}({of})"),
                }
            }
            2 => format!("regexp_replace({}, {}, 'x')", self.text(depth - 1), self.text(depth - 1)),
            3 => format!("CASE WHEN {} THEN {} END", self.condition(depth - 1), self.text(depth - 1)),
            4 => format!("coalesce({})", self.several(4, |it| it.text(depth - 1), ", ")),
            5 => format!("CAST({} AS TEXT)", self.number(depth - 1)),
            6 => format!("'{}'", "x".repeat(self.below(2_000))),
            _ => self.text(0),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.below(3) {
                0 => self.state.cast_signed().to_string(),
                1 => self.below(100).to_string(),
                _ => format!("e.{}", self.one(&NUMBERS)),
            };
        }
        match self.below(5) {
            0 => {
                let operator = self.one(&["+", "-", "*", "/", "%"]);
                format!("({} {operator} {})", self.number(depth - 1), self.number(depth - 1))
            }
            1 => format!("length({})", self.text(depth - 1)),
            2 => format!("abs({})", self.number(depth - 1)),
            3 => format!("(SELECT count(*) FROM codes WHERE {} IS NULL)", self.number(0)),
            _ => self.number(0),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth == 0 {
            return format!("e.{}", self.one(&TRUTHS));
        }
        match self.below(6) {
            0 => self.several(40, |it| it.condition(depth - 1), " OR "),
            1 => self.several(40, |it| it.condition(depth - 1), " AND "),
            2 => format!("{} LIKE {}", self.text(depth - 1), self.text(depth - 1)),
            3 => format!("{} ~ {}", self.text(depth - 1), self.text(depth - 1)),
            4 => format!("{} IN ({})", self.number(depth - 1), self.several(200, |it| it.number(0), ", ")),
            _ => format!("NOT {}", self.condition(depth - 1)),
        }
    }

    fn aggregate(&mut self) -> String {
        match self.one(&AGGREGATES) {
            "count(DISTINCT" => format!("count(DISTINCT {})", self.text(2)),
            "string_agg" => format!("length(string_agg({}, ','))", self.text(2)),
            "array_agg" => format!("cardinality(array_agg({}))", self.text(2)),
            function => format!("{function}({})", self.value(2)),
        }
    }

    fn window(&mut self) -> String {
        let frame =
            self.one(&["", " ROWS BETWEEN 1000 PRECEDING AND CURRENT ROW", " ROWS UNBOUNDED PRECEDING"]);
        let (aggregate, order) = (self.aggregate(), self.text(1));
        let inner = aggregate
            .replace("length(string_agg", "(string_agg")
            .replace("cardinality(array_agg", "(array_agg");
        format!("{inner} OVER (ORDER BY {order}{frame})")
    }
}
