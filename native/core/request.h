// What comes in: plain data that the binding has checked and the scheduler re-checks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/matcher.h"
#include "core/types.h"

namespace fermata {

// A penalty of multiplier * base ^ (length - allowed_length) for a token that would lengthen a
// repetition of `length` tokens.
struct DryParams {
    float multiplier = 0.0f;  // 0 = off
    float base = 1.75f;       // >= 1
    std::int32_t allowed_length = 2;
    std::int32_t penalty_last_n = 64;                 // tokens looked back on, >= 0
    std::vector<std::string> sequence_breakers = {};  // no repetition crosses them

    bool active() const { return multiplier != 0.0f && penalty_last_n > 0; }
    bool operator==(const DryParams&) const = default;
};

inline constexpr float kBanningBias = -100.0f;

// Which tokens may be sampled, and which end the text, beside a grammar and the end tokens of the
// model.
struct TokenRules {
    std::vector<Token> allowed = {};  // of these alone; empty: of all
    // Each: the last token is not sampled behind the others.
    std::vector<std::vector<Token>> banned = {};
    std::vector<Token> stop_tokens = {};  // end the text; what they spell is not emitted
    // Before so many were generated, neither end tokens nor stop tokens are sampled, and no stop
    // string counts.
    std::int32_t min_tokens = 0;
    bool keeps_stop = false;  // the stop string or token that ended the text is emitted
};

// Sampling parameters. Defaults are greedy, so that an empty struct is deterministic.
struct SamplingParams {
    float temperature = 0.0f;          // 0 = greedy
    std::int32_t top_k = 0;            // 0 = off
    float top_p = 1.0f;                // (0, 1], 1 = off
    float min_p = 0.0f;                // [0, 1), 0 = off
    float typical_p = 1.0f;            // (0, 1], 1 = off
    float repeat_penalty = 1.0f;       // > 0, 1 = off
    float frequency_penalty = 0.0f;    // [-2, 2]
    float presence_penalty = 0.0f;     // [-2, 2]
    std::int32_t penalty_last_n = 64;  // tokens the penalties look back on, >= 0
    float top_n_sigma = 0.0f;          // standard deviations below the best logit, 0 = off
    float xtc_probability = 0.0f;      // [0, 1], 0 = off
    float xtc_threshold = 0.1f;        // [0, 1], above 0.5 = off
    float dynatemp_range = 0.0f;       // >= 0, temperature +- range by entropy, 0 = off
    float dynatemp_exponent = 1.0f;    // >= 0
    std::int32_t mirostat = 0;         // 0 = off, 1, 2; takes the place of the filters above
    float mirostat_tau = 5.0f;
    float mirostat_eta = 0.1f;
    std::int32_t min_keep = 1;  // candidates that filters leave, >= 1
    DryParams dry = {};
    std::uint32_t seed = 0;
    std::vector<std::pair<Token, float>> logit_bias = {};  // kBanningBias or less bans
    bool ignores_end = false;  // no end token is sampled, unless a grammar allows nothing else
    TokenRules rules = {};
    // Scripted sampler: emits these tokens whatever the logits say, then an end-of-generation
    // token, or what the parameters above sample. For tests that must put chosen tokens through the
    // real engine.
    std::optional<std::vector<Token>> script = {};
    bool samples_after_script = false;
    // The prompt ends as the resume of a round that an earlier process held: what is drawn is what
    // it would have drawn.
    bool goes_on = false;
};

// When a generation is to be held for its tool calls.
struct PauseTriggers {
    std::string call_open = {};   // e.g. "<tool_call>"; empty = no marker in this format
    std::string call_close = {};  // e.g. "</tool_call>"; reaching it emits ToolCallReady
    // Hold on an end-of-generation token: kNever = finish; kAfterCall = hold if a call was closed,
    // else finish; kAlways = hold, the caller looks at the text (formats without markers).
    enum class HoldAtEnd : std::uint8_t { kNever, kAfterCall, kAlways };
    HoldAtEnd hold_at_end = HoldAtEnd::kNever;
    // The first non-blank text after a closed call that opens no further call ends the round.
    bool hold_at_text_after_call = false;
};

struct Limits {
    std::int32_t max_tokens =
        -1;  // generated tokens until finished(length); < 0 = to the end of the context
    std::int32_t window =
        4096;  // generated tokens that may wait unacknowledged before decode skips the sequence
};

struct SubmitRequest {
    SequenceId id = 0;
    std::vector<Token> prompt = {};  // 1 .. cells_per_sequence - 1 tokens
    // What an earlier process generated behind the prompt: it counts as generated, is told again
    // and is not sampled. Its rows are computed together, unless log-probabilities are asked for.
    std::vector<Token> begun = {};
    SamplingParams sampling = {};
    Limits limits = {};
    PauseTriggers pause = {};
    std::int32_t top_logprobs =
        -1;  // < 0: no log-probabilities; else of the token and so many more
    // The log-probabilities are those that the sampler drew by, not the model's own.
    bool post_sampling = false;
    // < 0: none of the prompt; else of each of its tokens but the first, and of so many more in its
    // place. Nothing of such a prompt is taken from the cache.
    std::int32_t prompt_logprobs = -1;
    std::vector<std::string> stop = {};  // non-empty strings; the text of a hit is not emitted
    // Lengths of the prompt, ascending, up to which other prompts may be equal. Models that cannot
    // be cut back anywhere can be cut back to these; for others they mean nothing.
    std::vector<std::int32_t> marks = {};
    // The prompt's first tokens that other prompts begin with too, such as its instructions and
    // tools; 0: not known. Servers that share files compute them once.
    std::int32_t shared = 0;
    bool retain = true;         // keep the cells for later requests when finished
    Salt salt = 0;              // cells are shared with requests of the same salt alone
    Milliseconds lease_ms = 0;  // > 0: pin softly for the caller's return (external tool rounds)
    // What is generated satisfies it from the first token on; nullptr: any text.
    std::shared_ptr<const Grammar> grammar = {};
    // Tokens that the grammar leaves no choice about enter the next batch unsampled.
    bool forced_tokens = true;
    // Near its limit the text is brought to an end along a short path that the grammar allows.
    bool close_at_limit = false;
    // Control tokens whose spelling is part of the text, in every round.
    std::vector<Token> spelled_tokens = {};
};

// What the tokens of a held sequence's resume will begin with, as far as that is known: they are
// prefilled while it is held. Each request takes the place of the one before it. What a later one
// or the resume turns out not to begin with leaves the cache again, so a wrong guess costs rows and
// changes nothing else.
struct ExtendRequest {
    SequenceId id = 0;
    std::vector<Token> tokens = {};  // from the first after the hold on; at least 1
    bool keep_pending = true;        // as the resume will have it
};

// Continues a held sequence. Only `tokens` and the pending token enter the backend, without those
// that an extension brought there already.
struct ResumeRequest {
    SequenceId id = 0;
    std::vector<Token> tokens = {};        // at least 1
    std::vector<std::int32_t> marks = {};  // as of a prompt, but lengths of `tokens`
    // The last sampled token is not yet in the cache. true = it stays before `tokens`;
    // false = it is dropped (an end token that the template writes differently).
    bool keep_pending = true;
    std::int32_t max_tokens = -1;  // for this round, as Limits::max_tokens
    // Begins afresh in this round; nullptr: any text. Absent: it goes on where the last round
    // stood, without that round's end token and without a pending token that is dropped.
    std::optional<std::shared_ptr<const Grammar>> grammar = {};
};

}  // namespace fermata
