// Commands of callers, applied between two steps.
#include "core/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fermata {

namespace {

// No request has one from here on.
constexpr Salt kOwnSalt = Salt{1} << 63;

}  // namespace

void Scheduler::submit(SubmitRequest request) {
    TokenFilter filter(std::exchange(request.sampling.rules, {}));
    const bool tells_prompt = request.prompt_logprobs >= 0;
    const bool keeps_stop = filter.keeps_stop();
    SequencePtr sequence(new Sequence{
        .id = request.id,
        .tokens = std::move(request.prompt),
        .marks = std::move(request.marks),
        .shared = tells_prompt || !request.retain ? 0 : request.shared,
        .begun = std::move(request.begun),
        .sampling = std::move(request.sampling),
        .forced_tokens = request.forced_tokens,
        .close_at_limit = request.close_at_limit,
        .filter = std::move(filter),
        .watcher = TextWatcher(std::move(request.stop), request.pause, keeps_stop),
        .pause = request.pause,
        .max_tokens = request.limits.max_tokens,
        .window = request.limits.window,
        .retain = request.retain && !tells_prompt,
        // Every row of it is computed, so it shares none.
        .salt = tells_prompt ? kOwnSalt + request.id : request.salt,
        .lease_ms = tells_prompt ? 0 : request.lease_ms,
        .top_logprobs = request.top_logprobs,
        .post_sampling = request.post_sampling,
        .prompt_logprobs = request.prompt_logprobs,
    });
    Sequence& added = *sequence;
    // Registered first, so anything that throws below fails it by event.
    sequences_[added.id] = std::move(sequence);
    if (request.grammar) added.guide.emplace(std::move(request.grammar));
    for (const Token token : request.spelled_tokens) {
        added.spelled.emplace(token, backend_.spelled_piece(token));
    }
    added.usage.prompt_tokens = added.size();
    added.prompt_size = added.size();
    totals_.prompt_tokens += added.size();
    if (added.size() >= shape_.cells_per_sequence) {
        fail(added, FailCode::kContextLength,
             "the prompt has " + std::to_string(added.size()) + " tokens; the context holds " +
                 std::to_string(shape_.cells_per_sequence) + " with the answer");
        return;
    }
    added.prefill_end = added.size();
    added.lets_pass = static_cast<std::int32_t>(waiting_.size() + running_.size());
    waiting_.push_back(added.id);
}

void Scheduler::resume(ResumeRequest request) {
    Sequence* sequence = find(request.id);
    if (sequence == nullptr || sequence->state != SequenceState::kHeld) {
        return;
    }
    const bool dropped = !request.keep_pending && sequence->has_pending();
    if (request.grammar) {
        sequence->guide.reset();
        if (*request.grammar) sequence->guide.emplace(std::move(*request.grammar));
    } else if (sequence->guide && (dropped || backend_.is_end(sequence->tokens.back()))) {
        sequence->guide->rollback(1);
    }
    const Extension whole{.tokens = std::move(request.tokens), .keep_pending = !dropped};
    const std::int32_t end =
        sequence->size() - (dropped ? 1 : 0) + static_cast<std::int32_t>(whole.tokens.size());
    // The last row is always computed now, because its logits are needed.
    keep_agreed(*sequence, whole, end - 1);
    sequence->extension = {};
    std::erase(extending_, sequence->id);
    if (dropped) {
        sequence->tokens.pop_back();
        sequence->memory.shorten(sequence->size());
        sequence->sampler->observe_anew(sequence->tokens);
    }
    const std::int32_t known = std::min(sequence->size(), sequence->held_resident);
    if (end >= shape_.cells_per_sequence) {
        fail(*sequence, FailCode::kContextLength,
             "the sequence and its tool results do not fit the context of " +
                 std::to_string(shape_.cells_per_sequence) + " tokens");
        return;
    }
    sequence->marks.clear();
    for (const std::int32_t mark : request.marks)
        sequence->marks.push_back(sequence->size() + mark);
    sequence->tokens.insert(sequence->tokens.end(), whole.tokens.begin(), whole.tokens.end());
    sequence->sampler->observe(whole.tokens);
    sequence->sampler->begin_round(sequence->size());
    sequence->watcher.begin_round();
    sequence->max_tokens = request.max_tokens;
    sequence->generated_in_round = 0;
    sequence->pause_requested = false;
    sequence->prefill_end = sequence->size();
    sequence->usage.resumed_tokens += sequence->size() - known;
    totals_.resumed_tokens += sequence->size() - known;
    sequence->goes_first = true;
    sequence->waits_since = -1;
    sequence->state = SequenceState::kWaiting;
    const auto first_new = std::find_if(waiting_.begin(), waiting_.end(), [this](SequenceId id) {
        return !sequences_.at(id)->goes_first;
    });
    waiting_.insert(first_new, sequence->id);
}

void Scheduler::release(SequenceId id, Milliseconds now) {
    Sequence* sequence = find(id);
    if (sequence != nullptr && sequence->state == SequenceState::kHeld) {
        finish(*sequence, FinishReason::kReleased, now);
    }
}

void Scheduler::cancel(SequenceId id, Milliseconds now) {
    if (Sequence* sequence = find(id)) {
        finish(*sequence, FinishReason::kCancelled, now);
    }
}

void Scheduler::interrupt_for(std::function<bool(SequenceId)> will_be_cancelled) {
    backend_.interrupt_when([this, will_be_cancelled = std::move(will_be_cancelled)] {
        return std::ranges::all_of(shares_, [&](const Share& share) {
            const Sequence& sequence = *sequences_.at(share.id);
            // The first rows stay: a client that gives up and asks again gets on.
            return sequence.resident > sequence.round_begin && will_be_cancelled(share.id);
        });
    });
}

void Scheduler::pause(SequenceId id) {
    Sequence* sequence = find(id);
    if (sequence != nullptr && sequence->state != SequenceState::kHeld) {
        sequence->pause_requested = true;
    }
}

void Scheduler::acknowledge(SequenceId id, std::int32_t count) {
    if (Sequence* sequence = find(id)) {
        sequence->unacknowledged = std::max(0, sequence->unacknowledged - count);
    }
}

Sequence* Scheduler::find(SequenceId id) {
    const auto found = sequences_.find(id);
    return found == sequences_.end() ? nullptr : found->second.get();
}

}  // namespace fermata
