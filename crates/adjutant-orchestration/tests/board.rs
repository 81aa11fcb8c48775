//! The board: each rule is one check, played on a key-value store in memory, in SQLite (in memory and in a file) and in
//! PostgreSQL.

#[path = "board/broken.rs"]
mod broken;
#[path = "board/claiming.rs"]
mod claiming;
#[path = "board/crowd.rs"]
mod crowd;
#[path = "board/depending.rs"]
mod depending;
#[path = "board/ending.rs"]
mod ending;
#[path = "board/keeping.rs"]
mod keeping;
#[path = "board/plan.rs"]
mod plan;
#[path = "board/stage.rs"]
mod stage;
#[path = "board/tools.rs"]
mod tools;
#[path = "board/watching.rs"]
mod watching;

/// Makes a test of each check on each key-value store.
macro_rules! board_suite {
    ($($module:ident :: $name:ident,)*) => {
        board_suite! { @on memory $($module $name)* }
        board_suite! { @on sqlite $($module $name)* }
        board_suite! { @on sqlite_file $($module $name)* }
        board_suite! { @on postgres $($module $name)* }
    };
    (@on $kv:ident $($module:ident $name:ident)*) => {
        mod $kv {
            $(
                #[test]
                fn $name() {
                    let name = concat!("board::", stringify!($kv), "::", stringify!($name));
                    super::stage::play(name, super::stage::$kv, super::$module::$name);
                }
            )*
        }
    };
}

board_suite! {
    keeping::task_is_read_as_it_was_created,
    keeping::bounds_are_kept_when_texts_are_too_long,
    keeping::key_makes_one_task_when_it_is_used_twice,
    keeping::hostile_title_is_kept_as_it_is,
    keeping::update_changes_what_it_mentions,
    keeping::update_moves_a_task_when_its_priority_changes,
    keeping::list_gives_pages_and_filters,
    keeping::impossible_ids_are_missing,
    claiming::claim_gives_a_lease_when_a_task_is_pending,
    claiming::claim_is_a_heartbeat_when_the_agent_has_the_task,
    claiming::claim_is_taken_when_another_has_the_task,
    claiming::claim_is_possible_when_the_lease_has_run_out,
    claiming::claim_is_refused_when_the_lease_cannot_be,
    claiming::claim_next_takes_the_highest_priority_then_the_oldest,
    claiming::claim_next_gives_none_when_nothing_is_ready,
    claiming::claim_next_never_gives_a_task_twice_when_the_agent_is_the_same,
    claiming::reserved_tasks_are_for_their_agent_only,
    claiming::heartbeat_keeps_a_task_when_time_goes_by,
    claiming::release_gives_a_task_back_when_its_worker_asks,
    claiming::reassign_moves_a_task_when_it_is_in_progress,
    claiming::ten_tasks_are_taken_over_when_their_worker_dies,
    claiming::task_fails_when_too_many_workers_lose_it,
    ending::finish_needs_evidence_when_there_are_criteria,
    ending::finish_is_done_once_when_it_is_said_twice,
    ending::finish_is_refused_when_the_task_was_lost,
    ending::cancel_is_refused_when_a_task_has_ended,
    ending::retry_begins_anew_when_a_task_has_failed,
    ending::delete_is_refused_when_a_task_is_open_or_needed,
    ending::refusals_say_what_is_possible,
    depending::unknown_dependencies_are_refused,
    depending::dependent_is_ready_when_all_before_it_are_completed,
    depending::failed_dependency_blocks_visibly_until_it_is_retried,
    depending::cancelled_dependency_blocks_visibly_until_it_is_dropped,
    depending::cycles_are_refused,
    depending::cycle_is_refused_when_two_writers_make_it_at_once,
    depending::dependencies_are_fixed_when_a_task_is_in_progress,
    depending::dependents_are_told_when_a_task_ends_while_they_are_created,
    depending::many_dependents_are_ready_when_one_task_is_completed,
    watching::watch_tells_changes_of_other_processes,
    watching::wait_ends_when_the_task_has,
    watching::wait_times_out_when_the_task_does_not_end,
    watching::cancelled_ends_when_another_process_cancels,
    crowd::one_wins_when_two_claim_a_task,
    crowd::every_task_is_done_once_when_many_work,
}
