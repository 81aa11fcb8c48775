//! What must hold of every log.

use adjutant_agent::{Run, Seq, Stamped};

/// The log is contiguous, survives its bytes, and folds from any place to the same state. Gives that state.
pub(crate) fn log(records: &[Stamped]) -> Run {
    let mut run = Run::default();
    for (at, stamped) in (1..).zip(records) {
        assert_eq!(stamped.seq, Seq(at), "a gap in the log");
        let read: Stamped = serde_json::from_slice(stamped.bytes().expect("a record is JSON"))
            .expect("it reads back");
        assert_eq!(&read, stamped);
        run.apply(&read).expect("the log folds");
        let bytes = serde_json::to_vec(&run).expect("a run is JSON");
        run = {
            let read: Run = serde_json::from_slice(&bytes).expect("a run reads back");
            assert_eq!(
                read, run,
                "the state after record {at} changed through serde"
            );
            read
        };
    }
    assert!(!run.is_open(), "the log ends within a run");
    run
}
