//! Tests that coalesce events of real lines into rows.

use super::*;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use classifier::{
    Call, Classifier, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason,
};
use store::rows::{EventRow, Relation};

const NOW: i64 = 1_767_323_045_000_000;

/// A WAL record that is being built.
#[derive(Default)]
struct Record {
    coalescer: Coalescer,
    rows: EventRows,
    budgets: Budgets,
}

impl Sink for Record {
    fn event(&mut self, event: &Event<'_>) {
        let row = self.rows.len();
        let push = |rows: &mut EventRows, event: &Event<'_>| {
            rows.push(EventRow { event, ingested_at: NOW, relation: Relation::Primary });
        };
        match self.coalescer.place_event(event, row, &self.budgets, NOW) {
            Placement::Own => push(&mut self.rows, event),
            Placement::Overflow { is_shared_bucket } => {
                push(&mut self.rows, &overflow_event(event, is_shared_bucket));
            }
            Placement::Shared(row) => {
                self.coalescer.coalesce(row, &mut self.rows, std::iter::once(event.event_id));
            }
        }
    }
    fn call(&mut self, _: &Call<'_>) {}
    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        panic!("{reason}");
    }
}

impl Record {
    fn new(budgets: &[&str]) -> Self {
        let record = Self::default();
        record.budgets.set(&budgets.iter().map(|budget| budget.parse().unwrap()).collect::<Vec<_>>());
        record
    }

    /// Adds a request with failures of a service, by their codes.
    fn take(&mut self, service: &str, codes: impl IntoIterator<Item = String>) {
        self.coalescer.begin();
        let rules = Rules::new(Registry::builtin().unwrap(), HashKey::FIXED, Limits::default());
        let mut classifier = Classifier::new(Arc::new(rules));
        for code in codes {
            let line = format!(
                r#"{{"service":"{service}","success":false,"error":{{"code":"{code}","message":"{code}"}}}}"#
            );
            classifier.classify(
                line.as_bytes(),
                &RecordOrigin { arrival: NOW, ..RecordOrigin::default() },
                self,
            );
        }
    }

    /// Returns the number of events that each row represents after everything past a mark was reverted.
    fn close(mut self, mark: CoalesceMark, rows: usize) -> (Vec<i64>, usize, SpentTokens) {
        let (identities, spent) = self.coalescer.finish(mark, &mut self.rows);
        let batch = self.rows.finish().unwrap();
        let counts =
            batch.column_by_name("represents").unwrap().as_primitive::<Int64Type>().values().to_vec();
        (counts[..rows].to_vec(), identities.len(), spent)
    }
}

fn same(count: usize) -> impl Iterator<Item = String> {
    std::iter::repeat_n("INTERNAL_ERROR".to_owned(), count)
}

fn different(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("VALIDATION_X{number}"))
}

#[test]
fn what_is_alike_past_the_budget_shares_a_row() {
    let mut record = Record::new(&["1/s"]);
    record.take("noisy", same(30).chain(["NOT_FOUND_RESOURCE".to_owned()]));
    record.take("quiet", same(3));
    let (mark, rows) = (record.coalescer.mark(), record.rows.len());
    let (counts, identities, _) = record.close(mark, rows);
    assert_eq!(counts, [[1; 10].as_slice(), &[20, 1], &[1, 1, 1]].concat());
    assert_eq!(identities, 19);
}

#[test]
fn sorts_without_end_share_the_row_of_their_category() {
    let mut record = Record::new(&["1/s"]);
    record.take("noisy", different(1_000));
    record.take("other", different(10));
    let (mark, rows) = (record.coalescer.mark(), record.rows.len());
    let (counts, ..) = record.close(mark, rows);
    assert_eq!(counts[..10 + MAX_GROUPS_PER_SERVICE], [1; 10 + MAX_GROUPS_PER_SERVICE]);
    assert_eq!(counts[10 + MAX_GROUPS_PER_SERVICE], 1_000 - 10 - MAX_GROUPS_PER_SERVICE as i64);
    assert_eq!(counts[11 + MAX_GROUPS_PER_SERVICE..], [1; 10], "another service is not touched by that");
}

/// A discarded request leaves no trace in rows of the requests before it, and has spent no tokens.
#[test]
fn a_request_that_is_taken_back_leaves_no_trace() {
    let mut record = Record::new(&["1/s", "late=2/s"]);
    record.take("noisy", same(15));
    let (mark, rows) = (record.coalescer.mark(), record.rows.len());
    record.take("noisy", same(7));
    record.take("late", same(25));
    assert_ne!(record.coalescer.mark(), mark);
    let budgets = std::mem::take(&mut record.budgets);
    let (counts, identities, spent) = record.close(mark, rows);
    assert_eq!((counts.iter().sum::<i64>(), counts.len(), identities), (15, 11, 4));
    let left = |service: &str| match budgets.allowance(service, NOW) {
        Allowance::Own(bucket) => (0..100).filter(|_| bucket.take(NOW)).count(),
        allowance => panic!("{allowance:?}"),
    };
    assert_eq!((left("noisy"), left("late")), (0, 20));
    spent.give_back();
    assert_eq!(left("noisy"), 10, "what could not be stored is not spent");
}

#[test]
fn without_a_budget_nothing_is_coalesced() {
    let mut record = Record::new(&["noisy=1/s"]);
    record.take("quiet", same(100));
    assert_eq!((record.rows.len(), record.coalescer.mark()), (100, CoalesceMark::default()));
}
