// What goes out: one batch of events a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/logprobs.h"
#include "core/types.h"

namespace fermata {

enum class EventKind : std::uint8_t {
    kWaiting,   // it cannot run yet, or not any more: `wait` says why; again when that changes
    kAdmitted,  // it runs: `reused` positions of `source` are there, the rest is prefilled
    kTokens,    // tokens were sampled; `text` is what may be shown now
    kProgress,  // prefill advanced
    kPromptLogprobs,  // `logprobs` are those of the prompt from position `prompt_from` on
    kToolCallReady,   // the arguments of call number `call_index` are complete
    kToolCallPause,   // the sequence is held: its round of calls is over, or the caller asked
    kExtended,        // tokens of a held sequence's extension were prefilled
    kFinished,
    kFailed,
};

enum class FinishReason : std::uint8_t { kEnd, kStopString, kLength, kCancelled, kReleased };
enum class PauseReason : std::uint8_t { kEndToken, kTextAfterCall, kRequested };

enum class WaitReason : std::uint8_t {
    kPlace,   // as many sequences run as may
    kPrefix,  // the sequence `behind` is computing the beginning of its prompt
    kFile,    // a file with the beginning of its prompt is being read, or written by another server
    kSlot,    // every slot is running or held, or would be taken from one that comes back
    kMoves,   // this step has moved enough cells between slots, RAM and files
    kReader,  // its reader has stopped
    kCells,   // it ran, and others took its cells
};

enum class FailCode : std::uint8_t {
    kContextLength,  // the prompt does not fit
    kLeaseExpired,   // a held sequence was not resumed in time
    kDecodeFailed,   // the backend refused the batch
    kOutOfCells,     // nothing left to evict
    kGrammarFailed,  // the grammar became too complex to go on with
    kClosed,         // the engine closed under it
    kInternal,
};

// Counts over the whole life of the sequence, all rounds together.
struct Usage {
    std::int32_t prompt_tokens = 0;   // of the submit
    std::int32_t cached_tokens = 0;   // taken from retained cells at admission
    std::int32_t resumed_tokens = 0;  // given by resume calls, the kept pending token included;
                                      // of a hold that ended otherwise, what had extended it
    std::int32_t prefilled_tokens =
        0;  // rows that entered the backend as prompt, resume or recompute
    std::int32_t recomputed_tokens = 0;  // of those: rows that had been resident before
    std::int32_t generated_tokens = 0;
};

struct Event {
    EventKind kind = EventKind::kTokens;
    SequenceId id = 0;
    std::vector<Token> tokens;            // kTokens: sampled tokens, end-of-generation included
    std::vector<TokenLogprobs> logprobs;  // kTokens, if asked for: of those that were sampled
    std::int32_t prompt_from = 0;         // kPromptLogprobs
    std::string text;  // kTokens, kToolCallPause, kFinished: bytes released, maybe not whole UTF-8
    std::int32_t call_index = 0;
    std::int32_t prefill_done = 0;  // kProgress: of this round's rows; kExtended: of its tokens
    std::int32_t prefill_total = 0;
    std::int32_t reused = 0;                    // kAdmitted
    PrefixSource source = PrefixSource::kNone;  // kAdmitted
    WaitReason wait = WaitReason::kPlace;       // kWaiting
    SequenceId behind = 0;                      // kWaiting; 0: no single sequence
    FinishReason finish = FinishReason::kEnd;
    PauseReason pause = PauseReason::kEndToken;
    FailCode fail = FailCode::kInternal;
    std::string message;         // kFailed
    std::string stop_string;     // kFinished by stop string: which
    Token stop_token = -1;       // kFinished: the token of the request that ended it; -1: none
    bool pending_token = false;  // kToolCallPause: a sampled token waits outside the cache
    Usage usage;                 // kToolCallPause, kFinished, kFailed
    // Core has no clock, the runtime sets them. kTokens: when its step ended. kWaiting, kAdmitted:
    // how long before that its step began.
    double at_ms = 0.0;
    double ago_ms = 0.0;
};

// What one step did. The runtime adds the time it took.
struct StepReport {
    std::int32_t prefill_rows = 0;
    std::int32_t decode_rows = 0;
    std::int32_t micro_batches = 0;
    std::int32_t copies = 0;  // slots copied whole (streams layout)
    double milliseconds = 0.0;
};

struct EventBatch {
    std::vector<Event> events;
    std::vector<StepReport> steps;  // steps since the last batch
};

// Gauges and counters; the engine's truth for stats() and /metrics.
struct EngineStats {
    std::int32_t running = 0, waiting = 0, held = 0;
    std::int32_t slots = 0, slots_retained = 0;
    std::int64_t cells_used = 0;      // referenced by running or held sequences
    std::int64_t cells_retained = 0;  // referenced only by retained prefixes
    std::int64_t cells_free = 0;
    std::int32_t ram_sequences = 0;  // that left their slots for RAM
    std::int64_t ram_bytes = 0, ram_limit = 0;
    std::int64_t ram_saves = 0, ram_restores = 0, ram_drops = 0, ram_moved_bytes = 0;
    std::int32_t disk_files = 0;  // of sequences, or on their way there
    std::int64_t disk_bytes = 0, disk_limit = 0;
    std::int64_t disk_saves = 0, disk_restores = 0;
    // By reason, see DiskCounts.
    std::int64_t disk_full = 0, disk_damaged = 0, disk_foreign = 0, disk_failed = 0, disk_busy = 0;
    std::string disk_fault;
    std::int32_t forks = 0;  // in RAM, within ram_limit; their bytes are not in ram_bytes
    std::int64_t fork_bytes = 0, fork_saves = 0, fork_uses = 0, fork_drops = 0;
    std::int64_t prompt_tokens = 0, cached_tokens = 0, prefilled_tokens = 0, generated_tokens = 0;
    std::int64_t recomputed_tokens = 0, resumed_tokens = 0;
    std::int64_t extended_tokens = 0;   // of the prefilled ones: while their sequence was held
    std::int64_t discarded_tokens = 0;  // of the extended ones: what came was something else
    std::int64_t drafted_rows = 0;      // beside the decode rows
    std::int64_t accepted_rows = 0;     // of those: what came was what they had
    std::int64_t draft_model_rows = 0;  // that a draft model computed
    std::int64_t steps = 0, micro_batches = 0, copies = 0, evictions = 0;
    std::int64_t audited_rows = -1;    // rows an AuditBackend saw; -1 = not audited
    std::int32_t compute_threads = 0;  // now; 0: the backend does not tell
    std::int64_t step_age_ms = 0;      // how long the current step runs; 0 while the thread is idle
};

}  // namespace fermata
