#include "binding/replies.h"

#include <algorithm>

namespace fermata {

namespace {

const char* name_of(PauseReason reason) {
    switch (reason) {
        case PauseReason::kEndToken:
            return "end_token";
        case PauseReason::kTextAfterCall:
            return "text_after_call";
        case PauseReason::kRequested:
            return "requested";
    }
    return "";
}

const char* name_of(WaitReason reason) {
    switch (reason) {
        case WaitReason::kPlace:
            return "place";
        case WaitReason::kPrefix:
            return "prefix";
        case WaitReason::kFile:
            return "file";
        case WaitReason::kSlot:
            return "slot";
        case WaitReason::kMoves:
            return "moves";
        case WaitReason::kReader:
            return "reader";
        case WaitReason::kCells:
            return "cells";
    }
    return "";
}

const char* name_of(PrefixSource source) {
    switch (source) {
        case PrefixSource::kNone:
            return "none";
        case PrefixSource::kHold:
            return "hold";
        case PrefixSource::kSlot:
            return "slot";
        case PrefixSource::kCopy:
            return "copy";
        case PrefixSource::kRam:
            return "ram";
        case PrefixSource::kDisk:
            return "disk";
        case PrefixSource::kFork:
            return "fork";
    }
    return "";
}

const char* name_of(FinishReason reason) {
    switch (reason) {
        case FinishReason::kEnd:
            return "end";
        case FinishReason::kStopString:
            return "stop_string";
        case FinishReason::kLength:
            return "length";
        case FinishReason::kCancelled:
            return "cancelled";
        case FinishReason::kReleased:
            return "released";
    }
    return "";
}

const char* name_of(FailCode code) {
    switch (code) {
        case FailCode::kContextLength:
            return "context_length";
        case FailCode::kLeaseExpired:
            return "lease_expired";
        case FailCode::kDecodeFailed:
            return "decode_failed";
        case FailCode::kOutOfCells:
            return "out_of_cells";
        case FailCode::kGrammarFailed:
            return "grammar_failed";
        case FailCode::kClosed:
            return "closed";
        case FailCode::kInternal:
            return "internal";
    }
    return "";
}

void set_number(Napi::Object& object, const char* name, double value) {
    object.Set(name, Napi::Number::New(object.Env(), value));
}

Napi::Object from_usage(Napi::Env env, const Usage& usage) {
    Napi::Object object = Napi::Object::New(env);
    set_number(object, "promptTokens", usage.prompt_tokens);
    set_number(object, "cachedTokens", usage.cached_tokens);
    set_number(object, "resumedTokens", usage.resumed_tokens);
    set_number(object, "prefilledTokens", usage.prefilled_tokens);
    set_number(object, "recomputedTokens", usage.recomputed_tokens);
    set_number(object, "generatedTokens", usage.generated_tokens);
    return object;
}

template <class Items, class Convert>
Napi::Array from_list(Napi::Env env, const Items& items, Convert convert) {
    Napi::Array array = Napi::Array::New(env, items.size());
    std::uint32_t index = 0;
    for (const auto& item : items)
        array.Set(index++, convert(env, item));
    return array;
}

Napi::Object from_logprobs(Napi::Env env, const TokenLogprobs& logprobs) {
    Napi::Object object = Napi::Object::New(env);
    set_number(object, "logprob", static_cast<double>(logprobs.logprob));
    object.Set("top", from_list(env, logprobs.top, [](Napi::Env e, const auto& candidate) {
                   Napi::Array pair = Napi::Array::New(e, 2);
                   pair.Set(0u, Napi::Number::New(e, candidate.first));
                   pair.Set(1u, Napi::Number::New(e, static_cast<double>(candidate.second)));
                   return pair;
               }));
    return object;
}

Napi::Object from_event(Napi::Env env, const Event& event) {
    Napi::Object object = Napi::Object::New(env);
    set_number(object, "id", static_cast<double>(event.id));
    switch (event.kind) {
        case EventKind::kWaiting:
            object.Set("kind", "waiting");
            object.Set("reason", name_of(event.wait));
            set_number(object, "behind", static_cast<double>(event.behind));
            set_number(object, "ago", event.ago_ms);
            break;
        case EventKind::kAdmitted:
            object.Set("kind", "admitted");
            set_number(object, "reused", event.reused);
            set_number(object, "ago", event.ago_ms);
            object.Set("source", name_of(event.source));
            set_number(object, "total", event.prefill_total);
            break;
        case EventKind::kTokens:
            object.Set("kind", "tokens");
            object.Set("tokens", from_tokens(env, event.tokens));
            object.Set("text", from_bytes(env, event.text));
            set_number(object, "at", event.at_ms);
            if (!event.logprobs.empty())
                object.Set("logprobs", from_list(env, event.logprobs, from_logprobs));
            break;
        case EventKind::kProgress:
            object.Set("kind", "progress");
            set_number(object, "done", event.prefill_done);
            set_number(object, "total", event.prefill_total);
            break;
        case EventKind::kPromptLogprobs:
            object.Set("kind", "prompt_logprobs");
            set_number(object, "from", event.prompt_from);
            object.Set("logprobs", from_list(env, event.logprobs, from_logprobs));
            break;
        case EventKind::kToolCallReady:
            object.Set("kind", "tool_call_ready");
            set_number(object, "callIndex", event.call_index);
            break;
        case EventKind::kToolCallPause:
            object.Set("kind", "tool_call_pause");
            object.Set("reason", name_of(event.pause));
            object.Set("text", from_bytes(env, event.text));
            object.Set("pendingToken", event.pending_token);
            object.Set("usage", from_usage(env, event.usage));
            break;
        case EventKind::kExtended:
            object.Set("kind", "extended");
            set_number(object, "done", event.prefill_done);
            set_number(object, "total", event.prefill_total);
            break;
        case EventKind::kFinished:
            object.Set("kind", "finished");
            object.Set("reason", name_of(event.finish));
            object.Set("text", from_bytes(env, event.text));
            object.Set("stopString", event.stop_string);
            if (event.stop_token >= 0) set_number(object, "stopToken", event.stop_token);
            object.Set("usage", from_usage(env, event.usage));
            break;
        case EventKind::kFailed:
            object.Set("kind", "failed");
            object.Set("code", name_of(event.fail));
            object.Set("message", event.message);
            object.Set("usage", from_usage(env, event.usage));
            break;
    }
    return object;
}

Napi::Object from_step(Napi::Env env, const StepReport& step) {
    Napi::Object object = Napi::Object::New(env);
    set_number(object, "prefillRows", step.prefill_rows);
    set_number(object, "decodeRows", step.decode_rows);
    set_number(object, "microBatches", step.micro_batches);
    set_number(object, "copies", step.copies);
    set_number(object, "milliseconds", step.milliseconds);
    return object;
}

Napi::Object from_special_token(Napi::Env env, const SpecialToken& token) {
    Napi::Object object = Napi::Object::New(env);
    set_number(object, "id", token.id);
    object.Set("text", token.text);
    object.Set("kind", token.kind == SpecialKind::kControl ? "control" : "user_defined");
    return object;
}

}  // namespace

Napi::Object from_batch(Napi::Env env, const EventBatch& batch) {
    Napi::Object object = Napi::Object::New(env);
    object.Set("events", from_list(env, batch.events, from_event));
    object.Set("steps", from_list(env, batch.steps, from_step));
    return object;
}

Napi::Object from_stats(Napi::Env env, const EngineStats& stats) {
    Napi::Object object = Napi::Object::New(env);
    const auto set = [&](const char* name, std::int64_t value) {
        set_number(object, name, static_cast<double>(value));
    };
    set("running", stats.running);
    set("waiting", stats.waiting);
    set("held", stats.held);
    set("slots", stats.slots);
    set("slotsRetained", stats.slots_retained);
    set("cellsUsed", stats.cells_used);
    set("cellsRetained", stats.cells_retained);
    set("cellsFree", stats.cells_free);
    set("ramSequences", stats.ram_sequences);
    set("ramBytes", stats.ram_bytes);
    set("ramLimit", stats.ram_limit);
    set("ramSaves", stats.ram_saves);
    set("ramRestores", stats.ram_restores);
    set("ramDrops", stats.ram_drops);
    set("ramMovedBytes", stats.ram_moved_bytes);
    set("diskFiles", stats.disk_files);
    set("diskBytes", stats.disk_bytes);
    set("diskLimit", stats.disk_limit);
    set("diskSaves", stats.disk_saves);
    set("diskRestores", stats.disk_restores);
    set("diskFull", stats.disk_full);
    set("diskDamaged", stats.disk_damaged);
    set("diskForeign", stats.disk_foreign);
    set("diskFailed", stats.disk_failed);
    set("diskBusy", stats.disk_busy);
    object.Set("diskFault", Napi::String::New(env, stats.disk_fault));
    set("forks", stats.forks);
    set("forkBytes", stats.fork_bytes);
    set("forkSaves", stats.fork_saves);
    set("forkUses", stats.fork_uses);
    set("forkDrops", stats.fork_drops);
    set("promptTokens", stats.prompt_tokens);
    set("cachedTokens", stats.cached_tokens);
    set("prefilledTokens", stats.prefilled_tokens);
    set("generatedTokens", stats.generated_tokens);
    set("recomputedTokens", stats.recomputed_tokens);
    set("resumedTokens", stats.resumed_tokens);
    set("extendedTokens", stats.extended_tokens);
    set("discardedTokens", stats.discarded_tokens);
    set("draftedRows", stats.drafted_rows);
    set("acceptedRows", stats.accepted_rows);
    set("draftModelRows", stats.draft_model_rows);
    set("steps", stats.steps);
    set("microBatches", stats.micro_batches);
    set("copies", stats.copies);
    set("evictions", stats.evictions);
    set("auditedRows", stats.audited_rows);
    set("computeThreads", stats.compute_threads);
    set("stepAgeMs", stats.step_age_ms);
    return object;
}

Napi::Object from_model_info(Napi::Env env, const ModelInfo& info) {
    Napi::Object object = Napi::Object::New(env);
    object.Set("description", info.description);
    object.Set("architecture", info.architecture);
    set_number(object, "parameterCount", static_cast<double>(info.parameter_count));
    set_number(object, "sizeBytes", static_cast<double>(info.size_bytes));
    set_number(object, "vocabularySize", info.vocabulary_size);
    set_number(object, "vocabularyType", info.vocabulary_type);
    set_number(object, "embeddingSize", info.embedding_size);
    object.Set("fileType", info.file_type);
    set_number(object, "trainedContext", info.trained_context);
    object.Set("chatTemplate",
               info.chat_template ? Napi::Value::From(env, *info.chat_template) : env.Null());
    object.Set("bosToken", info.bos_token);
    object.Set("eosToken", info.eos_token);
    object.Set("addBos", info.add_bos);
    object.Set("specialTokens", from_list(env, info.special_tokens, from_special_token));
    object.Set("isRecurrent", info.is_recurrent);
    return object;
}

Napi::Object from_cache(Napi::Env env, const CacheShape& shape, std::uint64_t bytes) {
    Napi::Object object = Napi::Object::New(env);
    object.Set("layout", shape.layout == CacheLayout::kStreams ? "streams" : "unified");
    set_number(object, "slots", shape.slot_count);
    set_number(object, "cellsPerSequence", shape.cells_per_sequence);
    set_number(object, "cellsTotal", static_cast<double>(shape.cells_total));
    set_number(object, "bytes", static_cast<double>(bytes));
    object.Set("cutsAnywhere", shape.partial_truncate);
    return object;
}

Napi::Int32Array from_tokens(Napi::Env env, std::span<const Token> tokens) {
    Napi::Int32Array array = Napi::Int32Array::New(env, tokens.size());
    std::copy(tokens.begin(), tokens.end(), array.Data());
    return array;
}

Napi::Uint8Array from_bytes(Napi::Env env, std::string_view bytes) {
    Napi::Uint8Array array = Napi::Uint8Array::New(env, bytes.size());
    std::copy(bytes.begin(), bytes.end(), array.Data());
    return array;
}

}  // namespace fermata
