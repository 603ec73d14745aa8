// One generation, from submit to finished: its tokens, its place in the cache, its counters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/draft_gate.h"
#include "core/draft_index.h"
#include "core/event.h"
#include "core/guide.h"
#include "core/request.h"
#include "core/sampler.h"
#include "core/text_watcher.h"
#include "core/token_filter.h"
#include "core/types.h"

namespace fermata {

// waiting -> running -> finished, with any number of running -> held -> waiting in between.
// A finished sequence no longer exists.
enum class SequenceState : std::uint8_t {
    kWaiting,  // for admission: submitted, resumed or preempted
    kRunning,  // owns a running slot; has rows to decode
    kHeld,     // waits for resume under a lease; owns a held slot unless that was evicted
};

// Generated tokens whose rows are not computed: more than a grammar leaves no choice about.
inline constexpr std::int32_t kManyRows = 64;

// The expected beginning of a held sequence's resume.
struct Extension {
    std::vector<Token> tokens = {};
    bool keep_pending = true;
};

struct Sequence {
    SequenceId id = 0;
    SequenceState state = SequenceState::kWaiting;
    std::vector<Token> tokens;  // prompt, sampled and resumed, in order
    std::int32_t resident = 0;  // positions [0, resident) are in the cache
    std::int32_t resident_ever = 0;
    std::int32_t in_chunks = 0;      // of these, computed in chunks of CacheShape::fixed_chunk
    std::int64_t last_step = 0;      // last step with its rows, if the chunk is fixed
    std::int32_t held_resident = 0;  // resident_ever at the time of the hold
    // What extensions that were not what came have cost, of the whole sequence.
    std::int32_t rows_guessed_wrong = 0;
    Extension extension = {};  // while held: continues after `tokens`
    bool extendable = true;    // false: others took the cells of this hold's extension
    SlotId slot = kNoSlot;
    std::vector<std::int32_t> marks = {};  // ascending: lengths at which its slot is forked
    std::int32_t shared = 0;               // see SubmitRequest
    std::int32_t shares_at = 0;            // it computes these positions for other servers; 0: none
    std::uint64_t claim = 0;  // asked for while it waits, then its slot has it; 0: none
    Milliseconds awaits_others_since = -1;  // who compute `shared`; -1: it has not
    Milliseconds asks_since = -1;           // whether others do, without an answer; -1: it does not

    DraftIndex memory = {};           // of `tokens`, as far as drafts were looked for
    Draft proposal = {};              // of the current step
    std::int32_t said_by_model = 0;   // of its tokens, the first so many
    std::vector<Token> drafted = {};  // in the cache behind `resident`, while a step is sampled
    DraftRecord drafts = {};          // how often its proposals were right
    DraftAccount draft_account = {};  // what those of its own text may cost
    std::int32_t right_by_text = 0;   // of their rows, in the last step

    std::vector<Token> begun = {};  // of the request, until the first admission
    SamplingParams sampling = {};
    std::unique_ptr<Sampler> sampler = nullptr;  // since its first admission
    std::optional<Guide> guide = {};
    bool forced_tokens = true;
    std::deque<Token> forced = {};  // by the grammar, and not generated yet: the reader has stopped
    bool close_at_limit = false;
    std::unordered_map<Token, std::string> spelled = {};  // tokens whose text is not piece()
    TokenFilter filter;
    Token stop_token = -1;  // of the request, that ended it
    TextWatcher watcher;
    PauseTriggers pause;
    std::int32_t max_tokens = -1;
    std::int32_t window = 0;
    std::int32_t unacknowledged = 0;
    bool retain = true;
    Salt salt = 0;
    Milliseconds lease_ms = 0;
    Milliseconds hold_until = 0;  // while held: the end of the hold's lease
    std::int32_t top_logprobs = -1;
    bool post_sampling = false;
    std::int32_t prompt_logprobs = -1;
    std::int32_t prompt_size = 0;
    std::int32_t prompt_told =
        1;  // positions whose log-probabilities were told; the first has none
    std::optional<TokenLogprobs> logprobs = {};  // of the last sampled token
    std::vector<float> logits = {};              // of that token, while the guide decides
    bool pause_requested = false;
    bool admitted = false;       // at least once; cached tokens were counted then
    bool goes_first = false;     // gets a place first: resumed, preempted, or it has waited long
    std::int32_t lets_pass = 0;  // so many that came later, see save_what_waits
    Milliseconds yields_since = -1;  // to those whose cells it would take; -1: not yet
    bool suspected = false;          // a batch with its rows failed: it is decoded alone now
    Milliseconds waits_since = -1;   // for its first token of this round; -1: not seen yet
    std::optional<WaitReason> waits_for = {};  // as the last kWaiting said; none: it runs
    SequenceId waits_behind = 0;

    std::int32_t round_begin = 0;  // resident when this round's prefill began
    std::int32_t prefill_end = 0;  // rows before this index are prefill, after it decode
    std::int32_t generated_in_round = 0;
    Usage usage = {};

    std::int32_t size() const { return static_cast<std::int32_t>(tokens.size()); }
    std::int32_t rows_left() const { return size() - resident; }
    // Held sequences: tokens at the end were not in the cache at the time of the hold.
    bool has_pending() const { return size() > held_resident; }
    std::int32_t extension_begin() const { return size() - (extension.keep_pending ? 0 : 1); }
    std::int32_t rows_to_extend() const {
        if (extension.tokens.empty()) return 0;
        return extension_begin() + static_cast<std::int32_t>(extension.tokens.size()) - resident;
    }
    // The token at a position; extension included.
    Token token_at(std::int32_t position) const {
        const std::int32_t begin = extension_begin();
        return position < begin ? tokens[static_cast<std::size_t>(position)]
                                : extension.tokens[static_cast<std::size_t>(position - begin)];
    }
    // Rows up to the next mark or to what is shared, or all of them.
    std::int32_t rows_to_mark() const {
        const auto next = std::ranges::upper_bound(marks, resident);
        const std::int32_t rows = next == marks.end() ? rows_left() : *next - resident;
        return shares_at > resident ? std::min(rows, shares_at - resident) : rows;
    }
    bool prefilling() const { return resident < prefill_end; }
    // Rows of the prompt have logits to tell of: that at a position is of the token behind it.
    bool tells_prompt() const { return prompt_logprobs >= 0 && prompt_told < prompt_size; }
    bool tells_row(std::int32_t position) const {
        return tells_prompt() && position + 1 >= prompt_told && position + 1 < prompt_size;
    }
    // It takes its turn among prefills: so many known rows would hold up those that decode.
    bool reads() const { return prefilling() || rows_left() > kManyRows; }
    // Its reader has stopped.
    bool unread() const { return unacknowledged >= window; }
    bool throttled() const { return !prefilling() && unread(); }
    // Rows that may be decoded now. A throttled sequence keeps back the row that would be sampled.
    // None before it has shared what others wait for: that is written without what follows.
    std::int32_t rows_ready() const {
        if (shares_now()) return 0;
        return throttled() ? rows_left() - 1 : rows_left();
    }
    bool shares_now() const { return shares_at > 0 && resident >= shares_at; }
};

}  // namespace fermata
