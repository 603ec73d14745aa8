// Who gets a place, and whose lease is over.
#include <algorithm>
#include <span>
#include <utility>

#include "core/scheduler.h"

namespace fermata {

namespace {

// A prompt waits for a running sequence that is about to compute this many more of its tokens. Not
// for one: that may be a sampled token of a sequence whose reader has stopped.
constexpr std::int32_t kWorthWaitingFor = 2;

// Who waits for its first token so long goes before those that are resumed after that, and takes
// the place of a hold even where that must be computed again.
constexpr Milliseconds kPatience = 5'000;

// How long a prompt waits for another server that computes its beginning: a second and four times
// what the rows take here, up to so long; or where that is not known.
constexpr Milliseconds kOthersPatience = 10'000;
constexpr Milliseconds kBlindPatience = 30'000;

// And to hear whether there is one.
constexpr Milliseconds kAnswerPatience = 300;

Milliseconds patience_for(double others_ms) {
    if (others_ms <= 0) return kBlindPatience;
    return static_cast<Milliseconds>(std::min<double>(kOthersPatience, 1'000 + 4 * others_ms));
}

// Rows that are computed again rather than that a prompt is forked there.
constexpr std::int32_t kWorthAFork = 64;

}  // namespace

// A hold's lease ends, whether its cells are still there or were evicted.
void Scheduler::expire_leases(Milliseconds now) {
    retention_.end_leases(now);
    for (auto next = sequences_.begin(); next != sequences_.end();) {
        Sequence& sequence = *(next++)->second;
        if (sequence.state == SequenceState::kHeld && sequence.hold_until <= now)
            fail(sequence, FailCode::kLeaseExpired, "the hold was not resumed in time");
    }
}

void Scheduler::admit(Milliseconds now) {
    std::deque<SequenceId> still_waiting;
    one_yields_ = false;
    const bool others_wait = !running_.empty();
    const std::int64_t moved_before = retention_.moved_bytes();
    const auto moved_enough = [&] {
        return others_wait && retention_.moved_bytes() - moved_before >= kMovedInAStep;
    };
    const auto anyone_decodes = [this] {
        return std::ranges::any_of(
            running_, [this](SequenceId id) { return sequences_.at(id)->rows_ready() > 0; });
    };
    // Other servers wait for what is shared, so that goes first.
    for (const SequenceId id : running_) {
        Sequence& sequence = *sequences_.at(id);
        age(sequence, now);
        if (!sequence.shares_now() || (moved_enough() && anyone_decodes())) continue;
        retention_.share(sequence.slot);
        sequence.shares_at = 0;
    }
    save_what_waits();
    while (!waiting_.empty()) {
        const SequenceId id = waiting_.front();
        age(*sequences_.at(id), now);
        waiting_.pop_front();
        Sequence& sequence = *sequences_.at(id);
        if (moved_enough()) {
            wait(sequence, WaitReason::kMoves);
        } else if (places_taken() >= config_.parallel) {
            wait(sequence, WaitReason::kPlace);
        } else if (sequence.unread()) {
            wait(sequence, WaitReason::kReader);
        } else if (one_yields_ && still_waiting.size() >= front_of_queue()) {
            wait(sequence, WaitReason::kSlot);
        } else if (try_admit(sequence, now)) {
            continue;
        }
        still_waiting.push_back(id);
    }
    waiting_ = std::move(still_waiting);
    // The step takes long as it is.
    if (moved_enough()) decode_only_steps_ = std::max(decode_only_steps_, 1);
}

// What waiting prompts would lose to each other is evicted last. And who would lose most of its
// prompt goes before those in front: before what was never admitted and has at least twice as many
// rows to compute. Nobody is passed by more than were in front of it when it came, so it waits at
// most about twice as long.
void Scheduler::save_what_waits() {
    SlotSet awaited;
    const std::size_t looked_at = places_taken() < config_.parallel ? front_of_queue() : 0;
    for (std::size_t i = 0; i < std::min(waiting_.size(), looked_at); ++i) {
        const Sequence& sequence = *sequences_.at(waiting_[i]);
        if (sequence.slot != kNoSlot) continue;
        const Stake stake = retention_.at_stake(sequence.tokens, sequence.salt);
        if (stake.slot == kNoSlot) continue;
        awaited.add(stake.slot);
        if (!sequence.admitted && stake.positions > sequence.size() / 2)
            pass(i, sequence.size() - stake.positions);
    }
    retention_.await(awaited);
}

// Moves the waiting sequence, with so many rows to compute, as far to the front as it may.
void Scheduler::pass(std::size_t from, std::int32_t rows) {
    std::size_t to = from;
    for (; to > 0; --to) {
        Sequence& passed = *sequences_.at(waiting_[to - 1]);
        if (passed.admitted || passed.lets_pass == 0) break;
        const Promise promise = retention_.lookup(passed.tokens, passed.salt);
        if (passed.size() - promise.promised < 2 * rows) break;
        --passed.lets_pass;
        // Those who go first stay in front of who is resumed.
        sequences_.at(waiting_[from])->goes_first |= passed.goes_first;
    }
    const auto at = [this](std::size_t index) {
        return waiting_.begin() + static_cast<std::ptrdiff_t>(index);
    };
    std::rotate(at(to), at(from), at(from + 1));
}

// Says why the sequence does not run, unless it was said.
void Scheduler::wait(Sequence& sequence, WaitReason reason, SequenceId behind) {
    if (reason != WaitReason::kFile) drop_claim(sequence);
    if (sequence.waits_for == reason && sequence.waits_behind == behind) return;
    sequence.waits_for = reason;
    sequence.waits_behind = behind;
    Event& event = emit(EventKind::kWaiting, sequence);
    event.wait = reason;
    event.behind = behind;
}

// The sequence whose cells are in the slot; 0: none.
SequenceId Scheduler::sequence_in(SlotId slot) const {
    const auto found = std::ranges::find_if(
        running_, [&](SequenceId id) { return sequences_.at(id)->slot == slot; });
    return found == running_.end() ? 0 : *found;
}

void Scheduler::age(Sequence& sequence, Milliseconds now) {
    if (sequence.waits_since < 0) sequence.waits_since = now;
    if (now - sequence.waits_since >= kPatience) sequence.goes_first = true;
}

// Whose reader has stopped takes none.
std::int32_t Scheduler::places_taken() const {
    return static_cast<std::int32_t>(std::ranges::count_if(
        running_, [this](SequenceId id) { return !sequences_.at(id)->throttled(); }));
}

// Where the sequence is forked while it is prefilled: at the marks of its request; where others
// left what it goes on as; and near its end, for the same prompt once more.
void Scheduler::set_marks(Sequence& sequence, std::int32_t branch) {
    std::vector<std::int32_t>& marks = sequence.marks;
    std::erase_if(marks, [&](std::int32_t mark) { return mark <= sequence.resident; });
    if (!retention_.keeps_forks()) return marks.clear();
    const auto add = [&](std::int32_t mark) {
        const auto next = std::ranges::lower_bound(marks, mark - kWorthAFork);
        const bool near = next != marks.end() && *next <= mark;
        if (!near && mark - sequence.resident >= kWorthAFork)
            marks.insert(std::ranges::lower_bound(marks, mark), mark);
    };
    add(branch);
    add(sequence.size() - 1);
}

// Who would have to be computed for the most part waits for what runs rather than take the cells of
// one that is likely to come back, but not long: twice what these cells would take to compute, and
// kPatience at most. Then it goes, and the next one in the queue begins to wait.
bool Scheduler::yields(Sequence& sequence, const Promise& promise, Milliseconds now) {
    constexpr double kPatienceForCells = 2.0;
    if (places_taken() == 0 || sequence.admitted || 2 * promise.resident >= sequence.size())
        return false;
    if (one_yields_) return true;
    const double others_ms = prefill_budget_.row_ms() * retention_.rows_that_others_lose(promise);
    if (others_ms <= 0.0) return false;
    if (sequence.yields_since < 0) sequence.yields_since = now;
    const double patience_ms =
        std::min(kPatienceForCells * others_ms, static_cast<double>(kPatience));
    one_yields_ = static_cast<double>(now - sequence.yields_since) < patience_ms;
    return one_yields_;
}

// Another server computes what the prompt shares with others beyond the `have` positions that are
// to be had. false: it is computed here, and shares_at says whether for others too.
bool Scheduler::awaits_others(Sequence& sequence, std::int32_t have, Milliseconds now) {
    sequence.shares_at = 0;
    const std::int32_t rows = sequence.shared - have;
    const double row_ms = prefill_budget_.row_ms();
    const auto beginning =
        std::span(sequence.tokens).first(static_cast<std::size_t>(sequence.shared));
    const Claimed claimed = retention_.claim(beginning, have, sequence.salt, row_ms);
    if (claimed.what != sequence.claim) drop_claim(sequence);
    sequence.claim = claimed.what;
    const bool unanswered = claimed.claim == Claim::kAsked;
    if (!unanswered) sequence.asks_since = -1;
    if (claimed.claim == Claim::kNobody) return false;
    if (claimed.claim != Claim::kOurs) {
        Milliseconds& since = unanswered ? sequence.asks_since : sequence.awaits_others_since;
        if (since < 0) since = now;
        if (now - since < (unanswered ? kAnswerPatience : patience_for(row_ms * rows))) return true;
        drop_claim(sequence);
    }
    sequence.shares_at = sequence.shared;
    return false;
}

void Scheduler::drop_claim(Sequence& sequence) {
    retention_.give_back(std::exchange(sequence.claim, 0));
    sequence.asks_since = -1;
}

// A place is free and every slot is taken. What is held may wait for this very sequence (a tool
// that is an agent), so a hold gives up its cells: at once if they go to RAM, else when nothing
// runs or the sequence has waited long.
bool Scheduler::holds_give(const Sequence& sequence) const {
    return config_.ram_limit > 0 || running_.empty() || sequence.goes_first;
}

bool Scheduler::can_have_slot(const Sequence& sequence) const {
    if (retention_.has_slot()) return true;
    if (places_taken() < static_cast<std::int32_t>(running_.size())) return true;
    return holds_give(sequence) && retention_.eviction_victim_among_held() != kNoSlot;
}

// Why the sequence is not admitted now; nullopt: it may be.
std::optional<Scheduler::Wait> Scheduler::reason_to_wait(Sequence& sequence, Milliseconds now) {
    const Promise promise = retention_.lookup(sequence.tokens, sequence.salt);
    if (yields(sequence, promise, now)) return Wait{WaitReason::kSlot};
    if (retention_.fetch(sequence.tokens, promise.promised, sequence.salt,
                         prefill_budget_.row_ms())) {
        drop_claim(sequence);
        return Wait{WaitReason::kFile};
    }
    if (promise.promised >= promise.resident + kWorthWaitingFor)
        return Wait{WaitReason::kPrefix, sequence_in(promise.provider)};
    // Nothing is claimed that cannot be computed now.
    if (!can_have_slot(sequence)) return Wait{WaitReason::kSlot};
    if (awaits_others(sequence, promise.resident, now)) return Wait{WaitReason::kFile};
    return std::nullopt;
}

// A slot with what the cache has of the sequence; nullopt: there is none.
std::optional<Placement> Scheduler::place(Sequence& sequence, Milliseconds now) {
    const auto acquire = [&] {
        return retention_.acquire(sequence.tokens, now, sequence.salt, sequence.retain);
    };
    auto placement = acquire();
    if (!placement && (preempt_unread() || (holds_give(sequence) && preempt_held())))
        placement = acquire();
    if (!placement) return placement;
    if (placement->reused >= sequence.shares_at) sequence.shares_at = 0;
    if (sequence.shares_at > 0)
        retention_.set_claim(placement->slot, std::exchange(sequence.claim, 0));
    drop_claim(sequence);
    sequence.slot = placement->slot;
    sequence.resident = sequence.in_chunks = placement->reused;
    set_marks(sequence, placement->branch);
    if (!sequence.admitted) {
        sequence.usage.cached_tokens = placement->reused;
        totals_.cached_tokens += placement->reused;
    }
    return placement;
}

// false: it waits, and an event said why.
bool Scheduler::try_admit(Sequence& sequence, Milliseconds now) {
    PrefixSource source = PrefixSource::kHold;
    if (sequence.slot != kNoSlot) {
        // A held sequence comes back to its own cells.
        sequence.slot = retention_.resume(sequence.slot);
        sequence.resident = retention_.length(sequence.slot);
    } else {
        const auto waits = reason_to_wait(sequence, now);
        const auto placement = waits ? std::nullopt : place(sequence, now);
        if (!placement) {
            const auto [reason, behind] = waits.value_or(Wait{WaitReason::kSlot});
            wait(sequence, reason, behind);
            return false;
        }
        source = placement->source;
    }
    sequence.admitted = true;
    if (!sequence.sampler) {
        sequence.sampler = backend_.make_sampler(sampling_of(sequence));
        sequence.sampler->observe(sequence.tokens);
        if (sequence.sampling.goes_on) sequence.sampler->begin_round(sequence.size());
    }
    sequence.resident_ever = std::max(sequence.resident_ever, sequence.resident);
    sequence.round_begin = sequence.resident;
    sequence.state = SequenceState::kRunning;
    retention_.mark(sequence.slot, sequence.marks);
    retention_.plan(
        sequence.slot,
        std::span(sequence.tokens).subspan(static_cast<std::size_t>(sequence.resident)));
    running_.push_back(sequence.id);
    sequence.waits_for.reset();
    sequence.waits_behind = 0;
    Event& event = emit(EventKind::kAdmitted, sequence);
    event.reused = sequence.resident;
    event.source = source;
    event.prefill_total = sequence.prefill_end - sequence.resident;
    give_begun(sequence, now);
    return true;
}

// Only rows that are sampled have log-probabilities: then the sampler says what was begun.
SamplingParams Scheduler::sampling_of(Sequence& sequence) {
    SamplingParams sampling = sequence.sampling;
    if (!sequence.begun.empty() && sequence.top_logprobs >= 0) {
        sampling.script = std::exchange(sequence.begun, {});
        sampling.samples_after_script = true;
    }
    return sampling;
}

// What an earlier process generated is generated once more, as what a grammar forces.
void Scheduler::give_begun(Sequence& sequence, Milliseconds now) {
    if (sequence.begun.empty()) return;
    const std::vector<Token> begun = std::exchange(sequence.begun, {});
    sequence.sampler->begin_round(sequence.size() + static_cast<std::int32_t>(begun.size()));
    // It takes no token before its first mask.
    if (sequence.guide) sequence.guide->prepare();
    sequence.forced.assign(begun.begin(), begun.end());
    const SequenceId id = sequence.id;
    give_forced(sequence, now);
    const Sequence* left = find(id);
    if (left != nullptr && left->state == SequenceState::kRunning && left->forced.empty())
        give_known(sequence, now);
}

}  // namespace fermata
