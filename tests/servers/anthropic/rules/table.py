"""All rules, in the order in which the API would name their faults.

A group is judged only when the groups before it found nothing: pairing means little in a malformed body.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from tests.servers.anthropic.ask import Ask
from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.rules import (
    blocks,
    caching,
    content,
    media,
    pairing,
    request,
    server_tools,
    tail,
    thinking,
    tools,
    version,
)

Rule = Callable[[Ask], Iterable[Fault]]

SHAPE: tuple[Rule, ...] = (
    request.only_known_keys,
    version.sampling_parameters_are_gone,
    request.the_model_is_named,
    request.max_tokens_is_positive,
    request.messages_are_messages,
    request.the_system_prompt_is_text,
    request.sampling_is_in_range,
    request.stream_is_a_flag,
    tools.tools_are_declared_well,
    tools.tool_names_are_unique,
    tools.tool_choice_is_well_formed,
)

SCHEMA: tuple[Rule, ...] = (
    blocks.block_types_are_known,
    blocks.blocks_carry_no_extra_keys,
    blocks.blocks_are_complete,
    blocks.thinking_is_complete,
    blocks.ids_are_well_formed,
    blocks.call_names_are_short,
    blocks.inputs_are_objects,
    media.images_are_what_they_say,
)

MEANING: tuple[Rule, ...] = (
    request.thinking_is_of_a_kind_the_model_takes,
    request.the_thinking_budget_fits,
    request.sampling_fits_the_model,
    request.the_output_fits_the_model,
    tools.forced_tools_exclude_thinking,
    tools.bedrock_wants_tools_declared,
    tail.the_user_speaks_first,
    pairing.blocks_are_in_the_right_role,
    version.assistants_send_no_documents,
    version.users_cite_nothing,
    pairing.call_ids_are_unique,
    pairing.calls_of_a_turn_are_not_split,
    pairing.results_of_a_batch_are_not_split,
    pairing.roles_alternate,
    pairing.client_calls_come_last,
    pairing.calls_are_answered,
    pairing.results_answer_the_turn_before,
    pairing.each_call_has_one_result,
    server_tools.server_results_follow_their_call,
    server_tools.server_calls_are_finished,
    server_tools.tool_references_are_declared,
    server_tools.programmatic_calls_name_their_container,
    caching.few_breakpoints,
    caching.no_breakpoint_on_empty_text,
    caching.long_lived_breakpoints_come_first,
    content.messages_are_not_empty,
    content.texts_are_not_empty,
    content.texts_are_not_blank,
    content.error_results_say_something,
    content.no_nul,
    thinking.signatures_are_valid,
    thinking.the_running_loop_starts_with_thinking,
    thinking.latest_thinking_is_unchanged,
    tail.only_old_models_take_a_prefill,
    tail.a_prefill_needs_thinking_for_its_thoughts,
    tail.a_prefill_has_no_trailing_whitespace,
    media.many_images_are_small,
    request.the_prompt_fits_the_window,
)

RULES: Mapping[str, Rule] = {rule.__name__: rule for rule in chain(SHAPE, SCHEMA, MEANING)}


def judge(ask: Ask) -> list[Fault]:
    """Every fault of the first group that finds any; empty for a request that the API takes."""
    for group in (SHAPE, SCHEMA, MEANING):
        if faults := [fault for rule in group for fault in rule(ask)]:
            return faults
    return []
