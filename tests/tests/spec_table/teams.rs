//! Rows of teams: the lead, members, mailboxes, boards, what hooks and streams tell.

use super::{How::*, Row, rows};

pub(crate) const ROWS: &[Row] = rows! { "teams";
    // Options of a lead.
    "WithTeam makes an agent the lead"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_works_while_the_lead_goes_on"),
    "WithTeam: a mailbox in memory unless there is another one"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::message_of_a_member_reaches_the_lead_and_its_answer_comes_back"),
    "WithTeam: a board in memory by default" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/roles.rs::board_tools_are_given_to_everyone",
        why: "a team has the board that it is given, on whatever shelf, and works without",
    },
    "WithMailbox takes another mailbox"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::messages_go_through_the_mailbox_that_is_given"),
    "WithMailbox only after WithTeam" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/messages.rs::messages_go_through_the_mailbox_that_is_given",
        why: "the mailbox is set on the team, so there is no order to keep",
    },
    "WithTeammateTemplates: agents by name"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_is_briefed_when_it_begins"),
    "WithTeammateTemplates: a name that fits takes the template"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_works_while_the_lead_goes_on"),
    "WithCoordinatorMode: the lead has the tools of the team only"
        => Test("crates/adjutant-orchestration/tests/team/roles.rs::coordinator_has_only_the_tools_of_the_team"),
    "WithCoordinatorMode: its own tools cannot run"
        => Test("crates/adjutant-orchestration/tests/team/roles.rs::coordinator_has_only_the_tools_of_the_team"),
    // What is told.
    "ChatEvent: TeamMessage is the message"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::events_tell_of_members_and_messages"),
    "OnTeammateJoin"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "OnTeammateLeave"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "OnTeamMessage"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hook_changes_or_denies_a_message"),
    "OnTeammateComplete"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "OnTeammateError"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "hooks of teams only look" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/seen.rs::hook_changes_or_denies_a_message",
        why: "a message can be changed or denied like anything that goes from one agent to another",
    },
    "the types of events: join, leave, message, complete, error"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::points_of_upper_crates_are_declared_when_their_names_are_asked"),
    "TeamMessageContext: team and message"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hook_changes_or_denies_a_message"),
    "TeammateEventContext: team"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "TeammateEventContext: id and name of the member"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "TeammateEventContext: task"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::events_tell_of_members_and_messages"),
    "TeammateEventContext: result"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "TeammateEventContext: error"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "TeammateEventContext: duration" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/messages.rs::status_shows_who_works_on_what",
        why: "events have times, and the status says for how long a member has been at work",
    },
    // The team and its members.
    "Config: Name"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::events_tell_of_members_and_messages"),
    "Config: MaxSize counts those at work"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::spawning_is_refused_when_the_team_is_full"),
    "Config: MaxSize 0 is unlimited" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/members.rs::team_has_no_limit_when_none_is_set",
        why: "a team has no limit until one is set",
    },
    "Config: DefaultTimeout"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_is_cancelled_and_the_lead_told_when_its_time_is_over"),
    "Member: ID teammate-n"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::spawning_is_refused_when_the_team_is_full"),
    "Member: Name is unique"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::spawning_is_refused_when_a_member_of_that_name_works"),
    "Member: Status is active, completed, failed or stopped"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::stop_reaches_the_lead_when_a_member_is_stopped"),
    "Member: Task"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::status_shows_who_works_on_what"),
    "Member: JoinedAt and EndedAt" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/messages.rs::status_shows_who_works_on_what",
        why: "one time, since when it is what it is; the rest is in the events",
    },
    "Member: Result"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::status_shows_who_works_on_what"),
    "Member: Error"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::failure_reaches_the_lead_when_the_model_of_a_member_fails"),
    "Member: Done can be waited for"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::waiting_for_any_ends_when_one_member_has_ended"),
    "a name is never free again" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/members.rs::name_is_free_when_its_member_has_ended",
        why: "the name of one that has ended can be given again",
    },
    "joining opens a line in the mailbox"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::messages_go_through_the_mailbox_that_is_given"),
    "what one asks for is a copy"
        => Test("crates/adjutant-orchestration/tests/team/ends.rs::what_is_unread_is_told_at_the_end"),
    "StopMember ends its run"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::stop_reaches_the_lead_when_a_member_is_stopped"),
    "StopMember: unknown is an error"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::validation_says_what_is_wrong"),
    "StopMember: one that has ended is no error"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::stop_reaches_the_lead_when_a_member_is_stopped"),
    "CancelAll"
        => Test("crates/adjutant-orchestration/tests/team/ends.rs::members_end_when_the_lead_is_cancelled"),
    "WaitAll" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/ends.rs::lead_may_wait_when_it_was_told",
        why: "the lead is told who still works, and waits, stops them, or leaves",
    },
    // Tools.
    "spawn_teammate: name and task"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::validation_says_what_is_wrong"),
    "spawn_teammate: template"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_is_briefed_when_it_begins"),
    "spawn_teammate: system_prompt"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_made_from_a_prompt_has_the_leads_model_and_that_prompt"),
    "spawn_teammate: max_turns"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_has_failed_when_it_reaches_its_limit"),
    "spawn_teammate: timeout in seconds"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_is_cancelled_and_the_lead_told_when_its_time_is_over"),
    "spawn_teammate answers id, name, active"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_works_while_the_lead_goes_on"),
    "stop_teammate"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::stop_reaches_the_lead_when_a_member_is_stopped"),
    "send_message to one"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::members_write_to_each_other"),
    "send_message to all but oneself"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::broadcast_goes_to_all_but_its_sender"),
    "send_message tells that it was sent"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::message_of_a_member_reaches_the_lead_and_its_answer_comes_back"),
    "read_messages takes what it gives"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::reading_takes_what_it_gives"),
    "read_messages tells that there is nothing"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::reading_takes_what_it_gives"),
    "read_messages gives a list"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::message_of_a_member_reaches_the_lead_and_its_answer_comes_back"),
    "list_teammates: name, status, task"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::failure_reaches_the_lead_when_the_model_of_a_member_fails"),
    "create_board_task, claim_board_task, complete_board_task, list_board_tasks" => Deviation {
        test: "crates/adjutant-orchestration/tests/board/tools.rs::task_goes_its_way_when_agents_use_the_tools",
        why: "the tools of the board, under its own names or with a prefix, and there are more of them",
    },
    // Beginning.
    "the template is that of the name if none is named"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_works_while_the_lead_goes_on"),
    "a template is used as it is" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/members.rs::finished_member_keeps_its_conversation_when_it_has_a_new_task",
        why: "only its configuration: each member has a conversation of its own",
    },
    "without a template: the lead's model and that prompt"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_made_from_a_prompt_has_the_leads_model_and_that_prompt"),
    "without a prompt there is a default one"
        => Test("crates/adjutant-orchestration/tests/promises/made.rs::member_has_instructions_and_a_briefing_when_it_is_made_of_nothing"),
    "it tells how to talk"
        => Test("crates/adjutant-orchestration/tests/promises/made.rs::member_has_instructions_and_a_briefing_when_it_is_made_of_nothing"),
    "hooks go to members without own ones" => Deviation {
        test: "crates/adjutant-agent/tests/subagents_more.rs::parents_hooks_stand_outside_when_a_child_has_its_own",
        why: "the lead's stand outside a member's own, as for every agent below",
    },
    "the timeout is that of the call, or of the team"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_is_cancelled_and_the_lead_told_when_its_time_is_over"),
    "members work while the lead goes on"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_works_while_the_lead_goes_on"),
    // Ending.
    "completed: the lead gets a message with the result"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_works_while_the_lead_goes_on"),
    "completed: the hook, then the event"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::events_tell_of_members_and_messages"),
    "failed: the hook and the event"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::events_tell_of_members_and_messages"),
    "a panic is a failure"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_has_failed_when_it_panics"),
    "failed: the lead hears nothing" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/members.rs::failure_reaches_the_lead_when_the_model_of_a_member_fails",
        why: "the lead gets a message of every end, with its kind",
    },
    "stopped or late: OnTeammateLeave"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "stopped or late: neither event nor message" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/members.rs::stop_reaches_the_lead_when_a_member_is_stopped",
        why: "the lead gets a message of every end, and there is an event",
    },
    // Mailbox.
    "an interface that can be replaced"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::messages_go_through_the_mailbox_that_is_given"),
    "in memory: a line for each"
        => Test("crates/adjutant-orchestration/tests/team/mailbox.rs::mailbox_gives_messages_in_order_when_several_were_sent"),
    "ids msg-n and times"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::message_of_a_member_reaches_the_lead_and_its_answer_comes_back"),
    "after Close sending and reading are errors"
        => Test("crates/adjutant-orchestration/tests/team/mailbox.rs::mailbox_refuses_when_it_is_closed"),
    "a recipient that is not known is accepted" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/mailbox.rs::mailbox_refuses_when_nobody_has_that_address",
        why: "it is refused: a message that nobody gets is not sent",
    },
    "a flood"
        => Test("crates/adjutant-orchestration/tests/team/mailbox.rs::flood_is_refused_and_nothing_dropped_when_the_mailbox_is_full"),
    // Board.
    "tasks are open, claimed, completed" => Deviation {
        test: "crates/adjutant-orchestration/tests/board/plan.rs::table_says_what_is_possible_in_each_status",
        why: "there are more statuses, and a table of what leads to what",
    },
    "only an open task can be claimed"
        => Test("crates/adjutant-orchestration/tests/board.rs::claim_is_taken_when_another_has_the_task"),
    "only who has a task completes it"
        => Test("crates/adjutant-orchestration/tests/board.rs::finish_is_refused_when_the_task_was_lost"),
    "CreatedBy, CreatedAt, UpdatedAt"
        => Test("crates/adjutant-orchestration/tests/board.rs::task_is_read_as_it_was_created"),
    "lists are in any order" => Deviation {
        test: "crates/adjutant-orchestration/tests/board.rs::list_gives_pages_and_filters",
        why: "in the order of their creation, in pages",
    },
    "a completed task cannot be completed again"
        => Test("crates/adjutant-orchestration/tests/board.rs::finish_is_done_once_when_it_is_said_twice"),
    // What was wrong there.
    "members have no tools of a lead"
        => Test("crates/adjutant-orchestration/tests/team/roles.rs::members_have_only_the_tools_for_talking"),
    "agents below a lead are no leads"
        => Test("crates/adjutant-orchestration/tests/team/roles.rs::agent_under_the_lead_is_no_lead_when_it_has_its_configuration"),
    "a team serves many runs"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::team_serves_many_runs_when_it_is_used_again"),
    "a lead does not leave results behind unknowingly"
        => Test("crates/adjutant-orchestration/tests/team/ends.rs::lead_is_told_when_it_would_leave_messages_unread"),
    "a lead does not leave members unknowingly"
        => Test("crates/adjutant-orchestration/tests/team/ends.rs::lead_is_told_once_when_it_would_leave_members_at_work"),
    "the rule does not hold members up"
        => Test("crates/adjutant-orchestration/tests/team/ends.rs::members_are_not_held_by_the_rule"),
    "a member that waits in vain does not hold the lead up"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::everyone_is_told_when_everyone_waits"),
    "failures reach the lead"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::failure_reaches_the_lead_when_the_model_of_a_member_fails"),
    "list_teammates shows results and errors"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::failure_reaches_the_lead_when_the_model_of_a_member_fails"),
    "events have the message, with id and time"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::events_tell_of_members_and_messages"),
    "one can wait for a message"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::waiting_ends_when_its_time_is_over"),
    "a new member knows who is there"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_is_briefed_when_it_begins"),
    "a member that has ended can have a new task"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::finished_member_keeps_its_conversation_when_it_has_a_new_task"),
    "members have a budget together"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::members_end_together_when_their_common_budget_is_spent"),
    "usage of members counts"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_works_while_the_lead_goes_on"),
    "boards have dependencies, priorities, release and reassignment"
        => Test("crates/adjutant-orchestration/tests/board.rs::reassign_moves_a_task_when_it_is_in_progress"),
    "boards last"
        => Test("crates/adjutant-orchestration/tests/board/plan.rs::board_keeps_its_promises_when_anything_is_done_in_sqlite"),
    "a team that a crash has ended is told of"
        => Test("crates/adjutant-orchestration/tests/team/found.rs::lead_is_told_who_goes_on_when_the_program_was_lost"),
    // Tested: the roster.
    "roster: add"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_works_while_the_lead_goes_on"),
    "roster: a second one of the name"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::spawning_is_refused_when_a_member_of_that_name_works"),
    "roster: the size, and none"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::team_has_no_limit_when_none_is_set"),
    "roster: room again when one has ended"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::spawning_is_refused_when_the_team_is_full"),
    "roster: complete"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::events_tell_of_members_and_messages"),
    "roster: complete with an error"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::failure_reaches_the_lead_when_the_model_of_a_member_fails"),
    "roster: stop"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::stop_reaches_the_lead_when_a_member_is_stopped"),
    "roster: stop someone unknown"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::validation_says_what_is_wrong"),
    "roster: list"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::status_shows_who_works_on_what"),
    "roster: cancel all"
        => Test("crates/adjutant-orchestration/tests/team/ends.rs::members_end_when_the_lead_is_cancelled"),
    "roster: wait for all"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::message_comes_first_when_the_lead_waits_for_its_team"),
    "roster: ending someone unknown does nothing" => Deviation {
        test: "crates/adjutant-orchestration/tests/team/members.rs::validation_says_what_is_wrong",
        why: "only a member's own run ends it, so there is nothing that takes a name; tools refuse one that nobody \
               has",
    },
    "roster: the context goes to members"
        => Test("crates/adjutant-orchestration/tests/team/ends.rs::members_end_when_the_lead_is_cancelled"),
    // Tested: the mailbox.
    "mailbox: send and read"
        => Test("crates/adjutant-orchestration/tests/team/mailbox.rs::mailbox_gives_messages_in_order_when_several_were_sent"),
    "mailbox: to all"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::broadcast_goes_to_all_but_its_sender"),
    "mailbox: read when there is nothing"
        => Test("crates/adjutant-orchestration/tests/team/mailbox.rs::mailbox_gives_nothing_when_nothing_was_sent"),
    "mailbox: send and read after the end"
        => Test("crates/adjutant-orchestration/tests/team/mailbox.rs::mailbox_refuses_when_it_is_closed"),
    "mailbox: several in order"
        => Test("crates/adjutant-orchestration/tests/team/mailbox.rs::mailbox_gives_messages_in_order_when_several_were_sent"),
    "mailbox: opened twice"
        => Test("crates/adjutant-orchestration/tests/team/mailbox.rs::opening_keeps_what_is_there_when_done_twice"),
    // Tested: the board.
    "board: create and list"
        => Test("crates/adjutant-orchestration/tests/board.rs::list_gives_pages_and_filters"),
    "board: claim and complete"
        => Test("crates/adjutant-orchestration/tests/board.rs::finish_is_done_once_when_it_is_said_twice"),
    "board: claim a claimed one"
        => Test("crates/adjutant-orchestration/tests/board.rs::claim_is_taken_when_another_has_the_task"),
    "board: complete that of another"
        => Test("crates/adjutant-orchestration/tests/board.rs::finish_is_refused_when_the_task_was_lost"),
    "board: claim and complete an unknown one"
        => Test("crates/adjutant-orchestration/tests/promises/board.rs::task_is_missing_when_an_unknown_one_is_claimed_or_finished"),
    "board: an empty list"
        => Test("crates/adjutant-orchestration/tests/promises/board.rs::list_is_empty_until_tasks_are_created_each_with_an_id_of_its_own"),
    "board: ids are unique"
        => Test("crates/adjutant-orchestration/tests/promises/board.rs::list_is_empty_until_tasks_are_created_each_with_an_id_of_its_own"),
    // Tested: the tools.
    "tools: what each says of wrong arguments"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::validation_says_what_is_wrong"),
    "tools: spawn with a template"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_is_briefed_when_it_begins"),
    "tools: spawn with a prompt"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::member_made_from_a_prompt_has_the_leads_model_and_that_prompt"),
    "tools: a second one of the name"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::spawning_is_refused_when_a_member_of_that_name_works"),
    "tools: no room"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::spawning_is_refused_when_the_team_is_full"),
    "tools: to all"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::broadcast_goes_to_all_but_its_sender"),
    "tools: stop"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::stop_reaches_the_lead_when_a_member_is_stopped"),
    "tools: list"
        => Test("crates/adjutant-orchestration/tests/team/members.rs::failure_reaches_the_lead_when_the_model_of_a_member_fails"),
    "tools: another mailbox sees all messages"
        => Test("crates/adjutant-orchestration/tests/team/messages.rs::messages_go_through_the_mailbox_that_is_given"),
    "tools: what a coordinator has"
        => Test("crates/adjutant-orchestration/tests/team/roles.rs::coordinator_has_only_the_tools_of_the_team"),
    "stream: spawned, message, complete, error"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::events_tell_of_members_and_messages"),
    "hooks: join, complete, error"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hooks_hear_of_members"),
    "hooks: message"
        => Test("crates/adjutant-orchestration/tests/team/seen.rs::hook_changes_or_denies_a_message"),
    "observing hooks know these types"
        => Test("crates/adjutant-agent/tests/hook_rules_watched.rs::points_of_upper_crates_are_declared_when_their_names_are_asked"),
};
