//! Rows of memories: what was promised of them, what their stores and tools did, and the faults they had.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "memory";
    // What the overview and the options say.
    "facts about a user last over sessions"
        => Test("tests/tests/sessions.rs::fact_of_one_session_serves_the_next_in_another_program"),
    "WithMemory: an owner and a store"
        => Test("crates/adjutant-context/tests/memories/operations.rs::facts_have_ids_and_times_of_the_world_when_they_are_added"),
    "WithMemory: the id is the owner of the facts"
        => Test("crates/adjutant-context/tests/memories/operations.rs::owners_are_apart_when_they_share_a_store_and_know_ids"),
    "WithMemory: what is relevant is put into the system prompt" => Deviation {
        test: "crates/adjutant-context/tests/memories/injected.rs::facts_stand_beside_the_message_when_they_fit_and_the_prompt_stays",
        why: "facts are a recorded entry beside the message, so that the prompt and its cache stay",
    },
    "AutoExtract: facts are found in conversations"
        => Test("crates/adjutant-context/tests/memories/runs.rs::run_pays_what_learning_costs_when_it_is_awaited"),
    "AutoDedup: a model compares facts"
        => Test("crates/adjutant-context/tests/memories/decisions.rs::decisions_are_carried_out_when_they_are_right"),
    "LLM: a model of its own for memories"
        => Test("crates/adjutant-context/tests/memories/runs.rs::run_pays_what_learning_costs_when_it_is_awaited"),
    "LLM: the agent's model without one"
        => Test("crates/adjutant-context/tests/memories/runs.rs::agents_model_is_asked_when_no_other_is_set"),
    // A store.
    "store: a fact with metadata is kept"
        => Test("crates/adjutant-testing/src/memory_suite.rs::add_then_get"),
    "store: texts, names and metadata of any kind"
        => Test("crates/adjutant-testing/src/memory_suite.rs::facts_survive"),
    "store: search by an owner, with a limit"
        => Test("crates/adjutant-testing/src/memory_suite.rs::limits"),
    "store: search by words"
        => Test("crates/adjutant-testing/src/memory_suite.rs::any_word"),
    "store: search by cosine"
        => Test("crates/adjutant-testing/src/memory_suite.rs::nearest_first"),
    "store: both searches are fused, and about as good as the better one"
        => Test("crates/adjutant-context/tests/memories/quality.rs::hybrid_search_is_about_as_good_as_the_better_half_when_the_set_is_labelled"),
    "store: an entry has id, text, owner, score, time, metadata"
        => Test("crates/adjutant-context/tests/memories/operations.rs::facts_have_ids_and_times_of_the_world_when_they_are_added"),
    "store: the score is how near it is"
        => Test("crates/adjutant-context/tests/memories/operations.rs::search_fuses_both_when_there_is_an_embedder_and_meters_it"),
    "store: all facts of an owner, with a limit"
        => Test("crates/adjutant-testing/src/memory_suite.rs::pages"),
    "store: a fact is deleted"
        => Test("crates/adjutant-testing/src/memory_suite.rs::deleted_is_gone"),
    "store: a fact is updated"
        => Test("crates/adjutant-testing/src/memory_suite.rs::update_changes"),
    "store: in memory"
        => Test("tests/tests/spec_table.rs::suites_are_played_on_every_store"),
    "store: in a file" => Deviation {
        test: "tests/tests/spec_table.rs::suites_are_played_on_every_store",
        why: "a file of SQLite takes the place of one JSON document for each owner, and passes the same suite",
    },
    "store: vectors in PostgreSQL, indexed" => Deviation {
        test: "crates/adjutant-store/tests/postgres/memory.rs::nearest_vectors_are_found_best_first",
        why: "vectors of one owner are compared exactly, in plain PostgreSQL without an extension",
    },
    "store: the number of dimensions is the embedder's"
        => Test("crates/adjutant-testing/src/memory_suite.rs::other_vectors_left_out"),
    "ids are UUIDs"
        => Test("crates/adjutant-context/tests/memories/operations.rs::facts_have_ids_and_times_of_the_world_when_they_are_added"),
    "ids can be injected"
        => Test("crates/adjutant-context/tests/memories/operations.rs::facts_have_ids_and_times_of_the_world_when_they_are_added"),
    // Extraction.
    "extraction: after the final answer, in the background"
        => Test("crates/adjutant-context/tests/memories/background.rs::flush_waits_when_a_run_is_still_being_read"),
    "extraction: it needs a session" => Deviation {
        test: "crates/adjutant-context/tests/memories/runs.rs::crashed_run_is_read_when_the_session_goes_on_elsewhere",
        why: "every agent has a session, so there is nothing to require",
    },
    "extraction: the whole session is sent each time" => Deviation {
        test: "crates/adjutant-context/tests/memories/learned.rs::only_the_new_part_is_read_when_a_conversation_goes_on",
        why: "how far a session was read is kept, and only what is new is read",
    },
    "extraction: without the system prompt"
        => Test("crates/adjutant-context/tests/memories/learned.rs::model_is_shown_words_of_people_and_the_assistant_when_there_is_more"),
    "extraction: facts of what the user said only" => Deviation {
        test: "crates/adjutant-context/tests/memories/learned.rs::nobody_is_asked_when_no_person_spoke",
        why: "the model is also shown what the assistant said, as it explains the rest; without a person's words nobody is asked",
    },
    "extraction: an object with a list of facts"
        => Test("crates/adjutant-context/tests/memories/learned.rs::only_the_new_part_is_read_when_a_conversation_goes_on"),
    "extraction: fences around the JSON are taken off"
        => Test("crates/adjutant-context/tests/memories/learned.rs::answer_is_read_when_it_is_fenced"),
    "extraction: what cannot be read is nothing" => Deviation {
        test: "crates/adjutant-context/tests/memories/learned.rs::part_is_read_again_when_the_model_failed",
        why: "it is sent back for repair once and is an error then; the part counts as unread",
    },
    "extraction: metadata say source and time"
        => Test("crates/adjutant-context/tests/memories/learned.rs::only_the_new_part_is_read_when_a_conversation_goes_on"),
    // Deduplication.
    "dedup: compared with the nearest facts"
        => Test("crates/adjutant-context/tests/memories/decisions.rs::second_fact_is_compared_with_the_first_when_both_are_new"),
    "dedup: nobody is asked when there is nothing like it"
        => Test("crates/adjutant-context/tests/memories/decisions.rs::nobody_is_asked_when_a_fact_is_new_or_known_word_for_word"),
    "dedup: add, update, delete, none, in order"
        => Test("crates/adjutant-context/tests/memories/decisions.rs::decisions_are_carried_out_when_they_are_right"),
    "dedup: the first error of the store ends it"
        => Test("crates/adjutant-context/tests/memories/learned.rs::part_is_read_again_when_the_store_failed_and_nothing_is_kept_twice"),
    "dedup: when search, model or reading fail the fact is added"
        => Test("crates/adjutant-context/tests/memories/decisions.rs::fact_is_added_as_it_is_when_the_model_talks_or_fails"),
    "dedup: fences are not taken off here" => Deviation {
        test: "crates/adjutant-context/tests/memories/decisions.rs::decisions_are_read_when_they_are_fenced",
        why: "answers of models are read by one reader, which takes fences off",
    },
    "dedup: unknown ids do nothing, and say they did" => Deviation {
        test: "crates/adjutant-context/tests/memories/decisions.rs::fact_is_added_as_it_is_when_a_decision_is_wrong",
        why: "a decision about an id that was not shown is wrong: the fact is added, with a warning",
    },
    // Injection.
    "injection: the best five for the message"
        => Test("crates/adjutant-context/tests/memories/operations.rs::search_keeps_to_limit_and_threshold_when_they_are_set"),
    "injection: errors of the search are passed over" => Deviation {
        test: "crates/adjutant-context/tests/memories/injected.rs::run_goes_on_when_the_memory_fails",
        why: "the run goes on, and the failure is reported",
    },
    "injection: only where a chat is not streamed" => Deviation {
        test: "crates/adjutant-context/tests/memories/injected.rs::facts_stand_beside_the_message_when_they_fit_and_the_prompt_stays",
        why: "there is one path: blocking is a collect over the stream",
    },
    "injection: no threshold" => Deviation {
        test: "crates/adjutant-context/tests/memories/injected.rs::nothing_is_added_when_nothing_fits_or_nobody_spoke",
        why: "facts that score too little are left out",
    },
    // Tools.
    "tools: only when facts are not extracted" => Deviation {
        test: "crates/adjutant-context/tests/memories/tooled.rs::tools_store_recall_replace_and_delete_when_a_model_calls_them",
        why: "tools, recall and extraction are each set by themselves, in any mixture",
    },
    "tools: store_memory with a category of five"
        => Test("crates/adjutant-context/tests/memories/tooled.rs::tools_refuse_when_arguments_are_no_facts"),
    "tools: recall_memories gives lines with ids"
        => Test("crates/adjutant-context/tests/memories/tooled.rs::tools_store_recall_replace_and_delete_when_a_model_calls_them"),
    "tools: recall_memories says so when there is nothing"
        => Test("crates/adjutant-context/tests/memories/tooled.rs::tools_store_recall_replace_and_delete_when_a_model_calls_them"),
    "tools: replace_memory"
        => Test("crates/adjutant-context/tests/memories/tooled.rs::tools_store_recall_replace_and_delete_when_a_model_calls_them"),
    "tools: delete_memory with a reason"
        => Test("crates/adjutant-context/tests/memories/tooled.rs::tools_store_recall_replace_and_delete_when_a_model_calls_them"),
    // Faults.
    "fault: a model deletes or changes facts of another owner by id"
        => Test("crates/adjutant-context/tests/memories/tooled.rs::tools_refuse_when_an_id_is_of_another_owner_or_of_nobody"),
    "fault: the same, while facts are compared"
        => Test("crates/adjutant-context/tests/memories/decisions.rs::facts_of_others_stay_when_a_model_names_their_ids"),
    "fault: the same, in any store"
        => Test("crates/adjutant-testing/src/memory_suite.rs::foreign_ids_touch_nothing"),
    "fault: a search reads while a deletion moves"
        => Test("tests/tests/sessions.rs::facts_are_whole_when_they_are_looked_for_while_others_are_deleted"),
    "fault: a negative limit panics" => Deviation {
        test: "crates/adjutant-testing/src/memory_suite.rs::limits",
        why: "a limit cannot be negative, and 0 gives nothing",
    },
    "fault: an update without metadata erases them, in one store"
        => Test("crates/adjutant-testing/src/memory_suite.rs::metadata_merges"),
    "fault: all facts come newest first here and oldest first there"
        => Test("crates/adjutant-testing/src/memory_suite.rs::pages"),
    "fault: replacing a fact loses when it was made"
        => Test("crates/adjutant-context/tests/memories/tooled.rs::replace_keeps_where_a_memory_came_from_when_only_its_text_changes"),
    "fault: two quick chats learn the same twice"
        => Test("crates/adjutant-context/tests/memories/background.rs::runs_of_a_session_are_read_once_when_they_end_quickly"),
    "fault: two processes learn the same twice"
        => Test("crates/adjutant-context/tests/memories/learned.rs::slower_process_keeps_nothing_when_two_read_one_session"),
    "fault: extraction is not awaited and lost at the end"
        => Test("crates/adjutant-context/tests/memories/background.rs::flush_waits_when_a_run_is_still_being_read"),
    "fault: extraction that a crash ended is lost"
        => Test("crates/adjutant-context/tests/memories/runs.rs::crashed_run_is_read_when_the_session_goes_on_elsewhere"),
    "fault: errors of extraction are dropped"
        => Test("crates/adjutant-context/tests/memories/runs.rs::run_ends_well_when_learning_fails_and_the_next_run_makes_up_for_it"),
    "gap: how far a session was read is not kept"
        => Test("crates/adjutant-testing/src/memory_suite.rs::kept_by_source"),
    "gap: facts do not end by time" => Deviation {
        test: "crates/adjutant-context/tests/memories/operations.rs::update_keeps_metadata_that_is_not_named_when_it_changes_the_text",
        why: "a fact is changed or deleted, and says when it was made and changed; none ends by itself",
    },
    "gap: no least score"
        => Test("crates/adjutant-context/tests/memories/operations.rs::search_keeps_to_limit_and_threshold_when_they_are_set"),
    "gap: no spaces of names besides owners" => Deviation {
        test: "crates/adjutant-testing/src/memory_suite.rs::owners_are_data",
        why: "an owner is any text, so that a space of names is a part of it",
    },
    "gap: the model of a vector is not checked, and wrong sizes score 0"
        => Test("crates/adjutant-testing/src/memory_suite.rs::other_vectors_left_out"),
    "gap: what it costs is not counted"
        => Test("crates/adjutant-context/tests/memories/tooled.rs::run_pays_for_embeddings_when_tools_are_called"),
};
