// The consequences of a sampled token, and every way a sequence stops running.
#include "core/scheduler.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace fermata {

// Frees the sequence's cells. When it runs again, they come back from RAM or are computed again.
void Scheduler::preempt(Sequence& sequence) {
    std::erase(extending_, sequence.id);
    if (sequence.suspected) {
        retention_.drop(sequence.slot);
    } else {
        retention_.give_up(sequence.slot);
    }
    sequence.slot = kNoSlot;
    const std::int32_t computed = std::exchange(sequence.resident, 0);
    sequence.in_chunks = 0;
    if (sequence.state == SequenceState::kRunning) {
        std::erase(running_, sequence.id);
        sequence.state = SequenceState::kWaiting;
        sequence.goes_first = true;
        sequence.prefill_end = std::max(sequence.prefill_end, computed);
        wait(sequence, WaitReason::kCells);
    }
}

// Frees the cells of the hold with the furthest deadline. false: nothing is held.
bool Scheduler::preempt_held() {
    const SlotId victim = retention_.eviction_victim_among_held();
    for (auto& [id, sequence] : sequences_) {
        if (victim != kNoSlot && sequence->slot == victim) {
            preempt(*sequence);
            return true;
        }
    }
    return false;
}

// Preempts a sequence whose reader has stopped. false: there is none.
bool Scheduler::preempt_unread() {
    for (const SequenceId id : running_) {
        Sequence& sequence = *sequences_.at(id);
        if (!sequence.throttled()) continue;
        preempt(sequence);
        waiting_.push_back(id);
        return true;
    }
    return false;
}

// Appends the sampled token and the tokens that the grammar forces after it.
void Scheduler::extend(Sequence& sequence, Token sampled, Milliseconds now) {
    if (accept(sequence, sampled, now)) give_known(sequence, now);
}

// The tokens that the grammar forces next.
void Scheduler::give_known(Sequence& sequence, Milliseconds now) {
    if (!sequence.guide || !sequence.forced_tokens) return;
    // Only rows that are sampled after have logits to tell of.
    if (sequence.top_logprobs >= 0) return;
    const auto& closing = sequence.guide->closing();
    const std::vector<Token> known = closing.empty()
                                         ? sequence.guide->forced()
                                         : std::vector<Token>(closing.begin(), closing.end());
    sequence.forced.assign(known.begin(), known.end());
    give_forced(sequence, now);
}

// Appends forced tokens as far as the reader takes them. The rest waits for the reader and is never
// sampled, so a sampler's state does not depend on when the reader comes.
void Scheduler::give_forced(Sequence& sequence, Milliseconds now) {
    while (!sequence.forced.empty() && !sequence.throttled()) {
        const Token token = sequence.forced.front();
        sequence.forced.pop_front();
        sequence.sampler->skip(token);
        if (!accept(sequence, token, now)) return;
    }
}

// To the readers that have come. false: nobody got any.
bool Scheduler::give_forced(Milliseconds now) {
    const std::size_t before = out_.events.size();
    for (const SequenceId id : std::vector(running_))
        give_forced(*sequences_.at(id), now);
    return out_.events.size() > before;
}

// Appends a generated token, or ends the round before or after it. false: the sequence has stopped
// running and may no longer exist.
bool Scheduler::accept(Sequence& sequence, Token token, Milliseconds now) {
    const bool stops = sequence.filter.stops(token);
    const bool end = !stops && backend_.is_end(token);
    const bool hears_stops = sequence.filter.hears_stops(sequence.usage.generated_tokens);
    const int closed_before = sequence.watcher.calls_closed();
    const std::string_view text =
        stops && !sequence.filter.keeps_stop() ? std::string_view() : text_of(sequence, token);
    const auto signal = sequence.watcher.feed(text, hears_stops);
    if (signal == TextWatcher::Signal::kTextAfterCall && !end) {
        hold(sequence, PauseReason::kTextAfterCall, now);
        return false;
    }
    if (!advance(sequence, token)) return false;
    sequence.sampler->observe(std::span(&token, 1));
    sequence.tokens.push_back(token);
    sequence.generated_in_round += 1;
    sequence.usage.generated_tokens += 1;
    sequence.unacknowledged += 1;
    totals_.generated_tokens += 1;
    Event& event = emit(EventKind::kTokens, sequence);
    event.tokens.push_back(token);
    if (sequence.logprobs) event.logprobs.push_back(std::move(*sequence.logprobs));
    sequence.logprobs.reset();
    event.text = sequence.watcher.take_released();
    for (int call = closed_before; call < sequence.watcher.calls_closed(); ++call) {
        emit(EventKind::kToolCallReady, sequence).call_index = call;
    }

    if (end) {
        end_round(sequence, now);
    } else if (signal == TextWatcher::Signal::kStop) {
        finish(sequence, FinishReason::kStopString, now);
    } else if (stops) {
        sequence.stop_token = token;
        finish(sequence, FinishReason::kStopString, now);
    } else if (sequence.guide && (sequence.guide->stopped() || sequence.guide->closed())) {
        complete(sequence, now);
    } else if (remaining(sequence) <= 0) {
        const bool ended = sequence.close_at_limit && sequence.guide && sequence.guide->accepting();
        if (ended) {
            end_round(sequence, now);
        } else {
            finish(sequence, FinishReason::kLength, now);
        }
    } else if (sequence.pause_requested) {
        hold(sequence, PauseReason::kRequested, now);
    } else {
        retention_.plan(sequence.slot, std::span(&token, 1));
        return true;
    }
    return false;
}

// Advances the sequence's grammar. false: the grammar refused the token, and the sequence failed.
bool Scheduler::advance(Sequence& sequence, Token token) {
    if (!sequence.guide || sequence.guide->consume(token)) return true;
    fail(sequence, FailCode::kGrammarFailed, sequence.guide->error());
    return false;
}

// The grammar allows only an end token, so no decode is needed.
void Scheduler::complete(Sequence& sequence, Milliseconds now) {
    if (remaining(sequence) <= 0 || !backend_.is_end(backend_.end_token())) {
        end_round(sequence, now);
    } else {
        sequence.sampler->skip(backend_.end_token());
        accept(sequence, backend_.end_token(), now);
    }
}

void Scheduler::end_round(Sequence& sequence, Milliseconds now) {
    using HoldAtEnd = PauseTriggers::HoldAtEnd;
    const bool holds = sequence.pause.hold_at_end == HoldAtEnd::kAlways ||
                       (sequence.pause.hold_at_end == HoldAtEnd::kAfterCall &&
                        sequence.watcher.calls_closed() > 0);
    if (holds) {
        hold(sequence, PauseReason::kEndToken, now);
    } else {
        finish(sequence, FinishReason::kEnd, now);
    }
}

// Tokens that may still be generated in this round.
std::int32_t Scheduler::remaining(const Sequence& sequence) const {
    const std::int32_t room = shape_.cells_per_sequence - sequence.size();
    if (sequence.max_tokens < 0) return room;
    return std::min(room, sequence.max_tokens - sequence.generated_in_round);
}

std::string_view Scheduler::text_of(const Sequence& sequence, Token token) const {
    const auto spelled = sequence.spelled.find(token);
    return spelled == sequence.spelled.end() ? backend_.piece(token) : spelled->second;
}

void Scheduler::hold(Sequence& sequence, PauseReason reason, Milliseconds now) {
    cut_drafted(sequence);
    std::erase(running_, sequence.id);
    sequence.state = SequenceState::kHeld;
    sequence.held_resident = sequence.resident_ever;
    sequence.extendable = true;
    sequence.shares_at = 0;
    sequence.pause_requested = false;
    sequence.forced.clear();
    retention_.forget_planned(sequence.slot);
    sequence.hold_until = now + config_.hold_lease_ms;
    retention_.hold(sequence.slot, sequence.hold_until);
    Event& event = emit(EventKind::kToolCallPause, sequence);
    event.pause = reason;
    event.text = sequence.watcher.take_rest();
    event.pending_token = sequence.rows_left() > 0;
    event.usage = sequence.usage;
}

void Scheduler::finish(Sequence& sequence, FinishReason reason, Milliseconds now) {
    count_extension(sequence);
    cut_drafted(sequence);
    if (sequence.slot != kNoSlot) {
        retention_.forget_planned(sequence.slot);
        if (sequence.retain || sequence.lease_ms > 0) {
            retention_.retain(sequence.slot, now,
                              sequence.lease_ms > 0 ? now + sequence.lease_ms : 0);
        } else {
            retention_.drop(sequence.slot);
        }
    }
    Event& event = emit(EventKind::kFinished, sequence);
    event.finish = reason;
    event.text = sequence.watcher.stop_hit().empty() ? sequence.watcher.take_rest()
                                                     : sequence.watcher.take_released();
    event.stop_string = sequence.watcher.stop_hit();
    event.stop_token = sequence.stop_token;
    event.usage = sequence.usage;
    erase(sequence.id);
}

void Scheduler::fail(Sequence& sequence, FailCode code, std::string message) {
    count_extension(sequence);
    if (sequence.slot != kNoSlot) {
        // The computed cells are right, and the same prompt may come again.
        const bool sound = code == FailCode::kLeaseExpired || code == FailCode::kContextLength;
        if (sound && sequence.retain) {
            retention_.retain(sequence.slot, now_, 0);
        } else {
            retention_.drop(sequence.slot);
        }
    }
    Event& event = emit(EventKind::kFailed, sequence);
    event.fail = code;
    event.message = std::move(message);
    event.usage = sequence.usage;
    erase(sequence.id);
}

void Scheduler::save_all() {
    retention_.save_all();
}

void Scheduler::fail_all(FailCode code, const std::string& message) {
    while (!sequences_.empty()) {
        fail(*sequences_.begin()->second, code, message);
    }
    retention_.clear_retained();
}

void Scheduler::erase(SequenceId id) {
    std::erase(waiting_, id);
    std::erase(running_, id);
    drop_claim(*sequences_.at(id));
    sequences_.erase(id);
}

Event& Scheduler::emit(EventKind kind, Sequence& sequence) {
    Event& event = out_.events.emplace_back();
    event.kind = kind;
    event.id = sequence.id;
    return event;
}

}  // namespace fermata
