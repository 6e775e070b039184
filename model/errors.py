"""The one exception that carries a sentence for a person, and the table of those sentences.

A sentence says what is wrong and what to change. The user interface translates by ``code`` and
fills in the same ``values``; ``str(error)`` is the English sentence. Where several changes would
help, the value ``hints`` holds them as ``((code, values), ...)``, sentences of the same table.
"""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: dict[str, str] = {
    # workload
    "not_a_number": "{field} is {value!r}; give a number.",
    "not_a_whole_number": "{field} is {value}; give a whole number.",
    "out_of_range": "{field} is {value}; it must be between {low:,} and {high:,}.",
    "unknown_choice": "{field} is {value!r}; choose one of {choices}.",
    "low_above_high": "{field}: the lowest value {low:,} is above the highest {high:,}; swap them.",
    "quantiles_shape": "{field} must be pairs (share, tokens) whose shares rise from 0 to 1 and "
    "whose tokens never fall; give at least two pairs.",
    "no_streams": "The workload is empty; give it at least one stream of requests.",
    "stream_name": "A stream is called {name!r}; begin the name with a letter or digit, use only "
    "letters, digits, spaces and . # / + - after it, 64 at most.",
    "stream_names": "Two streams are called {name!r}; give each stream a name of its own.",
    "too_many_requests": "The workload has {n_requests:,} requests; at most {limit:,} can be "
    "simulated at once.",
    "prefix_incomplete": "Stream {name!r} shares {tokens:,} prefix tokens among {groups:,} groups; "
    "give both numbers, or set both to 0.",
    "closed_loop_alone": "Stream {name!r} is a closed loop (a request arrives when another ends), "
    "so it cannot be mixed with other streams; simulate it alone.",
    "closed_loop_turns": "Stream {name!r} is a closed loop, whose users never follow up; set its "
    "turns to 1, or let its conversations arrive.",
    "follows_wrong": "Request {row:,}: follows is {value}; it must name an earlier request that no "
    "other one follows, and have no arrival_s.",
    "closed_loop_patience": "Stream {name!r} is a closed loop; its users wait for their answer, "
    "so remove patience_s.",
    "columns_differ": "Column {column} has {rows:,} rows and arrival_s has {expected:,}; give "
    "every request a value.",
    "request_out_of_range": "Request {row:,}: {column} is {value}; it must be between {low:,} "
    "and {high:,}.",
    "prefix_longer_than_prompt": "Request {row:,}: {value:,} shared prefix tokens are more than "
    "its prompt; lower shared_prefix_tokens or lengthen the prompt.",
    "unknown_class": "Request {row:,}: request_class is {value}, but there are only {classes:,} "
    "class names; name the class or change the number.",
    "cancel_before_arrival": "Request {row:,}: cancel_s is {value}, before the request arrives; "
    "give a later time, or leave it empty.",
    "closed_loop_arrivals": "Request {row:,}: arrival_s is {value}; in a closed loop the first "
    "{users:,} requests have a time and the others none.",
    # numbers and choices of a scenario
    "not_finite": "{field} is {value}; give a finite number.",
    "not_a_choice_of_ids": "There is no {what} {value!r}; choose one of {choices}.",
    # scenario
    "model_needed": "The {clock} clock needs a model and hardware; choose both.",
    "model_without_hardware": "A model and hardware go together; choose both, or leave both out.",
    "kv_size_needed": "Without a model the size of the KV cache is unknown; set memory.kv_blocks.",
    "kv_size_twice": "memory.kv_blocks and memory.kv_gib both give the size of the KV cache; "
    "give only one.",
    "tensor_parallel_heads": "{model} has {heads} attention heads and {kv_heads} KV heads, which "
    "{gpus} GPUs cannot share evenly; set tensor_parallel to one of {choices}.",
    "context_above_model": "memory.max_model_len is {tokens:,} tokens and {model} was made for "
    "{limit:,}; set it to {limit:,} or less, or choose another model.",
    "swap_above_host": "{field} asks for {asked_gb:,.0f} GB of host memory and there are "
    "{host_gb:,.0f} GB; set it to {limit:,} or less.",
    "pool_without_decode": "{prefill} of {engines} engines only prefill, so nobody decodes; set "
    "n_engines above {prefill}, or cluster.prefill_engines lower.",
    "pool_policy": "{policy} cannot take in requests whose KV arrives while it runs; choose "
    "another policy, or set cluster.prefill_engines to 0.",
    "trace_name": "A trace needs a name of 1 to 200 characters; give it one.",
    "trace_hash": "The SHA-256 of trace {name!r} must be 64 digits 0-9 and a-f; upload the trace "
    "again.",
    "trace_needed": "The requests of trace {name!r} do not travel with the scenario; upload the "
    "trace again.",
    # memory
    "model_does_not_fit": "{model} needs {weights_gb:.0f} GB for weights; {gpus} × {gpu_gb:.0f} GB "
    "leave no room for KV: {hints}.",
    "no_whole_block": "{model} leaves {kv_bytes:,.0f} bytes for KV, less than one block of "
    "{block_size} tokens ({block_bytes:,.0f} bytes): {hints}.",
    "kv_above_memory": "{kv_gb:.1f} GB of KV and {weights_gb:.1f} GB of weights do not fit in "
    "{gpus} × {gpu_gb:.0f} GB: {hints}.",
    "context_does_not_fit": "A context of {tokens:,} tokens needs {needed:,} KV blocks of "
    "{block_size}, but the {blocks:,} blocks hold only {held:,} tokens: {hints}.",
    "hint_or": ", or ",
    "hint_max_model_len": "reduce memory.max_model_len to {tokens:,}",
    "hint_utilization": "raise memory.gpu_memory_utilization to {value:.2f}",
    "hint_kv_dtype": "set memory.kv_dtype to {dtype}",
    "hint_weight_dtype": "set memory.weight_dtype to {dtype}",
    "hint_gpus": "use {gpus} GPUs",
    "hint_kv_blocks": "set memory.kv_blocks to {blocks:,}",
    "hint_kv_gib": "set memory.kv_gib to {gib:,.2f}",
    "hint_device": "choose a GPU with more memory",
    # JSON of a scenario
    "requests_needed": "A recording's config says nothing of its requests; give --requests FILE.",
    "max_model_len_needed": "{policy} reserves memory for the longest request, and nothing says "
    "how long that is; set memory.max_model_len.",
    "film_too_long": "The film can hold {limit:,} days of simulated time and the run has {days:,}; "
    "raise the arrival rate or leave requests out.",
    "too_many_iterations": "The run has more than {limit:,} iterations and was stopped; use fewer "
    "requests or shorter answers.",
    "json_syntax": "This is not JSON ({reason}); correct it or export the scenario again.",
    "json_type": "{field} should be {expected}, not {found}.",
    "json_unknown_key": "{field} is not known; allowed here: {allowed}.",
    "json_missing_key": "{field} is missing; add it.",
    "json_version": "The scenario has version {found} and this program reads {expected}; "
    "export it again with this program.",
    # parameters and sweeps
    "parameter_unknown": "This scenario has no parameter {path!r}; choose one of those it lists.",
    "no_rate": "No stream of this workload has a rate (a trace, a closed loop or all at once); "
    "vary another parameter.",
    "sweep_of_seeds": "The seed is what a sweep repeats every value with; vary another parameter "
    "and give several seeds.",
    # bundles
    "bundle_not_one": "This is not a scenario bundle of this program; choose the .zip file that "
    "it gave you, unchanged.",
    "bundle_broken": "The bundle is damaged, encrypted or packed in an unusual way; download it "
    "again and upload it unchanged.",
    "bundle_version": "The bundle has version {found} and this program reads {expected}; make it "
    "again with this program.",
    "bundle_unexpected_file": "The bundle holds {name!r}, which does not belong there; upload it "
    "as it was downloaded.",
    "bundle_file_missing": "The bundle lacks {name}; download it again.",
    "bundle_hash": "{name} in the bundle is not the file that was written; download the bundle "
    "again, or make a new one instead of changing it by hand.",
    "bundle_too_large": "The {name} is too large; at most {limit_mb:,.1f} MB fit.",
    "bundle_not_text": "{name} in the bundle is not UTF-8 text; download the bundle again.",
    "bundle_trace_differs": "The trace {name!r} has {expected:,} requests and there are {found:,}; "
    "use the requests that belong to this scenario.",
    "bundle_label": "{column} {value!r} could run as a formula or has odd characters; give it "
    "a name of letters, digits and . # / + -, 64 at most.",
    "bundle_columns": "The first line of requests.csv must name arrival_s, prompt_tokens and "
    "output_tokens, and may name others of: {columns}.",
    "bundle_row": "requests.csv, line {line:,}: it must have {expected:,} values; download the "
    "bundle again.",
    "bundle_cell": "requests.csv, line {line:,}: {column} is {value!r}, which cannot be read; "
    "download the bundle again.",
    # vLLM command lines
    "vllm_too_long": "This is too long for a command line; paste at most {limit:,} characters.",
    "vllm_quotes": "A quote is opened and never closed; close it, or paste the whole command.",
    "vllm_not_a_command": "{value!r} does not start a vLLM server; paste a line that begins with "
    "vllm serve MODEL, python -m vllm.entrypoints.openai.api_server, or a flag.",
    "vllm_value_missing": "{flag} has no value, so vLLM would refuse it; give one. The default is "
    "used here.",
    "vllm_bad_value": "{flag} is {value!r}; give {expected}. The default is used here.",
    "vllm_other_engine": "{flag} belongs to {engine}, and this command starts {other}, which "
    "refuses it; remove it, or set VLLM_USE_V1={switch}.",
    "vllm_no_model": "The command names no model, so {model} stays; write it after vllm serve.",
    "vllm_model_unknown": "The model {value!r} is not in the catalogue, so {model} stays; choose "
    "the most similar one.",
    "vllm_tokens_below_seqs": "max_num_batched_tokens is {tokens:,}, below max_num_seqs of "
    "{seqs:,}: vLLM refuses to start; raise the first or lower the second.",
    "vllm_tokens_below_context": "Without chunked prefill max_num_batched_tokens of {tokens:,} "
    "must reach the context limit of {context:,} tokens: vLLM refuses to start; raise it, or "
    "lower max_model_len.",
    "vllm_no_command": "{policy} is not a vLLM scheduler, so no vLLM command gives it; choose "
    "vllm-v1 or vllm-v0.",
    "vllm_model_needed": "A vLLM command names a model, and this scenario has none; choose one.",
    # traces: the whole file
    "trace_unreadable": "The file {name} cannot be read; check that it exists and is a file.",
    "trace_empty": "The file is empty; give a trace with at least one request.",
    "trace_binary": "The file is not text; save the trace as CSV or JSON lines in UTF-8.",
    "trace_packed": "The file is packed or a workbook ({kind}); unpack it, or save it as CSV.",
    "trace_json_array": "The file is one JSON list; write one JSON object on each line instead.",
    "trace_unknown": "The first line is {value!r}, which names no known columns. Give those of an "
    "Azure trace (TIMESTAMP, ContextTokens, GeneratedTokens), of BurstGPT (Timestamp, Request "
    "tokens, Response tokens), of this lab (arrival_s, prompt_tokens, output_tokens), or "
    "Mooncake's JSON lines.",
    "trace_missing_columns": "The first line looks like the {format} format but does not name the "
    "column {columns}; add it.",
    "trace_column_twice": "The first line names the column {column} twice; remove or rename one.",
    "trace_nothing_left": "None of the {refused:,} lines is a request (the first fault is on line "
    "{line:,}); nothing was read.",
    # traces: one line
    "trace_columns": "Line {line:,} has {cells:,} values where the header names {expected:,}; it "
    "was left out.",
    "trace_line_long": "Line {line:,} is longer than {limit:,} characters; it was left out.",
    "trace_empty_cell": "Line {line:,}: {column} is empty; the line was left out.",
    "trace_not_a_number": "Line {line:,}: {column} is {value!r}, not a number; the line was left "
    "out.",
    "trace_not_whole": "Line {line:,}: {column} is {value}, not a whole number; the line was left "
    "out.",
    "trace_not_a_date": "Line {line:,}: {column} is {value!r}, not a date and time such as "
    "2023-11-16 18:17:03.97; the line was left out.",
    "trace_out_of_range": "Line {line:,}: {column} is {value}, not between {low:,} and {high:,}; "
    "the line was left out.",
    "trace_time_far": "Line {line:,}: its time is {days:,} days away from the middle of the trace; "
    "the line was left out.",
    "trace_failed_request": "Line {line:,}: the request failed (0 response tokens); it was left "
    "out.",
    "trace_cancel_early": "Line {line:,}: cancel_s is {value}, before the request arrives; the "
    "line was left out.",
    "trace_prefix_long": "Line {line:,}: shared_prefix_tokens is {value:,}, more than the prompt "
    "of {prompt:,}; the line was left out.",
    "trace_prefix_group": "Line {line:,}: shared_prefix_tokens is {value:,} but prefix_group is "
    "empty; the line was left out.",
    "trace_same_id": "Line {line:,}: request_id {value!r} was already used on line {first:,}; the "
    "line was left out.",
    "trace_not_json": "Line {line:,} is not a complete JSON object; it was left out.",
    # scheduling
    "lab_nobody_outranks": "A waiting request can evict a running one only if it is more "
    "important; set queue_order to priority, or evict_for_waiting to false.",
    "lab_evicts_without_preemption": "Without preemption nobody can be evicted for a waiting "
    "request; choose another preemption_mode, or set evict_for_waiting to false.",
    "host_memory_full": "Request {request} must be swapped out: it needs {needed:,} blocks of host "
    "memory and {free:,} of {total:,} are free; here the real engine aborts. Raise swap_space_gib "
    "(or num_cpu_blocks), or set preemption_mode to recompute.",
    "trace_missing_key": "Line {line:,} has no {column}; it was left out.",
    "trace_too_many": "Line {line:,} and those after it were left out: at most {limit:,} requests "
    "are read.",
    # traces: notes that cost no line
    "trace_label": "Line {line:,}: the request_id {value!r} could run as a formula or has odd "
    "characters; the request got another name.",
    "trace_hash_ids": "Line {line:,}: hash_ids is not a list of whole numbers; the request was "
    "kept without its prefix.",
    "trace_hash_count": "Line {line:,}: {ids:,} hash_ids do not cover a prompt of {blocks:,} "
    "blocks; the request was kept without its prefix.",
    "trace_unsorted": "Line {line:,}: the time goes back ({times:,} times in the file); the "
    "requests were sorted by time.",
    "trace_unused_column": "Line {line:,}: the column {column!r} is not known; it was not used.",
}


class LabError(ValueError):
    """A fault that the user can mend.

    ``code`` is a key of :data:`MESSAGES`, stable and language neutral; ``values`` are the numbers
    of the sentence.
    """

    def __init__(self, code: str, **values: object) -> None:
        self.code = code
        self.values = values
        super().__init__(code)

    def __str__(self) -> str:
        return sentence(self.code, self.values)

    def __reduce__(self):  # keeps the values when the error crosses a process boundary
        return _rebuild, (self.code, self.values)


def _rebuild(code: str, values: dict[str, object]) -> LabError:
    return LabError(code, **values)


def sentence(
    code: str, values: Mapping[str, object], messages: Mapping[str, str] = MESSAGES
) -> str:
    """The message ``code`` with its numbers; ``messages`` may be a translated table."""
    filled = dict(values)
    if "hints" in filled:
        parts = [sentence(hint, numbers, messages) for hint, numbers in filled["hints"]]
        filled["hints"] = messages["hint_or"].join(parts)
    return messages[code].format(**filled)
